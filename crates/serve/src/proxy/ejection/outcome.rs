//! Classifies how a request ended, as evidence about its server.

use std::time::Duration;

use onrush_config::plan::{EjectOn, Timeouts};
use onrush_engine::{Errno, Error, Kind};
use onrush_http::http2::code::Code;

use crate::proxy::failure::Failure;
use crate::worker::Worker;

/// How a request ended at a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A response that is not a failure, and its latency.
    Responded(Duration),
    /// No response in time, a malformed one, or a status that counts as a failure.
    Failed,
    /// No connection, so nothing was sent.
    Unreachable,
}

impl Outcome {
    /// Classifies a response with `status` after `latency`.
    pub(crate) fn of_response(status: u16, latency: Duration, on: EjectOn) -> Self {
        match on {
            EjectOn::Responses if status >= 500 => Outcome::Failed,
            EjectOn::Responses | EjectOn::Connections => Outcome::Responded(latency),
        }
    }

    /// Classifies a request that ended with `failure`; `None` if it is not evidence about the server.
    pub(crate) fn of_failure(failure: &Failure, on: EjectOn) -> Option<Self> {
        match failure {
            _ if failure.is_local_shortage() => None,
            Failure::Connect(error) => of_connect(error),
            Failure::NoResponse(_) | Failure::Closed | Failure::EndedInHead => {
                Some(Outcome::Failed)
            }
            // With CANCEL the deadline of the call has passed at its client (gRPC); with NO_ERROR the server needs no
            // more of the request (RFC 9113 8.1). Neither is a failure of the server.
            Failure::StreamReset(Code::CANCEL | Code::NO_ERROR)
            | Failure::TruncatedByReset(Code::CANCEL | Code::NO_ERROR) => None,
            Failure::BadResponse(_)
            | Failure::Cut(_)
            | Failure::StreamReset(_)
            | Failure::TruncatedByReset(_) => match on {
                EjectOn::Responses => Some(Outcome::Failed),
                EjectOn::Connections => None,
            },
            // No evidence: the status was counted with the response, the server is shutting down or does not support
            // such requests, or the failure is local or the client's.
            Failure::Status(_)
            | Failure::Unprocessed(_)
            | Failure::NoWebSocket
            | Failure::Intercepted(_)
            | Failure::RefusedField
            | Failure::Unavailable(_)
            | Failure::BadRequest(_)
            | Failure::Client(_) => None,
        }
    }
}

/// Classifies a failed connection. No evidence if this process is not permitted to connect (connect(2)), and only a
/// failure if the backlog of a Unix socket is full.
fn of_connect(error: &Error) -> Option<Outcome> {
    match error.kind {
        Kind::Os(Errno::ACCESS | Errno::PERM) | Kind::Stopping => None,
        Kind::Os(Errno::AGAIN) => Some(Outcome::Failed),
        Kind::TimedOut
        | Kind::NoBuffers
        | Kind::Full
        | Kind::FileTooShort
        | Kind::Truncated
        | Kind::Alert(_)
        | Kind::NoTls
        | Kind::Os(_) => Some(Outcome::Unreachable),
    }
}

/// Whether a timeout is caused by this core, which was stalled for much of the time.
pub(super) fn is_caused_locally(failure: &Failure, timeouts: &Timeouts, worker: &Worker) -> bool {
    let patience = match failure {
        Failure::Connect(_) => timeouts.connect,
        _ => timeouts.upstream_first_byte,
    };
    failure.is_timeout() && worker.was_stalled(patience)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::Op;
    use onrush_http::Refusal;

    #[test]
    fn local_errors_are_not_server_failures() {
        let connect = |errno| Failure::Connect(Error::new(Op::Connect, Kind::Os(errno)));
        let late = Error::new(Op::Recv, Kind::TimedOut);
        for (failure, on_connections, on_responses) in [
            (
                connect(Errno::CONNREFUSED),
                Some(Outcome::Unreachable),
                Some(Outcome::Unreachable),
            ),
            (
                connect(Errno::AGAIN),
                Some(Outcome::Failed),
                Some(Outcome::Failed),
            ),
            (connect(Errno::MFILE), None, None),
            (connect(Errno::ADDRNOTAVAIL), None, None),
            (
                Failure::NoResponse(Error::new(Op::Recv, Kind::NoBuffers)),
                None,
                None,
            ),
            (
                Failure::NoResponse(late),
                Some(Outcome::Failed),
                Some(Outcome::Failed),
            ),
            (
                Failure::EndedInHead,
                Some(Outcome::Failed),
                Some(Outcome::Failed),
            ),
            (
                Failure::BadResponse("x".into()),
                None,
                Some(Outcome::Failed),
            ),
            (Failure::Status(503), None, None),
            (Failure::BadRequest(Refusal::new(400, "x")), None, None),
        ] {
            assert_eq!(
                Outcome::of_failure(&failure, EjectOn::Connections),
                on_connections
            );
            assert_eq!(
                Outcome::of_failure(&failure, EjectOn::Responses),
                on_responses,
                "{failure}"
            );
        }
    }
}
