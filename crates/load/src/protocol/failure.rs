//! Failures of requests and connections, and their classification.

use std::fmt;

use onrush_engine::{Errno, Error, Kind, Op};
use onrush_tls::HandshakeError;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// The target refused the connection: nothing listens there.
    ConnectRefused,
    /// The connection was not established in time.
    ConnectTimeout,
    /// No local port was free: too many connections had been closed shortly before.
    ConnectNoPort,
    /// The process or the system has no descriptors left.
    ConnectNoDescriptor,
    /// Another error of connect(2).
    ConnectOther,
    /// The TLS handshake failed, or ALPN did not select HTTP/2.
    Handshake,
    /// The peer closed the connection before the first byte of a response.
    ClosedBeforeResponse,
    /// The peer reset the connection before the first byte of a response.
    ResetBeforeResponse,
    /// The connection was reset during a response.
    Reset,
    /// The server reset the request's stream (RST_STREAM).
    StreamReset,
    /// The server ended the connection with GOAWAY and an error code, or several connections with GOAWAY, while a
    /// response was due.
    GoAway,
    /// Nothing arrived within the timeout while a response was due.
    Timeout,
    /// Over UDP, no response arrived in time: the request or the response was lost.
    LostResponse,
    /// The peer closed the connection during a response.
    EarlyClose,
    /// The received bytes are not a valid response to the request.
    Protocol,
    UnexpectedStatus,
    UnexpectedBody,
    /// Bytes arrived after a response without a request.
    UnexpectedBytes,
    /// A check of a journey's step failed.
    CheckFailed,
    /// A response lacks a value that its step extracts, or the value cannot be sent at its destination.
    NoValue,
    /// A body that a step inspects is longer than the limit.
    BodyTooLong,
    /// A body that a step inspects has an unsupported content coding.
    BodyCoded,
    /// A redirect to another server, without a usable location, or one too many.
    RedirectRefused,
    Other,
}

impl Failure {
    pub(crate) const ALL: [Failure; 24] = [
        Failure::ConnectRefused,
        Failure::ConnectTimeout,
        Failure::ConnectNoPort,
        Failure::ConnectNoDescriptor,
        Failure::ConnectOther,
        Failure::Handshake,
        Failure::ClosedBeforeResponse,
        Failure::ResetBeforeResponse,
        Failure::Reset,
        Failure::StreamReset,
        Failure::GoAway,
        Failure::Timeout,
        Failure::LostResponse,
        Failure::EarlyClose,
        Failure::Protocol,
        Failure::UnexpectedStatus,
        Failure::UnexpectedBody,
        Failure::UnexpectedBytes,
        Failure::CheckFailed,
        Failure::NoValue,
        Failure::BodyTooLong,
        Failure::BodyCoded,
        Failure::RedirectRefused,
        Failure::Other,
    ];

    /// Returns its key in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Failure::ConnectRefused => "connect_refused",
            Failure::ConnectTimeout => "connect_timeout",
            Failure::ConnectNoPort => "connect_no_local_port",
            Failure::ConnectNoDescriptor => "connect_no_descriptor",
            Failure::ConnectOther => "connect_other",
            Failure::Handshake => "tls_handshake",
            Failure::ClosedBeforeResponse => "closed_before_answer",
            Failure::ResetBeforeResponse => "reset_before_answer",
            Failure::Reset => "reset",
            Failure::StreamReset => "stream_reset",
            Failure::GoAway => "goaway",
            Failure::Timeout => "timeout",
            Failure::LostResponse => "lost",
            Failure::EarlyClose => "early_close",
            Failure::Protocol => "protocol",
            Failure::UnexpectedStatus => "unexpected_status",
            Failure::UnexpectedBody => "unexpected_body",
            Failure::UnexpectedBytes => "unexpected_bytes",
            Failure::CheckFailed => "check_failed",
            Failure::NoValue => "no_value",
            Failure::BodyTooLong => "body_too_long",
            Failure::BodyCoded => "body_coded",
            Failure::RedirectRefused => "redirect_refused",
            Failure::Other => "other",
        }
    }

    /// Whether a response was received, which is counted among the responses as well.
    pub(crate) fn has_response(self) -> bool {
        match self {
            Failure::UnexpectedStatus
            | Failure::UnexpectedBody
            | Failure::UnexpectedBytes
            | Failure::CheckFailed
            | Failure::NoValue
            | Failure::BodyTooLong
            | Failure::BodyCoded
            | Failure::RedirectRefused => true,
            Failure::ConnectRefused
            | Failure::ConnectTimeout
            | Failure::ConnectNoPort
            | Failure::ConnectNoDescriptor
            | Failure::ConnectOther
            | Failure::Handshake
            | Failure::ClosedBeforeResponse
            | Failure::ResetBeforeResponse
            | Failure::Reset
            | Failure::StreamReset
            | Failure::GoAway
            | Failure::Timeout
            | Failure::LostResponse
            | Failure::EarlyClose
            | Failure::Protocol
            | Failure::Other => false,
        }
    }

    /// Classifies an error of connect(2).
    pub(crate) fn of_connect(error: Error) -> Failure {
        match error.kind {
            // EADDRNOTAVAIL of bind(2) means that the source address is not local.
            _ if error.op == Op::Bind => Failure::ConnectOther,
            Kind::TimedOut | Kind::Os(Errno::TIMEDOUT) => Failure::ConnectTimeout,
            // connect(2) returns ENOENT for a missing Unix socket.
            Kind::Os(Errno::CONNREFUSED | Errno::NOENT) => Failure::ConnectRefused,
            Kind::Os(Errno::ADDRNOTAVAIL) => Failure::ConnectNoPort,
            Kind::Os(Errno::MFILE | Errno::NFILE) => Failure::ConnectNoDescriptor,
            _ => Failure::ConnectOther,
        }
    }

    /// Classifies a failure to establish a connection.
    pub(crate) fn of_not_connected(error: &NotConnected) -> Failure {
        match error {
            NotConnected::Failed(error) => Failure::of_connect(*error),
            NotConnected::Handshake(_) | NotConnected::NoHttp2(_) => Failure::Handshake,
        }
    }

    pub(crate) fn of_lost(lost: NoResponse) -> Failure {
        match lost {
            NoResponse::Unwritten | NoResponse::Ended => Failure::ClosedBeforeResponse,
            NoResponse::Failed(error) => Failure::of_exchange_before_response(error),
            NoResponse::Broken(error) => Failure::of_exchange(error),
            NoResponse::Cut => Failure::EarlyClose,
            NoResponse::Unasked => Failure::UnexpectedBytes,
            NoResponse::Refused(_) => Failure::Protocol,
        }
    }

    /// Classifies an error of send(2) or recv(2) before the first byte of a response.
    pub(crate) fn of_exchange_before_response(error: Error) -> Failure {
        match Failure::of_exchange(error) {
            Failure::EarlyClose => Failure::ClosedBeforeResponse,
            // Linux reports a reset after the end of the stream as EPIPE (tcp_reset).
            _ if error.kind == Kind::Os(Errno::PIPE) => Failure::ClosedBeforeResponse,
            Failure::Reset => Failure::ResetBeforeResponse,
            other => other,
        }
    }

    /// Classifies an error of send(2) or recv(2) during a response.
    pub(crate) fn of_exchange(error: Error) -> Failure {
        match error.kind {
            Kind::TimedOut | Kind::Os(Errno::TIMEDOUT) => Failure::Timeout,
            Kind::Truncated => Failure::EarlyClose,
            Kind::Alert(_) | Kind::NoTls => Failure::Protocol,
            _ if error.is_reset() => Failure::Reset,
            _ => Failure::Other,
        }
    }
}

/// Reason why a connection was not established.
pub(crate) enum NotConnected {
    Failed(Error),
    Handshake(HandshakeError),
    /// ALPN selected this protocol, or none, although only h2 was offered.
    NoHttp2(Option<Box<[u8]>>),
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HINT: &str = "enable HTTP/2 on the server, or leave --http2 out";
        match self {
            NotConnected::Failed(error) => error.fmt(f),
            NotConnected::Handshake(error) => error.fmt(f),
            NotConnected::NoHttp2(None) => write!(
                f,
                "the server selected no protocol (ALPN) although h2 was offered: {HINT}"
            ),
            NotConnected::NoHttp2(Some(other)) => write!(
                f,
                "the server selected {} (ALPN) although h2 was offered: {HINT}",
                other.escape_ascii()
            ),
        }
    }
}

impl From<Error> for NotConnected {
    fn from(error: Error) -> NotConnected {
        NotConnected::Failed(error)
    }
}

impl From<HandshakeError> for NotConnected {
    fn from(error: HandshakeError) -> NotConnected {
        NotConnected::Handshake(error)
    }
}

/// Reason why a request has no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoResponse {
    /// Nothing was sent: the peer had already closed the kept-alive connection.
    Unwritten,
    /// Error or timeout before the response's first byte.
    Failed(Error),
    /// Error or timeout during the response.
    Broken(Error),
    /// The peer closed the connection before the response's first byte.
    Ended,
    /// The peer closed the connection during the response.
    Cut,
    /// Bytes arrived after a response without a request; the due request was not sent.
    Unasked,
    /// The received bytes are not a valid response.
    Refused(&'static str),
}

impl From<Error> for NoResponse {
    fn from(error: Error) -> NoResponse {
        NoResponse::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_index_and_name() {
        for (place, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, place);
            assert!(!failure.name().is_empty());
        }
    }
}
