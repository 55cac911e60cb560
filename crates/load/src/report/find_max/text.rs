//! A search and its trials as text.

use std::fmt;

use onrush_measure::units;

use super::{SearchLimit, SearchResult, Trial, TrialOutcome, undecided};
use crate::limits::{FIND_PRECISION, FIND_TRIALS_MAX};

/// Returns the answer and the number of undecided trials; without an answer, that the search was stopped early.
pub fn sentence(answer: Option<&SearchResult>, trials: &[Trial]) -> String {
    let found = answer.map_or(
        "stopped before a rate was found".to_owned(),
        SearchResult::to_string,
    );
    let undecided = undecided::of(trials);
    let count: u32 = undecided.iter().map(|of| of.trials).sum();
    if count == 0 {
        return found;
    }
    let rates = undecided.iter();
    let rates: Vec<String> = rates
        .map(|of| format!("{} at {}", of.trials, units::count(of.rate)))
        .collect();
    format!(
        "{found}. {} could not decide whether the condition holds, and count as trials in which it did not: {} \
         requests per second",
        units::plural(u64::from(count), "trial"),
        rates.join(", ")
    )
}

impl fmt::Display for SearchResult {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |rate: &u64| units::plural(*rate, "request");
        match self {
            SearchResult::Found {
                rate,
                held,
                trials,
                confidence,
                ceiling,
            } => {
                let above = match ceiling {
                    SearchLimit::Condition => format!("the condition failed at a rate higher by {:.0} % or less", (FIND_PRECISION - 1.0) * 100.0),
                    SearchLimit::Target => format!("at a rate higher by {:.0} % or less the target responded to fewer \
                        requests than scheduled", (FIND_PRECISION - 1.0) * 100.0),
                    SearchLimit::Undecided => format!("at a rate higher by {:.0} % or less trials could not decide whether \
                        the condition holds", (FIND_PRECISION - 1.0) * 100.0),
                    SearchLimit::Generator => "the generator could not send more (-t, --cpus), so the target may support a \
                        higher rate".to_owned(),
                    SearchLimit::Rates => "no higher rate can be requested".to_owned(),
                };
                write!(
                    out,
                    "{} per second: held in {held} of {}, so in more than half of all trials with {:.0} % confidence; \
                     {above}",
                    number(rate),
                    units::plural(u64::from(*trials), "trial"),
                    (confidence * 100.0).floor()
                )
            }
            SearchResult::Never { rate } => write!(
                out,
                "none: the condition fails even at {} per second, or the target does not keep up with them",
                number(rate)
            ),
            SearchResult::Unsteady { rate: Some(rate) } => write!(
                out,
                "not certain: after {FIND_TRIALS_MAX} trials no rate holds reliably; the highest that held in most of \
                 its trials was {} per second. Make trials longer (-d), or reduce other load on the machine",
                number(rate)
            ),
            SearchResult::TooShort { rate } => write!(
                out,
                "none: trials at {} per second have too few responses to decide the condition (lower rates have \
                 fewer), and it holds at no higher rate that was tried. Make trials longer (-d)",
                number(rate)
            ),
            SearchResult::Unsteady { rate: None } => write!(
                out,
                "not certain: after {FIND_TRIALS_MAX} trials no rate holds reliably. Make trials longer (-d), or \
                 reduce other load on the machine"
            ),
        }
    }
}

impl fmt::Display for Trial {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p99, p99_9] = self.times().map(|(name, us)| {
            let sign = if self.is_at_least(name) { "≥ " } else { "" };
            us.map_or("-".to_owned(), |us| {
                format!("{sign}{}", units::nanoseconds(us * 1000.0))
            })
        });
        let held = match self.held {
            TrialOutcome::Yes => "holds",
            TrialOutcome::No => "the condition fails",
            TrialOutcome::RateNotKept => "the target did not keep up",
            TrialOutcome::GeneratorLimit => "the generator was the limit",
            TrialOutcome::Undecided => "undecided, not a pass",
            TrialOutcome::TooShort => "too few responses to decide, not a pass",
        };
        write!(
            out,
            "{:>9} {:>8.0} {p50:>9} {p99:>9} {p99_9:>9}  {held} ({})",
            self.rate, self.rps, self.measured
        )
    }
}
