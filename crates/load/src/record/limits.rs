//! Bounds of what a core counts.

/// Response times that are held before they are put into histograms: 3 KB, a tenth of the CPU's first cache.
pub(super) const TIMES_HELD: usize = 64;
