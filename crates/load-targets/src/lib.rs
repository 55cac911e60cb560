//! Servers to run load tests against: memcached's text protocol, an echo, a sink, a responder of fixed sizes, and the datagram
//! versions of the first three. `onrush serve` runs them for `onrush load`; they do not use HTTP.
//!
//! The caller accepts connections, counts them and sets their timeouts; it passes each as a [`Client`].
//!
//! `memcached/` is a pure session over a bounded store per core, `datagrams/` the UDP socket of one core with its
//! counters. The `serve` crate implements the trait in `client.rs`. This crate does not depend on the code for HTTP,
//! and that code does not depend on it. Each core has its own items and counters; no other core accesses them.
#![forbid(unsafe_code)]

mod client;
mod echo;
pub mod memcached;
mod responder;
mod sink;
mod target;

mod datagrams;

pub use client::{Client, Received};
pub use datagrams::port::UdpSocketServer;
pub use datagrams::traffic::{DatagramTraffic, DatagramView};
pub use target::Target;
