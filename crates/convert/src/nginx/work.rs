//! What a conversion has made so far.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::location::Location;
use super::map::Map;
use super::scope::Scope;
use super::undecided::Undecided;
use super::variable::Constants;
use crate::expression::condition::Condition;
use crate::expression::decide::{Budget, TooMany};
use crate::expression::pattern::Simple;
use crate::limits;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::route::Route;
use crate::settings::timeouts::Timeouts;
use crate::source::Files;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;

/// Everything that parts of the conversion add to.
pub(super) struct Work<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) notes: Notes,
    pub(super) routes: Vec<Route>,
    pub(super) groups: Groups,
    pub(super) timeouts: Timeouts<'a>,
    pub(super) log: AccessLog<'a>,
    pub(super) maps: Vec<Map<'a>>,
    /// `upstream`, `limit_req_zone` and such: what stands once in `http`.
    pub(super) http: &'a [Directive],
    /// Networks of proxies whose X-Forwarded-For Onrush takes the client address from.
    pub(super) trusted: Vec<String>,
    /// What relative directories are taken from.
    pub(super) prefix: PathBuf,
    /// Whether any route tells servers of clients by X-Forwarded-For and such.
    pub(super) forwards_clients: bool,
    /// The first `proxy_pass` or `grpc_pass` that is used.
    pub(super) passes: Option<&'a Directive>,
    /// Servers, by the numbers of their directives, whose rule about client certificates cannot be carried.
    pub(super) unverified: Vec<usize>,
    /// Maps, by the names of their variables, whose value may be another one than in nginx.
    pub(super) uncertain: Vec<String>,
    pub(super) budget: Budget,
    /// Treatment of rules that refuse requests and have no counterpart.
    pub(super) guards: Guards,
}

impl<'a> Work<'a> {
    /// Adds a route.
    ///
    /// # Errors
    /// When there are more than Onrush takes.
    pub(super) fn push(&mut self, route: Route) -> Result<(), TooMany> {
        if self.routes.len() >= limits::ROUTES_MAX {
            return Err(TooMany);
        }
        self.routes.push(route);
        Ok(())
    }

    /// The directive of this name in `http` whose first argument is this.
    pub(super) fn named(&self, name: &str, argument: &str) -> Option<&'a Directive> {
        self.http
            .iter()
            .find(|directive| directive.name() == name && directive.argument(0) == argument)
    }

    /// The directory or file that is named.
    pub(super) fn path(&self, name: &str) -> String {
        let path = self.prefix.join(Path::new(name));
        path.to_string_lossy().into_owned()
    }
}

/// Where a route is made: what it is for, and what is known there.
#[derive(Clone, Debug)]
pub(super) struct Spot<'s> {
    pub(super) when: &'s Condition,
    pub(super) constants: &'s Constants,
}

/// What is known of a request on its way.
#[derive(Clone, Debug)]
pub(super) struct State<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) constants: Constants,
    /// What holds in the server, outside of its locations.
    pub(super) server: Scope<'a>,
    /// The locations of the server, in order.
    pub(super) locations: Rc<[Location<'a>]>,
    /// The place of the own one among them; behind the last for the server itself.
    pub(super) at: usize,
    /// The path of the location, and what its expression has captured.
    pub(super) captured: Option<Simple>,
    /// The prefix that `rewrite` takes, and what it puts in its place.
    pub(super) moved: Option<(String, String)>,
    /// The expression that `rewrite` looks for in the path, and what the path becomes.
    pub(super) rewritten: Option<(String, String)>,
    /// The `rewrite … break` that has changed the path, or should have.
    pub(super) rewrites: Option<&'a Directive>,
    /// The `if` around the current act, if its condition cannot be evaluated.
    pub(super) undecided: Option<Undecided>,
}
