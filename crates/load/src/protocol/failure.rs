//! What can go wrong with requests and connections, and what of it is counted as what.

use std::fmt;

use onrush_engine::{Errno, Error, Kind, Op};
use onrush_tls::HandshakeError;

/// What can go wrong with a request or with making a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Nobody listens there.
    ConnectRefused,
    /// The connection was not made in time.
    ConnectTimeout,
    /// No local port was free: too many connections were closed shortly before.
    ConnectNoPort,
    /// The process or the system has no descriptors left.
    ConnectNoDescriptor,
    /// Any other failure to connect.
    ConnectOther,
    /// Connected, the two sides could not agree on how to speak TLS.
    Handshake,
    /// The peer ended the connection where a response was due, without a word of it.
    ClosedUnanswered,
    /// The connection was reset where a response was due, without a word of it.
    ResetUnanswered,
    /// The connection was reset within a response.
    Reset,
    /// The server has reset the stream of a request, and has said why.
    StreamReset,
    /// The server has ended a connection with GOAWAY, which said what was wrong, where a response was due.
    GoneAway,
    /// Nothing arrived for too long while a response was due.
    Timeout,
    /// Over UDP, no answer came in time: the request or its answer was lost.
    LostAnswer,
    /// The peer ended the connection within a response.
    EarlyClose,
    /// What arrived was no response to the request.
    Protocol,
    /// A response had another status than was expected.
    UnexpectedStatus,
    /// The body of a response did not have what was expected.
    UnexpectedBody,
    /// Bytes came behind a response that nobody had asked for.
    UnexpectedBytes,
    /// A check of a journey's step does not hold.
    CheckFailed,
    /// A response has no value that its step takes from it, or one that cannot be sent where it is wanted.
    NoValue,
    /// A body that a step looks into is longer than what is kept of it.
    BodyTooLong,
    /// A body that a step looks into is coded in a way that is not read here.
    BodyCoded,
    /// A redirect leads to another server, to nowhere, or is one too many.
    RedirectRefused,
    /// Anything else the kernel said.
    Other,
}

impl Failure {
    /// All kinds, in the order of reports.
    pub(crate) const ALL: [Failure; 24] = [
        Failure::ConnectRefused,
        Failure::ConnectTimeout,
        Failure::ConnectNoPort,
        Failure::ConnectNoDescriptor,
        Failure::ConnectOther,
        Failure::Handshake,
        Failure::ClosedUnanswered,
        Failure::ResetUnanswered,
        Failure::Reset,
        Failure::StreamReset,
        Failure::GoneAway,
        Failure::Timeout,
        Failure::LostAnswer,
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

    /// Its key in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Failure::ConnectRefused => "connect_refused",
            Failure::ConnectTimeout => "connect_timeout",
            Failure::ConnectNoPort => "connect_no_local_port",
            Failure::ConnectNoDescriptor => "connect_no_descriptor",
            Failure::ConnectOther => "connect_other",
            Failure::Handshake => "tls_handshake",
            Failure::ClosedUnanswered => "closed_before_answer",
            Failure::ResetUnanswered => "reset_before_answer",
            Failure::Reset => "reset",
            Failure::StreamReset => "stream_reset",
            Failure::GoneAway => "goaway",
            Failure::Timeout => "timeout",
            Failure::LostAnswer => "lost",
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

    /// Whether it is of a response that came, and is counted among the responses, too.
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
            | Failure::ClosedUnanswered
            | Failure::ResetUnanswered
            | Failure::Reset
            | Failure::StreamReset
            | Failure::GoneAway
            | Failure::Timeout
            | Failure::LostAnswer
            | Failure::EarlyClose
            | Failure::Protocol
            | Failure::Other => false,
        }
    }

    /// What a failed connect(2) counts as.
    pub(crate) fn of_connect(error: Error) -> Failure {
        match error.kind {
            // The same error as for want of a port means something else there.
            _ if error.op == Op::Bind => Failure::ConnectOther,
            Kind::TimedOut | Kind::Os(Errno::TIMEDOUT) => Failure::ConnectTimeout,
            // A Unix socket that is not there is refused in other words.
            Kind::Os(Errno::CONNREFUSED | Errno::NOENT) => Failure::ConnectRefused,
            Kind::Os(Errno::ADDRNOTAVAIL) => Failure::ConnectNoPort,
            Kind::Os(Errno::MFILE | Errno::NFILE) => Failure::ConnectNoDescriptor,
            _ => Failure::ConnectOther,
        }
    }

    /// What a connection that was not made counts as.
    pub(crate) fn of_not_connected(error: &NotConnected) -> Failure {
        match error {
            NotConnected::Failed(error) => Failure::of_connect(*error),
            NotConnected::Handshake(_) | NotConnected::NoHttp2(_) => Failure::Handshake,
        }
    }

    /// What a request without a response counts as.
    pub(crate) fn of_lost(lost: Lost) -> Failure {
        match lost {
            Lost::Unwritten | Lost::Ended => Failure::ClosedUnanswered,
            Lost::Failed(error) => Failure::of_unanswered(error),
            Lost::Broken(error) => Failure::of_exchange(error),
            Lost::Cut => Failure::EarlyClose,
            Lost::Unasked => Failure::UnexpectedBytes,
            Lost::Refused(_) => Failure::Protocol,
        }
    }

    /// What a failed send(2) or recv(2) counts as where nothing of the response had come.
    pub(crate) fn of_unanswered(error: Error) -> Failure {
        match Failure::of_exchange(error) {
            Failure::EarlyClose => Failure::ClosedUnanswered,
            // The name of a reset behind the end of the stream (Linux, tcp_reset).
            _ if error.kind == Kind::Os(Errno::PIPE) => Failure::ClosedUnanswered,
            Failure::Reset => Failure::ResetUnanswered,
            other => other,
        }
    }

    /// What a failed send(2) or recv(2) counts as within a response.
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

/// Why there is no connection.
pub(crate) enum NotConnected {
    Failed(Error),
    Handshake(HandshakeError),
    /// The server has agreed on this protocol, or on none, where HTTP/2 was offered alone.
    NoHttp2(Option<Box<[u8]>>),
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HINT: &str = "switch HTTP/2 on there, or leave --http2 out";
        match self {
            NotConnected::Failed(error) => error.fmt(f),
            NotConnected::Handshake(error) => error.fmt(f),
            NotConnected::NoHttp2(None) => write!(
                f,
                "the server chose no protocol (ALPN) where h2 was offered: {HINT}"
            ),
            NotConnected::NoHttp2(Some(other)) => write!(
                f,
                "the server chose {} (ALPN) where h2 was offered: {HINT}",
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

/// Why there is no response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// Nothing was written: the peer had ended the kept-alive connection before.
    Unwritten,
    /// The kernel said no, or nothing came in time, before the response's first byte.
    Failed(Error),
    /// The same within the response.
    Broken(Error),
    /// The peer ended the connection before the response's first byte.
    Ended,
    /// The peer ended the connection within the response.
    Cut,
    /// Bytes came behind a response that nobody had asked for; what is due was not written.
    Unasked,
    /// It is no response to the request.
    Refused(&'static str),
}

impl From<Error> for Lost {
    fn from(error: Error) -> Lost {
        Lost::Failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_place_and_name() {
        for (place, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, place);
            assert!(!failure.name().is_empty());
        }
    }
}
