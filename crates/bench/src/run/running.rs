//! A running program, local or on another machine.

use super::child::{Child, Ended};
use super::remote::Distant;

/// A running program. Dropping it stops it.
pub(super) enum Running {
    Here(Child),
    There(Distant),
}

impl Running {
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Running::Here(child) => child.has_ended(),
            Running::There(distant) => distant.has_ended(),
        }
    }

    /// The unsuccessful exit, if any; of several programs, the first.
    pub(super) fn failure(&self) -> Option<Ended> {
        match self {
            Running::Here(child) => child.failure(),
            Running::There(distant) => distant.failure(),
        }
    }

    /// Truncates a server's output that exceeds the limit. Agents do this by themselves.
    pub(super) fn bound_output(&self) {
        match self {
            Running::Here(child) => child.bound_output(),
            Running::There(_) => {}
        }
    }

    pub(super) fn was_cut(&self) -> bool {
        match self {
            Running::Here(child) => child.was_cut(),
            Running::There(distant) => distant.was_cut(),
        }
    }

    pub(super) fn printed_too_much(&self) -> bool {
        match self {
            Running::Here(child) => child.printed_too_much(),
            Running::There(_) => false,
        }
    }

    /// The last second that it reported; `None` on another machine, because output is only fetched at the end.
    pub(super) fn last_second(&self) -> Option<String> {
        match self {
            Running::Here(child) => child.last_second(),
            Running::There(_) => None,
        }
    }

    pub(super) fn last_words(&self) -> String {
        match self {
            Running::Here(child) => child.last_words(),
            Running::There(distant) => distant.last_words(),
        }
    }

    pub(super) fn stop(&mut self) {
        match self {
            Running::Here(child) => child.stop(),
            Running::There(distant) => distant.stop(),
        }
    }
}
