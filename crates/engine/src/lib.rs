//! Cores, drivers, sockets, buffers, timers and the clock: everything that makes system calls on the path of a request.
//! The engine knows nothing of HTTP.
//!
//! One [`Core`] is one thread, pinned to a CPU or free, with a single-threaded executor. A task asks its core for I/O;
//! the core asks its driver (epoll, io_uring, or a simulation with a seed). Of the handles to a core, its streams and
//! its tasks, only [`Handle`] is `Send`.
//!
//! This is the only crate with `unsafe`. Memory lent to the kernel is owned by the socket's slot until the kernel has
//! returned it, so dropping a [`Stream`] or a future at any moment is sound.
//!
//! # Rooms
//!
//! A room uses only rooms below it:
//!
//! | room | contents |
//! |---|---|
//! | `relay` | one direction of a tunnel between two streams |
//! | `stream`, `datagram` | connections, listeners and UDP sockets, as tasks hold them |
//! | `op` | the asynchronous operations |
//! | `claim` | addresses that this process listens on |
//! | `core` | threads, the event loop, mail, sleep |
//! | `state` | the part of a core that operations change |
//! | `driver` | epoll, io_uring and the simulated network |
//! | `socket` | the table of sockets and their options |
//! | `task`, `buffers`, `timer` | executor, memory and timer wheel of a core |
//! | `file`, `xdp`, `system` | files beneath a root; frames sent by XDP; the process |
//! | `address`, `clock`, `error`, `limits` | values that all rooms use |
//!
//! `op/` has one file per operation, with its behaviour on every driver. `examples/bare_epoll.rs` is the smallest
//! possible server, as a lower bound for measurements.
//!
//! # Invariants
//!
//! - Only `clock.rs` reads the time. Code on a core asks the core, so that simulated cores have simulated time.
//! - The driver is chosen at run time, never by `#[cfg]`.
//! - Lower rooms do not use higher ones: `socket/` and the drivers do not know operations, `state.rs` does not know
//!   `core.rs`, and a waker reaches a core only through its notifier.
//! - An operation of a stream is a function that returns a future, not an `async fn`, which would store its arguments
//!   twice. These futures are most of the memory of an idle connection.

mod buffers;
mod limits;
mod system;

mod core;
mod state;
mod task;

mod address;
mod datagram;
mod file;
mod relay;
mod stream;

mod driver;
mod op;
mod socket;

mod claim;
pub mod clock;
mod timer;

mod error;
mod xdp;

pub use address::{Address, Source};
pub use buffers::block::InBlock;
pub use buffers::buffer::{Buffer, Pool};
pub use buffers::input::Input;
pub use buffers::memory::Memory;
pub use buffers::memory::counted::CountedMemory;
pub use buffers::outgoing::{Part, Queue};
pub use claim::activation::{PASSED_VARIABLES, PassedError, PassedSocket, passed};
pub use claim::datagram::DatagramClaim;
pub use claim::interface::bind_to_interface;
pub use claim::{Claim, ClaimSockets, SocketOwner};
pub use clock::Instant;
pub use core::Core;
pub use core::connections::Accepted;
pub use core::cores::{Cores, Setup, start};
pub use core::handle::Handle;
pub use core::mailbox::NotPosted;
pub use core::reply::{Promise, Reply};
pub use core::sleep::Sleep;
pub use core::stopped::Stopped;
pub use datagram::Datagram;
pub use driver::choice::{Choice, Io, choose};
pub use driver::driver_counters::driver_counters;
pub use driver::simulation::Simulation;
pub use error::{Error, Kind, Op, alert_name};
pub use file::{Directory, File, FileKind, Metadata, Root};
pub use limits::{
    BUFFER_BYTES, DRAIN_DEFAULT, FRAME_BYTES_MAX, FRAMES_PER_CALL, STALL_MIN, WIDE_BUFFER_BYTES,
};
pub use relay::Relay;
pub use rustix::io::Errno;
pub use socket::batch::{Message, ReceiveBatch, Received, Segmentation, SendBatch};
pub use socket::control::Ecn;
pub use socket::note::Note;
pub use socket::tcp_info::TcpInfo;
pub use stream::Stream;
pub use stream::listener::{Handshakes, Listener};
pub use stream::splice::Splice;
pub use system::allowance::Allowance;
pub use system::confinement::{AccessRules, Confinement, LandlockError, confine};
pub use system::cpu;
pub use system::descriptors;
pub use system::identity::{Identity, IdentityError, Rights, may_change_identity};
pub use system::network_namespace::network_namespace_cookie;
pub use system::random;
pub use system::seccomp::{FilterError, refuse_calls, refused_calls};
pub use system::standard_output::was_output_closed;
pub use task::profile::{Profile, Work, WorkFigures};
pub use xdp::{CountingDrop, LiveFrames, NumberedFrame, SendOutcome, XdpError};
