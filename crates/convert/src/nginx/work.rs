//! State of a conversion.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::location::Location;
use super::map::Map;
use super::scope::Scope;
use super::undecided::UnknownIf;
use super::variable::Constants;
use crate::expression::condition::Condition;
use crate::expression::decide::{Budget, LimitExceeded};
use crate::expression::pattern::PrefixPattern;
use crate::limits;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::route::Route;
use crate::settings::timeouts::Timeouts;
use crate::source::Files;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;

/// Input and collected results of a conversion.
pub(super) struct Context<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) notes: Notes,
    pub(super) routes: Vec<Route>,
    pub(super) groups: Groups,
    pub(super) timeouts: Timeouts<'a>,
    pub(super) log: AccessLog<'a>,
    pub(super) maps: Vec<Map<'a>>,
    /// Directives of the `http` block, such as `upstream` and `limit_req_zone`.
    pub(super) http: &'a [Directive],
    /// Proxies whose X-Forwarded-For Onrush trusts, as networks.
    pub(super) trusted: Vec<String>,
    pub(super) prefix: PathBuf,
    /// Whether any route sends the client address to servers.
    pub(super) forwards_clients: bool,
    /// The first `proxy_pass` or `grpc_pass` in use.
    pub(super) passes: Option<&'a Directive>,
    /// Numbers of `server` directives whose rule about client certificates cannot be converted.
    pub(super) unverified: Vec<usize>,
    /// Variables of maps whose values may differ from nginx's.
    pub(super) uncertain: Vec<String>,
    pub(super) budget: Budget,
    /// Treatment of rules that refuse requests and have no equivalent.
    pub(super) guards: Guards,
}

impl<'a> Context<'a> {
    pub(super) fn push(&mut self, route: Route) -> Result<(), LimitExceeded> {
        if self.routes.len() >= limits::ROUTES_MAX {
            return Err(LimitExceeded);
        }
        self.routes.push(route);
        Ok(())
    }

    /// The directive of `http` with this name and first argument.
    pub(super) fn named(&self, name: &str, argument: &str) -> Option<&'a Directive> {
        self.http
            .iter()
            .find(|directive| directive.name() == name && directive.argument(0) == argument)
    }

    /// A file name, relative to the prefix.
    pub(super) fn path(&self, name: &str) -> String {
        let path = self.prefix.join(Path::new(name));
        path.to_string_lossy().into_owned()
    }
}

/// Requests for which a route is created.
#[derive(Clone, Debug)]
pub(super) struct RouteContext<'s> {
    pub(super) when: &'s Condition,
    pub(super) constants: &'s Constants,
}

/// State of requests at one point of the rewrite rules.
#[derive(Clone, Debug)]
pub(super) struct State<'a> {
    pub(super) scope: Scope<'a>,
    pub(super) constants: Constants,
    /// Scope of the server, outside of its locations.
    pub(super) server: Scope<'a>,
    /// Locations of the server, in order.
    pub(super) locations: Rc<[Location<'a>]>,
    /// Index of the current location; the number of locations for the server itself.
    pub(super) at: usize,
    /// Path of the current location, with the captured text.
    pub(super) captured: Option<PrefixPattern>,
    /// Prefix that a `rewrite` replaces, and its replacement.
    pub(super) moved: Option<(String, String)>,
    /// Expression that a `rewrite` matches against the path, and the new path.
    pub(super) rewritten: Option<(String, String)>,
    /// The `rewrite … break` that changes the path, even if it has no equivalent.
    pub(super) rewrites: Option<&'a Directive>,
    /// The enclosing `if` whose condition cannot be evaluated.
    pub(super) undecided: Option<UnknownIf>,
}
