//! Requests that wait without a task: for the response of a server, or until a complete response has been sent.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::request::Request;
use crate::dispatch::chosen::Responded;
use crate::exchange::downstream::http2::flow::gone;
use crate::observe::live::Stage;
use crate::proxy::forward::request::Forward;
use crate::worker::waiter::Parked;

/// `None` after it has continued.
#[derive(Default)]
struct Waiting(RefCell<Option<(Request, Forward)>>);

/// Parks the request until its response arrives or its stream ends. Starts its task if anything else is to be done.
pub(super) fn wait(request: Request, forward: Forward) {
    if forward.awaits_response().is_none() {
        return request.spawn(Responded::Forwarded(forward));
    }
    let waiting: Rc<Waiting> = request.worker().spare_parked.take().unwrap_or_default();
    waiting.0.replace(Some((request, forward)));
    if let Some((request, forward)) = &*waiting.0.borrow()
        && let Some(submission) = forward.awaits_response()
    {
        forward.goes_to(request.exchange());
        if submission.queued_since().is_some() {
            request.exchange().is_at(Stage::Queued);
        }
        submission.park(Rc::clone(&waiting) as Rc<dyn Parked>);
        request.stream().park(Rc::clone(&waiting) as Rc<dyn Parked>);
    }
}

impl Parked for Waiting {
    fn begin(&self) {
        if let Some((request, forward)) = self.0.take() {
            request.spawn(Responded::Forwarded(forward));
        }
    }

    fn go_on(self: Rc<Self>) {
        if let Some((request, forward)) = self.0.take() {
            let worker = Rc::clone(request.worker());
            request.go_on_with(forward);
            worker.spare_parked.give(self);
        }
    }

    fn queued(&self, duration: Duration) {
        if let Some((request, _)) = &*self.0.borrow() {
            request.exchange().has_queued(duration);
            request.exchange().is_at(Stage::Waiting);
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
struct Leaving(RefCell<Option<Request>>);

/// Finishes the request when its response has been sent, so that only bytes the client accepted are counted.
pub(super) fn finish_behind(mut request: Request) {
    if request.stream().is_reset() {
        return request.finish(Err(gone()));
    }
    if request.stream().is_written() {
        return request.finish(Ok(()));
    }
    request.leaves_late();
    let leaving = Rc::new(Leaving(RefCell::new(None)));
    request.stream().park(Rc::clone(&leaving) as Rc<dyn Parked>);
    leaving.0.replace(Some(request));
}

impl Parked for Leaving {
    fn begin(&self) {
        if let Some(request) = self.0.take() {
            request.spawn(Responded::Whole);
        }
    }

    fn go_on(self: Rc<Self>) {
        self.begin();
    }

    fn abandon(&self) {
        self.0.take();
    }

    fn as_any(self: Rc<Self>) -> Rc<dyn Any> {
        self
    }
}
