//! Parsers and writers of the individual fields that routes, responses and proxies inspect.

pub mod accept;
pub mod basic_auth;
pub mod cookie;
pub mod encoding;
pub mod forwarded;
pub mod hop;
pub mod trace_context;
