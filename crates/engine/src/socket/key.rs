//! What a socket is called on its core.
//!
//! Operations name a socket by this key, never by a descriptor, which is an `Option` in the slot: simulated sockets
//! have none. Only files of `driver/` use the descriptor: `calls.rs` for system calls, `epoll.rs` to register it, and
//! `target` in `uring/submit.rs`, where each socket is named to a ring. A socket known to a ring alone (a "direct"
//! descriptor) would be another case there; calls without a ring operation (`sendfile`, `splice`, batches of
//! datagrams, the last look before a timeout) cannot be made for it. For the same reason `Stream::tcp_info`, `peer`
//! and `local` return an `Option`.

/// Names a socket of this core. A stale key is a bug of the engine: handles own their slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(pub(crate) u32);
