//! Why a request got no complete response from a server, and the consequences for the client.

use std::fmt;

use onrush_engine::{Error, Kind};
use onrush_http::http2::code::Code;
use onrush_http::http2::message::Rejection;
use onrush_http::{Position, Refusal};
use onrush_tls::Transport;

use super::unavailable::Unavailable;
use crate::observe::record::FailureClass;

/// Why a request failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// No server accepts the request.
    Unavailable(Unavailable),
    /// No connection to the server.
    Connect(Error),
    /// The connection failed or timed out before any byte of the response.
    NoResponse(Error),
    /// The server ended the connection before any byte of the response.
    Closed,
    /// The server ended the connection within the head of the response.
    EndedInHead,
    /// The server reset the stream before any byte of the response (RFC 9113 5.4.2).
    StreamReset(Code),
    /// The server has not processed the request (RFC 9113 8.7), for this reason.
    Unprocessed(&'static str),
    /// The server does not support WebSocket over HTTP/2 (RFC 8441 3); the request was not sent.
    NoWebSocket,
    /// The response is malformed.
    BadResponse(MessageFault),
    /// A response whose status asks for a retry on another server. It was not relayed.
    Status(u16),
    /// A response that is replaced by an error page.
    Intercepted(u16),
    /// A response with a field that the route refuses. It was not relayed.
    RefusedField,
    /// The response ended early, after its first part was relayed.
    Cut(MessageFault),
    /// As `Cut`, by a stream reset from the server.
    TruncatedByReset(Code),
    /// The client's body is malformed or too large.
    BadRequest(Refusal),
    /// The client's connection failed.
    Client(Error),
}

/// A fault in a message, and its position.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageFault {
    what: &'static str,
    place: Position,
}

impl From<&'static str> for MessageFault {
    fn from(what: &'static str) -> Self {
        Self {
            what,
            place: Position::Unknown,
        }
    }
}

impl From<Refusal> for MessageFault {
    fn from(refusal: Refusal) -> Self {
        Self {
            what: refusal.reason,
            place: refusal.position,
        }
    }
}

impl From<Rejection> for MessageFault {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::Malformed(reason) => reason.into(),
            Rejection::Refused(refusal) => refusal.into(),
        }
    }
}

impl fmt::Display for MessageFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.what, self.place)
    }
}

impl Failure {
    /// Whether the server may never have seen the request, because it closed an idle connection at the same time.
    pub(crate) fn is_stale_connection(&self) -> bool {
        match self {
            Failure::Closed | Failure::EndedInHead => true,
            Failure::NoResponse(error) => error.is_reset() || error.kind == Kind::Truncated,
            Failure::Unavailable(_)
            | Failure::Connect(_)
            | Failure::StreamReset(_)
            | Failure::Unprocessed(_)
            | Failure::NoWebSocket
            | Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::RefusedField
            | Failure::Cut(_)
            | Failure::TruncatedByReset(_)
            | Failure::BadRequest(_)
            | Failure::Client(_) => false,
        }
    }

    /// Whether the server took too long to accept the connection or to start its response.
    pub(crate) fn is_timeout(&self) -> bool {
        match self {
            Failure::Connect(error) | Failure::NoResponse(error) => error.kind == Kind::TimedOut,
            Failure::Closed
            | Failure::EndedInHead
            | Failure::StreamReset(_)
            | Failure::Unavailable(_)
            | Failure::Unprocessed(_)
            | Failure::NoWebSocket
            | Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::RefusedField
            | Failure::Cut(_)
            | Failure::TruncatedByReset(_)
            | Failure::BadRequest(_)
            | Failure::Client(_) => false,
        }
    }

    /// Whether local resources such as descriptors or ports are exhausted. This does not count against the server.
    pub(crate) fn is_local_shortage(&self) -> bool {
        matches!(self, Failure::Connect(error) | Failure::NoResponse(error) if error.is_local_shortage())
    }

    /// Status of the response to the client (RFC 9110 15.6.3 to 15.6.5); `None` if no response can be sent any more.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Failure::Unavailable(_) => Some(503),
            _ if self.is_local_shortage() => Some(503),
            Failure::Connect(error) | Failure::NoResponse(error)
                if error.kind == Kind::TimedOut =>
            {
                Some(504)
            }
            Failure::Connect(_)
            | Failure::NoResponse(_)
            | Failure::Closed
            | Failure::EndedInHead
            | Failure::StreamReset(_)
            | Failure::Unprocessed(_)
            | Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::RefusedField => Some(502),
            Failure::NoWebSocket => Some(501),
            Failure::BadRequest(refusal) => Some(refusal.status),
            Failure::Intercepted(status) => Some(*status),
            Failure::Cut(_) | Failure::TruncatedByReset(_) | Failure::Client(_) => None,
        }
    }

    /// Error code for a reset of the client's stream, instead of a response or after a part of it: from the code, gRPC
    /// clients learn whether the deadline has passed and whether they may retry.
    pub(crate) fn code(&self) -> Option<Code> {
        match self {
            Failure::StreamReset(Code::CANCEL) => Some(Code::CANCEL),
            Failure::TruncatedByReset(code) => Some(*code),
            Failure::Unprocessed(_) => Some(Code::REFUSED_STREAM),
            Failure::StreamReset(_)
            | Failure::Unavailable(_)
            | Failure::Connect(_)
            | Failure::NoResponse(_)
            | Failure::Closed
            | Failure::EndedInHead
            | Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::RefusedField
            | Failure::Cut(_)
            | Failure::BadRequest(_)
            | Failure::NoWebSocket
            | Failure::Client(_) => None,
        }
    }
}

impl Failure {
    /// Converts a failure after a part of the response has arrived.
    pub(crate) fn into_cut(self) -> Failure {
        match self {
            Failure::NoResponse(error) if error.kind == Kind::TimedOut => {
                Failure::Cut("it stopped sending".into())
            }
            Failure::NoResponse(error) if error.is_reset() => {
                Failure::Cut("it reset the connection".into())
            }
            Failure::NoResponse(_) => Failure::Cut("the connection to it failed".into()),
            Failure::Closed => Failure::Cut("it closed the connection".into()),
            Failure::StreamReset(code) => Failure::TruncatedByReset(code),
            Failure::Unprocessed(why) => Failure::Cut(why.into()),
            Failure::BadResponse(fault) => Failure::Cut(fault),
            failure => failure,
        }
    }

    /// Resets the connection to the server if the client disconnected. An orderly close might mean only that the request has
    /// ended, while the response is still wanted.
    pub(crate) fn reset_if_client_gone(&self, server: &Transport) {
        if let Failure::Client(_) = self {
            server.reset_when_dropped();
        }
    }

    /// Additional header fields of the error response.
    pub(crate) fn fields(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Failure::Unavailable(_) => &[("Retry-After", "1")],
            _ if self.is_local_shortage() => &[("Retry-After", "1")],
            _ => &[],
        }
    }

    pub(crate) fn class(&self) -> FailureClass {
        match self {
            Failure::Unavailable(Unavailable::NoServer) => FailureClass::NoServer,
            Failure::Unavailable(Unavailable::ClientShare) => FailureClass::ClientShare,
            Failure::Unavailable(_) => FailureClass::Full,
            Failure::Connect(_) => FailureClass::Connect,
            Failure::NoResponse(error) if error.kind == Kind::TimedOut => FailureClass::Timeout,
            Failure::NoResponse(_)
            | Failure::Closed
            | Failure::EndedInHead
            | Failure::StreamReset(_)
            | Failure::Unprocessed(_) => FailureClass::Reset,
            Failure::NoWebSocket
            | Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::RefusedField => FailureClass::InvalidResponse,
            Failure::Cut(_) | Failure::TruncatedByReset(_) => FailureClass::Cut,
            Failure::BadRequest(_) | Failure::Client(_) => FailureClass::Client,
        }
    }

    /// The class, unless the status of the server's response already describes the failure.
    pub(crate) fn class_without_status(&self) -> Option<FailureClass> {
        match self {
            Failure::Status(_) | Failure::Intercepted(_) => None,
            _ => Some(self.class()),
        }
    }

    /// A clause for the error response to the client, without details.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Failure::Unavailable(Unavailable::NoServer) => "no server is available",
            Failure::Unavailable(Unavailable::ClientShare) => {
                "too many requests of this client are in progress"
            }
            Failure::Unavailable(_) => "all servers are busy",
            _ if self.is_local_shortage() => {
                "the proxy has no resources left for a request to the server"
            }
            Failure::Connect(error) if error.kind == Kind::TimedOut => {
                "the server cannot be reached in time"
            }
            Failure::Connect(_) => "the server cannot be reached",
            Failure::NoResponse(error) if error.kind == Kind::TimedOut => {
                "the server did not respond in time"
            }
            Failure::NoResponse(_) | Failure::Closed | Failure::EndedInHead => {
                "the server closed the connection"
            }
            Failure::StreamReset(_) => "the server ended the stream",
            Failure::Unprocessed(_) => "the server accepts no more requests",
            Failure::NoWebSocket => "the server does not support WebSocket",
            Failure::BadResponse(_)
            | Failure::Status(_)
            | Failure::Cut(_)
            | Failure::TruncatedByReset(_) => "the server's response is malformed",
            Failure::BadRequest(refusal) => refusal.reason,
            Failure::Intercepted(_) => "",
            Failure::RefusedField => "the server's response cannot be forwarded",
            Failure::Client(_) => "the client disconnected",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connect(error) | Failure::NoResponse(error) | Failure::Client(error) => {
                error.fmt(f)
            }
            Failure::Unavailable(unavailable) => f.write_str(match unavailable {
                Unavailable::NoServer => "no server is available",
                Unavailable::Full => "all servers have reached their connection limits",
                Unavailable::QueueFull => "all servers are busy and the queue is full",
                Unavailable::QueuedTooLong => "no server had capacity in time",
                Unavailable::ClientShare => {
                    "the client has used its share of the capacity"
                }
            }),
            Failure::Status(status) | Failure::Intercepted(status) => {
                write!(f, "responded with {status}")
            }
            Failure::RefusedField => f.write_str(
                "sent a response with a field that upstream_headers refuses",
            ),
            Failure::Closed => f.write_str("closed the connection without a response"),
            Failure::EndedInHead => f.write_str("closed the connection within its response"),
            Failure::StreamReset(code) => {
                write!(f, "reset the stream before its response ({code})")
            }
            Failure::TruncatedByReset(code) => write!(
                f,
                "stopped in the middle of its response: it reset the stream ({code})"
            ),
            Failure::Unprocessed(why) => f.write_str(why),
            Failure::NoWebSocket => f.write_str(
                "does not support WebSocket over HTTP/2: its SETTINGS lack ENABLE_CONNECT_PROTOCOL (RFC 8441)",
            ),
            Failure::BadResponse(why) => write!(f, "sent an invalid response: {why}"),
            Failure::Cut(why) => write!(f, "stopped in the middle of its response: {why}"),
            Failure::BadRequest(why) => write!(f, "the client's body is refused: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::{Errno, Op};

    #[test]
    fn failure_kinds_map_to_statuses() {
        let short = |errno| Error::new(Op::Connect, Kind::Os(errno));
        let late = |op| Error::new(op, Kind::TimedOut);
        let refused = Error::new(Op::Connect, Kind::Os(Errno::CONNREFUSED));
        for (failure, status) in [
            (Failure::Connect(late(Op::Connect)), Some(504)),
            (Failure::NoResponse(late(Op::Recv)), Some(504)),
            (Failure::Connect(refused), Some(502)),
            (Failure::Connect(short(Errno::MFILE)), Some(503)),
            (Failure::Connect(short(Errno::NFILE)), Some(503)),
            (Failure::Connect(short(Errno::NOMEM)), Some(503)),
            (Failure::Connect(short(Errno::NOBUFS)), Some(503)),
            (Failure::Connect(short(Errno::ADDRNOTAVAIL)), Some(503)),
            (Failure::Connect(short(Errno::ACCESS)), Some(502)),
            (
                Failure::NoResponse(Error::new(Op::Recv, Kind::NoBuffers)),
                Some(503),
            ),
            (Failure::Closed, Some(502)),
            (Failure::NoWebSocket, Some(501)),
            (Failure::BadResponse("x".into()), Some(502)),
            (Failure::BadRequest(Refusal::new(413, "x")), Some(413)),
            (Failure::Cut("x".into()), None),
            (Failure::Client(late(Op::Send)), None),
        ] {
            assert_eq!(failure.status(), status, "{failure}");
        }
    }
}
