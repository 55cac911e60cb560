//! Requests that wait for room on a server of their group, first come, first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use onrush_engine::{Core, Instant};

use super::endpoints::Endpoints;
use super::line::Stand;

/// The requests of one core that wait for one group of one configuration. The first of them stands in the line of all cores.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: RefCell<VecDeque<Waiter>>,
    /// Of this queue and of those of the group's other configurations on this core.
    length: Rc<Cell<usize>>,
    length_max: usize,
    next: Cell<u64>,
    endpoints: Arc<Endpoints>,
    /// Its name in the line.
    number: u64,
    stand: Cell<Stand>,
    /// See [`Line::stand`](super::line::Line::stand).
    passed: Cell<u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    waker: Waker,
    /// Room was made and it is its turn.
    called: bool,
}

/// A request's place in the queue, which it leaves when this is dropped.
pub(crate) struct Ticket<'q> {
    queue: &'q Queue,
    number: u64,
    /// Whether it stands in the line for its queue and was not woken since.
    stands: Cell<bool>,
    has_room: Cell<bool>,
}

impl Queue {
    /// `before` is the group's queue in the configuration before. Who waits there goes on doing so, for the servers of that
    /// one, and counts here. He does not stand before those who come now: what he waits for they may not need.
    pub(crate) fn new(
        length_max: usize,
        endpoints: &Arc<Endpoints>,
        before: Option<&Queue>,
    ) -> Self {
        Self {
            waiting: RefCell::default(),
            length: before.map_or_else(Rc::default, |before| Rc::clone(&before.length)),
            length_max,
            next: Cell::new(0),
            endpoints: Arc::clone(endpoints),
            number: endpoints.line().enroll(),
            stand: Cell::new(Stand::Away),
            passed: Cell::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Joins at the end; `None` when the queue is as long as it may be.
    pub(crate) async fn join(&self) -> Option<Ticket<'_>> {
        poll_fn(|context| {
            let mut waiting = self.waiting.borrow_mut();
            if self.length.get() >= self.length_max {
                return Poll::Ready(None);
            }
            self.length.set(self.length.get() + 1);
            let number = self.next.get();
            self.next.set(number + 1);
            waiting.push_back(Waiter {
                ticket: number,
                waker: context.waker().clone(),
                called: false,
            });
            Poll::Ready(Some(Ticket {
                queue: self,
                number,
                stands: Cell::new(false),
                has_room: Cell::new(false),
            }))
        })
        .await
    }

    /// The first in the queue may look.
    fn call(&self) {
        if let Some(first) = self.waiting.borrow_mut().front_mut() {
            first.called = true;
            first.waker.wake_by_ref();
        }
    }

    /// Leaves the line. What it was called for is for the next, if there is room.
    fn leave_line(&self) {
        if self.stand.replace(Stand::Away) == Stand::Away {
            return;
        }
        if !self.endpoints.line().leave(self.number)
            && self.endpoints.may_have_capacity_for_others()
        {
            self.endpoints.line().call(|| ());
        }
    }
}

impl Ticket<'_> {
    /// Sees to it that room which is made from now on wakes this request, the first of its queue; `false` when it does so
    /// already. What was made before is found by looking again.
    pub(crate) async fn stand_in_line(&self) -> bool {
        if self.stands.replace(true) {
            return false;
        }
        poll_fn(|context| {
            let queue = self.queue;
            let before = queue.stand.replace(Stand::InLine);
            let state = (before, queue.passed.get());
            let passed = queue
                .endpoints
                .stand_in_line(queue.number, context.waker(), state);
            queue.passed.set(passed);
            Poll::Ready(true)
        })
        .await
    }

    /// Room was found.
    pub(crate) fn finish(&self) {
        self.has_room.set(true);
    }

    /// Waits until it is worth looking for room again: it was this request's turn, in its queue or in the line of all
    /// cores; or `until` has passed.
    pub(crate) async fn turn(&self, core: &Core, until: Instant) {
        let mut sleep = pin!(core.sleep_until(until));
        let mut waits = false;
        poll_fn(|context| {
            // Who stands in the line is woken for nothing else.
            if self.is_called() || (waits && self.stands.get()) {
                return Poll::Ready(());
            }
            waits = true;
            sleep.as_mut().poll(context)
        })
        .await;
        self.stands.set(false);
    }

    /// Whether nobody has waited for longer.
    pub(crate) fn is_first(&self) -> bool {
        let waiting = self.queue.waiting.borrow();
        waiting
            .front()
            .is_some_and(|first| first.ticket == self.number)
    }

    fn is_called(&self) -> bool {
        let mut waiting = self.queue.waiting.borrow_mut();
        waiting
            .front_mut()
            .is_some_and(|first| first.ticket == self.number && std::mem::take(&mut first.called))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut waiting = self.queue.waiting.borrow_mut();
        if let Some(at) = waiting
            .iter()
            .position(|waiter| waiter.ticket == self.number)
        {
            waiting.remove(at);
            self.queue.length.set(self.queue.length.get() - 1);
        }
        let is_last = waiting.is_empty();
        drop(waiting);
        if is_last || self.has_room.get() {
            self.queue.leave_line();
        }
        // If it was called and leaves without having found room, or found room and more is left, the next may look.
        self.queue.call();
    }
}
