//! Start barrier of a run's cores: all start at the same moment, so that their schedules fit together.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use onrush_engine::{Core, Instant};

use crate::limits::{START_DELAY, START_SETTLED};
use crate::pace::wall_clock::WallTime;

#[derive(Debug)]
pub(crate) struct StartBarrier {
    /// Cores that are not ready.
    missing: AtomicUsize,
    /// Start of the run on the monotonic clock, in nanoseconds; 0 until it is set.
    begin: AtomicU64,
    /// The same on the wall clock.
    began: AtomicU64,
    /// Wakers of the cores that wait.
    waiting: Mutex<Vec<Waker>>,
    /// Time between the last core's readiness and the start.
    delay: Duration,
    start_at: Option<WallTime>,
}

impl StartBarrier {
    pub(crate) fn new(cores: usize, start_at: Option<WallTime>) -> StartBarrier {
        let delay = if cores > 1 {
            START_DELAY
        } else {
            Duration::ZERO
        };
        StartBarrier {
            missing: AtomicUsize::new(cores),
            begin: AtomicU64::new(0),
            began: AtomicU64::new(0),
            waiting: Mutex::default(),
            delay,
            start_at,
        }
    }

    /// Returns the wall-clock start of the run, if it has been set.
    pub(crate) fn started_at(&self) -> Option<WallTime> {
        match self.began.load(Ordering::Acquire) {
            0 => None,
            began => Some(WallTime::of_nanoseconds(began)),
        }
    }

    /// Marks this core as ready, waits for the others and for the start, and returns the moment of the start, which is
    /// the same on all cores.
    pub(crate) async fn pass(&self, core: &Core) -> Instant {
        if self.missing.fetch_sub(1, Ordering::AcqRel) == 1 {
            if let Some(start_at) = self.start_at {
                wait_until_shortly_before(core, start_at).await;
            }
            self.decide(core);
        }
        let begin = poll_fn(|context| self.poll_begin(context.waker())).await;
        core.sleep_until(begin).await;
        begin
    }

    fn poll_begin(&self, waker: &Waker) -> Poll<Instant> {
        // `decide` empties the list after storing the start, so the start is read under the lock.
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match self.begin.load(Ordering::Acquire) {
            0 => {
                if !waiting.iter().any(|known| known.will_wake(waker)) {
                    waiting.push(waker.clone());
                }
                Poll::Pending
            }
            begin => Poll::Ready(Instant::from_nanoseconds(begin)),
        }
    }

    /// Sets the start on both clocks.
    fn decide(&self, core: &Core) {
        let (now, wall) = (core.now_exact(), WallTime::now());
        let left = self.start_at.map_or(Duration::ZERO, |at| at.since(wall));
        let wait = self.delay.max(left);
        let began = wall.nanoseconds() + wait.as_nanos() as u64;
        self.began.store(began, Ordering::Release);
        self.begin
            .store((now + wait).nanoseconds(), Ordering::Release);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain(..).for_each(Waker::wake);
    }
}

/// Waits until shortly before `at`. The wall clock may be adjusted meanwhile, so the remaining time is read again on
/// the way.
async fn wait_until_shortly_before(core: &Core, at: WallTime) {
    loop {
        let left = at.since(WallTime::now());
        if left <= START_SETTLED {
            return;
        }
        core.sleep((left - START_SETTLED).min(START_SETTLED * 50))
            .await;
    }
}

/// One-time event that tasks of a core wait for.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_set: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    pub(crate) fn set(&self) {
        self.is_set.set(true);
        self.waiting.take().into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_set.get()
    }

    /// Waits until the event has happened.
    pub(crate) async fn wait(&self) {
        poll_fn(|context| {
            if self.is_set.get() {
                return Poll::Ready(());
            }
            let mut waiting = self.waiting.borrow_mut();
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await
    }
}
