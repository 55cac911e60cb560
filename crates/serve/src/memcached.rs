//! The server role of a run of load that speaks memcached: its text protocol, classic and meta commands, over a bounded store
//! of each core. It is there so that such a run has a far end whose cost is known, and no product of its own.
//!
//! ```text
//!   connection.rs,
//!   datagrams.rs      session.rs  ── command.rs, meta.rs, keys.rs: what a line means
//!   bytes  <──────>   (pure)      ── classic.rs, metas.rs, change.rs: what becomes of it
//!                                 ── cache.rs, store.rs: the items
//! ```

pub(crate) mod connection;
pub(crate) mod datagrams;
pub(crate) mod desk;
mod session;

mod keys;
mod line;

mod command;
mod meta;
mod number;

mod change;
mod classic;
mod metas;

mod answers;
mod cache;
mod item;
mod store;

mod limits;

#[cfg(test)]
mod tests;

pub use desk::hear_anything;
