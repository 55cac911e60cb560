//! Lines on their way from the cores to the log's thread.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of lines that wait for the thread, of each core: a tenth of a second at 200,000 lines of 400 bytes each second.
const WAITING_MAX: usize = 8 * 1024 * 1024;

/// How long lines are gathered before they are written: one write for many.
const GATHERED: Duration = Duration::from_millis(50);

/// Bytes of a core's lines that are not gathered any longer: they are still in the cache of whoever copies them.
const GATHERED_MAX: usize = 256 * 1024;

/// The lines of all cores.
#[derive(Debug)]
pub(super) struct Lines {
    cores: Vec<Mutex<Waiting>>,
    lost: AtomicU64,
    bell: Mutex<Bell>,
    rung: Condvar,
    ends: AtomicBool,
    /// Lines that the thread is writing.
    in_hand: AtomicU64,
}

/// Lines of one core.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) text: Vec<u8>,
    pub(super) count: u64,
}

/// What the thread is called for.
#[derive(Debug, Default)]
struct Bell {
    has_lines: bool,
    has_many: bool,
    reopens: bool,
}

/// Why the thread is called.
pub(super) enum Call {
    /// There are lines.
    Lines,
    /// The output is to be opened anew, behind the lines that there are.
    Reopen,
    /// There will be no more lines.
    End,
}

/// Nothing that runs under a lock here can panic and leave half of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many lines there are.
pub(super) fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|&&byte| byte == b'\n').count() as u64
}

impl Lines {
    pub(super) fn new(cores: usize) -> Self {
        Self {
            cores: (0..cores).map(|_| Mutex::default()).collect(),
            lost: AtomicU64::new(0),
            bell: Mutex::default(),
            rung: Condvar::new(),
            ends: AtomicBool::new(false),
            in_hand: AtomicU64::new(0),
        }
    }

    /// A line of a core, whole, which `write` puts behind the others; whether there was room for it.
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

    fn ring(&self, tell: impl FnOnce(&mut Bell)) {
        tell(&mut lock(&self.bell));
        self.rung.notify_one();
    }

    pub(super) fn reopen(&self) {
        self.ring(|bell| bell.reopens = true);
    }

    pub(super) fn end(&self) {
        self.ends.store(true, Ordering::Release);
        self.ring(|_| {});
    }

    /// Whether no more lines will come.
    pub(super) fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Acquire)
    }

    /// Lines that nobody will read.
    pub(super) fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// The thread is writing so many lines.
    pub(super) fn hold(&self, count: u64) {
        self.in_hand.store(count, Ordering::Relaxed);
    }

    /// Lines that are not written: those in hand, and those that wait.
    pub(super) fn left(&self) -> u64 {
        let waiting = self.cores.iter().map(|core| lock(core).count);
        self.in_hand.load(Ordering::Relaxed) + waiting.sum::<u64>()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until the thread is called, and a while longer, so that there are many lines.
    pub(super) fn wait(&self) -> Call {
        let has_ended = || self.has_ended();
        let mut bell = lock(&self.bell);
        while !bell.has_lines && !bell.reopens && !has_ended() {
            bell = self.rung.wait(bell).unwrap_or_else(PoisonError::into_inner);
        }
        if has_ended() {
            return Call::End;
        }
        if mem::take(&mut bell.reopens) {
            return Call::Reopen;
        }
        // Whoever ends or reopens it does not wait.
        let waits = |bell: &mut Bell| !bell.has_many && !bell.reopens && !has_ended();
        let waited = self.rung.wait_timeout_while(bell, GATHERED, waits);
        let (mut bell, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (bell.has_lines, bell.has_many) = (false, false);
        Call::Lines
    }

    /// Takes the lines of one core in exchange for room.
    pub(super) fn take(&self, core: usize, room: &mut Waiting) {
        room.text.clear();
        room.count = 0;
        mem::swap(&mut *lock(&self.cores[core]), room);
    }

    pub(super) fn cores(&self) -> usize {
        self.cores.len()
    }
}
