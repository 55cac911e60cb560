//! The server and proxy: fixed and synthetic responses, static files, and requests forwarded to groups of servers.
//!
//! [`check`] reads the files of a [`Plan`](onrush_config::Plan), and [`Server::start`] starts a server from it.
//! `connection.rs`, the task of a connection, is a good place to start reading.
//!
//! A room (top-level module) uses only rooms below it; ARCHITECTURE.md shows the path of a request through them:
//!
//! | room | contents |
//! |---|---|
//! | `server` | the process: start, listeners, reload, handover, stop; queries from other threads to cores; `explain` |
//! | `connection` | one task per connection: HTTP/1, HTTP/2, PROXY protocol, TLS handshake, load targets, closing |
//! | `dispatch` | the action of a request's route, or the reason for a refusal |
//! | `site` | one configuration prepared for one core; its files read and checked |
//! | `respond` | generated responses: fixed, files, synthetic, redirects |
//! | `proxy` | requests forwarded to groups of servers |
//! | `exchange` | one request: its client (`downstream`), settings, response (`reply`), record, access checks (`access`) |
//! | `rules` | edits of messages by routes: fields, CORS, caching, compression, error pages |
//! | `worker` | state of one core that does not depend on the configuration, and limits shared by all cores |
//! | `observe` | counters, histograms, records, the access log, traces |
//! | `routing` | paths, routes, clients and variables; pure |
//! | `limits` | limits with their reasons |
//! | `testing` | the harness, and tests that need a whole core |
//!
//! # Where to look
//!
//! `server.rs` starts and stops, `server/listening.rs` accepts, `server/apply.rs` puts another configuration in force.
//! `worker.rs` is the state of a core across configurations, `site.rs` one configuration prepared for one core, and
//! `site/service.rs` both together. `connection.rs` is an HTTP/1 connection; `connection/http2.rs` takes over if the
//! client uses HTTP/2. `exchange.rs` is one request from its head to its record: `exchange/downstream.rs` is its client
//! and `exchange/reply.rs` its response, each with one file per protocol. `dispatch/route_action.rs` chooses the response;
//! `respond/` and `proxy/` provide it. `observe/` counts, logs and traces; `server/inspector.rs` reads the results from
//! other threads. `testing/harness.rs` runs one core with a server, clients and servers for tests, on every driver.
//!
//! # Invariants
//!
//! - `respond/` and `proxy/` do not depend on the client's protocol: they use `downstream.rs` and `reply.rs`. For
//!   speed, two things pass through in HTTP/1 form: rendered responses (`Reply::takes_rendered`) and chunked bodies
//!   (`Reply::passage`).
//! - Policy is pure: `routing/`, and in `proxy/` balancing, health, ejection and retry budgets. State, a request and
//!   `now` go in, a choice comes out.
//! - While serving requests, cores share only the limits of routes (`worker/admit/`, fixed-size tables of atomics) and
//!   the health and ejection state of servers (`proxy/endpoints.rs`).
//! - Request counters belong to a core, in plain cells; other threads get copies by mail. The access log and spans are
//!   the exception: a lock of the core is held to append one entry, or to exchange the buffer, never during a write.
//! - No request waits for name resolution, and no core checks a password. Threads do both.
//! - Each request has one record, written where its exchange ends.
//! - A request keeps the site with which it started, and an idle connection holds no site and no buffer.
//!   `tests/idle_memory.rs` limits its allocations.
//! - `server/explain.rs` decides nothing itself: the request goes through the normal code on a simulated core.
//! - No panic can be reached from the network.
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

pub use observe::close_counts::CloseCountsView;
pub use observe::forwarding_times::{ATTEMPTS_MAX, ForwardingTimesView};
pub use observe::handshakes::HandshakesView;
pub use observe::in_flight::{RequestView, Stage};
pub use observe::latency::{BOUNDS_PER_OCTAVE, HIGHEST_OCTAVE, Histogram, LOWEST_OCTAVE};
pub use observe::meter::{Message, MirrorOutcome, Totals};
pub use observe::native::{NATIVE_SCHEMA, NativeBuckets};
pub use observe::protobuf::Writer as ProtobufWriter;
pub use observe::record::FailureClass;
pub use observe::trace::spans::SpansView;
pub use observe::traffic::TrafficView;
pub use observe::work::{ProfileView, WAIT_NAME};
pub use onrush_load_targets::DatagramView;
pub use onrush_tls::HandshakeFailure;
pub use proxy::endpoints::AdminState;
pub use proxy::group::views::{GroupView, ServerState, ServerView};
pub use server::confinement::{DeniedPaths, UsedPaths, used};
pub use server::explain::{
    AppliedSetting, Choice, ExplainRequest, Explainer, Explanation, Forward, GroupForward, Outcome,
    UnmatchedRoute,
};
pub use server::inspector::{Inspector, ServerChange};
pub use server::prepared::Prepared;
pub use server::view::{CoreView, sum_datagrams, sum_groups, sum_traffic};
pub use server::{Applied, ApplyError, HandedAddress, Handover, ListenSettings, Server};
pub use site::accept::{Distribution, ReceivingCpus};
pub use site::check::{Checked, PlanErrors, check};
pub use site::permissions::{Denied, denied, is_unreadable};
pub use site::start_error::StartError;
pub use worker::compress;
pub use worker::connections::{
    ConnectionOrder, ConnectionQuery, ConnectionState, ConnectionView, ConnectionsView, TlsView,
};
pub use worker::descriptor_shares::Shares;
pub use worker::plan_issue::PlanIssue;
