//! Counters, histograms and comparisons: what was measured, as numbers one may believe. Pure: no
//! I/O and no clock; time comes in as a duration somebody else measured.
#![forbid(unsafe_code)]

pub mod amount;
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
