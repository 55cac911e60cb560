//! A core, seen from other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Core;
use crate::core::mailbox::{Mailbox, NotPosted};
use crate::task::notifier::Notifier;

/// What other threads may touch.
pub(crate) struct Shared {
    /// 0: go on. Otherwise stop, and let tasks finish for this many nanoseconds less one.
    pub(super) stop: AtomicU64,
    pub(crate) mailbox: Mailbox,
    pub(crate) notifier: Arc<Notifier>,
}

/// A core, seen from other threads.
#[derive(Clone)]
pub struct Handle(pub(crate) Arc<Shared>);

impl Handle {
    /// Asks the core to stop: interruptible waits end at once, the other tasks have `drain` to finish. Asking again can
    /// shorten that, not prolong it.
    pub fn stop(&self, drain: Duration) {
        let nanoseconds = u64::try_from(drain.as_nanos()).unwrap_or(u64::MAX - 1);
        let wish = nanoseconds.saturating_add(1);
        // Two threads may ask at the same time, and the less patient one come first.
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

    /// Has the core run `mail` on its thread, between two turns and outside of any task; it must not block. Mail of one
    /// thread runs in the order in which it was posted. A core that stops before it has run it drops it.
    ///
    /// # Errors
    /// When the core has too much mail that it has not run yet, or has ended. The mail is dropped then.
    pub fn post(&self, mail: impl FnOnce(&Core) + Send + 'static) -> Result<(), NotPosted> {
        self.0.mailbox.post(Box::new(mail))
    }
}
