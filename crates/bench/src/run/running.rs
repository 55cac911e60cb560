//! A running program, local or on another machine.

use super::child::{Child, UnsuccessfulExit};
use super::remote::RemoteProgram;

/// A running program. Dropping it stops it.
pub(super) enum Running {
    Local(Child),
    Remote(RemoteProgram),
}

impl Running {
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Running::Local(child) => child.has_ended(),
            Running::Remote(distant) => distant.has_ended(),
        }
    }

    /// Returns the unsuccessful exit, if any. If the program runs on several machines, that of the first machine in
    /// order.
    pub(super) fn failure(&self) -> Option<UnsuccessfulExit> {
        match self {
            Running::Local(child) => child.failure(),
            Running::Remote(distant) => distant.failure(),
        }
    }

    /// Truncates a server's output that exceeds the limit. Agents do this by themselves.
    pub(super) fn truncate_output(&self) {
        match self {
            Running::Local(child) => child.truncate_output(),
            Running::Remote(_) => {}
        }
    }

    pub(super) fn was_truncated(&self) -> bool {
        match self {
            Running::Local(child) => child.was_truncated(),
            Running::Remote(distant) => distant.was_truncated(),
        }
    }

    pub(super) fn exceeds_output_limit(&self) -> bool {
        match self {
            Running::Local(child) => child.exceeds_output_limit(),
            Running::Remote(_) => false,
        }
    }

    /// The last second that it reported; `None` on another machine, because output is only fetched at the end.
    pub(super) fn last_second(&self) -> Option<String> {
        match self {
            Running::Local(child) => child.last_second(),
            Running::Remote(_) => None,
        }
    }

    pub(super) fn output_tail(&self) -> String {
        match self {
            Running::Local(child) => child.output_tail(),
            Running::Remote(distant) => distant.output_tail(),
        }
    }

    pub(super) fn stop(&mut self) {
        match self {
            Running::Local(child) => child.stop(),
            Running::Remote(distant) => distant.stop(),
        }
    }
}
