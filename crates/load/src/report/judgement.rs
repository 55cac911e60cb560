//! Judges a threshold by a report: for all requests, a journey or a step.

use onrush_measure::histogram::Histogram;

use super::Report;
use super::journeys::{JourneyRow, StepRow};
use crate::record::figures::{Checks, Figures, Kind};
use crate::record::incomplete_waits::Censored;
use crate::verdict::threshold::{JudgedThreshold, Scope, Threshold};

impl Report {
    /// Returns the times of one kind, with the waits of requests without a response as lower bounds.
    pub fn censored(&self, kind: Kind) -> Censored<'_> {
        let none = Histogram::new();
        Censored::new(
            self.times.of(kind),
            self.unanswered.of(kind).unwrap_or(&none),
        )
    }

    /// Returns the outcome of a threshold.
    pub fn judge(&self, condition: &Threshold) -> JudgedThreshold {
        match self.figures_for(condition) {
            Ok(figures) => condition.judge(&figures),
            Err(reason) => condition.undecided(reason),
        }
    }

    /// Whether the report has the figure of a threshold, with enough values. Missing responses may still leave it
    /// undecided.
    pub fn can_judge(&self, condition: &Threshold) -> bool {
        let figures = self.figures_for(condition);
        figures.is_ok_and(|figures| condition.is_measured(&figures))
    }

    fn figures_for(&self, condition: &Threshold) -> Result<Figures, String> {
        match condition.scope() {
            None => Ok(self.figures()),
            Some(scope) => self.figures_of(scope),
        }
    }

    /// Returns the figures of a journey or a step, with users in place of requests.
    fn figures_of(&self, scope: &Scope) -> Result<Figures, String> {
        let rows: Vec<&JourneyRow> = self.setup.iter().chain(&self.journeys).collect();
        let names: Vec<_> = rows.iter().map(|row| row.names()).collect();
        let place = scope.find(&names)?;
        let journey = rows[place.journey];
        let users = match place.step {
            None => Users::of_journey(journey),
            Some(step) => Users::of_step(&journey.steps[step]),
        };
        users.figures(self.duration_s)
    }
}

pub(super) fn checks(journeys: &[JourneyRow]) -> Checks {
    let steps = journeys.iter().flat_map(|journey| &journey.steps);
    steps.fold(Checks::default(), |sum, step| sum.with(step))
}

impl Checks {
    fn with(self, step: &StepRow) -> Checks {
        let all = step.checks.iter();
        all.fold(self, |sum, check| Checks {
            passed: sum.passed + check.passed,
            failed: sum.failed + check.failed,
        })
    }
}

struct Users<'a> {
    completed: u64,
    failed: u64,
    unfinished: u64,
    took: &'a str,
    checks: Checks,
}

impl Users<'_> {
    fn of_journey(row: &JourneyRow) -> Users<'_> {
        Users {
            completed: row.completed,
            failed: row.failed,
            unfinished: row.unfinished,
            took: &row.histogram,
            checks: checks(std::slice::from_ref(row)),
        }
    }

    fn of_step(row: &StepRow) -> Users<'_> {
        Users {
            completed: row.completed,
            failed: row.failed,
            unfinished: row.unfinished,
            took: &row.histogram,
            checks: Checks::default().with(row),
        }
    }

    fn figures(&self, seconds: f64) -> Result<Figures, String> {
        let mut figures = Figures {
            responses: self.completed,
            errors: self.failed,
            unfinished: self.unfinished,
            checks: self.checks,
            rps: match seconds > 0.0 {
                true => self.completed as f64 / seconds,
                false => 0.0,
            },
            ..Figures::default()
        };
        *figures.times.of_mut(Kind::Response) = Histogram::from_base64(self.took)?;
        // The waits of these users are not recorded: a percentile that they could change is unknown.
        let others = self.failed + self.unfinished;
        figures.unanswered.record(0, 0, others);
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::journeys::CheckRow;
    use crate::verdict::threshold::ThresholdOutcome::{self, Failed, Passed, Undecided};

    /// Report of 1,000 users at a step: 990 completed it in 1 to 990 ms, 4 failed and 6 are unfinished.
    fn report() -> Report {
        let histogram = Histogram::from_iter((1..=990).map(|value| value * 1_000_000)).to_base64();
        let step = StepRow {
            name: "login".to_owned(),
            begun: 1_000,
            completed: 990,
            failed: 4,
            unfinished: 6,
            checks: vec![CheckRow {
                name: "token".to_owned(),
                passed: 985,
                failed: 5,
            }],
            histogram: histogram.clone(),
            ..StepRow::default()
        };
        let journey = JourneyRow {
            name: "buy".to_owned(),
            begun: 1_000,
            completed: 990,
            failed: 4,
            unfinished: 6,
            histogram,
            steps: vec![step],
            ..JourneyRow::default()
        };
        Report {
            journeys: vec![journey],
            duration_s: 10.0,
            ..Report::default()
        }
    }

    fn fate(condition: &str) -> (ThresholdOutcome, String) {
        let condition = Threshold::parse(condition).expect("it is one");
        let outcome = report().judge(&condition);
        (outcome.fate, outcome.measured)
    }

    #[test]
    fn scoped_conditions_use_journey_figures() {
        for (condition, expected) in [
            ("p50{step:login} > 400ms", Failed),
            ("p50{step:login} > 600ms", Passed),
            ("p90{journey:buy} < 1s", Failed),
            // 10 of 1,000 users have no time.
            ("p99.5{journey:buy} > 2s", Undecided),
            ("max{journey:buy,step:login} > 2s", Undecided),
            ("max{journey:buy,step:login} > 500ms", Failed),
            ("errors{step:login} > 3", Failed),
            ("errors{step:login} > 0.5%", Passed),
            ("failed_checks{step:login} > 0.5%", Failed),
            ("failed_checks > 4", Failed),
            ("rps{journey:buy} < 98", Passed),
            ("rps{journey:buy} < 100", Failed),
            ("p50{step:logout} > 1ms", Undecided),
        ] {
            let (found, measured) = fate(condition);
            assert_eq!(found, expected, "{condition}: {measured}");
        }
    }
}
