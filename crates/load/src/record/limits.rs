//! Bounds of the counters of a core.

/// Response times held before they are added to histograms: 3 KB, a tenth of the CPU's L1 cache.
pub(super) const TIMES_HELD: usize = 64;
