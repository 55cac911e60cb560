//! What a simulated network is like.

use std::time::Duration;

/// What the simulated network does. Shares are per thousand.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Decides everything; print it when a test fails.
    pub seed: u64,
    /// Receives and sends that move fewer bytes than they could.
    pub short: u32,
    /// Operations that say "not yet" although they could go on.
    pub not_yet: u32,
    /// Sends that end in a reset of the connection.
    pub reset: u32,
    /// Datagrams that never arrive.
    pub lost: u32,
    /// Datagrams that arrive twice.
    pub duplicated: u32,
    /// Longest time that bytes travel.
    pub delay_max: Duration,
    /// Bytes a direction holds before a sender has to wait.
    pub capacity: usize,
    /// What the wall clock says at its beginning, in seconds since 1970: a fixed day, so that runs print the same dates for
    /// the same seed, unless another one is wanted.
    pub wall_clock: u64,
}

impl Simulation {
    /// Everything goes wrong now and then, but no connection is reset.
    pub fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            short: 300,
            not_yet: 200,
            reset: 0,
            lost: 100,
            duplicated: 100,
            delay_max: Duration::from_micros(500),
            capacity: 64 * 1024,
            wall_clock: 1_700_000_000,
        }
    }
}
