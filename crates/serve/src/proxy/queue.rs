//! Queue of requests that wait for capacity of their group: round robin over clients, first in, first out within each.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

use onrush_engine::{Core, Instant};

use super::endpoints::Endpoints;
use super::wait_queue::Position;
use crate::worker::admit::key::Key;

/// The requests of one core that wait for one group of one configuration. Unless empty, it is in the line of all cores.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Clients with waiting requests; the first one is next.
    clients: RefCell<VecDeque<Client>>,
    /// Number of waiting requests, including queues of the group's other configurations on this core.
    length: Rc<Cell<usize>>,
    length_max: usize,
    next: Cell<u64>,
    endpoints: Arc<Endpoints>,
    /// Identifies the queue in the line.
    number: u64,
    position: Cell<Position>,
    /// See [`WaitQueue::enter`](super::wait_queue::WaitQueue::enter).
    passed: Cell<u64>,
}

/// The waiting requests of one client. All requests without a known client share one entry.
#[derive(Debug)]
struct Client {
    client: Option<Key>,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    waker: Waker,
    /// Whether the waiter was woken because capacity was released and it is the next.
    called: bool,
}

/// A waiting request; leaves the queue on drop.
pub(crate) struct Ticket<'q> {
    queue: &'q Queue,
    client: Option<Key>,
    number: u64,
    /// Whether it has entered the line for its queue and has not been woken since.
    is_in_line: Cell<bool>,
    has_found: Cell<bool>,
}

impl Queue {
    /// `before` is the group's queue in the previous configuration. Its requests keep waiting for the servers of that
    /// one; they count towards `length_max` here, but do not precede the requests here, which may need other servers.
    pub(crate) fn new(
        length_max: usize,
        endpoints: &Arc<Endpoints>,
        before: Option<&Queue>,
    ) -> Self {
        Self {
            clients: RefCell::default(),
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
        self.clients.borrow().is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        let clients = self.clients.borrow();
        clients.iter().map(|client| client.waiting.len()).sum()
    }

    /// Appends a request after the others of its client; `None` if the queue is full.
    pub(crate) async fn join(&self, client: Option<Key>) -> Option<Ticket<'_>> {
        poll_fn(|context| {
            if self.length.get() >= self.length_max {
                return Poll::Ready(None);
            }
            self.length.set(self.length.get() + 1);
            let number = self.next.get();
            self.next.set(number + 1);
            self.add(
                client,
                Waiter {
                    ticket: number,
                    waker: context.waker().clone(),
                    called: false,
                },
            );
            Poll::Ready(Some(Ticket {
                queue: self,
                client,
                number,
                is_in_line: Cell::new(false),
                has_found: Cell::new(false),
            }))
        })
        .await
    }

    fn add(&self, client: Option<Key>, waiter: Waiter) {
        let mut clients = self.clients.borrow_mut();
        match clients.iter_mut().find(|it| it.client == client) {
            Some(its) => its.waiting.push_back(waiter),
            None => clients.push_back(Client {
                client,
                waiting: VecDeque::from([waiter]),
            }),
        }
    }

    /// Number of the next request: the oldest one of the first client that is within its share.
    pub(crate) fn next(&self, is_within_share: impl Fn(Key) -> bool) -> Option<u64> {
        let clients = self.clients.borrow();
        let is_within = |it: &&Client| it.client.is_none_or(&is_within_share);
        let next = clients.iter().find(is_within)?;
        next.waiting.front().map(|waiter| waiter.ticket)
    }

    /// Wakes the next request, or the first one if no client is within its share; it tries again.
    pub(crate) fn call(&self, is_within_share: impl Fn(Key) -> bool) {
        let Some(next) = self.next(is_within_share).or_else(|| self.next(|_| true)) else {
            return;
        };
        let mut clients = self.clients.borrow_mut();
        let mut fronts = clients.iter_mut().filter_map(|it| it.waiting.front_mut());
        if let Some(waiter) = fronts.find(|waiter| waiter.ticket == next) {
            waiter.called = true;
            waiter.waker.wake_by_ref();
        }
    }

    /// Whether the queue is not waiting in the line of all cores.
    pub(crate) fn is_outside_line(&self) -> bool {
        self.position.get() == Position::Outside
    }

    /// Leaves the line. If the queue was called and there may be capacity left, calls the next queue.
    pub(crate) fn leave_line(&self) {
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
    /// Registers this request, the first of its queue, to be woken when capacity is released. Returns `false` if it was
    /// registered already. The caller must try once more after this, since capacity may have been released before.
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

    /// Records that capacity was found.
    pub(crate) fn finish(&self) {
        self.has_found.set(true);
    }

    /// Waits until the request is called, in its queue or in the line of all cores, or until `until`.
    pub(crate) async fn turn(&self, core: &Core, until: Instant) {
        let mut sleep = pin!(core.sleep_until(until));
        let mut waits = false;
        poll_fn(|context| {
            // In the line, any wake-up is a call.
            if self.is_called() || (waits && self.is_in_line.get()) {
                return Poll::Ready(());
            }
            waits = true;
            sleep.as_mut().poll(context)
        })
        .await;
        self.is_in_line.set(false);
    }

    pub(crate) fn is(&self, number: u64) -> bool {
        self.number == number
    }

    /// Whether this request is the first of the queue.
    pub(crate) fn is_first(&self) -> bool {
        self.queue.next(|_| true) == Some(self.number)
    }

    fn is_called(&self) -> bool {
        let mut clients = self.queue.clients.borrow_mut();
        let mut fronts = clients.iter_mut().filter_map(|it| it.waiting.front_mut());
        let its = fronts.find(|waiter| waiter.ticket == self.number);
        its.is_some_and(|waiter| std::mem::take(&mut waiter.called))
    }

    /// Leaves the queue. If the request found capacity, its client moves to the end of the round.
    fn leave(&self) {
        let mut clients = self.queue.clients.borrow_mut();
        let Some(place) = clients.iter().position(|it| it.client == self.client) else {
            return;
        };
        let Some(mut its) = clients.remove(place) else {
            return;
        };
        its.waiting.retain(|waiter| waiter.ticket != self.number);
        self.queue.length.set(self.queue.length.get() - 1);
        match self.has_found.get() {
            _ if its.waiting.is_empty() => {}
            true => clients.push_back(its),
            false => clients.insert(place, its),
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.leave();
        if self.queue.is_empty() || self.has_found.get() {
            self.queue.leave_line();
        }
        // The request may not have used its call, or there may be capacity for more: the next one tries.
        self.queue.call(|_| true);
    }
}
