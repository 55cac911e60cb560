//! What speaks against a run, and how much.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a run is worth. From best to worst, so that the worst of several is their maximum.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing speaks against the figures.
    #[default]
    Valid,
    /// The figures are what was measured, and something else than the server may have shaped them.
    Suspect,
    /// The figures are wrong or of another load than was asked for.
    Invalid,
}

/// One thing that speaks against a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reason {
    /// What it makes of the run.
    pub state: State,
    /// What was looked at, in a few words.
    pub what: String,
    /// What was found, with its unit.
    pub measured: String,
    /// How far it may go, with its unit.
    pub bound: String,
    /// What to do about it.
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
pub(super) type Judge = fn(&str, String, String, &str) -> Reason;

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
