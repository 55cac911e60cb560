//! The queue of spans between the cores and the exporter's thread, and counts of sent and lost spans.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::span::Finished;
use crate::observe::trace::limits::SPANS_WAITING_BYTES_MAX;

/// Why a span did not reach the collector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SpanLoss {
    /// The queue is full: spans are produced faster than the collector accepts them.
    Full,
    /// The collector was unreachable, or rejected the spans as temporary failure, for too long.
    Unreachable,
    /// The collector refused them.
    Refused,
    /// The process ended or the configuration changed before they were sent.
    Ended,
}

impl SpanLoss {
    /// All reasons, in the order of their counters.
    const ALL: [SpanLoss; 4] = [
        SpanLoss::Full,
        SpanLoss::Unreachable,
        SpanLoss::Refused,
        SpanLoss::Ended,
    ];

    fn name(self) -> &'static str {
        match self {
            SpanLoss::Full => "queue_full",
            SpanLoss::Unreachable => "unreachable",
            SpanLoss::Refused => "refused",
            SpanLoss::Ended => "ended",
        }
    }
}

/// Numbers of spans sent and lost since the process started.
#[derive(Debug, Default)]
pub(crate) struct SpanCounts {
    exported: AtomicU64,
    lost: [AtomicU64; SpanLoss::ALL.len()],
}

/// Numbers of spans sent and lost since the process started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpansView {
    /// Number of spans accepted by the collector.
    pub exported: u64,
    /// Lost spans, by reason.
    pub lost: [(&'static str, u64); 4],
}

impl SpanCounts {
    pub(super) fn export(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn lose(&self, why: SpanLoss, count: u64) {
        self.lost[why as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn lost(&self) -> u64 {
        let lost = self.lost.iter();
        lost.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    pub(crate) fn view(&self) -> SpansView {
        SpansView {
            exported: self.exported.load(Ordering::Relaxed),
            lost: SpanLoss::ALL.map(|why| {
                let count = &self.lost[why as usize];
                (why.name(), count.load(Ordering::Relaxed))
            }),
        }
    }
}

/// Finished requests of all cores that wait to be sent.
pub(super) struct Spans {
    cores: Vec<Mutex<Waiting>>,
    /// Queue limit in requests, per core.
    waiting_max: usize,
    /// The exporter is woken when this many requests of one core wait.
    enough: usize,
    sender: Mutex<Option<Waker>>,
    /// Whether enough requests wait to be sent.
    called: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<Finished>,
    bytes: usize,
}

/// No code under a lock here can panic and leave a change half made.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Spans {
    /// A queue for `queue` requests of all cores together; the exporter is woken at about `batch` spans.
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

    /// Queues a finished request of a core.
    ///
    /// # Errors
    /// The number of spans lost because the queue is full.
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

    /// Returns whether enough requests have been queued since the last call.
    pub(super) fn take_wake_flag(&self) -> bool {
        self.called.swap(false, Ordering::AcqRel)
    }

    fn wake(&self) {
        if let Some(waker) = lock(&self.sender).take() {
            waker.wake();
        }
    }

    /// Registers `waker`, which is woken when enough requests wait.
    pub(super) fn wait(&self, waker: &Waker) {
        *lock(&self.sender) = Some(waker.clone());
    }

    pub(super) fn take(&self) -> Vec<Finished> {
        let mut all = Vec::new();
        for core in &self.cores {
            let taken = mem::take(&mut *lock(core));
            all.extend(taken.requests);
        }
        all
    }
}
