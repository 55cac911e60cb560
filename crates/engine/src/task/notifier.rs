//! Notifying a core from other threads: a list of woken tasks, a flag, and a descriptor that ends a wait.
//!
//! ```text
//!   any thread                                     the core's thread
//!   post ──> mailbox (a lock) ──┬────────────────> taken once a turn: mail runs,
//!   wake ──> woken (a lock) ────┤────────────────> tasks wake
//!                               ├─> is_filled ───> one load per turn
//!                               └─> eventfd, if it was not filled ─> ends a wait
//! ```
//! Without notifications a core pays one load per turn.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::{CORES_MAX, WAKES_MAX};
use crate::task::id::TaskId;

pub(crate) struct Notifier {
    /// Invariant: true whenever `woken` or the mailbox is not empty and the locks are free.
    is_filled: AtomicBool,
    woken: Mutex<Woken>,
    eventfd: OwnedFd,
}

/// Tasks to wake. Beyond the bound all tasks are woken, since spurious wake-ups are allowed (`Future::poll`).
#[derive(Default)]
pub(crate) enum Woken {
    #[default]
    None,
    Some(Vec<TaskId>),
    All,
}

impl Notifier {
    pub(crate) fn new(eventfd: OwnedFd) -> Self {
        Self {
            is_filled: AtomicBool::new(false),
            woken: Mutex::default(),
            eventfd,
        }
    }

    pub(crate) fn is_filled(&self) -> bool {
        self.is_filled.load(Ordering::Acquire)
    }

    fn woken(&self) -> MutexGuard<'_, Woken> {
        // No code under the lock can panic and leave a partial change.
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, task: TaskId) {
        let mut woken = self.woken();
        match &mut *woken {
            woken @ Woken::None => *woken = Woken::Some(vec![task]),
            Woken::Some(tasks) if tasks.last() == Some(&task) => {}
            Woken::Some(tasks) if tasks.len() < WAKES_MAX => tasks.push(task),
            woken => *woken = Woken::All,
        }
        drop(woken);
        self.notify();
    }

    /// Sets the flag, and ends the core's wait if the flag was not set.
    pub(crate) fn notify(&self) {
        if !self.is_filled.swap(true, Ordering::AcqRel) {
            self.end_wait();
        }
    }

    /// Ends the core's wait in the kernel.
    pub(crate) fn end_wait(&self) {
        // An eventfd's counter cannot overflow by ones, and a core that has ended needs no wake-up.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// Clears the flag and takes the tasks to wake. The mail must be taken after this.
    pub(crate) fn take(&self) -> Woken {
        // Cleared before the contents are taken, so that later additions set it again.
        self.empty();
        std::mem::take(&mut self.woken())
    }

    pub(crate) fn empty(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    /// Sets the flag without ending a wait.
    pub(crate) fn fill(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    pub(crate) fn has_woken(&self) -> bool {
        !matches!(*self.woken(), Woken::None)
    }

    /// Blocks the core's thread until a notification or a signal, for at most `patience`; false on timeout.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let patience = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut descriptors = [PollFd::new(&self.eventfd, PollFlags::IN)];
        let ready = poll(&mut descriptors, Some(&patience));
        if ready == Ok(1) {
            // The counter is not zero, and only this thread reads it.
            let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        }
        ready != Ok(0)
    }

    /// Stops recording tasks, because the core has ended.
    pub(crate) fn end(&self) {
        // `All` includes every later task and takes no memory.
        *self.woken() = Woken::All;
    }
}

/// A core's index in the process-wide table, by which a waker on any thread finds it.
pub(crate) struct CoreIndex(u16);

/// The cores of this process by index. Locked when a core begins or ends, and when another thread wakes a task.
static PLACES: Mutex<Vec<Option<Weak<Notifier>>>> = Mutex::new(Vec::new());

fn places() -> MutexGuard<'static, Vec<Option<Weak<Notifier>>>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CoreIndex {
    /// Assigns an index to a core; `None` if the table is full.
    pub(crate) fn of(core: &Arc<Notifier>) -> Option<Self> {
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

impl Drop for CoreIndex {
    fn drop(&mut self) {
        places()[usize::from(self.0)] = None;
    }
}

/// Wakes a task of the core at `place`, from any thread. Spurious if another core has the index by now.
pub(crate) fn wake(place: u16, task: TaskId) {
    let core = places().get(usize::from(place)).cloned().flatten();
    if let Some(core) = core.and_then(|core| core.upgrade()) {
        core.wake(task);
    }
}
