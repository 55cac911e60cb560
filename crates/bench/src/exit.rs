//! How a run ended, for people and for the shell.

use crate::outcome::{Outcome, Trial, Verdict};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured and every figure with a target reached it.
    Done,
    /// Everything was measured; at least one figure missed its target.
    Missed,
    /// At least one figure could not be judged: programs failed, errors occurred, or the client was the limit.
    Invalid,
    /// A disk was full before every trial was made; what had been measured until then was written where there was room.
    NoRoom,
    /// Stopped by a signal; what had been measured until then was written.
    Interrupted,
}

impl Exit {
    /// That of a run with this outcome.
    pub fn of(outcome: &Outcome) -> Exit {
        if outcome.no_room.is_some() {
            return Exit::NoRoom;
        }
        if outcome.lost.is_some() {
            return Exit::Invalid;
        }
        if !outcome.complete {
            return Exit::Interrupted;
        }
        let any = |verdict| outcome.lines().any(|(_, line)| line.verdict == verdict);
        if any(Verdict::NotMeasured) || any(Verdict::Invalid) || any_in_vain(outcome) {
            return Exit::Invalid;
        }
        if any(Verdict::Missed) {
            return Exit::Missed;
        }
        Exit::Done
    }

    /// The exit code of the process: a missed target is a result, not a failure of the program.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done | Exit::Missed => 0,
            Exit::NoRoom => 1,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        }
    }
}

/// Whether a variant was tried and no round of it may be used. A work without figures has no line that says so.
fn any_in_vain(outcome: &Outcome) -> bool {
    let mut variants = outcome.works.iter().flat_map(|work| &work.variants);
    variants
        .any(|variant| !variant.trials.is_empty() && !variant.trials.iter().any(Trial::is_valid))
}
