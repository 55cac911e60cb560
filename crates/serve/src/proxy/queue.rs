//! Requests that wait for room on a server of their group, first come, first served.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

use onrush_engine::{Core, Instant};

use crate::limits::QUEUE_LOOK;

/// The requests of one core that wait for one group.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: RefCell<VecDeque<Waiter>>,
    length_max: usize,
    next: Cell<u64>,
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
}

impl Queue {
    pub(crate) fn new(length_max: usize) -> Self {
        Self {
            waiting: RefCell::default(),
            length_max,
            next: Cell::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Joins at the end; `None` when the queue is as long as it may be.
    pub(crate) async fn join(&self) -> Option<Ticket<'_>> {
        poll_fn(|context| {
            let mut waiting = self.waiting.borrow_mut();
            if waiting.len() >= self.length_max {
                return Poll::Ready(None);
            }
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
            }))
        })
        .await
    }

    /// There is room for one request: the first in the queue may look.
    pub(crate) fn call(&self) {
        if let Some(first) = self.waiting.borrow_mut().front_mut() {
            first.called = true;
            first.waker.wake_by_ref();
        }
    }
}

impl Ticket<'_> {
    /// Waits until it is worth looking for room again: it was this request's turn, or other cores may have made room,
    /// which nobody tells us; or `until` has passed.
    pub(crate) async fn turn(&self, core: &Core, until: Instant) {
        let look = (core.now_exact() + QUEUE_LOOK).min(until);
        let mut sleep = pin!(core.sleep_until(look));
        poll_fn(|context| {
            if self.is_called() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(context)
        })
        .await
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
        }
        drop(waiting);
        // If it was called and leaves without having found room, or found room and more is left, the next may look.
        self.queue.call();
    }
}
