//! Work of other threads for a core: mail that it runs, and values for its tasks. The [`Notifier`] wakes the core.
//!
//! `Handle::post` has the core run a closure between two turns, a standard `Waker` wakes a task from any thread, and
//! `Core::promise` makes a value that another thread gives to a task. Both queues are bounded: mail beyond the bound is
//! refused, and if more tasks are woken than fit, all tasks are woken, which `Future::poll` allows.
//!
//! On a simulated core mail is delayed as the seed decides. A value promised by a real thread is awaited in real time
//! before virtual time continues, and promises are settled in the order in which they were made, so a run depends only
//! on its seed.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::core::Core;
use crate::limits::MAIL_MAX;
use crate::task::notifier::Notifier;

/// A closure for a core: it runs on the core's thread, between two turns, outside of any task. It must not block.
pub(crate) type Mail = Box<dyn FnOnce(&Core) + Send>;

/// Why mail was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotPosted {
    /// The mailbox is full; the sender waits or does without.
    Full,
    /// The core has ended.
    Ended,
}

impl fmt::Display for NotPosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NotPosted::Full => "the core has more mail than it has run yet",
            NotPosted::Ended => "the core has ended",
        })
    }
}

impl std::error::Error for NotPosted {}

pub(crate) struct Mailbox {
    /// Invariant: filled whenever `contents` are not empty and the lock is free.
    notifier: Arc<Notifier>,
    contents: Mutex<Contents>,
    /// Number of promises of other threads that are neither kept nor broken.
    promised: AtomicUsize,
    promise_next: AtomicU64,
}

#[derive(Default)]
struct Contents {
    /// At most [`MAIL_MAX`].
    mail: Vec<Mail>,
    /// Promises that were kept or broken, with their numbers.
    settled: Vec<(u64, Mail)>,
    has_ended: bool,
}

impl Mailbox {
    pub(crate) fn new(notifier: Arc<Notifier>) -> Self {
        Self {
            notifier,
            contents: Mutex::default(),
            promised: AtomicUsize::new(0),
            promise_next: AtomicU64::new(0),
        }
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // No code under the lock can panic and leave a partial change.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn post(&self, mail: Mail) -> Result<(), NotPosted> {
        let mut contents = self.contents();
        if contents.has_ended {
            return Err(NotPosted::Ended);
        }
        if contents.mail.len() == MAIL_MAX {
            return Err(NotPosted::Full);
        }
        contents.mail.push(mail);
        drop(contents);
        self.notifier.notify();
        Ok(())
    }

    /// Takes what is to run: settled promises in the order in which they were made, then mail in the order of posting.
    pub(crate) fn take(&self) -> impl Iterator<Item = Mail> + use<> {
        let mut contents = self.contents();
        let mut settled = mem::take(&mut contents.settled);
        let mail = mem::take(&mut contents.mail);
        drop(contents);
        settled.sort_unstable_by_key(|&(number, _)| number);
        settled.into_iter().map(|(_, mail)| mail).chain(mail)
    }

    /// Registers a promise and returns its number.
    pub(crate) fn promise(&self) -> u64 {
        self.promised.fetch_add(1, Ordering::Relaxed);
        self.promise_next.fetch_add(1, Ordering::Relaxed)
    }

    /// Settles a promise, kept or broken; `mail` passes the outcome to its task.
    pub(crate) fn complete_promise(&self, number: u64, mail: Mail) {
        let mut contents = self.contents();
        self.promised.fetch_sub(1, Ordering::Relaxed);
        if contents.has_ended {
            // Dropped outside of the lock, because the mail's values may have destructors.
            drop(contents);
            return drop(mail);
        }
        contents.settled.push((number, mail));
        drop(contents);
        self.notifier.notify();
    }

    /// Blocks a simulated core's thread until no promise is open, or mail has arrived that may keep one.
    ///
    /// # Panics
    /// When that takes half a minute: another thread neither keeps nor drops its promise.
    pub(crate) fn await_promised(&self) {
        let patience = Duration::from_secs(30);
        while self.promised.load(Ordering::Relaxed) > 0 && self.contents().mail.is_empty() {
            // A notifier that is already filled would not wake this thread again.
            self.notifier.empty();
            if self.promised.load(Ordering::Acquire) == 0 {
                break;
            }
            assert!(
                self.notifier.wait(patience),
                "simulation: another thread neither keeps nor drops what it has promised"
            );
        }
        // Mail that arrives from here on fills the notifier by itself.
        self.notifier.empty();
        let contents = self.contents();
        let has_mail = !contents.mail.is_empty() || !contents.settled.is_empty();
        if has_mail || self.notifier.has_woken() {
            self.notifier.fill();
        }
    }

    /// Closes the mailbox. The caller drops the mail that has not run, outside of the lock.
    pub(crate) fn end(&self) -> impl Sized + use<> {
        let mut contents = self.contents();
        contents.has_ended = true;
        (
            mem::take(&mut contents.mail),
            mem::take(&mut contents.settled),
        )
    }
}
