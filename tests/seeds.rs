//! Seeds of simulated networks in tests; a quick run uses only the first ones.

use std::ops::Range;

/// Number of seeds in a quick run.
const QUICK: u64 = 3;

/// The first seeds below `all`; with `ONRUSH_TEST_SEEDS=rest` the others, with `ONRUSH_TEST_SEEDS=all` every one.
pub(crate) fn seeds(all: u64) -> Range<u64> {
    match std::env::var("ONRUSH_TEST_SEEDS").as_deref() {
        Ok("all") => 0..all,
        Ok("rest") => QUICK..all,
        _ => 0..QUICK,
    }
}
