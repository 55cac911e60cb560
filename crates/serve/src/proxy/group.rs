//! A group of servers as one core sees it, with a pool of connections to each server. `select.rs` chooses a server for
//! a request, `connect.rs` connects to it, `outcome.rs` records the outcome, and `maintain.rs` updates the group.

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

pub(crate) use event::{Event, report};
pub(crate) use maintain::maintain;
pub(crate) use reservation::Reservation;
pub(crate) use select::RetryScope;
pub(crate) use server::Server;

#[derive(Debug)]
pub(crate) struct Group {
    myself: Weak<Group>,
    pub(crate) plan: Upstream,
    pub(crate) timeouts: Timeouts,
    pub(crate) queue: Queue,
    endpoints: Arc<Endpoints>,
    /// The TLS client, if the servers use TLS.
    connector: Option<Arc<Connector>>,
    /// Version of the endpoints from which `balancer` was built.
    seen: Cell<u64>,
    /// A server that is in the next configuration too is shared with the group there.
    servers: Vec<Rc<Server>>,
    /// Weight and tier of each server; `None` without an address.
    shares: Vec<Cell<Option<Share>>>,
    balancer: RefCell<Balancer>,
    /// Whether any server is in slow start.
    is_starting: Cell<bool>,
    /// Whether any server has a limit on its connections.
    is_limited: bool,
    /// Identifies the group in the request counts of clients.
    number: u64,
    clients: CoreClientCounts,
    /// Requests in flight of this core, in this and in earlier configurations.
    in_flight: Rc<Cell<u32>>,
    decay: Decay,
    budget: RefCell<RetryBudget>,
    chance: Random,
    /// `None` if no server of the group can be taken out.
    ejection: Option<Ejection>,
    pub(crate) retirement: Retirement,
    /// Whether latencies and outcomes of responses are recorded.
    measures: Cell<bool>,
    /// Index of a server on trial, or [`NO_SERVER`].
    on_trial: Cell<u32>,
    /// Whether the balancer chooses among ejected servers, because no other server is available.
    uses_last_resort: Cell<bool>,
    /// Whether a server is failing, so that responses are needed to see it work again.
    has_failing: Cell<bool>,
}

/// Weight and tier of a server in the configuration.
#[derive(Clone, Copy, Debug)]
struct Share {
    weight: u32,
    tier: Tier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tier {
    Primary,
    /// Used only when no primary server is available.
    Backup,
}

/// Later than any deadline.
pub(crate) const NO_DEADLINE: Instant = Instant::from_nanoseconds(u64::MAX);

/// Index that stands for no server.
pub(crate) const NO_SERVER: u32 = u32::MAX;

impl Group {
    pub(crate) fn server(&self, index: u32) -> &Server {
        &self.servers[index as usize]
    }

    pub(crate) fn servers(&self) -> &[Rc<Server>] {
        &self.servers
    }

    pub(crate) fn speaks_http2(&self) -> bool {
        matches!(self.plan.protocol, UpstreamProtocol::Http2(_))
    }

    /// Scheme of the requests to its servers (RFC 9110 4.2).
    pub(crate) fn scheme(&self) -> &'static str {
        match self.connector {
            Some(_) => "https",
            None => "http",
        }
    }

    pub(crate) fn endpoints(&self) -> &Arc<Endpoints> {
        &self.endpoints
    }

    /// `None` if no server can be taken out.
    pub(crate) fn ejection(&self) -> Option<&Ejection> {
        self.ejection.as_ref()
    }

    /// Counts a new request; retries are limited to a share of these.
    pub(crate) fn count_request(&self, now: Instant) {
        if self.plan.retries.count > 0 {
            self.budget.borrow_mut().count_request(now);
        }
    }

    /// Takes one retry from the group's retry budget. Returns `false` if the budget is used up.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        self.budget.borrow_mut().try_retry(now)
    }
}
