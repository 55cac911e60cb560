//! Parsers of files in `/proc` and `/sys`: CPU lists, CPU time, interrupts, packets, control groups, threads. Callers read the
//! files themselves: from a snapshot, through open descriptors, or directly.
#![forbid(unsafe_code)]

pub mod cpus;
pub mod limits;

pub mod cgroup;
pub mod cpu_time;
pub mod network;
pub mod per_cpu;
pub mod pressure;
pub mod process;
