//! What one core knows and owns: its prepared routes, its pools, its date, its counters.

use std::cell::Cell;
use std::rc::Rc;

use onrush_config::Plan;
use onrush_config::plan::{Action, Timeouts};
use onrush_engine::{Core, Error, Instant, Root};
use onrush_http::date::{self, DATE_BYTES};

use crate::limits::DATE_LAG;
use crate::log::Log;
use crate::meter::Meter;
use crate::proxy::Group;
use crate::proxy::group::Resolved;
use crate::respond::file::Files;
use crate::respond::fixed::Fixed;
use crate::route::Route;

/// How a route's requests are answered, prepared for one core.
pub(crate) enum Answer {
    Fixed(Fixed),
    Files(Files),
    Synthetic,
    Forward(usize),
}

pub(crate) struct Worker {
    pub(crate) core: Core,
    pub(crate) routes: Vec<Route<Answer>>,
    pub(crate) groups: Vec<Rc<Group>>,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: onrush_http::Limits,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    /// Set once the core was asked to stop: answers then end their connections.
    pub(crate) stopping: Cell<bool>,
    date: Cell<[u8; DATE_BYTES]>,
    date_second: Cell<u64>,
    date_until: Cell<Instant>,
}

impl Worker {
    /// Prepares `plan` for one core.
    ///
    /// # Errors
    /// When the directory of a route cannot be opened, with its path.
    pub(crate) fn new(
        core: Core,
        plan: &Plan,
        resolved: &[Resolved],
    ) -> Result<Rc<Self>, (String, Error)> {
        let mut routes = Vec::new();
        for route in &plan.routes {
            let target = match &route.action {
                Action::Respond {
                    status,
                    body,
                    headers,
                } => Answer::Fixed(Fixed::new(*status, body, headers)),
                Action::Files {
                    root,
                    index,
                    hidden,
                    precompressed: _,
                } => {
                    let root =
                        Root::open(root).map_err(|error| (root.display().to_string(), error))?;
                    Answer::Files(Files::new(root, index, *hidden))
                }
                Action::Synthetic => Answer::Synthetic,
                Action::Forward { split, .. } => Answer::Forward(split[0].0),
                Action::Redirect { .. } => unreachable!("no configuration has one yet"),
            };
            routes.push(Route {
                when: route.when.clone(),
                target,
            });
        }
        let seed = core.now_exact().nanoseconds() ^ core.id() as u64;
        let groups = plan.upstreams.iter().zip(resolved);
        let worker = Rc::new(Self {
            routes,
            groups: groups
                .map(|(upstream, resolved)| Rc::new(Group::new(upstream, resolved, seed)))
                .collect(),
            timeouts: plan.timeouts,
            limits: onrush_http::Limits::DEFAULT,
            meter: Meter::default(),
            log: Log::default(),
            stopping: Cell::new(false),
            date: Cell::new(date::format(core.unix_seconds())),
            date_second: Cell::new(core.unix_seconds()),
            date_until: Cell::new(core.now()),
            core,
        });
        Ok(worker)
    }

    /// The value of `Date` for an answer made now.
    pub(crate) fn date(&self) -> [u8; DATE_BYTES] {
        self.date_versioned().1
    }

    /// The date, and a number that changes with it.
    #[inline]
    pub(crate) fn date_versioned(&self) -> (u64, [u8; DATE_BYTES]) {
        let now = self.core.now();
        if now >= self.date_until.get() {
            self.date_until.set(now + DATE_LAG);
            let second = self.core.unix_seconds();
            if self.date_second.replace(second) != second {
                self.date.set(date::format(second));
            }
        }
        (self.date_second.get(), self.date.get())
    }
}
