//! Notes on the rounds of a work: invalid rounds with reasons, and other notes.

use crate::outcome::WorkOutcome;

pub(super) struct Note {
    /// The note, starting with the variant's name.
    pub(super) text: String,
    /// `round 1, 3`; `None` if it applies to all rounds.
    pub(super) rounds: Option<String>,
    /// Whether it makes these rounds invalid.
    pub(super) is_invalid: bool,
}

/// The notes of all variants of a work, without duplicates.
pub(super) fn notes(work: &WorkOutcome) -> Vec<Note> {
    let mut items: Vec<(String, Vec<u32>, bool)> = Vec::new();
    let mut most = 0;
    for variant in &work.variants {
        most = most.max(variant.trials.len());
        for trial in &variant.trials {
            let invalid = trial.invalid.iter();
            let invalid = invalid.map(|text| (format!("{}: invalid, {text}", variant.name), true));
            let notes = trial.notes.iter();
            let notes = notes.map(|text| (format!("{}: {text}", variant.name), false));
            for (text, is_invalid) in invalid.chain(notes) {
                match items.iter_mut().find(|(known, ..)| *known == text) {
                    Some((_, rounds, _)) => rounds.push(trial.round),
                    None => items.push((text, vec![trial.round], is_invalid)),
                }
            }
        }
    }
    let note = |(text, rounds, is_invalid): (String, Vec<u32>, bool)| Note {
        text,
        rounds: (rounds.len() != most).then(|| {
            let list: Vec<_> = rounds.iter().map(u32::to_string).collect();
            format!("round {}", list.join(", "))
        }),
        is_invalid,
    };
    items.into_iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::outcome;

    #[test]
    fn notes_list_their_rounds() {
        let mut work = outcome().works.remove(0);
        for variant in &mut work.variants {
            variant.trials.iter_mut().for_each(|it| it.notes.clear());
        }
        let trials = &mut work.variants[0].trials;
        trials[0].invalid.push("it failed".into());
        trials[2].invalid.push("it failed".into());
        trials
            .iter_mut()
            .for_each(|it| it.notes.push("slow".into()));
        let said: Vec<(String, Option<String>)> = notes(&work)
            .into_iter()
            .map(|note| (note.text, note.rounds))
            .collect();
        let failed = "onrush epoll: invalid, it failed".to_owned();
        let slow = "onrush epoll: slow".to_owned();
        assert_eq!(said, [(failed, Some("round 1, 3".into())), (slow, None)]);
    }
}
