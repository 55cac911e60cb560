//! Sends a user's request and receives the response, over the kept connection or a new one, with retries and redirects.

use std::rc::Rc;

use super::evaluation::inspected_parts;
use super::{StepPosition, StopReason, User};
use crate::connection::core_run::journey_recorder::{Counted, Repeatable};
use crate::connection::core_run::recorder::Received;
use crate::connection::user::link::{Link, TimedResponse};
use crate::journey::redirect::{SerializedRequest, is_redirect};
use crate::journey::response::InspectedParts;
use crate::journey::steps::Step;
use crate::protocol::failure::{Failure, NoResponse};
use crate::protocol::http1::outcome;
use crate::requests::request::LastRequest;
use crate::requests::response::{ExpectationResult, Response as Said};
use crate::requests::template::Values;

impl User {
    /// Sends the step's request and follows redirects; returns the last response.
    pub(super) async fn ask(
        &mut self,
        of: StepPosition,
        step: &Step,
        values: &Values<'_>,
    ) -> Result<TimedResponse, StopReason> {
        let users = Rc::clone(&self.users);
        let recipe = &users.mix.recipes()[step.request];
        let repeatable = match recipe.kind.is_repeatable {
            true => Repeatable::Yes,
            false => Repeatable::No,
        };
        let mut text = Vec::new();
        let ending = (LastRequest::No, Some(&self.jar));
        let body = users
            .mix
            .write_recipe(step.request, values, &self.taken, ending, &mut text);
        let mut written = SerializedRequest {
            method: recipe.method,
            text,
            body: body.map(|body| users.bodies.own(body)),
            closes: recipe.closes,
        };
        let mut left = step.redirects;
        loop {
            let arrived = self
                .exchange(of, &written, inspected_parts(step), repeatable)
                .await?;
            arrived
                .response
                .cookies()
                .for_each(|cookie| self.jar.store(&cookie));
            if step.redirects == 0 || !is_redirect(&arrived.response) {
                if !step.checks.iter().any(|check| check.test.tests_status()) {
                    let outcome = outcome(arrived.response.status);
                    self.core_run.step_unlisted(outcome, of.counted());
                }
                return Ok(arrived);
            }
            let next = written.follow(&arrived.response, &users.target, &self.jar);
            let Some(next) = next.filter(|_| left > 0) else {
                let what = || match left {
                    0 => format!(
                        "more than {} redirects in step {:?}",
                        step.redirects, step.name
                    ),
                    _ => format!(
                        "step {:?} was redirected to another server or to an invalid location",
                        step.name
                    ),
                };
                return Err(self.wrong(of, Failure::RedirectRefused, what));
            };
            written = next;
            left -= 1;
            // The next request starts when the response has arrived.
            self.work.own_delay = 0;
            self.core_run
                .step_begins(&mut self.work, arrived.at, arrived.at);
        }
    }

    /// Sends one request over the user's connection, or a new one, and receives its response.
    async fn exchange(
        &mut self,
        of: StepPosition,
        written: &SerializedRequest,
        wants: InspectedParts,
        repeatable: Repeatable,
    ) -> Result<TimedResponse, StopReason> {
        let core_run = Rc::clone(&self.core_run);
        loop {
            let mut link = self.connection(of).await?;
            self.check_over()?;
            let bytes = link.queue(written);
            core_run.step_sends(&link.stream, &mut self.work, bytes, of.counted());
            self.count(of, |record| record.requests += 1);
            match link.exchange(&core_run, written, wants, of.counted()).await {
                Ok(mut arrived) => {
                    arrived.response.keep_alive &= !written.closes;
                    self.arrived(of, link, &arrived);
                    self.check_over()?;
                    return Ok(arrived);
                }
                Err(lost) => {
                    let manner = (of.counted(), repeatable);
                    let failure = core_run.step_lost(&link.stream, &self.work, lost, manner);
                    core_run.link_ended(&link.stream, &self.work);
                    self.check_over()?;
                    if let Some(failure) = failure {
                        return Err(self.failed(of, failure));
                    }
                }
            }
        }
    }

    /// Records a response received over `link`, and keeps the connection if possible.
    fn arrived(&mut self, of: StepPosition, link: Link, arrived: &TimedResponse) {
        let response = Said {
            outcome: outcome(arrived.response.status),
            keep_alive: arrived.response.keep_alive,
            expectation: ExpectationResult::Yes,
        };
        if of.counted() == Counted::Yes {
            let received = Received {
                is_first: link.responses == 1,
                ..Received::new(response, arrived.first_byte)
            };
            self.core_run
                .step_responded(&link.stream, &mut self.work, received, arrived.at);
        }
        self.has_response = true;
        self.work.set_kept(true);
        if !link.input.is_empty() {
            self.core_run.link_unasked();
            self.core_run.link_ended(&link.stream, &self.work);
        } else if response.keep_alive {
            self.link = Some(link);
        } else {
            self.core_run.link_ended(&link.stream, &self.work);
        }
    }

    /// Returns the user's connection if it is usable, or a new one.
    async fn connection(&mut self, of: StepPosition) -> Result<Link, StopReason> {
        if let Some(mut link) = self.link.take() {
            // The think time may exceed the timeout of a response.
            let now = self.core_run.core.now_exact();
            self.core_run.extend_deadline(&link.stream, now);
            match link.look().await {
                Ok(()) => return Ok(link),
                Err(lost) => {
                    if lost == NoResponse::Unasked {
                        self.core_run.link_unasked();
                    }
                    self.core_run.link_ended(&link.stream, &self.work);
                }
            }
        }
        let core_run = Rc::clone(&self.core_run);
        match core_run.dialer.connect(&core_run.recorder.record).await {
            Ok(stream) => {
                self.work.connected();
                self.work.set_kept(false);
                self.work.ready = self.work.ready.max(core_run.core.now_exact());
                Ok(Link::new(stream))
            }
            Err(error) => {
                let failure = core_run.link_failed(&error);
                self.check_over()?;
                self.count(of, |record| record.failures[failure as usize] += 1);
                Err(StopReason::Failed)
            }
        }
    }

    pub(super) fn disconnect(&mut self) {
        if let Some(link) = self.link.take() {
            self.core_run.link_ended(&link.stream, &self.work);
        }
    }
}
