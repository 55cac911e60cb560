//! Programs for the kernel's express data path (XDP): frames that leave by it, and frames that are counted and dropped as they
//! come in. The programs are put together here, a few dozen instructions each; nothing is compiled by others.

mod drop;
mod instruction;
mod live;
mod meter;
mod system;

pub use drop::CountingDrop;
pub use live::{LiveFrames, NumberedFrame};
pub use meter::Departed;
pub use system::XdpError;
