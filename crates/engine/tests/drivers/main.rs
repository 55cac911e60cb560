//! Tests of every operation on every driver: epoll, io_uring if supported, and simulated cores with many seeds.

mod ground;
#[path = "../../../../tests/seeds.rs"]
mod seeds;

mod accepting;
mod backpressure;
mod claimed_datagrams;
mod claims;
mod connecting;
mod datagrams;
mod deadlines;
mod endings;
mod files;
mod hangups;
mod kept;
mod mail;
mod polling;
mod segments;
mod sharing;
mod splices;
mod stopping;
mod streams;
mod tunnels;
mod urgent;
