//! How long to wait for whom.

use std::time::Duration;

use crate::limits;

/// How long to wait for whom; the defaults and their reasons are in [`limits`]. All are between
/// [`limits::TIMEOUT_MIN`] and [`limits::TIMEOUT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For a request's complete head, from its first byte (for the first request: from accept).
    pub client_head: Duration,
    /// For more of a request's body, from the last of it.
    pub client_body: Duration,
    /// For the first byte of the next request on a connection kept open.
    pub client_idle: Duration,
    /// For the client to take more of a response, from the last it took.
    pub client_send: Duration,
    /// For a server to accept a connection.
    pub connect: Duration,
    /// For the first byte of a server's response, from the last byte of the request.
    pub upstream_first_byte: Duration,
    /// For more of a server's response, from the last of it, and for the server to take more of a
    /// request.
    pub upstream_body: Duration,
    /// How long an unused connection to a server is kept.
    pub upstream_idle: Duration,
    /// For a TLS handshake, and the header of the PROXY protocol.
    pub tls_handshake: Duration,
    /// For a server to have room for a request.
    pub queue: Duration,
    /// For a whole forwarded request, from its head to the last byte of its response; none for no
    /// such bound.
    pub request: Option<Duration>,
    /// For more bytes in a tunnel, in either direction.
    pub tunnel_idle: Duration,
    /// For more bytes in a tunnel after one end has ended its side.
    pub tunnel_fin: Duration,
    /// For requests in flight to finish, once asked to stop.
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            client_head: limits::CLIENT_HEAD_TIMEOUT,
            client_body: limits::CLIENT_BODY_TIMEOUT,
            client_idle: limits::CLIENT_IDLE_TIMEOUT,
            client_send: limits::CLIENT_SEND_TIMEOUT,
            connect: limits::CONNECT_TIMEOUT,
            upstream_first_byte: limits::UPSTREAM_FIRST_BYTE_TIMEOUT,
            upstream_body: limits::UPSTREAM_BODY_TIMEOUT,
            upstream_idle: limits::UPSTREAM_IDLE_TIMEOUT,
            tls_handshake: limits::TLS_HANDSHAKE_TIMEOUT,
            queue: limits::QUEUE_TIMEOUT,
            request: None,
            tunnel_idle: limits::TUNNEL_IDLE_TIMEOUT,
            tunnel_fin: limits::TUNNEL_FIN_TIMEOUT,
            drain: limits::DRAIN_TIMEOUT,
        }
    }
}
