//! Exit status of a run.

use crate::outcome::{Outcome, Trial, Verdict};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// All trials were made and every figure with a target reached it.
    Done,
    /// All trials were made; at least one figure missed its target.
    TargetMissed,
    /// At least one figure could not be judged: programs failed, errors occurred, or the client was the bottleneck.
    Invalid,
    /// A disk was full before all trials were made; earlier results were written where there was space.
    NoRoom,
    /// Stopped by a signal; earlier results were written.
    Interrupted,
}

impl Exit {
    /// Derives the exit status from an outcome.
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
        if any(Verdict::NotMeasured)
            || any(Verdict::Invalid)
            || any_variant_without_valid_trial(outcome)
        {
            return Exit::Invalid;
        }
        if any(Verdict::Missed) {
            return Exit::TargetMissed;
        }
        Exit::Done
    }

    /// Exit code of the process. A missed target is a result, not a failure, and exits with 0.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done | Exit::TargetMissed => 0,
            Exit::NoRoom => 1,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        }
    }
}

/// Whether a variant has trials and none of them is valid. A work without figures has no line in the table that shows
/// it.
fn any_variant_without_valid_trial(outcome: &Outcome) -> bool {
    let mut variants = outcome.works.iter().flat_map(|work| &work.variants);
    variants
        .any(|variant| !variant.trials.is_empty() && !variant.trials.iter().any(Trial::is_valid))
}
