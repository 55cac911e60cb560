//! Properties of arbitrary bytes as files of a result, for property tests and fuzzing.

use std::path::Path;

use onrush_bench::archive::{Facts, ReadError, Rows};
use onrush_bench::scenario::Metric;

/// Rows have comparable numbers, or the error names its location.
pub(crate) fn rows(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Rows::parse(&text, Path::new("raw.csv")) {
        Err(why) => says_where(&why, "raw.csv"),
        Ok(rows) => {
            assert!(!rows.variants.is_empty(), "{text}");
            for entrant in &rows.variants {
                assert_eq!(rows.of(&entrant.subject), Some(entrant));
                for metric in entrant
                    .metrics
                    .keys()
                    .filter_map(|name| Metric::parse(name))
                {
                    let sound = entrant.usable_rounds(&metric);
                    assert!(sound.rounds.len() <= sound.all);
                    let numbers = sound.rounds.iter().map(|(number, _)| *number);
                    assert!(numbers.is_sorted(), "{sound:?}");
                    assert!(
                        sound.rounds.iter().all(|(_, value)| *value > 0.0),
                        "{sound:?}"
                    );
                }
            }
        }
    }
}

/// Facts equal themselves, or the error names its location.
pub(crate) fn facts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Facts::parse(&text, Path::new("environment.json")) {
        Err(why) => says_where(&why, "environment.json"),
        Ok(facts) => {
            let _ = facts.experiment();
            assert_eq!(facts.differences(&facts.clone()), []);
        }
    }
}

fn says_where(why: &ReadError, file: &str) {
    let said = why.to_string();
    assert!(said.contains(file), "{said}");
}
