//! Counters of journeys on one core, in addition to the counters of their requests.

use onrush_measure::histogram::Histogram;

use crate::journey::steps::{Journeys, Step};
use crate::protocol::failure::Failure;

/// Counters of one core, or the sum over several.
#[derive(Clone, Debug)]
pub(crate) struct JourneysRecord {
    /// Requests written. Invariant: = responses + failed + `in_flight`.
    pub(crate) requests_sent: u64,
    pub(crate) in_flight: u64,
    /// Steps that users do before their first journey.
    pub(crate) setup: JourneyRecord,
    pub(crate) journeys: Box<[JourneyRecord]>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct JourneyRecord {
    /// Users who started it. Invariant: = completed + failed + users still on it.
    pub(crate) begun: u64,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    /// Times of completed journeys, from when they were due.
    pub(crate) took: Histogram,
    pub(crate) steps: Box<[StepRecord]>,
}

#[derive(Clone, Debug)]
pub(crate) struct StepRecord {
    /// Users who reached the step. Invariant: = completed + failed + users still on it.
    pub(crate) begun: u64,
    pub(crate) completed: u64,
    /// Users whose journey ended here.
    pub(crate) failed: u64,
    /// Requests written: more than users if redirects were followed or requests resent.
    pub(crate) requests: u64,
    /// Failures in the order of [`Failure::ALL`], including failed checks after which the journey continued.
    pub(crate) failures: [u64; Failure::ALL.len()],
    /// Times of completed steps, from when they were due.
    pub(crate) took: Histogram,
    pub(crate) checks: Box<[CheckRecord]>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CheckRecord {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

/// How a journey or step of a user ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// With its time in nanoseconds, if it is in the measured window.
    Completed(Option<u64>),
    Failed,
}

impl End {
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
