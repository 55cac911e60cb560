//! Options of a simulated network.

use std::time::Duration;

/// The faults of the simulated network. Rates are per thousand.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Seed of all random decisions; print it when a test fails.
    pub seed: u64,
    /// Rate of receives and sends that move fewer bytes than they could.
    pub short: u32,
    /// Rate of operations that return EAGAIN although they could proceed.
    pub spurious_again: u32,
    /// Rate of sends that end in a reset of the connection.
    pub reset: u32,
    /// Rate of datagrams that never arrive.
    pub lost: u32,
    /// Rate of datagrams that arrive twice.
    pub duplicated: u32,
    /// Longest delay of bytes in transit.
    pub delay_max: Duration,
    /// Maximum number of bytes in transit in one direction before a sender has to wait.
    pub capacity: usize,
    /// Wall-clock time at the start, in seconds since 1970; fixed by default, so that equal seeds give equal dates.
    pub wall_clock: u64,
}

impl Simulation {
    /// All faults except resets.
    pub fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            short: 300,
            spurious_again: 200,
            reset: 0,
            lost: 100,
            duplicated: 100,
            delay_max: Duration::from_micros(500),
            capacity: 64 * 1024,
            wall_clock: 1_700_000_000,
        }
    }
}
