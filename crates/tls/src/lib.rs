//! Connections for HTTP: bytes in and out, in plain text or with TLS.
//!
//! The server uses it for clients and upstream servers, the load generator for its target. rustls does the handshake
//! and derives the keys; this crate encrypts and decrypts the records after it, in the engine's buffers, without an
//! allocation or a copy per record.
//!
//! `transport.rs` has the operations of the engine's `Stream`. `handshake.rs` moves rustls's messages, `session.rs` is
//! the state after the handshake, `record.rs` encrypts and decrypts records, and `secret.rs` derives later keys.
//! `acceptor.rs` and `connector.rs` are the configurations of the two sides. `verify.rs` explains why a certificate is
//! refused, `ticketer.rs` limits the resumption of sessions, `handshake_facts.rs` keeps what rustls reports during a handshake,
//! and `watch.rs` follows certificate files.
//!
//! # Invariants
//!
//! - A plain connection costs one predictable branch per operation more than a `Stream`.
//! - rustls receives no records after the end of the handshake: it would decrypt them with keys that it is about to
//!   export.
//! - An idle connection holds no buffer, with or without TLS, and a server's connection holds nothing of rustls.
//!   Expanded keys (1.2 KB per connection) are kept for the 1,024 connections that a thread has used last
//!   (`record/expanded.rs`).
#![forbid(unsafe_code)]

mod limits;

mod transport;

mod handshake;
mod handshake_facts;
mod key_log;
mod session;

mod record;
mod secret;

mod acceptor;
mod connector;
mod verify;

mod certificate;
mod cipher;
mod watch;

mod error;
mod failure;
mod info;
mod version;

pub use acceptor::client_names::{ClientNames, NamedClients};
pub use acceptor::clients::{Authorities, Clients};
pub use acceptor::{Acceptor, Profile, ServerSetup};
pub use certificate::Identity;
pub use certificate::names::Misdirected;
pub use cipher::Cipher;
pub use connector::{ClientSetup, Connector, Group, Resume, Verify};
pub use error::{HandshakeError, Problem, Subject};
pub use failure::HandshakeFailure;
pub use info::Info;
pub use transport::Transport;
pub use version::Version;
pub use watch::{ReloadResult, Watch, WatchedConfig};
