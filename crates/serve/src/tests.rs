//! What the server does for its clients, on every driver: connections, and requests that are forwarded to servers which
//! do right and wrong.

mod bodies;
mod failures;
mod fields;
mod garbage;
mod pools;
mod retries;
mod stopping;
mod timeouts;
mod versions;
