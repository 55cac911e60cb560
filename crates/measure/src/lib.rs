//! Histograms, counters and statistical comparison of measurements. No I/O and no clock.
//!
//! A percentile is given only if ten samples are above it. No comparison assumes a distribution: pairs of one run are
//! compared by the exact sign test (`compare.rs`), two runs by ranks (`effect.rs`), and a history of runs by energy
//! distances and permutations (`change.rs`) with a fixed random seed (`random.rs`). The sign test was preferred to a
//! bootstrap because it is exact; five rounds reach a confidence of 93.75 % and no more.
#![forbid(unsafe_code)]

pub mod amount;
pub mod suggestion;

pub mod blocks;
pub mod hdr_log;
pub mod histogram;
pub mod percentile;
pub mod second;

pub mod compare;
pub mod effect;

pub mod change;

pub mod random;

pub mod units;

pub mod table;
