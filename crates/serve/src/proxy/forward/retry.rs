//! Whether and where a failed request is sent again.
//!
//! A server may close an idle connection at the moment when it is taken from the pool. The request is then sent again,
//! once and on a fresh connection to the same server, if all of this holds: the connection has served a request before;
//! it was closed or reset before the server sent a byte; the method is idempotent (RFC 9110 9.2.2); and the request's
//! head is still in the client's input, so that its body, if any, arrived with it. For that reason the head stays in
//! the client's buffer until the response is complete; on an HTTP/2 stream the fields stay, and a body of up to 16 KiB.
//!
//! Then other servers are tried, according to `retries`: with a method that is not idempotent only if nothing was sent, or if
//! the server states that it did not process the request (GOAWAY or REFUSED_STREAM of HTTP/2). The budget, which protects overloaded servers, is not charged
//! for an attempt that was never sent or was lost with a server that is out. Any other failure results in 502, or 504
//! for a timeout. If a part of a response has been sent, the client's connection is reset where an orderly end would
//! mean that the response is complete (`failure.rs`).

use onrush_engine::{Error, Instant, Kind};

use super::request::Forward;
use crate::exchange::downstream::Downstream;
use crate::limits::SERVERS_TRIED_MAX;
use crate::proxy::attempt::Attempt;
use crate::proxy::failure::Failure;
use crate::proxy::group::{Group, RetryScope, Server};
use crate::proxy::progress::{Progress, ResponseSide};

/// Records that an attempt at `server` has failed and another one starts there.
pub(super) fn record_retry(failure: &Failure, server: &Server, client: &Downstream<'_>) {
    client.exchange.retries(failure.class());
    client
        .exchange
        .fail_attempt(failure.class_without_status(), client.worker);
    client
        .exchange
        .begin_attempt(server, || server.address(), client.worker);
}

impl Forward {
    /// Whether the request may be sent twice (RFC 9110 9.2.2). An extended CONNECT may not.
    fn is_idempotent(&self) -> bool {
        self.method.is_idempotent() && !self.becomes_connect()
    }

    /// Whether the request is sent again on a fresh connection after `failure` of a reused one.
    ///
    /// The server may have closed the connection just when it was taken (RFC 9112 9.3.1). The request is repeated
    /// unless it may have had an effect (RFC 9110 9.2.2), which the server may have ruled out (RFC 9113 8.7). Only
    /// once: a request that crashes servers must not go through all idle connections.
    pub(super) fn is_repeatable_after(&self, failure: &Failure, progress: &Progress) -> bool {
        let is_harmless = match failure {
            Failure::Unprocessed(_) => true,
            failure => failure.is_stale_connection() && self.is_idempotent(),
        };
        is_harmless && !self.is_consumed && progress.response() == ResponseSide::Awaited
    }

    /// [`Forward::is_repeatable_after`] for a reused HTTP/1 connection. On it, bytes that are not a response may belong to the
    /// previous response, such as the body of a 304.
    pub(super) fn is_repeatable_after_reuse(&self, failure: &Failure, progress: &Progress) -> bool {
        let is_leftover = matches!(failure, Failure::BadResponse(_))
            && progress.response() < ResponseSide::Interim;
        self.is_repeatable_after(failure, progress)
            || is_leftover && self.is_idempotent() && !self.is_consumed
    }

    /// Whether another server than `last` may be tried: no part of a response was relayed, and the head is in the
    /// input.
    fn may_try_again(
        &self,
        group: &Group,
        last: u32,
        reach: RetryScope,
        progress: &Progress,
    ) -> bool {
        group.plan.retries.count > 0
            && !self.is_consumed
            && progress.response() < ResponseSide::Interim
            && self.tried().len() + 1 < SERVERS_TRIED_MAX
            && group.has_other(self.tried(), last, reach)
    }

    /// Whether an HTTP/2 client's stream is reset with the [code](Failure::code) of `failure`: if the response has
    /// begun, the server has cancelled, or the request was not processed, so that the client may repeat it (RFC 9113
    /// 8.7).
    pub(super) fn is_reported_by_code(failure: &Failure, progress: &Progress) -> bool {
        match failure {
            Failure::Unprocessed(_) => progress.response() < ResponseSide::Interim,
            _ => true,
        }
    }

    /// Whether connecting failed only because the deadline of the request was near, which is not the server's fault.
    pub(super) fn failed_by_deadline(&self, failure: &Failure, now: Instant) -> bool {
        let is_late = |error: &Error| error.kind == Kind::TimedOut && now >= self.until;
        matches!(failure, Failure::Connect(error) if is_late(error))
    }

    /// Counts a retry, if the limit allows one more.
    fn take_attempt(&self, group: &Group) -> bool {
        let may = self.attempts.get() < group.plan.retries.count;
        self.attempts.set(self.attempts.get() + u8::from(may));
        may
    }

    /// Whether to send the request again after `failure` of the server `last`.
    ///
    /// The budget keeps retries from multiplying the load of overloaded servers. Attempts that were never sent cost no
    /// server anything and are free. So are attempts lost with a server that is out, because no more will follow.
    pub(super) fn should_retry(
        &self,
        failure: &Failure,
        group: &Group,
        last: u32,
        progress: &Progress,
        now: Instant,
    ) -> bool {
        if let Failure::Status(_) = failure {
            // The retry was granted and counted when the status arrived.
            return true;
        }
        if now >= self.until || !self.may_try_again(group, last, RetryScope::LastResort, progress) {
            return false;
        }
        let on = &group.plan.retries.on;
        match failure {
            // Waiting for several servers in turn would take too long.
            Failure::Connect(error) if error.kind == Kind::TimedOut => {
                on.connect && self.take_attempt(group)
            }
            // Nothing was sent.
            Failure::Connect(_) | Failure::NoWebSocket => on.connect,
            Failure::Unprocessed(_) => {
                on.connect && self.take_attempt(group) && group.may_retry(now)
            }
            _ if !self.is_idempotent() => false,
            Failure::NoResponse(error) if error.kind == Kind::TimedOut => {
                on.timeout && self.take_attempt(group) && group.may_retry(now)
            }
            Failure::NoResponse(_)
            | Failure::Closed
            | Failure::EndedInHead
            | Failure::StreamReset(_) => {
                on.reset && self.take_attempt(group) && (group.is_out(last) || group.may_retry(now))
            }
            Failure::BadResponse(_) => {
                on.invalid_response && self.take_attempt(group) && group.may_retry(now)
            }
            Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::RefusedField
            | Failure::Unavailable(_)
            | Failure::Cut(_)
            | Failure::TruncatedByReset(_)
            | Failure::BadRequest(_)
            | Failure::Client(_) => false,
        }
    }
}

impl Attempt<'_> {
    /// Whether a response with `status` is discarded and another server tried.
    pub(crate) fn should_retry_status(&self, status: u16) -> bool {
        let (group, forward) = (self.group, self.forward);
        group.plan.retries.statuses.contains(&status)
            && forward.is_idempotent()
            && forward.may_try_again(group, self.server, RetryScope::InService, self.progress)
            && forward.take_attempt(group)
            && group.may_retry(self.worker.core.now())
    }
}
