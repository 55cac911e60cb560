//! What all cores of a run know, and what becomes of one flow.

use std::net::SocketAddr;

use onrush_packet::report::Report;
use onrush_packet::tally::Tally;

use super::path::Path;
use super::plan::{Plan, Way};
use crate::pace::target::lookup::Lookup;

/// What all cores of a run know.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) plan: Plan,
    pub(crate) way: Way,
    pub(crate) far: FarEnd,
    pub(crate) target: SocketAddr,
    /// Name that was resolved to the address.
    pub(crate) lookup: Option<Lookup>,
    /// The interfaces that were named.
    pub(crate) paths: Vec<Path>,
    /// Who is next on the link of each, where datagrams leave as frames.
    pub(crate) neighbours: Vec<[u8; 6]>,
    /// The run's number.
    pub(crate) run: u32,
}

impl Task {
    /// The interface that flow `flow` sends by.
    pub(crate) fn path_of(&self, flow: u16) -> Option<&Path> {
        Some(&self.paths[self.plan.path_of(flow)?])
    }
}

/// What the far end is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FarEnd {
    /// It says what it has counted.
    Reports,
    /// It says nothing of the kind.
    Silent,
}

/// What one flow comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) number: u16,
    /// The address that its datagrams came from.
    pub(crate) local: SocketAddr,
    pub(crate) sent: u64,
    /// What came back over it.
    pub(crate) echoes: Tally,
    /// What the far end said of it: before the run and behind it.
    pub(crate) reports: (Option<Report>, Option<Report>),
}
