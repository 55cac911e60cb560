//! Divides work on all items of a configuration into slices, so that the core serves requests in between.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use onrush_engine::{Core, Instant};

use crate::limits::{SLICE_ITEMS, SLICE_TIME};
use crate::observe::work::UPKEEP;
use crate::worker::Worker;

pub(crate) struct TimeSlice {
    /// `None` before the core starts, when no requests are waiting.
    core: Option<Core>,
    items: usize,
    began: Instant,
}

impl TimeSlice {
    pub(crate) fn begin(core: &Core) -> Self {
        Self {
            core: Some(core.clone()),
            items: 0,
            began: core.now_exact(),
        }
    }

    /// A slice that never yields.
    fn endless() -> Self {
        Self {
            core: None,
            items: 0,
            began: Instant::default(),
        }
    }

    /// Counts an item. At the end of the slice, yields to the other tasks and to the kernel, then starts the next
    /// slice.
    pub(crate) async fn step(&mut self) {
        let Some(core) = &self.core else {
            return;
        };
        self.items += 1;
        if self.items < SLICE_ITEMS && core.now_exact().since(self.began) < SLICE_TIME {
            return;
        }
        core.yield_now().await;
        self.items = 0;
        self.began = core.now_exact();
    }
}

/// Runs work in one slice that never yields.
///
/// # Panics
/// If the work waits for anything.
pub(crate) fn run_unsliced<T>(work: impl AsyncFnOnce(&mut TimeSlice) -> T) -> T {
    let mut slice = TimeSlice::endless();
    let mut context = Context::from_waker(Waker::noop());
    match pin!(work(&mut slice)).poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("work in one slice does not wait"),
    }
}

/// Drops the items of a list: a short list now, a longer one in slices.
pub(crate) fn drop_in_slices<T: 'static>(list: Vec<T>, worker: &Rc<Worker>) {
    if list.len() < SLICE_ITEMS || !worker.core.is_running() {
        return;
    }
    let core = worker.core.clone();
    worker.spawn_background(UPKEEP, async move {
        let mut slice = TimeSlice::begin(&core);
        for item in list {
            drop(item);
            slice.step().await;
        }
    });
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::testing::harness::{configured, on_every_driver};

    const ITEMS: usize = 10 * SLICE_ITEMS;

    /// Checks in each turn how many items are done, until all are.
    async fn watch(core: &Core, done: impl Fn() -> usize) {
        let mut seen = 0;
        while seen < ITEMS {
            core.yield_now().await;
            let now = done();
            assert!(now - seen <= SLICE_ITEMS, "{} items in a turn", now - seen);
            seen = now;
        }
    }

    #[test]
    fn time_slice_yields_after_item_limit() {
        on_every_driver(|site| async move {
            let done: Rc<Cell<usize>> = Rc::default();
            let (core, its_done) = (site.core.clone(), Rc::clone(&done));
            site.core.spawn(async move {
                let mut slice = TimeSlice::begin(&core);
                for item in 1..=ITEMS {
                    its_done.set(item);
                    slice.step().await;
                }
            });
            watch(&site.core, || done.get()).await;
        });
    }

    #[test]
    fn large_collections_are_dropped_in_slices() {
        on_every_driver(|site| async move {
            let plan = configured("[[route]]\nrespond = { status = 200 }\n");
            let (_, service) = site.serve_worker(&plan);
            let item: Rc<()> = Rc::default();
            let list = |items| vec![Rc::clone(&item); items];
            drop_in_slices(list(SLICE_ITEMS - 1), &service.worker);
            assert_eq!(Rc::strong_count(&item), 1);
            drop_in_slices(list(ITEMS), &service.worker);
            assert_eq!(Rc::strong_count(&item), 1 + ITEMS);
            watch(&site.core, || 1 + ITEMS - Rc::strong_count(&item)).await;
        });
    }
}
