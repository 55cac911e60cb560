//! What one core has counted of journeys, beside what it has counted of their requests.

use onrush_measure::histogram::Histogram;

use crate::journey::steps::{Journeys, Step};
use crate::protocol::failure::Failure;

/// The counters of one core, or the sum over several.
#[derive(Clone, Debug)]
pub(crate) struct JourneysRecord {
    /// Requests that were written. Invariant: = responses + failed + `in_flight`.
    pub(crate) requests_sent: u64,
    /// Of these, those that have neither a response nor failed.
    pub(crate) in_flight: u64,
    /// What users do before they begin.
    pub(crate) setup: JourneyRecord,
    pub(crate) journeys: Box<[JourneyRecord]>,
}

/// What came of the users of one journey.
#[derive(Clone, Debug, Default)]
pub(crate) struct JourneyRecord {
    /// Those that began it. Invariant: = completed + failed + those that are on their way.
    pub(crate) begun: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// What those that completed it took, from when they were due.
    pub(crate) took: Histogram,
    pub(crate) steps: Box<[StepRecord]>,
}

/// What came of one step.
#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    /// Users who came so far. Invariant: = completed + failed + those that are at it.
    pub(crate) begun: u64,
    pub(crate) completed: u64,
    /// Users whose journey ended here.
    pub(crate) failed: u64,
    /// Requests that were written: more than users where redirects were followed or something was sent again.
    pub(crate) requests: u64,
    /// What went wrong, in the order of [`Failure::ALL`]: what ended a journey, and checks that did not.
    pub(crate) failures: [u64; Failure::ALL.len()],
    /// What those that completed it took, from when it was due.
    pub(crate) took: Histogram,
    pub(crate) checks: Box<[CheckRecord]>,
}

/// How often a check was made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckRecord {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// How something ended that a user had begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Well, after so many nanoseconds, where that is measured.
    Completed(Option<u64>),
    Failed,
}

impl End {
    /// Counts it where it belongs.
    fn count(self, completed: &mut u64, failed: &mut u64, took: &mut Histogram) {
        match self {
            End::Completed(measured) => {
                *completed += 1;
                measured.into_iter().for_each(|time| took.record(time));
            }
            End::Failed => *failed += 1,
        }
    }
}

impl JourneysRecord {
    pub(crate) fn of(journeys: &Journeys) -> JourneysRecord {
        let all = journeys.journeys.iter();
        JourneysRecord {
            requests_sent: 0,
            in_flight: 0,
            setup: JourneyRecord::of(&journeys.setup),
            journeys: all
                .map(|journey| JourneyRecord::of(&journey.steps))
                .collect(),
        }
    }

    /// Adds what another core has counted of the same journeys.
    pub(crate) fn merge(&mut self, other: &JourneysRecord) {
        self.requests_sent += other.requests_sent;
        self.in_flight += other.in_flight;
        self.setup.merge(&other.setup);
        let all = self.journeys.iter_mut().zip(&other.journeys);
        all.for_each(|(sum, more)| sum.merge(more));
    }
}

impl JourneyRecord {
    fn of(steps: &[Step]) -> JourneyRecord {
        JourneyRecord {
            steps: steps.iter().map(StepRecord::of).collect(),
            ..JourneyRecord::default()
        }
    }

    pub(crate) fn ended(&mut self, end: End) {
        end.count(&mut self.completed, &mut self.failed, &mut self.took);
    }

    fn merge(&mut self, other: &JourneyRecord) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.failed += other.failed;
        self.took.merge(&other.took);
        let all = self.steps.iter_mut().zip(&other.steps);
        all.for_each(|(sum, more)| sum.merge(more));
    }
}

impl StepRecord {
    fn of(step: &Step) -> StepRecord {
        StepRecord {
            begun: 0,
            completed: 0,
            failed: 0,
            requests: 0,
            failures: [0; Failure::ALL.len()],
            took: Histogram::default(),
            checks: vec![CheckRecord::default(); step.checks.len()].into(),
        }
    }

    pub(crate) fn ended(&mut self, end: End) {
        end.count(&mut self.completed, &mut self.failed, &mut self.took);
    }

    fn merge(&mut self, other: &StepRecord) {
        self.begun += other.begun;
        self.completed += other.completed;
        self.failed += other.failed;
        self.requests += other.requests;
        let failures = self.failures.iter_mut().zip(other.failures);
        failures.for_each(|(sum, more)| *sum += more);
        self.took.merge(&other.took);
        for (sum, more) in self.checks.iter_mut().zip(&other.checks) {
            sum.passed += more.passed;
            sum.failed += more.failed;
        }
    }
}
