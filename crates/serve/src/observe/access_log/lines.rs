//! Queue of lines between the cores and the log's thread.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limit of waiting bytes per core: a tenth of a second at 200,000 lines per second of 400 bytes.
const WAITING_MAX: usize = 8 * 1024 * 1024;

/// How long lines are collected before they are written with one call.
const GATHERED: Duration = Duration::from_millis(50);

/// Number of bytes at which a core's lines are written without further delay: they are still in the CPU cache.
const GATHERED_MAX: usize = 256 * 1024;

/// The queues of all cores.
#[derive(Debug)]
pub(super) struct Lines {
    cores: Vec<Mutex<Waiting>>,
    lost: AtomicU64,
    pending_wakeup: Mutex<PendingWakeup>,
    wakeup_condvar: Condvar,
    ends: AtomicBool,
    /// Lines that the thread is writing.
    in_hand: AtomicU64,
}

/// The queue of one core.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) text: Vec<u8>,
    pub(super) count: u64,
}

/// Pending requests to the thread.
#[derive(Debug, Default)]
struct PendingWakeup {
    has_lines: bool,
    has_many: bool,
    reopens: bool,
}

/// Why the thread was woken.
pub(super) enum Wakeup {
    Lines,
    /// Reopen the output after writing the queued lines.
    Reopen,
    /// No more lines will follow.
    End,
}

/// No code under a lock here can panic and leave a change half made.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}

impl Lines {
    pub(super) fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| Mutex::default()).collect(),
            lost: AtomicU64::new(0),
            pending_wakeup: Mutex::default(),
            wakeup_condvar: Condvar::new(),
            ends: AtomicBool::new(false),
            in_hand: AtomicU64::new(0),
        }
    }

    /// Queues one complete line, written by `write`. Returns whether there was room for it.
    pub(super) fn push(&self, core: usize, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut waiting = lock(&self.cores[core]);
        let before = waiting.text.len();
        write(&mut waiting.text);
        let after = waiting.text.len();
        if after > WAITING_MAX {
            waiting.text.truncate(before);
            drop(waiting);
            self.lose(1);
            return false;
        }
        waiting.count += 1;
        drop(waiting);
        if before == 0 {
            self.ring(|bell| bell.has_lines = true);
        }
        if before < GATHERED_MAX && after >= GATHERED_MAX {
            self.ring(|bell| bell.has_many = true);
        }
        true
    }

    fn ring(&self, tell: impl FnOnce(&mut PendingWakeup)) {
        tell(&mut lock(&self.pending_wakeup));
        self.wakeup_condvar.notify_one();
    }

    pub(super) fn reopen(&self) {
        self.ring(|bell| bell.reopens = true);
    }

    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.ring(|_| {});
    }

    /// Whether no more lines will follow.
    pub(super) fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Sets the number of lines that the thread is writing.
    pub(super) fn set_writing(&self, count: u64) {
        self.in_hand.store(count, Ordering::Relaxed);
    }

    /// Unwritten lines: being written, or queued.
    pub(super) fn left(&self) -> u64 {
        let waiting = self.cores.iter().map(|core| lock(core).count);
        self.in_hand.load(Ordering::Relaxed) + waiting.sum::<u64>()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until the thread is woken, then a little longer to collect more lines.
    pub(super) fn wait(&self) -> Wakeup {
        let has_ended = || self.has_ended();
        let mut bell = lock(&self.pending_wakeup);
        while !bell.has_lines && !bell.reopens && !has_ended() {
            bell = self
                .wakeup_condvar
                .wait(bell)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if has_ended() {
            return Wakeup::End;
        }
        if mem::take(&mut bell.reopens) {
            return Wakeup::Reopen;
        }
        // Ending and reopening do not wait.
        let waits = |bell: &mut PendingWakeup| !bell.has_many && !bell.reopens && !has_ended();
        let waited = self
            .wakeup_condvar
            .wait_timeout_while(bell, GATHERED, waits);
        let (mut bell, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (bell.has_lines, bell.has_many) = (false, false);
        Wakeup::Lines
    }

    /// Takes the lines of one core, leaving it the empty buffer in `room`.
    pub(super) fn take(&self, core: usize, room: &mut Waiting) {
        room.text.clear();
        room.count = 0;
        mem::swap(&mut *lock(&self.cores[core]), room);
    }

    pub(super) fn cores(&self) -> usize {
        self.cores.len()
    }
}
