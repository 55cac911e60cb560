//! Whether a request that has failed is sent again, and where.
//!
//! A server may close an idle connection at the moment when it is taken from the pool. The request is then sent
//! again, once and on a fresh connection to the same server, if all of this holds: the connection has served a
//! request before; it was closed or reset before the server sent a byte; the method is idempotent (RFC 9110 9.2.2);
//! and the request's head is still in the client's input, so that its body, if any, arrived with it. For that reason
//! the head stays in the client's buffer until the response is complete; on a stream of HTTP/2 the fields stay, and a
//! body of up to 16 KiB.
//!
//! Then other servers are asked, as `retries` says. An attempt that was never sent, or was lost with a server that is
//! out, does not count against the budget, which protects servers that are overloaded. Any other failure is 502, or
//! 504 for a timeout. If half of a response has been sent, the client's connection ends with a reset where an orderly
//! end would mean that the response is complete (`failure.rs`).

use onrush_engine::{Error, Instant, Kind};

use super::request::Forward;
use crate::exchange::downstream::Downstream;
use crate::limits::SERVERS_TRIED_MAX;
use crate::proxy::attempt::Attempt;
use crate::proxy::failure::Failure;
use crate::proxy::group::{Group, Reach, Server};
use crate::proxy::progress::{Progress, ResponseSide};

/// An attempt at `server` has failed, and another one begins there.
pub(super) fn try_again(failure: &Failure, server: &Server, client: &Downstream<'_>) {
    client.exchange.retries(failure.class());
    client
        .exchange
        .fail_attempt(failure.class_without_status(), client.worker);
    client
        .exchange
        .begin_attempt(server, || server.address(), client.worker);
}

impl Forward {
    /// Whether it does no harm if a server gets it twice (RFC 9110 9.2.2). An extended CONNECT is none of these methods.
    fn is_idempotent(&self) -> bool {
        self.method.is_idempotent() && !self.becomes_connect()
    }

    /// Whether it is sent again on a fresh connection after `failure` of one that was in use before.
    ///
    /// The server closed it just when we took it (RFC 9112 9.3.1), and a fresh one will do, unless the request might have
    /// had an effect (RFC 9110 9.2.2), which the server may have denied (RFC 9113 8.7). Once: a request that kills servers must not go through all the idle connections
    /// there are.
    pub(super) fn survives(&self, failure: &Failure, progress: &Progress) -> bool {
        let is_harmless = match failure {
            Failure::Unprocessed(_) => true,
            failure => failure.is_stale_connection() && self.is_idempotent(),
        };
        is_harmless && !self.is_consumed && progress.response() == ResponseSide::Awaited
    }

    /// [`Forward::survives`] for a reused HTTP/1 connection. On it, bytes that are not a response may belong to the previous
    /// response, such as the body of a 304.
    pub(super) fn survives_in_turn(&self, failure: &Failure, progress: &Progress) -> bool {
        let is_leftover = matches!(failure, Failure::BadResponse(_))
            && progress.response() < ResponseSide::Interim;
        self.survives(failure, progress) || is_leftover && self.is_idempotent() && !self.is_consumed
    }

    /// Whether the response to it could be another server's than that of `last`: nobody has heard of this one's, and the
    /// request is still at hand.
    fn may_try_again(&self, group: &Group, last: u32, reach: Reach, progress: &Progress) -> bool {
        group.plan.retries.count > 0
            && !self.is_consumed
            && progress.response() < ResponseSide::Interim
            && self.tried().len() + 1 < SERVERS_TRIED_MAX
            && group.has_other(self.tried(), last, reach)
    }

    /// Whether the stream of an HTTP/2 client is reset with the [code](Failure::code) of `failure`: when the response has
    /// begun, when the server has cancelled, and when the request was not processed, so that the client may repeat it (RFC 9113
    /// 8.7).
    pub(super) fn is_told_by_code(failure: &Failure, progress: &Progress) -> bool {
        match failure {
            Failure::Unprocessed(_) => progress.response() < ResponseSide::Interim,
            _ => true,
        }
    }

    /// Whether there was no connection because the request had no time left for one, which is not the server's fault.
    pub(super) fn has_hurried(&self, failure: &Failure, now: Instant) -> bool {
        let is_late = |error: &Error| error.kind == Kind::TimedOut && now >= self.until;
        matches!(failure, Failure::Connect(error) if is_late(error))
    }

    /// Counts another attempt, if it may have one.
    fn spends_attempt(&self, group: &Group) -> bool {
        let may = self.attempts.get() < group.plan.retries.count;
        self.attempts.set(self.attempts.get() + u8::from(may));
        may
    }

    /// Whether `failure` of the server `last` is worth another attempt.
    ///
    /// The budget keeps retries from multiplying the load of servers that have too much of it. So what was never sent
    /// is free: it has cost no server anything. And so is what was lost with the connections to a server that is out:
    /// those requests were in flight there, and there will be no more of them.
    pub(super) fn takes_again(
        &self,
        failure: &Failure,
        group: &Group,
        last: u32,
        progress: &Progress,
        now: Instant,
    ) -> bool {
        if let Failure::Status(_) = failure {
            // It was asked for, and taken from the budget, when the status was seen.
            return true;
        }
        if now >= self.until || !self.may_try_again(group, last, Reach::LastResort, progress) {
            return false;
        }
        let on = &group.plan.retries.on;
        match failure {
            // Waiting for one server after the other would take too long.
            Failure::Connect(error) if error.kind == Kind::TimedOut => {
                on.connect && self.spends_attempt(group)
            }
            // Nothing was sent.
            Failure::Connect(_) | Failure::NoWebSocket => on.connect,
            Failure::Unprocessed(_) => {
                on.connect && self.spends_attempt(group) && group.may_retry(now)
            }
            _ if !self.is_idempotent() => false,
            Failure::NoResponse(error) if error.kind == Kind::TimedOut => {
                on.timeout && self.spends_attempt(group) && group.may_retry(now)
            }
            Failure::NoResponse(_)
            | Failure::Closed
            | Failure::EndedWithin
            | Failure::StreamReset(_) => {
                on.reset
                    && self.spends_attempt(group)
                    && (group.is_out(last) || group.may_retry(now))
            }
            Failure::BadResponse(_) => {
                on.garbage && self.spends_attempt(group) && group.may_retry(now)
            }
            Failure::Status(_)
            | Failure::Intercepted(_)
            | Failure::Unwanted
            | Failure::Unavailable(_)
            | Failure::Cut(_)
            | Failure::CutByReset(_)
            | Failure::BadRequest(_)
            | Failure::Client(_) => false,
        }
    }
}

impl Attempt<'_> {
    /// Whether a response with `status` is dropped for another server's.
    pub(crate) fn drops(&self, status: u16) -> bool {
        let (group, forward) = (self.group, self.forward);
        group.plan.retries.statuses.contains(&status)
            && forward.is_idempotent()
            && forward.may_try_again(group, self.server, Reach::InService, self.progress)
            && forward.spends_attempt(group)
            && group.may_retry(self.worker.core.now())
    }
}
