//! Requests that wait for capacity of a server of their group, first come, first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use onrush_engine::{Core, Instant};

use super::endpoints::Endpoints;
use super::line::Position;

/// The requests of one core that wait for one group of one configuration. While some wait, the queue
/// is in the line of all cores.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: RefCell<VecDeque<Waiter>>,
    /// Of this queue and of those of the group's other configurations on this core.
    length: Rc<Cell<usize>>,
    length_max: usize,
    next: Cell<u64>,
    endpoints: Arc<Endpoints>,
    /// Its number in the line.
    number: u64,
    position: Cell<Position>,
    /// See [`Line::enter`](super::line::Line::enter).
    passed: Cell<u64>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    waker: Waker,
    /// Capacity was released and it is its turn.
    called: bool,
}

/// A request in the queue, which it leaves when this is dropped.
pub(crate) struct Ticket<'q> {
    queue: &'q Queue,
    number: u64,
    /// Whether it has entered the line for its queue and was not woken since.
    is_in_line: Cell<bool>,
    has_found: Cell<bool>,
}

impl Queue {
    /// `before` is the group's queue in the configuration before. Requests that wait there go on waiting, for the servers of
    /// that one, and count here. They do not come before those of this queue, which may not need what they wait for.
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
            number: endpoints.line().add_queue(),
            position: Cell::new(Position::Outside),
            passed: Cell::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.borrow().len()
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
                is_in_line: Cell::new(false),
                has_found: Cell::new(false),
            }))
        })
        .await
    }

    /// The first in the queue may look for capacity.
    fn call(&self) {
        if let Some(first) = self.waiting.borrow_mut().front_mut() {
            first.called = true;
            first.waker.wake_by_ref();
        }
    }

    /// Leaves the line. What it was called for is for the next, if there is capacity.
    fn leave_line(&self) {
        if self.position.replace(Position::Outside) == Position::Outside {
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
    /// Has capacity that is released from now on wake this request, the first of its queue; `false` when it does so already.
    /// What was released before is found by looking again.
    pub(crate) async fn enter_line(&self) -> bool {
        if self.is_in_line.replace(true) {
            return false;
        }
        poll_fn(|context| {
            let queue = self.queue;
            let before = queue.position.replace(Position::InLine);
            let state = (before, queue.passed.get());
            let passed = queue
                .endpoints
                .enter_line(queue.number, context.waker(), state);
            queue.passed.set(passed);
            Poll::Ready(true)
        })
        .await
    }

    /// Capacity was found.
    pub(crate) fn finish(&self) {
        self.has_found.set(true);
    }

    /// Waits until it makes sense to look for capacity again: it was this request's turn, in its queue or in the line of all
    /// cores; or `until` has passed.
    pub(crate) async fn turn(&self, core: &Core, until: Instant) {
        let mut sleep = pin!(core.sleep_until(until));
        let mut waits = false;
        poll_fn(|context| {
            // A request in the line is woken for nothing else.
            if self.is_called() || (waits && self.is_in_line.get()) {
                return Poll::Ready(());
            }
            waits = true;
            sleep.as_mut().poll(context)
        })
        .await;
        self.is_in_line.set(false);
    }

    /// Whether none has waited for longer.
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
        if is_last || self.has_found.get() {
            self.queue.leave_line();
        }
        // If it was called and leaves without having found capacity, or found some and more is left, the next may look.
        self.queue.call();
    }
}
