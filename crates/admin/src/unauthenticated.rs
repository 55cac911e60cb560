//! Unauthenticated connections. If connections run out the oldest is evicted, so that a client with a token gets in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use onrush_engine::{Error, Input};

/// The unauthenticated connections, oldest first.
#[derive(Default)]
pub(crate) struct UnauthenticatedConnections {
    queue: RefCell<VecDeque<Rc<Entry>>>,
}

/// An entry of the queue.
#[derive(Default)]
struct Entry {
    is_evicted: Cell<bool>,
    /// Waker of the task that waits for the client's bytes.
    waker: Cell<Option<Waker>>,
}

/// Membership of an unauthenticated connection; ends when this is dropped.
pub(crate) struct UnauthenticatedConnection {
    place: Rc<Entry>,
    strangers: Rc<UnauthenticatedConnections>,
}

pub(crate) enum Received {
    Received(Result<usize, Error>),
    /// The connection must close, to make room for another.
    Evicted,
}

impl UnauthenticatedConnections {
    pub(crate) fn admit(self: &Rc<Self>) -> UnauthenticatedConnection {
        let place = Rc::new(Entry::default());
        self.queue.borrow_mut().push_back(Rc::clone(&place));
        UnauthenticatedConnection {
            place,
            strangers: Rc::clone(self),
        }
    }

    /// Evicts the oldest connection and wakes its task. Returns `false` if there is none.
    pub(crate) fn evict_oldest(&self) -> bool {
        let Some(place) = self.queue.borrow_mut().pop_front() else {
            return false;
        };
        place.is_evicted.set(true);
        if let Some(waker) = place.waker.take() {
            waker.wake();
        }
        true
    }
}

impl UnauthenticatedConnection {
    /// Returns the outcome of `receive`, unless the connection is evicted before.
    pub(crate) async fn receive_unless_evicted(
        &self,
        input: &mut Input,
        mut receive: impl FnMut(&mut Input) -> Poll<Result<usize, Error>>,
    ) -> Received {
        poll_fn(|context| {
            if self.place.is_evicted.get() {
                return Poll::Ready(Received::Evicted);
            }
            self.place.waker.set(Some(context.waker().clone()));
            receive(input).map(Received::Received)
        })
        .await
    }
}

impl Drop for UnauthenticatedConnection {
    fn drop(&mut self) {
        let mut queue = self.strangers.queue.borrow_mut();
        queue.retain(|place| !Rc::ptr_eq(place, &self.place));
    }
}
