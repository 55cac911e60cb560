//! A group of servers, seen from one core: what is known of them, and a pool of connections to each. `select.rs` chooses
//! which of them takes a request, `connect.rs` makes connections to it, `outcome.rs` records the outcome of the request, and
//! `maintain.rs` keeps all of that up to date.

mod connect;
mod event;
mod maintain;
mod outcome;
mod reservation;
mod select;
mod server;
mod share;
mod sticky;
mod takeover;
mod view;
pub(crate) mod views;

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use onrush_config::plan::{Timeouts, Upstream, UpstreamProtocol};
use onrush_engine::Instant;
use onrush_engine::random::Random;
use onrush_tls::Connector;

use super::balance::Balancer;
use super::ejection::Ejection;
use super::endpoints::Endpoints;
use super::ewma::Decay;
use super::queue::Queue;
use super::retirement::Retirement;
use super::retry_budget::RetryBudget;
use crate::worker::client_counts::CoreClientCounts;

pub(crate) use event::Event;
pub(crate) use maintain::maintain;
pub(crate) use reservation::Reservation;
pub(crate) use select::Reach;
pub(crate) use server::Server;

#[derive(Debug)]
pub(crate) struct Group {
    myself: Weak<Group>,
    /// As it was configured.
    pub(crate) plan: Upstream,
    pub(crate) timeouts: Timeouts,
    pub(crate) queue: Queue,
    endpoints: Arc<Endpoints>,
    /// What speaks TLS with its servers, if they do.
    connector: Option<Arc<Connector>>,
    /// The version of the endpoints that `balancer` knows.
    seen: Cell<u64>,
    /// A server that is the same in the next configuration serves its group, too.
    servers: Vec<Rc<Server>>,
    /// What the configuration makes of each of them; `None` for one without an address.
    shares: Vec<Cell<Option<Share>>>,
    balancer: RefCell<Balancer>,
    /// Whether a server that may get requests does not have its full weight yet.
    is_starting: Cell<bool>,
    /// Whether any server has a bound on its connections.
    is_limited: bool,
    /// Identifies the group in counts of clients.
    number: u64,
    /// Requests in flight of its clients.
    clients: CoreClientCounts,
    /// Requests of this core, be they of this configuration or one before.
    in_flight: Rc<Cell<u32>>,
    /// How fast latencies are forgotten.
    decay: Decay,
    budget: RefCell<RetryBudget>,
    chance: Random,
    /// `None` if no server of the group can be taken out.
    ejection: Option<Ejection>,
    pub(crate) retirement: Retirement,
    /// Whether latencies and outcomes of responses are needed.
    measures: Cell<bool>,
    /// A server on trial, or [`NO_SERVER`].
    on_trial: Cell<u32>,
    /// Whether those that get requests are servers which were taken out, for want of others.
    uses_last_resort: Cell<bool>,
}

/// What a server takes by the configuration.
#[derive(Clone, Copy, Debug)]
struct Share {
    weight: u32,
    tier: Tier,
}

/// Which servers get requests first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Primary,
    /// Only when no primary server can take them.
    Backup,
}

/// Later than everything.
pub(crate) const FOREVER: Instant = Instant::from_nanoseconds(u64::MAX);

/// No server's index.
pub(crate) const NO_SERVER: u32 = u32::MAX;

impl Group {
    /// A server by its index.
    pub(crate) fn server(&self, index: u32) -> &Server {
        &self.servers[index as usize]
    }

    pub(crate) fn servers(&self) -> &[Rc<Server>] {
        &self.servers
    }

    /// Whether its servers speak HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        matches!(self.plan.protocol, UpstreamProtocol::Http2(_))
    }

    /// How requests to its servers name what they are sent over (RFC 9110 4.2).
    pub(crate) fn scheme(&self) -> &'static str {
        match self.connector {
            Some(_) => "https",
            None => "http",
        }
    }

    pub(crate) fn endpoints(&self) -> &Arc<Endpoints> {
        &self.endpoints
    }

    /// Ejection of its servers; `None` if none can be taken out.
    pub(crate) fn ejection(&self) -> Option<&Ejection> {
        self.ejection.as_ref()
    }

    /// A request goes to the group for the first time.
    pub(crate) fn count_request(&self, now: Instant) {
        if self.plan.retries.count > 0 {
            self.budget.borrow_mut().count_request(now);
        }
    }

    /// Takes another attempt from what the group may spend on them.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        self.budget.borrow_mut().try_retry(now)
    }
}
