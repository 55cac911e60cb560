//! Cores, drivers, sockets, buffers, timers, clock: everything that touches the kernel, and nothing that knows HTTP.
//!
//! One [`Core`] is one thread pinned to one CPU with a single-threaded executor. A task asks its core for I/O; the core
//! asks its driver (epoll, io_uring, or a simulation with a seed). Nothing here is `Send` except [`Handle`].
//!
//! This is the only crate with `unsafe`. Memory lent to the kernel is owned by the socket's slot until the kernel has
//! given it back, so dropping a [`Stream`] or a future at any moment is sound.

mod limits;

mod core;
mod cores;
mod mailbox;
mod notifier;
mod state;
mod task;

mod activation;
mod address;
mod allowance;
mod block;
mod buffer;
mod datagram;
mod file;
mod input;
mod listener;
mod memory;
mod outgoing;
mod pipe;
mod poison;
mod profile;
mod relay;
mod reply;
mod reuseport;
mod splice;
mod stream;
mod tcp_info;

mod driver;
mod op;
mod socket;

mod claim;
pub mod clock;
mod timer;

mod confinement;
pub mod cpu;
pub mod descriptors;
mod driver_counters;
mod error;
mod identity;
mod interface;
mod network_namespace;
pub mod random;
mod seccomp;
mod standard_output;
mod xdp;

pub use activation::{PASSED_VARIABLES, Passed, PassedError, passed};
pub use address::{Address, Source};
pub use allowance::Allowance;
pub use block::InBlock;
pub use buffer::{Buffer, Pool};
pub use claim::{Claim, ClaimSockets, Keeper};
pub use clock::Instant;
pub use confinement::{Confinement, Directories, LandlockError, confine};
pub use core::Core;
pub use core::connections::Accepted;
pub use core::handle::Handle;
pub use core::sleep::Sleep;
pub use core::stopped::Stopped;
pub use cores::{Cores, Setup, start};
pub use datagram::Datagram;
pub use datagram::batch::{Message, ReceiveBatch, Received, Segmentation, SendBatch};
pub use datagram::claim::DatagramClaim;
pub use datagram::control::Ecn;
pub use driver::choice::{Choice, Io, choose};
pub use driver::simulation::Simulation;
pub use driver_counters::driver_counters;
pub use error::{Error, Kind, Op, alert_name};
pub use file::{Directory, File, FileKind, Metadata, Root};
pub use identity::{Identity, IdentityError, Rights, may_change_identity};
pub use input::Input;
pub use interface::bind_to_interface;
pub use limits::{
    BUFFER_BYTES, DRAIN_DEFAULT, FRAME_BYTES_MAX, FRAMES_PER_CALL, STALL_MIN, WIDE_BUFFER_BYTES,
};
pub use listener::{Handshakes, Listener};
pub use mailbox::NotPosted;
pub use memory::Memory;
pub use memory::counted::CountedMemory;
pub use network_namespace::network_namespace_cookie;
pub use outgoing::{Part, Queue};
pub use profile::{Profile, Work, WorkFigures};
pub use relay::Relay;
pub use reply::{Promise, Reply};
pub use rustix::io::Errno;
pub use seccomp::{FilterError, refuse_calls, refused_calls};
pub use socket::note::Note;
pub use splice::Splice;
pub use standard_output::was_output_closed;
pub use stream::Stream;
pub use tcp_info::TcpInfo;
pub use xdp::{CountingDrop, Departed, LiveFrames, NumberedFrame, XdpError};
