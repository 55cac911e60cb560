//! Connections as HTTP sees them: bytes in, bytes out, and what lies between them and the socket is settled here.
//!
//! Both sides use it, the server towards its clients and its servers, and the load generator.
#![forbid(unsafe_code)]

mod transport;

pub use transport::Transport;
