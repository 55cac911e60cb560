//! Notes shown before the results of a run.

use super::rounds::Ending;
use onrush_measure::units::plural;

use crate::limits::{DISAGREEING_LISTED_MAX, PROFILE_HERTZ};
use crate::outcome::{Outcome, Trial};
use crate::verdict::remedy;

/// The notes, one sentence each, the most serious first.
pub(super) fn notes(outcome: &Outcome, ending: Ending) -> Vec<String> {
    let trials: Vec<&Trial> = outcome
        .works
        .iter()
        .flat_map(|work| &work.variants)
        .flat_map(|variant| &variant.trials)
        .collect();
    let mut notes = Vec::new();
    match ending {
        // Lost hosts and full disks are noted where they occur.
        Ending::Complete | Ending::Lost | Ending::NoRoom => {}
        Ending::Interrupted => notes.push(
            "Incomplete: stopped by a signal before all rounds were finished; `--resume` continues it."
                .to_owned(),
        ),
        Ending::Budget => notes.push(format!(
            "The time budget was enough for {}.",
            plural(u64::from(outcome.rounds), "round")
        )),
        Ending::Precise => notes.push(format!(
            "All figures were precise enough after {}.",
            plural(u64::from(outcome.rounds), "round")
        )),
    }
    if outcome.quick {
        notes.push(
            "A quick run: it checks that the experiment works; its figures are not evidence."
                .to_owned(),
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
    notes.extend(control_disturbed(&trials));
    notes.extend(disagreeing(outcome));
    if trials.iter().any(|trial| !trial.profiles.is_empty()) {
        notes.push(format!(
            "Profiled: perf took {PROFILE_HERTZ} samples per second of each role, at the cost of the roles."
        ));
    }
    notes.extend(left_out(&trials));
    notes
}

fn unsteady(trials: &[&Trial]) -> Option<String> {
    let changes = trials.iter().filter_map(|trial| trial.unsteady);
    let most = changes.clone().map(f64::abs).fold(0.0, f64::max);
    let count = changes.count();
    (count > 0).then(|| {
        format!(
            "Not steady: in {count} of {} trials the rate rose or fell within the window, by up to {:.0} %: a longer \
             `warm_up` may help.",
            trials.len(),
            most * 100.0
        )
    })
}

/// Note on trials with a disturbed control client, with the reason of the first.
fn control_disturbed(trials: &[&Trial]) -> Option<String> {
    let mut disturbed = trials
        .iter()
        .filter(|trial| !trial.control_disturbed.is_empty());
    let first = disturbed.next()?;
    Some(format!(
        "Control client disturbed: in {} of {} trials its figures show its own limits, not the system's; in the first of \
         them: {}.",
        1 + disturbed.count(),
        trials.len(),
        first.control_disturbed.join("; ")
    ))
}

/// Notes on variants with disagreeing rounds, with a remedy.
fn disagreeing(outcome: &Outcome) -> Vec<String> {
    let mut sentences = Vec::new();
    for work in &outcome.works {
        for variant in work
            .variants
            .iter()
            .filter(|variant| !variant.disagreeing.is_empty())
        {
            let apart = variant.disagreeing.iter();
            let apart: Vec<String> = apart
                .map(|(metric, apart)| format!("{metric} {:.0} %", apart * 100.0))
                .collect();
            sentences.push(format!(
                "Rounds do not agree: {} / {} ({} apart): {}.",
                work.title(),
                variant.name,
                apart.join(", "),
                remedy(&variant.trials)
            ));
        }
    }
    if let Some(more) = sentences
        .len()
        .checked_sub(DISAGREEING_LISTED_MAX)
        .filter(|more| *more > 0)
    {
        sentences.truncate(DISAGREEING_LISTED_MAX);
        sentences.push(format!(
            "Rounds of {more} more variants do not agree: see `disagreeing` in result.json."
        ));
    }
    sentences
}

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
    fn unsteady_trials_are_counted_with_maximum() {
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
    fn disagreeing_variants_are_listed_up_to_limit() {
        let mut outcome = crate::report::sample::outcome();
        assert_eq!(disagreeing(&outcome), [""; 0]);
        outcome.works[0].variants[1].disagreeing = [("rps".to_owned(), 0.31)].into();
        let sentences = disagreeing(&outcome);
        assert_eq!(sentences.len(), 1);
        assert!(
            sentences[0].starts_with(
                "Rounds do not agree: fixed response / onrush io_uring (rps 31 % apart): increase `measure`"
            ),
            "{sentences:?}"
        );
        let work = outcome.works[0].clone();
        outcome.works = vec![work; DISAGREEING_LISTED_MAX + 2];
        let sentences = disagreeing(&outcome);
        assert_eq!(sentences.len(), DISAGREEING_LISTED_MAX + 1);
        assert!(sentences[DISAGREEING_LISTED_MAX].contains("of 2 more variants"));
    }

    #[test]
    fn disturbed_control_client_is_reported_with_reason() {
        let trial = |reasons: &[&str]| Trial {
            control_disturbed: reasons.iter().map(|why| (*why).to_owned()).collect(),
            ..Trial::default()
        };
        let trials = [trial(&[]), trial(&["it was busy", "x"]), trial(&["y"])];
        let trials: Vec<&Trial> = trials.iter().collect();
        let note = control_disturbed(&trials).expect("two were");
        assert!(
            note.starts_with("Control client disturbed: in 2 of 3 trials"),
            "{note}"
        );
        assert!(
            note.ends_with("in the first of them: it was busy; x."),
            "{note}"
        );
        assert_eq!(control_disturbed(&trials[..1]), None);
    }

    #[test]
    fn missing_counters_are_reported_once() {
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
