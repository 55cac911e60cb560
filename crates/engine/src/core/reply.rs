//! A one-shot channel from another thread to a task of a core.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::core::Core;
use crate::core::handle::Shared;

/// The sending end, for another thread. Dropping it without a value resolves the reply to `None`. On a simulated core
/// virtual time stops until the promise is settled, so tasks of the same core must not use it for each other.
pub struct Promise<T: Send + 'static> {
    /// `None` once the promise is settled.
    slot: Option<Arc<Slot<T>>>,
    core: Arc<Shared>,
    number: u64,
}

/// The receiving end: a future of the value, or of `None` when the promise was dropped. Dropping it discards the value.
pub struct Reply<T> {
    slot: Arc<Slot<T>>,
}

/// Both ends are on the core when the slot changes, so its lock is never contended.
type Slot<T> = Mutex<State<T>>;

enum State<T> {
    /// No value yet. The waker is that of the task, once it waits.
    Waiting(Option<Waker>),
    /// The value; `None` if the promise was dropped or the value was taken.
    Settled(Option<T>),
}

impl Core {
    /// Makes a one-shot channel by which another thread gives a value to a task of this core.
    pub fn promise<T: Send + 'static>(&self) -> (Promise<T>, Reply<T>) {
        let core = self.handle().0;
        let number = core.mailbox.promise();
        let slot = Arc::new(Mutex::new(State::Waiting(None)));
        let reply = Reply {
            slot: Arc::clone(&slot),
        };
        let promise = Promise {
            slot: Some(slot),
            core,
            number,
        };
        (promise, reply)
    }
}

fn state<T>(slot: &Slot<T>) -> MutexGuard<'_, State<T>> {
    // No code under the lock can panic and leave a partial change.
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Send + 'static> Promise<T> {
    /// Whether the [`Reply`] still exists.
    pub fn is_wanted(&self) -> bool {
        self.slot
            .as_ref()
            .is_some_and(|slot| Arc::strong_count(slot) > 1)
    }

    /// Sends the value and wakes the task on its core.
    pub fn fulfil(mut self, value: T) {
        self.settle(Some(value));
    }

    fn settle(&mut self, value: Option<T>) {
        let Some(slot) = self.slot.take() else {
            return;
        };
        let tell = move |_: &Core| {
            let before = mem::replace(&mut *state(&slot), State::Settled(value));
            if let State::Waiting(Some(waker)) = before {
                waker.wake();
            }
        };
        self.core
            .mailbox
            .complete_promise(self.number, Box::new(tell));
    }
}

impl<T: Send + 'static> Drop for Promise<T> {
    fn drop(&mut self) {
        self.settle(None);
    }
}

impl<T> Future for Reply<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        match &mut *state(&self.slot) {
            State::Settled(value) => Poll::Ready(value.take()),
            State::Waiting(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl<T: Send + 'static> std::fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Promise")
    }
}

impl<T> std::fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}
