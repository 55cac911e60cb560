//! Cores on which what was sent arrives whole and at once, and which can be held up.

use std::future::Future;
use std::thread;
use std::time::Duration;

use onrush_engine::Simulation;

use super::{Ground, TestCore, kernel_cores, run};

/// A core of every driver, without networks that dribble.
pub(super) fn calm_cores() -> impl Iterator<Item = Ground> {
    let simulation = Simulation {
        short: 0,
        not_yet: 0,
        ..Simulation::with_seed(0)
    };
    kernel_cores().chain([Ground::simulated(simulation)])
}

/// Runs `test` on each of them.
pub(crate) fn on_calm_cores<F, T>(test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    calm_cores().for_each(|ground| run(ground, &test));
}

impl TestCore {
    /// Holds the core up for `duration`, as a machine does that has no CPU for it: what was sent arrives meanwhile.
    pub(crate) fn hold_up(&self, duration: Duration) {
        match self.core.is_simulated() {
            true => self.core.stop_process(duration),
            false => thread::sleep(duration),
        }
    }
}
