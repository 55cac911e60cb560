//! Collectors that run during a trial: kernel counters and clients' reports.

pub mod client;
pub mod sampler;

pub mod counters;
pub mod source;

pub mod process;
pub mod tree;

pub mod machine;

pub mod cgroup;
pub mod cpu;
pub mod frequency;
pub mod interface;
pub mod interrupt;
pub mod pressure;
pub mod protocol;
pub mod softirq;

pub mod stacks;
