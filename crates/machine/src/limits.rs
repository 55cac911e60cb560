//! Limits of parsed files, each with its reason.

/// Numbers of CPUs: the largest that a Linux kernel can be built for.
pub const CPUS_MAX: usize = 8_192;
