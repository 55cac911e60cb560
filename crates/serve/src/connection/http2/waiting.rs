//! A request that waits for the response of a server without a task: it becomes one when something happens.

use std::cell::RefCell;
use std::rc::Rc;

use super::request::Request;
use crate::chosen::Responded;
use crate::proxy::forward::request::Forward;
use crate::waiter::Parked;

/// None when it goes on.
struct Waiting(RefCell<Option<(Request, Forward)>>);

/// Has the request wait for its response, or for the end of its stream, where that is all there is to be done. Otherwise it goes on in a
/// task at once.
pub(super) fn wait(request: Request, forward: Forward) {
    let Some(submission) = forward.awaits_response() else {
        return request.spawn(Responded::Forwarded(forward));
    };
    forward.goes_to(request.exchange());
    let waiting = Rc::new(Waiting(RefCell::new(None)));
    submission.park(Rc::clone(&waiting) as Rc<dyn Parked>);
    request.stream().park(Rc::clone(&waiting) as Rc<dyn Parked>);
    waiting.0.replace(Some((request, forward)));
}

impl Parked for Waiting {
    fn begin(&self) {
        if let Some((request, forward)) = self.0.take() {
            request.spawn(Responded::Forwarded(forward));
        }
    }

    fn go_on(&self) {
        if let Some((request, forward)) = self.0.take() {
            request.go_on_with(forward);
        }
    }

    fn abandon(&self) {
        self.0.take();
    }
}
