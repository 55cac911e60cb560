//! Timeouts of connections and requests.

use std::time::Duration;

use crate::limits;

/// Timeouts, from [`limits::TIMEOUT_MIN`] to [`limits::TIMEOUT_MAX`]; defaults and their reasons are in [`limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To receive a request head, from its first byte; for the first request, from accept.
    pub client_head: Duration,
    /// Between two parts of a request body.
    pub client_body: Duration,
    /// Until the first byte of the next request on a kept connection.
    pub client_idle: Duration,
    /// For the client to accept more of a response.
    pub client_send: Duration,
    /// To connect to a server.
    pub connect: Duration,
    /// From the last byte of a request to the first byte of the server's response.
    pub upstream_first_byte: Duration,
    /// Between two parts of a server's response, and for the server to accept more of a request.
    pub upstream_body: Duration,
    /// Idle time of a connection to a server.
    pub upstream_idle: Duration,
    /// For a TLS handshake, and for a PROXY protocol header.
    pub tls_handshake: Duration,
    /// In the queue for a server.
    pub queue: Duration,
    /// For a whole forwarded request, from its head to the last byte of its response; `None` for no limit.
    pub request: Option<Duration>,
    /// Idle time of a tunnel, in both directions.
    pub tunnel_idle: Duration,
    /// Idle time of a tunnel after one side has closed.
    pub tunnel_fin: Duration,
    /// For requests in flight when the process stops.
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
