//! How another thread gets a core's attention: the tasks that it has woken, a flag, and a descriptor that ends a wait.
//!
//! ```text
//!   any thread                                     the core's thread
//!   post ──> mailbox (a lock) ──┬────────────────> taken once a turn: mail runs,
//!   wake ──> woken (a lock) ────┤────────────────> tasks wake
//!                               ├─> is_filled ───> one load per turn
//!                               └─> eventfd, if it was not filled ─> ends a wait
//! ```
//! Nothing is polled, and a core that nobody wants anything of pays for one load.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::limits::{CORES_MAX, WAKES_MAX};
use crate::task::id::TaskId;

/// The notifier of one core.
pub(crate) struct Notifier {
    /// Invariant: true whenever somebody is `woken` or there is mail, and the locks are free.
    is_filled: AtomicBool,
    woken: Mutex<Woken>,
    /// Ends the core's wait for the kernel.
    eventfd: OwnedFd,
}

/// Tasks to wake. A task may always be woken without need (`Future::poll`), so what does not fit is told to everybody.
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
        // Nothing that runs under the lock can panic and leave half of a change.
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

    /// Something has come for the core: its wait ends, unless that has been seen to already.
    pub(crate) fn notify(&self) {
        if !self.is_filled.swap(true, Ordering::AcqRel) {
            self.end_wait();
        }
    }

    /// Ends the core's wait for the kernel.
    pub(crate) fn end_wait(&self) {
        // An eventfd's counter cannot overflow by ones; and a core that is gone needs no waking.
        let _ = rustix::io::write(&self.eventfd, &1u64.to_ne_bytes());
    }

    /// The tasks to wake; the mail is taken behind this.
    pub(crate) fn take(&self) -> Woken {
        // Before the contents: what comes behind them fills it anew.
        self.empty();
        std::mem::take(&mut self.woken())
    }

    pub(crate) fn empty(&self) {
        self.is_filled.store(false, Ordering::Release);
    }

    /// Something is there for the core, which it sees without being told.
    pub(crate) fn fill(&self) {
        self.is_filled.store(true, Ordering::Release);
    }

    /// Whether tasks are to be woken.
    pub(crate) fn has_woken(&self) -> bool {
        !matches!(*self.woken(), Woken::None)
    }

    /// Blocks the calling thread, which is the core's, until it is notified, for `patience` at most; whether it did not take
    /// that long. A signal ends it, too.
    pub(crate) fn wait(&self, patience: Duration) -> bool {
        let patience = Timespec {
            tv_sec: patience.as_secs() as i64,
            tv_nsec: patience.subsec_nanos().into(),
        };
        let mut descriptors = [PollFd::new(&self.eventfd, PollFlags::IN)];
        let ready = poll(&mut descriptors, Some(&patience));
        if ready == Ok(1) {
            // The counter is not zero, and nobody else reads it.
            let _ = rustix::io::read(&self.eventfd, &mut [0; 8]);
        }
        ready != Ok(0)
    }

    /// Notes no more tasks: the core has ended.
    pub(crate) fn end(&self) {
        // Whoever is woken then is among them, and takes no room.
        *self.woken() = Woken::All;
    }
}

/// A core's place among those of the process, by which a waker on any thread finds it.
pub(crate) struct Place(u16);

/// The cores of this process by their places, and free places in between. Locked when a core begins or ends, and when
/// another thread wakes a task.
static PLACES: Mutex<Vec<Option<Weak<Notifier>>>> = Mutex::new(Vec::new());

fn places() -> MutexGuard<'static, Vec<Option<Weak<Notifier>>>> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Place {
    /// Gives a core a place; `None` when there are as many cores as there may be.
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
        core.wake(task);
    }
}
