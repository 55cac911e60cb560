//! A search as JSON.

use serde::Serialize;

use super::undecided::{self, UndecidedTrials};
use super::{SearchResult, Trial};
use crate::record::provenance;

/// Returns a search as JSON: `condition`, `answer` (null if the search was stopped early), `undecided` (rates with
/// undecided trials, and their number) and `trials`.
pub fn to_json(condition: &str, answer: Option<&SearchResult>, trials: &[Trial]) -> String {
    #[derive(Serialize)]
    struct Whole<'a> {
        condition: &'a str,
        answer: Option<&'a SearchResult>,
        undecided: Vec<UndecidedTrials>,
        trials: &'a [Trial],
    }
    let whole = Whole {
        condition,
        answer,
        undecided: undecided::of(trials),
        trials,
    };
    provenance::to_json(&whole)
}
