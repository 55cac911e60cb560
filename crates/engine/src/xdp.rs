//! Programs for the kernel's express data path (XDP), which send frames, and count and drop received ones. They are
//! assembled here, a few dozen instructions each.
//!
//! `instruction.rs` has the instructions of BPF as types, `live.rs` the program that writes header, number and checksum
//! into each frame and the calls that run it (BPF_PROG_TEST_RUN), which block the core for some milliseconds.
//! `meter.rs` counts the frames that a driver has taken. `system.rs` is bpf(2), `drop.rs` the receiving end.

mod drop;
mod instruction;
mod live;
mod meter;
mod system;

pub use drop::CountingDrop;
pub use live::{LiveFrames, NumberedFrame};
pub use meter::SendOutcome;
pub use system::XdpError;
