//! Responds to requests: fixed and synthetic responses, files, and requests forwarded to a group of servers.
//!
//! [`check`] reads the files of a [`Plan`](onrush_config::Plan), and [`Server::start`] makes a running server of it. One task per connection lives in
//! `connection.rs`, the front page of this crate.
#![forbid(unsafe_code)]

mod dispatch;
mod routing;
mod rules;
mod server;
mod site;
#[cfg(test)]
mod testing;
mod worker;

mod connection;
mod exchange;

mod proxy;
mod respond;

mod limits;
mod observe;

pub use observe::cuts::CutsView;
pub use observe::effort::{ATTEMPTS_MAX, EffortView};
pub use observe::handshakes::HandshakesView;
pub use observe::latency::{BOUNDS_PER_OCTAVE, HIGHEST_OCTAVE, Histogram, LOWEST_OCTAVE};
pub use observe::live::{RequestView, Stage};
pub use observe::meter::{Message, MirrorOutcome, Totals};
pub use observe::native::{NATIVE_SCHEMA, NativeBuckets};
pub use observe::record::Class;
pub use observe::trace::spans::SpansView;
pub use observe::traffic::TrafficView;
pub use observe::work::{ProfileView, WAIT_NAME};
pub use onrush_load_targets::DatagramView;
pub use onrush_tls::Failure as HandshakeFailure;
pub use proxy::endpoints::Duty;
pub use proxy::group::views::{GroupView, ServerState, ServerView};
pub use server::confinement::{Closed, Used, used};
pub use server::explain::{
    Choice, Explainer, Explanation, Fact, Forward, Outcome, Passed, Question, ToGroup,
};
pub use server::inspector::{Inspector, ServerChange};
pub use server::prepared::Prepared;
pub use server::view::{CoreView, sum_datagrams, sum_groups, sum_traffic};
pub use server::{Applied, ApplyError, Handed, Handover, Manner, Server};
pub use site::accept::{Accepting, Arrival};
pub use site::check::{Checked, Unusable, check};
pub use site::permissions::{Denied, denied, is_unreadable};
pub use site::start_error::StartError;
pub use worker::compress;
pub use worker::connections::{
    ConnectionOrder, ConnectionQuery, ConnectionState, ConnectionView, ConnectionsView, TlsView,
};
pub use worker::descriptors::Shares;
pub use worker::trouble::Trouble;
