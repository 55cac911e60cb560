//! The program of a role while it runs, here or on another machine.

use super::child::{Child, Ended};
use super::remote::Distant;

/// A running program. Dropping it stops it.
pub(super) enum Running {
    /// A child of ours.
    Here(Child),
    /// Children of agents.
    There(Distant),
}

impl Running {
    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Running::Here(child) => child.has_ended(),
            Running::There(distant) => distant.has_ended(),
        }
    }

    /// How it ended, when that was not with success; of several, the first that did.
    pub(super) fn failure(&self) -> Option<Ended> {
        match self {
            Running::Here(child) => child.failure(),
            Running::There(distant) => distant.failure(),
        }
    }

    /// Cuts what a server printed off where it is more than anybody reads. Agents do so by themselves.
    pub(super) fn bound_output(&self) {
        match self {
            Running::Here(child) => child.bound_output(),
            Running::There(_) => {}
        }
    }

    /// Whether some of what it printed was cut off.
    pub(super) fn was_cut(&self) -> bool {
        match self {
            Running::Here(child) => child.was_cut(),
            Running::There(distant) => distant.was_cut(),
        }
    }

    /// Whether it printed more than anybody reads.
    pub(super) fn printed_too_much(&self) -> bool {
        match self {
            Running::Here(child) => child.printed_too_much(),
            Running::There(_) => false,
        }
    }

    /// What it says of the second before; nothing of one on another machine, whose output stays there until its end.
    pub(super) fn last_second(&self) -> Option<String> {
        match self {
            Running::Here(child) => child.last_second(),
            Running::There(_) => None,
        }
    }

    /// The end of what it printed, on one line.
    pub(super) fn last_words(&self) -> String {
        match self {
            Running::Here(child) => child.last_words(),
            Running::There(distant) => distant.last_words(),
        }
    }

    /// Asks it to end, waits, then makes it end.
    pub(super) fn stop(&mut self) {
        match self {
            Running::Here(child) => child.stop(),
            Running::There(distant) => distant.stop(),
        }
    }
}
