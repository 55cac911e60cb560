//! The identifier of a socket on its core.
//!
//! Operations identify a socket by this key, never by a descriptor, which is an `Option` in the slot: simulated sockets
//! have none. Only files of `driver/` use the descriptor: `calls.rs` for system calls, `epoll.rs` to register it, and
//! `target` in `uring/submit.rs`. A socket known only to a ring (a "direct" descriptor) would be another case there;
//! calls without a ring operation (`sendfile`, `splice`, batches of datagrams, the last receive before a timeout)
//! cannot be made on it. For the same reason `Stream::tcp_info`, `peer` and `local` return an `Option`.

/// Index of a socket's slot. A stale key is a bug of the engine, because handles own their slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(pub(crate) u32);
