//! Evaluates a response: checks, and values for later steps.

use std::rc::Rc;

use super::{StepPosition, StopReason, User};
use crate::connection::core_run::journey_recorder::Counted;
use crate::journey::check::Severity;
use crate::journey::response::{InspectedParts, Response};
use crate::journey::steps::Step;
use crate::protocol::failure::Failure;

impl User {
    /// Makes the checks of a step, and extracts its values.
    pub(super) fn judge(
        &mut self,
        of: StepPosition,
        step: &Step,
        mut response: Response,
    ) -> Result<(), StopReason> {
        let of_step = || format!("status {} in step {:?}", response.status, step.name);
        if inspected_parts(step) == InspectedParts::Body {
            let said = of_step();
            if let Err(failure) = response.decode() {
                return Err(self.wrong(of, failure, || said));
            }
        }
        let mut failed: Option<(&str, Severity)> = None;
        for (index, check) in step.checks.iter().enumerate() {
            let holds = check.test.passes(&response);
            self.count(of, |record| match holds {
                true => record.checks[index].passed += 1,
                false => record.checks[index].failed += 1,
            });
            let is_worse = failed.is_none_or(|(_, severity)| severity == Severity::Optional);
            if !holds && is_worse {
                failed = Some((&check.name, check.severity));
            }
        }
        if let Some((name, severity)) = failed {
            let what = || {
                format!(
                    "status {} failed check {name:?} of step {:?}",
                    response.status, step.name
                )
            };
            let halt = self.wrong(of, Failure::CheckFailed, what);
            if severity == Severity::Required {
                return Err(halt);
            }
        }
        let users = Rc::clone(&self.users);
        for take in &step.extractions {
            let value = &users.journeys.values[take.value];
            let Some(found) = take.find(&response, value.used) else {
                let what = || {
                    format!(
                        "status {}, but no {:?} in the response of step {:?}",
                        response.status, value.name, step.name
                    )
                };
                return Err(self.wrong(of, Failure::NoValue, what));
            };
            self.taken[take.value] = found;
        }
        Ok(())
    }

    /// Counts a response that fails its step.
    pub(super) fn wrong(
        &self,
        of: StepPosition,
        failure: Failure,
        what: impl FnOnce() -> String,
    ) -> StopReason {
        self.count(of, |record| record.failures[failure as usize] += 1);
        match of.counted() {
            Counted::Yes => self.core_run.step_wrong(failure, what),
            Counted::No => self.core_run.setup_failed(failure),
        }
        StopReason::Failed
    }

    /// Counts a request without a response.
    pub(super) fn failed(&self, of: StepPosition, failure: Failure) -> StopReason {
        self.count(of, |record| record.failures[failure as usize] += 1);
        if of.counted() == Counted::No {
            self.core_run.setup_failed(failure);
        }
        StopReason::Failed
    }
}

/// Returns which parts of the response a step inspects.
pub(super) fn inspected_parts(step: &Step) -> InspectedParts {
    let checks = step.checks.iter().map(|check| check.test.needs_body());
    let takes = step.extractions.iter().map(|take| take.source.is_of_body());
    match checks.chain(takes).any(|is_of_body| is_of_body) {
        true => InspectedParts::Body,
        false => InspectedParts::HeadOnly,
    }
}
