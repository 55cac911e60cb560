//! Requests that wait without a task: for the response of a server, or until a complete response has been sent.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::request::Request;
use crate::dispatch::route_action::DispatchResult;
use crate::exchange::downstream::http2::flow::stream_reset_error;
use crate::observe::in_flight::Stage;
use crate::proxy::forward::request::Forward;
use crate::worker::waiter::Parked;

/// `None` after it has continued.
#[derive(Default)]
struct Waiting(RefCell<Option<(Request, Forward)>>);

/// Parks the request until its response arrives or its stream ends. Starts its task if anything else is to be done.
pub(super) fn wait(request: Request, forward: Forward) {
    if forward.awaits_response().is_none() {
        return request.spawn(DispatchResult::Forwarded(forward));
    }
    let waiting: Rc<Waiting> = request.worker().spare_parked.take().unwrap_or_default();
    waiting.0.replace(Some((request, forward)));
    if let Some((request, forward)) = &*waiting.0.borrow()
        && let Some(submission) = forward.awaits_response()
    {
        forward.assign_server(request.exchange());
        if submission.queued_since().is_some() {
            request.exchange().set_stage(Stage::Queued);
        }
        submission.park(Rc::clone(&waiting) as Rc<dyn Parked>);
        request.stream().park(Rc::clone(&waiting) as Rc<dyn Parked>);
    }
}

impl Parked for Waiting {
    fn resume_in_task(&self) {
        if let Some((request, forward)) = self.0.take() {
            request.spawn(DispatchResult::Forwarded(forward));
        }
    }

    fn resume(self: Rc<Self>) {
        if let Some((request, forward)) = self.0.take() {
            let worker = Rc::clone(request.worker());
            request.continue_with(forward);
            worker.spare_parked.give(self);
        }
    }

    fn queued(&self, duration: Duration) {
        if let Some((request, _)) = &*self.0.borrow() {
            request.exchange().record_queue_time(duration);
            request.exchange().set_stage(Stage::Waiting);
        }
    }

    fn abandon(&self) {
        self.0.take();
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}

/// A request whose complete response waits for its client's windows; `None` after it has continued.
struct UnflushedRequest(RefCell<Option<Request>>);

/// Finishes the request when its response has been sent, so that only bytes the client accepted are counted.
pub(super) fn finish_when_sent(mut request: Request) {
    if request.stream().is_reset() {
        return request.finish(Err(stream_reset_error()));
    }
    if request.stream().is_flushed() {
        return request.finish(Ok(()));
    }
    request.record_late_end();
    let leaving = Rc::new(UnflushedRequest(RefCell::new(None)));
    request.stream().park(Rc::clone(&leaving) as Rc<dyn Parked>);
    leaving.0.replace(Some(request));
}

impl Parked for UnflushedRequest {
    fn resume_in_task(&self) {
        if let Some(request) = self.0.take() {
            request.spawn(DispatchResult::Whole);
        }
    }

    fn resume(self: Rc<Self>) {
        self.resume_in_task();
    }

    fn abandon(&self) {
        self.0.take();
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
