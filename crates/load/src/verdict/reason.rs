//! Reasons against a run, and their severity.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Validity of a run. Ordered from best to worst, so that the maximum is the worst.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No reason against the figures.
    #[default]
    Valid,
    /// The figures were measured correctly, but may have other causes than the server.
    Suspect,
    /// The figures are wrong, or the load was not the configured one.
    Invalid,
}

/// One reason against a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// State of the run by this reason.
    pub state: State,
    /// Short name of the check.
    pub what: String,
    /// Measured value, with unit.
    pub measured: String,
    /// Bound, with unit.
    pub bound: String,
    /// Advice to the user.
    pub remedy: String,
}

impl fmt::Display for State {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            State::Valid => "VALID",
            State::Suspect => "SUSPECT",
            State::Invalid => "INVALID",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}: {} ({}): {}",
            self.what, self.measured, self.bound, self.remedy
        )
    }
}

/// [`suspect`] or [`invalid`].
pub(super) type NewReason = fn(&str, String, String, &str) -> Reason;

pub(super) fn suspect(what: &str, measured: String, bound: String, remedy: &str) -> Reason {
    Reason {
        state: State::Suspect,
        what: what.to_owned(),
        measured,
        bound,
        remedy: remedy.to_owned(),
    }
}

pub(super) fn invalid(what: &str, measured: String, bound: String, remedy: &str) -> Reason {
    Reason {
        state: State::Invalid,
        ..suspect(what, measured, bound, remedy)
    }
}

pub(super) fn per_cent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 10.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.0} %")
    }
}
