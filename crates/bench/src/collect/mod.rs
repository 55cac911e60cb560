//! Numbers while a trial runs: what the kernel counts, and what the clients say.

pub mod client;
pub mod cpu;
pub mod interface;
pub mod process;
pub mod sampler;
