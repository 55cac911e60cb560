//! Programs for the kernel's express data path (XDP): frames that leave by it, and frames that are counted and dropped as they
//! come in. The programs are put together here, a few dozen instructions each; nothing is compiled by others.
//!
//! `instruction.rs` has the kernel's virtual machine as types, `live.rs` the program that writes header, number and
//! checksum into each frame and the calls that run it (BPF_PROG_TEST_RUN), which block the core for some
//! milliseconds. `meter.rs` counts frames that a driver has taken, by programs at tracepoints. `system.rs` is bpf(2),
//! `drop.rs` the receiving end.

mod drop;
mod instruction;
mod live;
mod meter;
mod system;

pub use drop::CountingDrop;
pub use live::{LiveFrames, NumberedFrame};
pub use meter::Departed;
pub use system::XdpError;
