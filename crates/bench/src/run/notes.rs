//! What a reader has to know before the numbers of a run. Pure.

use super::rounds::Ending;
use crate::limits::PROFILE_HERTZ;
use crate::outcome::{Outcome, Trial};

/// One sentence each, the gravest first.
pub(super) fn notes(outcome: &Outcome, ending: Ending) -> Vec<String> {
    let trials: Vec<&Trial> = outcome
        .works
        .iter()
        .flat_map(|work| &work.variants)
        .flat_map(|variant| &variant.trials)
        .collect();
    let mut notes = Vec::new();
    match ending {
        // That a host was lost, and in which trial, is noted where it happened.
        Ending::Complete | Ending::Lost => {}
        Ending::Interrupted => notes.push(
            "Incomplete: stopped by a signal before every round was made; `--resume` goes on with it."
                .to_owned(),
        ),
        Ending::Budget => notes.push(format!(
            "The budget of time was enough for {} rounds.",
            outcome.rounds
        )),
        Ending::Precise => notes.push(format!(
            "Every figure was known closely enough after {} rounds.",
            outcome.rounds
        )),
    }
    if outcome.quick {
        notes.push(
            "A quick run: it checks that the experiment works and proves nothing.".to_owned(),
        );
    }
    let disturbed: Vec<f64> = trials.iter().filter_map(|trial| trial.disturbed).collect();
    if !disturbed.is_empty() {
        let most = disturbed.iter().copied().fold(0.0, f64::max);
        notes.push(format!(
            "Disturbed: in {} of {} trials other programs used the CPUs of the roles, up to {:.0} % of one.",
            disturbed.len(),
            trials.len(),
            most * 100.0
        ));
    }
    notes.extend(unsteady(&trials));
    if trials.iter().any(|trial| !trial.profiles.is_empty()) {
        notes.push(format!(
            "Profiled: perf took {PROFILE_HERTZ} samples a second of each role, which the roles paid for."
        ));
    }
    notes.extend(left_out(&trials));
    notes
}

/// In how many trials the rate was of two states.
fn unsteady(trials: &[&Trial]) -> Option<String> {
    let changes = trials.iter().filter_map(|trial| trial.unsteady);
    let most = changes.clone().map(f64::abs).fold(0.0, f64::max);
    let count = changes.count();
    (count > 0).then(|| {
        format!(
            "Not steady: in {count} of {} trials the rate rose or fell within the window, by up to {:.0} %: a longer `warm_up` \
             may help.",
            trials.len(),
            most * 100.0
        )
    })
}

/// What could not be collected, in one sentence: each thing once, in however many trials it was missing.
fn left_out(trials: &[&Trial]) -> Option<String> {
    let mut things: Vec<&str> = Vec::new();
    for thing in trials.iter().flat_map(|trial| &trial.left_out) {
        if !things.contains(&thing.as_str()) {
            things.push(thing);
        }
    }
    (!things.is_empty()).then(|| format!("Not collected: {}.", things.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_were_not_steady_are_counted_with_the_worst() {
        let trial = |unsteady| Trial {
            unsteady,
            ..Trial::default()
        };
        let trials = [trial(Some(-0.31)), trial(None), trial(Some(0.1))];
        let trials: Vec<&Trial> = trials.iter().collect();
        let note = unsteady(&trials).expect("two were not");
        assert!(note.starts_with("Not steady: in 2 of 3 trials"), "{note}");
        assert!(note.contains("by up to 31 %"), "{note}");
        assert_eq!(unsteady(&trials[1..2]), None);
    }

    #[test]
    fn what_was_not_collected_is_said_once() {
        let trial = |things: &[&str]| Trial {
            left_out: things.iter().map(|thing| (*thing).to_owned()).collect(),
            ..Trial::default()
        };
        let trials = [
            trial(&["pressure"]),
            trial(&[]),
            trial(&["pressure", "CPU frequency"]),
        ];
        let trials: Vec<&Trial> = trials.iter().collect();
        assert_eq!(
            left_out(&trials).as_deref(),
            Some("Not collected: pressure; CPU frequency.")
        );
        assert_eq!(left_out(&trials[1..2]), None);
    }
}
