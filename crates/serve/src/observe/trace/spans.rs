//! Spans on their way from the cores to the thread that sends them, and how many were sent and lost.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::span::Finished;
use crate::observe::trace::limits::SPANS_WAITING_BYTES_MAX;

/// What became of spans that did not get to the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// There was no room for them: they come faster than the collector takes them.
    Full,
    /// The collector could not be reached, or was not willing to take them for too long.
    Unreachable,
    /// The collector has refused them.
    Refused,
    /// The process ended, or another configuration came, before they were sent.
    Ended,
}

impl Lost {
    /// All of them, in the order of their counters.
    const ALL: [Lost; 4] = [Lost::Full, Lost::Unreachable, Lost::Refused, Lost::Ended];

    fn name(self) -> &'static str {
        match self {
            Lost::Full => "queue_full",
            Lost::Unreachable => "unreachable",
            Lost::Refused => "refused",
            Lost::Ended => "ended",
        }
    }
}

/// How many spans were sent and lost since the start of the process.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    exported: AtomicU64,
    lost: [AtomicU64; Lost::ALL.len()],
}

/// How many spans were sent and lost since the start of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpansView {
    /// Those that the collector has taken.
    pub exported: u64,
    /// Those that were lost, by the reason.
    pub lost: [(&'static str, u64); 4],
}

impl SpanCounts {
    pub(super) fn export(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, why: Lost, count: u64) {
        self.lost[why as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// All that were lost.
    pub(super) fn lost(&self) -> u64 {
        let lost = self.lost.iter();
        lost.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn view(&self) -> SpansView {
        SpansView {
            exported: self.exported.load(Ordering::Relaxed),
            lost: Lost::ALL.map(|why| {
                let count = &self.lost[why as usize];
                (why.name(), count.load(Ordering::Relaxed))
            }),
        }
    }
}

/// The spans of all cores that wait to be sent.
pub(super) struct Spans {
    cores: Vec<Mutex<Waiting>>,
    /// Requests that may wait, of each core.
    waiting_max: usize,
    /// The sender is called when so many requests of a core wait.
    enough: usize,
    sender: Mutex<Option<Waker>>,
    /// There are enough to be sent.
    called: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<Finished>,
    bytes: usize,
}

/// Nothing that runs under a lock here can panic and leave half of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spans {
    /// Of so many cores, with room for `queue` requests of all together; the sender is called when there are about `batch`
    /// spans.
    pub(super) fn new(cores: usize, queue: usize, batch: usize) -> Self {
        // A forwarded request has two spans.
        let share = |count: usize| count.div_ceil(cores).max(1);
        Self {
            cores: (0..cores).map(|_| Mutex::default()).collect(),
            waiting_max: share(queue),
            enough: share(batch / 2).min(share(queue)),
            sender: Mutex::default(),
            called: AtomicBool::new(false),
        }
    }

    /// A request of a core has ended.
    ///
    /// # Errors
    /// How many spans are lost, when there is no room for it.
    pub(super) fn push(&self, core: usize, request: Finished) -> Result<(), u64> {
        let bytes = request.span.bytes();
        let mut waiting = lock(&self.cores[core]);
        if waiting.requests.len() >= self.waiting_max
            || waiting.bytes + bytes > SPANS_WAITING_BYTES_MAX
        {
            return Err(request.span.count());
        }
        waiting.bytes += bytes;
        waiting.requests.push(request);
        let are_enough = waiting.requests.len() == self.enough;
        drop(waiting);
        if are_enough {
            self.called.store(true, Ordering::Release);
            self.wake();
        }
        Ok(())
    }

    /// Whether there were enough since this was asked last.
    pub(super) fn was_called(&self) -> bool {
        self.called.swap(false, Ordering::AcqRel)
    }

    fn wake(&self) {
        if let Some(waker) = lock(&self.sender).take() {
            waker.wake();
        }
    }

    /// `waker` is woken when there are enough.
    pub(super) fn wait(&self, waker: &Waker) {
        *lock(&self.sender) = Some(waker.clone());
    }

    /// Takes all that wait.
    pub(super) fn take(&self) -> Vec<Finished> {
        let mut all = Vec::new();
        for core in &self.cores {
            let taken = mem::take(&mut *lock(core));
            all.extend(taken.requests);
        }
        all
    }
}
