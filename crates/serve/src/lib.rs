//! Responds to requests: fixed and synthetic responses, files, and requests forwarded to a group of servers.
//!
//! [`check`] reads the files of a [`Plan`](onrush_config::Plan), and [`Server::start`] makes a running server of it. One task per connection lives in
//! `connection.rs`, the front page of this crate.
#![forbid(unsafe_code)]

mod accept;
mod check;
mod cores;
mod generation;
mod server;
mod service;
mod settings;
mod site;
mod start_error;
mod time_slice;
mod worker;

mod permissions;
mod trouble;

mod crowd;
mod descriptors;
mod encryption;
mod listen;
mod tls;

mod chosen;
mod client;
mod client_rules;
mod confinement;
mod connection;
mod downstream;
mod ending;
mod exchange;
mod hangup;
mod misplaced;
mod objection;
mod on_demand;
mod output;
mod path;
mod portion;
mod rendered;
mod reply;
mod request_context;
mod route;
mod spare_fields;
mod stream_end;
mod waiter;

mod target_client;

mod access;
mod admit;
mod alarm;

mod cache_control;
mod explain;

mod cors;
mod edits;
mod error_page;
mod hop;
mod json;
mod location;
mod response_edits;
mod variables;
mod websocket;

pub mod compress;
mod proxy;
mod resolve;
mod respond;

mod limits;
mod log;
mod meter;
mod observe;
mod record;

#[cfg(test)]
#[allow(
    dead_code,
    reason = "it serves the tests of all responses; not each needs all of it"
)]
mod harness;
#[cfg(test)]
mod tests;

pub use accept::{Accepting, Arrival};
pub use check::{Checked, Unusable, check};
pub use confinement::{Closed, Used, used};
pub use descriptors::Shares;
pub use explain::{
    Choice, Explainer, Explanation, Fact, Forward, Outcome, Passed, Question, ToGroup,
};
pub use meter::{Message, MirrorOutcome, Totals};
pub use observe::connections::{
    ConnectionOrder, ConnectionQuery, ConnectionState, ConnectionView, ConnectionsView, TlsView,
};
pub use observe::cuts::CutsView;
pub use observe::effort::{ATTEMPTS_MAX, EffortView};
pub use observe::handshakes::HandshakesView;
pub use observe::inspector::{Inspector, ServerChange};
pub use observe::latency::{BOUNDS_PER_OCTAVE, HIGHEST_OCTAVE, Histogram, LOWEST_OCTAVE};
pub use observe::live::{RequestView, Stage};
pub use observe::native::{NATIVE_SCHEMA, NativeBuckets};
pub use observe::trace::spans::SpansView;
pub use observe::traffic::TrafficView;
pub use observe::view::{
    CoreView, GroupView, ServerState, ServerView, sum_datagrams, sum_groups, sum_traffic,
};
pub use observe::work::{ProfileView, WAIT_NAME};
pub use onrush_load_targets::DatagramView;
pub use onrush_tls::Failure as HandshakeFailure;
pub use permissions::{Denied, denied, is_unreadable};
pub use proxy::endpoints::Duty;
pub use record::Class;
pub use server::prepared::Prepared;
pub use server::{Applied, ApplyError, Handed, Handover, Manner, Server};
pub use start_error::StartError;
pub use trouble::Trouble;
