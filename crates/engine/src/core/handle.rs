//! A core, as other threads use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Core;
use crate::core::mailbox::{Mailbox, NotPosted};
use crate::task::notifier::Notifier;

/// The part of a core that other threads may access.
pub(crate) struct Shared {
    /// 0 while the core runs; otherwise 1 + the nanoseconds that tasks have to finish.
    pub(super) stop: AtomicU64,
    pub(crate) mailbox: Mailbox,
    pub(crate) notifier: Arc<Notifier>,
}

/// A core, as other threads use it.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Asks the core to stop: interruptible waits end at once, other tasks get `drain`, which later calls can only
    /// shorten.
    pub fn stop(&self, drain: Duration) {
        let nanoseconds = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX - 1);
        let wish = nanoseconds.saturating_add(1);
        // The shortest time of concurrent calls counts, in any order.
        let _ = self
            .0
            .stop
            .fetch_update(Ordering::Release, Ordering::Relaxed, |earlier| {
                Some(if earlier == 0 {
                    wish
                } else {
                    wish.min(earlier)
                })
            });
        self.0.notifier.end_wait();
    }

    /// Makes the core run `mail` on its thread, between two turns and outside of any task; it must not block. Mail of
    /// one thread runs in the order in which it was posted. A core that stops drops mail that has not run.
    ///
    /// # Errors
    /// When the core's mailbox is full, or the core has ended. The mail is dropped.
    pub fn post(&self, mail: impl FnOnce(&Core) + Send + 'static) -> Result<(), NotPosted> {
        self.0.mailbox.post(Box::new(mail))
    }
}
