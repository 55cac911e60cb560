//! Relays a response that has arrived completely, directly from the receive and without a task.

use std::rc::Rc;

use onrush_engine::Error;

use super::request::Forward;
use super::start_attempt::start_attempt;
use crate::exchange::downstream::Downstream;
use crate::proxy::failure::Failure;
use crate::proxy::lease::{Lease, Queued};
use crate::proxy::progress::Progress;
use crate::proxy::stream::download::StreamDownload;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Passed {
    /// The whole response is written.
    Whole,
    /// Nothing is written; [`exchange`](super::exchange) waits for the rest or sends the request again.
    Nothing,
}

/// Relays the response of a server if it has arrived completely and nothing has to be waited for.
///
/// # Errors
/// If the client disconnected, or the core is out of buffers.
pub(crate) fn relay_complete(
    forward: &mut Forward,
    mut client: Downstream<'_>,
) -> Result<Passed, Error> {
    // Compression takes long enough to need a task, which yields.
    let may_pass =
        client.exchange.offer().is_none() && !client.has_unsent() && !forward.asks_for_tunnel;
    let Some(reservation) = forward.reservation.take_if(|_| may_pass) else {
        return Ok(Passed::Nothing);
    };
    let (request, body_bytes) = match forward.lease.take() {
        Some(Lease::Stream(request, Queued::Whole { body_bytes })) if request.is_whole() => {
            (request, body_bytes)
        }
        others => {
            (forward.lease, forward.reservation) = (others, Some(reservation));
            return Ok(Passed::Nothing);
        }
    };
    let group = Rc::clone(&forward.group);
    let progress = Progress::default();
    progress.request_is_sent();
    let to = (&group, reservation.index());
    let (attempt, _, reply) = start_attempt(forward, &mut client, to, &progress);
    let passed = StreamDownload::new(attempt, &request, reply).pass();
    if let (Err(failure), Some(outcome)) = (&passed, progress.outcome.take()) {
        // The exchange will report the failure, and knows nothing of the head.
        let at = (to.1, reservation.purpose());
        group.not_relayed(at, (failure, outcome), client.worker);
    }
    match passed {
        Ok(()) => {
            forward.consume(&mut client, body_bytes);
            Ok(Passed::Whole)
        }
        Err(Failure::Client(error)) => Err(error),
        Err(failure) => {
            request.fail(failure);
            forward.lease = Some(Lease::Stream(request, Queued::Whole { body_bytes }));
            forward.reservation = Some(reservation);
            Ok(Passed::Nothing)
        }
    }
}
