//! What files of `/proc` and `/sys` mean: CPU lists, CPU time, interrupts, packets, control groups, threads. Pure: callers read the files
//! themselves, each in its own way (a snapshot, descriptors that stay open, or once).
#![forbid(unsafe_code)]

pub mod cpus;
pub mod limits;

pub mod cgroup;
pub mod cpu_time;
pub mod network;
pub mod per_cpu;
pub mod pressure;
pub mod process;
