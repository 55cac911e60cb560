//! memcached's text protocol, classic and meta commands, over a bounded store per core. It is a load target of known
//! cost, not a cache for production.
//!
//! ```text
//!   connection.rs,
//!   datagrams.rs      session.rs  ── command.rs, meta.rs, keys.rs: parse a line
//!   bytes  <──────>   (pure)      ── classic.rs, metas.rs, change.rs: execute it
//!                                 ── cache.rs, store.rs: the items
//! ```

pub(crate) mod connection;
pub(crate) mod datagrams;
pub(crate) mod server;
mod session;

mod keys;
mod line;

mod command;
mod meta;
mod number;
mod reply;

mod change;
mod classic;
mod meta_commands;

mod cache;
mod item;
mod output;
mod store;

mod limits;

#[cfg(test)]
mod tests;

pub use server::{Server, check_any_input};
