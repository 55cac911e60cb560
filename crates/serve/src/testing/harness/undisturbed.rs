//! Cores on which data arrives whole and at once, and which can be stalled.

use std::future::Future;
use std::thread;
use std::time::Duration;

use onrush_engine::Simulation;

use super::{TestCore, TestDriver, kernel_cores, run};

/// A core of every driver; simulated networks make no short reads.
pub(super) fn calm_cores() -> impl Iterator<Item = TestDriver> {
    let simulation = Simulation {
        short: 0,
        spurious_again: 0,
        ..Simulation::with_seed(0)
    };
    kernel_cores().chain([TestDriver::simulated(simulation)])
}

/// Runs `test` on each of them.
pub(crate) fn on_undisturbed_cores<F, T>(test: F)
where
    F: Fn(TestCore) -> T,
    T: Future<Output = ()> + 'static,
{
    calm_cores().for_each(|ground| run(ground, &test));
}

impl TestCore {
    /// Stalls the core for `duration`, like a machine without a free CPU. Data arrives meanwhile.
    pub(crate) fn stall_core(&self, duration: Duration) {
        match self.core.is_simulated() {
            true => self.core.suspend(duration),
            false => thread::sleep(duration),
        }
    }
}
