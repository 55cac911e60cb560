//! Clients that have not shown yet that they may ask: when connections are few, the oldest of them gives its own up, so
//! that whoever has a token is always let in.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use onrush_engine::{Error, Input};

/// Those that are connected, the oldest first.
#[derive(Default)]
pub(crate) struct Strangers {
    queue: RefCell<VecDeque<Rc<Place>>>,
}

/// One connection among them.
#[derive(Default)]
struct Place {
    is_evicted: Cell<bool>,
    /// Of the task that waits for its bytes.
    waker: Cell<Option<Waker>>,
}

/// The connection of a client that nothing is known of; it is none any more when this is dropped.
pub(crate) struct Stranger {
    place: Rc<Place>,
    strangers: Rc<Strangers>,
}

/// What a wait for bytes has come to.
pub(crate) enum Heard {
    Received(Result<usize, Error>),
    /// Somebody else is to have its connection.
    Evicted,
}

impl Strangers {
    /// Another one.
    pub(crate) fn admit(self: &Rc<Self>) -> Stranger {
        let place = Rc::new(Place::default());
        self.queue.borrow_mut().push_back(Rc::clone(&place));
        Stranger {
            place,
            strangers: Rc::clone(self),
        }
    }

    /// Ends the wait of the one that has been connected for longest, once its task runs; `false` when there is none.
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

impl Stranger {
    /// The outcome of `receive`, unless this is evicted before.
    pub(crate) async fn hear(
        &self,
        input: &mut Input,
        mut receive: impl FnMut(&mut Input) -> Poll<Result<usize, Error>>,
    ) -> Heard {
        poll_fn(|context| {
            if self.place.is_evicted.get() {
                return Poll::Ready(Heard::Evicted);
            }
            self.place.waker.set(Some(context.waker().clone()));
            receive(input).map(Heard::Received)
        })
        .await
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut queue = self.strangers.queue.borrow_mut();
        queue.retain(|place| !Rc::ptr_eq(place, &self.place));
    }
}
