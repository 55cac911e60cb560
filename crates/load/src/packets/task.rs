//! Data shared by all cores of a run, and the result of a flow.

use std::net::SocketAddr;

use onrush_packet::report::Report;
use onrush_packet::tally::FlowCounters;

use super::path::Path;
use super::plan::{Direction, Plan};
use crate::pace::target::lookup::Lookup;

/// Data shared by all cores of a run.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) plan: Plan,
    pub(crate) direction: Direction,
    pub(crate) capability: TargetCapability,
    pub(crate) target: SocketAddr,
    /// Resolution of the target's name.
    pub(crate) lookup: Option<Lookup>,
    /// The named interfaces.
    pub(crate) paths: Vec<Path>,
    /// MAC addresses of the next hops, with XDP.
    pub(crate) neighbours: Vec<[u8; 6]>,
    /// Number of the run in test headers.
    pub(crate) run: u32,
}

impl RunContext {
    pub(crate) fn path_of(&self, flow: u16) -> Option<&Path> {
        Some(&self.paths[self.plan.path_of(flow)?])
    }
}

/// Capability of the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TargetCapability {
    /// It reports its counters.
    Reports,
    /// It does not report.
    Silent,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowOutcome {
    pub(crate) number: u16,
    /// Source address of its datagrams.
    pub(crate) local: SocketAddr,
    pub(crate) sent: u64,
    pub(crate) echoes: FlowCounters,
    /// The target's reports before and after the run.
    pub(crate) reports: (Option<Report>, Option<Report>),
}
