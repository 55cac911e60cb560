//! What the server does for its clients, on every driver: connections, and requests that are forwarded to servers which
//! do right and wrong.

mod access;
mod backups;
mod bodies;
mod body_limits;
mod changes;
mod client_bounds;
mod cors;
mod crowds;
mod edits;
mod ejection;
mod encoding;
mod error_pages;
mod explaining;
mod failures;
mod fields;
mod forwarded;
mod garbage;
mod groups;
mod hangups;
mod hops;
mod mirrors;
mod oddities;
mod pipelining;
mod pools;
mod protocols;
mod proxy_protocol;
mod records;
mod retries;
mod routes;
mod stalls;
mod stopping;
mod timeouts;
mod tls;
mod tunnels;
mod versions;
