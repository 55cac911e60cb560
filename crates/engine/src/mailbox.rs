//! What other threads have for a core: mail that runs there, and tasks of it to wake.
//!
//! ```text
//!   any thread                                     the core's thread
//!   post, wake ──> contents (a lock) ────────────> taken once a turn: mail runs, tasks wake
//!             ├──> is_filled ────────────────────> one load per turn
//!             └──> eventfd, if it was not filled ─> ends a wait
//! ```
//! Nothing is polled, and a core that gets no mail pays for one load of a cache line that it reads for its stop anyway.

use std::fmt;
use std::mem;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::core::{Core, Shared};
use crate::limits::{CORES_MAX, MAIL_MAX, WAKES_MAX};
use crate::task::{TaskId, Tasks};

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
    /// Invariant: true whenever `contents` are not empty and the lock is free.
    is_filled: AtomicBool,
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
    woken: Woken,
    has_ended: bool,
}

/// Tasks to wake. A task may always be woken without need (`Future::poll`), so what does not fit is told to everybody.
#[derive(Default)]
enum Woken {
    #[default]
    None,
    Some(Vec<TaskId>),
    All,
}

impl Mailbox {
    pub(crate) fn new() -> Self {
        Self {
            is_filled: AtomicBool::new(false),
            contents: Mutex::default(),
            promised: AtomicUsize::new(0),
            promise_next: AtomicU64::new(0),
        }
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        // Nothing that runs under the lock can panic and leave half of a change.
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn post(&self, mail: Mail, wake: &OwnedFd) -> Result<(), NotPosted> {
        let mut contents = self.contents();
        if contents.has_ended {
            return Err(NotPosted::Ended);
        }
        if contents.mail.len() == MAIL_MAX {
            return Err(NotPosted::Full);
        }
        contents.mail.push(mail);
        drop(contents);
        self.notify(wake);
        Ok(())
    }

    fn wake(&self, task: TaskId, wake: &OwnedFd) {
        let mut contents = self.contents();
        if contents.has_ended {
            return;
        }
        match &mut contents.woken {
            woken @ Woken::None => *woken = Woken::Some(vec![task]),
            Woken::Some(tasks) if tasks.last() == Some(&task) => {}
            Woken::Some(tasks) if tasks.len() < WAKES_MAX => tasks.push(task),
            woken => *woken = Woken::All,
        }
        drop(contents);
        self.notify(wake);
    }

    fn notify(&self, wake: &OwnedFd) {
        if !self.is_filled.swap(true, Ordering::AcqRel) {
            // An eventfd's counter cannot overflow by ones; and a core that is gone needs no waking.
            let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
        }
    }

    /// Wakes the tasks that are to be woken, and returns what is to run: settled promises in the order in which they were
    /// made, whichever thread was faster, then mail in the order in which it came.
    pub(crate) fn take(&self, tasks: &Tasks) -> impl Iterator<Item = Mail> + use<> {
        // Before the contents: what comes behind them fills the mailbox anew.
        self.is_filled.store(false, Ordering::Release);
        let mut contents = self.contents();
        let woken = mem::take(&mut contents.woken);
        let mut settled = mem::take(&mut contents.settled);
        let mail = mem::take(&mut contents.mail);
        drop(contents);
        match woken {
            Woken::None => {}
            Woken::Some(mut woken) => {
                woken.sort_unstable();
                woken.into_iter().for_each(|task| tasks.wake(task));
            }
            Woken::All => tasks.wake_all(),
        }
        settled.sort_unstable_by_key(|&(number, _)| number);
        settled.into_iter().map(|(_, mail)| mail).chain(mail)
    }

    /// Another thread is going to give something to a task: the promise's number.
    pub(crate) fn promise(&self) -> u64 {
        self.promised.fetch_add(1, Ordering::Relaxed);
        self.promise_next.fetch_add(1, Ordering::Relaxed)
    }

    /// A promise is kept or broken: `mail` tells its task.
    pub(crate) fn settle(&self, number: u64, mail: Mail, wake: &OwnedFd) {
        let mut contents = self.contents();
        self.promised.fetch_sub(1, Ordering::Relaxed);
        if contents.has_ended {
            // Outside of the lock: what it owns may have destructors.
            drop(contents);
            return drop(mail);
        }
        contents.settled.push((number, mail));
        drop(contents);
        self.notify(wake);
    }

    /// Blocks the calling thread until nothing is promised, or mail has come that may keep a promise: simulated cores only.
    ///
    /// # Panics
    /// When that takes half a minute: a promise is neither kept nor dropped by another thread.
    pub(crate) fn await_promised(&self, wake: &OwnedFd) {
        let patience = Timespec {
            tv_sec: 30,
            tv_nsec: 0,
        };
        while self.promised.load(Ordering::Relaxed) > 0 && self.contents().mail.is_empty() {
            // Filled already, it would not be told of more.
            self.is_filled.store(false, Ordering::Release);
            if self.promised.load(Ordering::Acquire) == 0 {
                break;
            }
            let mut descriptors = [PollFd::new(wake, PollFlags::IN)];
            let ready = poll(&mut descriptors, Some(&patience));
            assert!(
                ready != Ok(0),
                "simulation: another thread neither keeps nor drops what it has promised"
            );
            if ready.is_ok() {
                // The counter is not zero, and nobody else reads it.
                let _ = rustix::io::read(wake, &mut [0; 8]);
            }
        }
        let contents = self.contents();
        let is_empty = contents.mail.is_empty()
            && contents.settled.is_empty()
            && matches!(contents.woken, Woken::None);
        self.is_filled.store(!is_empty, Ordering::Release);
    }

    /// Takes no more mail. What had come and was not run is dropped by the caller, outside of the lock.
    pub(crate) fn end(&self) -> impl Sized + use<> {
        let mut contents = self.contents();
        contents.has_ended = true;
        contents.woken = Woken::None;
        (
            mem::take(&mut contents.mail),
            mem::take(&mut contents.settled),
        )
    }
}

/// A core's place among those of the process, by which a waker on any thread finds it.
pub(crate) struct Place(u16);

/// The cores of this process by their places, and free places in between. Locked when a core begins or ends, and when
/// another thread wakes a task.
static PLACES: Mutex<Vec<Option<Weak<Shared>>>> = Mutex::new(Vec::new());

fn places() -> MutexGuard<'static, Vec<Option<Weak<Shared>>>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    /// Gives a core a place; `None` when there are as many cores as there may be.
    pub(crate) fn of(core: &Arc<Shared>) -> Option<Self> {
        let mut places = places();
        let free = places.iter().position(Option::is_none);
        let place = free.unwrap_or(places.len());
        if place == CORES_MAX {
            return None;
        }
        if place == places.len() {
            places.push(None);
        }
        places[place] = Some(Arc::downgrade(core));
        Some(Self(place as u16))
    }

    pub(crate) fn number(&self) -> u16 {
        self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        places()[usize::from(self.0)] = None;
    }
}

/// Wakes a task of the core at `place`, from any thread. A place whose core has ended may have another one by now, which
/// then wakes a task without need, or none.
pub(crate) fn wake(place: u16, task: TaskId) {
    let core = places().get(usize::from(place)).cloned().flatten();
    if let Some(core) = core.and_then(|core| core.upgrade()) {
        core.mailbox.wake(task, &core.wake);
    }
}
