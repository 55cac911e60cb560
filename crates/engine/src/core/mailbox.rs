//! What other threads have for a core to do: mail that runs there, and what they give to its tasks. The core is told by its
//! [`Notifier`].
//!
//! `Handle::post` has the core run a closure between two turns, a standard `Waker` wakes a task from any thread, and
//! `Core::promise` makes a value that another thread gives to a task. Both queues are bounded: mail beyond the bound
//! is refused, and if more tasks are woken than fit, all tasks are woken, which `Future::poll` allows.
//!
//! On a simulated core mail is delayed as the seed decides. A value promised by a real thread is awaited in real time
//! before virtual time continues, and promises are settled in the order in which they were made, so a run depends on
//! its seed alone.

use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::core::Core;
use crate::limits::MAIL_MAX;
use crate::task::notifier::Notifier;

/// What a core is to do: it runs on the core's thread, between two turns, outside of any task. It must not block.
pub(crate) type Mail = Box<dyn FnOnce(&Core) + Send>;

/// Why mail was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotPosted {
    /// The core has as much mail as it may have: it is behind, and whoever posts has to wait or to do without.
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

/// The mailbox of one core.
pub(crate) struct Mailbox {
    /// Invariant: it is filled whenever `contents` are not empty and the lock is free.
    notifier: Arc<Notifier>,
    contents: Mutex<Contents>,
    /// Promises of other threads that have not been kept or broken yet.
    promised: AtomicUsize,
    /// The next promise's number.
    promise_next: AtomicU64,
}

#[derive(Default)]
struct Contents {
    /// At most [`MAIL_MAX`].
    mail: Vec<Mail>,
    /// Promises that were kept or broken, with their numbers: as many as were made at most.
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
        // Nothing that runs under the lock can panic and leave half of a change.
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

    /// Takes what is to run: settled promises in the order in which they were made, whichever thread was faster, then mail in
    /// the order in which it came.
    pub(crate) fn take(&self) -> impl Iterator<Item = Mail> + use<> {
        let mut contents = self.contents();
        let mut settled = mem::take(&mut contents.settled);
        let mail = mem::take(&mut contents.mail);
        drop(contents);
        settled.sort_unstable_by_key(|&(number, _)| number);
        settled.into_iter().map(|(_, mail)| mail).chain(mail)
    }

    /// Another thread is going to give something to a task: the promise's number.
    pub(crate) fn promise(&self) -> u64 {
        self.promised.fetch_add(1, Ordering::Relaxed);
        self.promise_next.fetch_add(1, Ordering::Relaxed)
    }

    /// A promise is kept or broken: `mail` tells its task.
    pub(crate) fn settle(&self, number: u64, mail: Mail) {
        let mut contents = self.contents();
        self.promised.fetch_sub(1, Ordering::Relaxed);
        if contents.has_ended {
            // Outside of the lock: what it owns may have destructors.
            drop(contents);
            return drop(mail);
        }
        contents.settled.push((number, mail));
        drop(contents);
        self.notifier.notify();
    }

    /// Blocks the calling thread until nothing is promised, or mail has come that may keep a promise: simulated cores only.
    ///
    /// # Panics
    /// When that takes half a minute: a promise is neither kept nor dropped by another thread.
    pub(crate) fn await_promised(&self) {
        let patience = Duration::from_secs(30);
        while self.promised.load(Ordering::Relaxed) > 0 && self.contents().mail.is_empty() {
            // Filled already, it would not be told of more.
            self.notifier.empty();
            if self.promised.load(Ordering::Acquire) == 0 {
                break;
            }
            assert!(
                self.notifier.wait(patience),
                "simulation: another thread neither keeps nor drops what it has promised"
            );
        }
        // What comes from here on fills it by itself.
        self.notifier.empty();
        let contents = self.contents();
        let has_mail = !contents.mail.is_empty() || !contents.settled.is_empty();
        if has_mail || self.notifier.has_woken() {
            self.notifier.fill();
        }
    }

    /// Takes no more mail. What had come and was not run is dropped by the caller, outside of the lock.
    pub(crate) fn end(&self) -> impl Sized + use<> {
        let mut contents = self.contents();
        contents.has_ended = true;
        (
            mem::take(&mut contents.mail),
            mem::take(&mut contents.settled),
        )
    }
}
