//! An attempt on an HTTP/2 stream.

use std::pin::pin;
use std::rc::Rc;

use onrush_config::plan::Multiplexing;
use onrush_engine::Instant;
use onrush_http::HeaderSlots;

use super::request::Forward;
use super::retry::record_retry;
use super::start_attempt::start_attempt;
use crate::exchange::downstream::Downstream;
use crate::limits::{UNPROCESSED_REPEATS_MAX, UNREAD_REST_MAX};
use crate::observe::in_flight::Stage;
use crate::proxy::download::ConnectionReuse;
use crate::proxy::failure::Failure;
use crate::proxy::group::Group;
use crate::proxy::lease::{Lease, Queued};
use crate::proxy::multiplexed::Submission;
use crate::proxy::progress::Progress;
use crate::proxy::stream::download::StreamDownload;
use crate::proxy::stream::upload::StreamUpload;
use crate::proxy::upload::run_both;

/// Sends the request on a stream and relays its response. Sends it again on another stream, once if the connection had
/// just been closed, and several times if the server did not process it. Returns the stream if it has become a tunnel.
pub(super) async fn exchange_on_streams(
    bounds: Multiplexing,
    forward: &mut Forward,
    client: &mut Downstream<'_>,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<Option<Submission>, Failure> {
    let lease = match forward.lease.take() {
        Some(Lease::Stream(request, queued)) => (request, queued),
        // The request had to wait for its reservation, or another server has failed.
        _ => submit(bounds, forward, client, to)?,
    };
    let mut outcome = on_stream(lease, (forward, bounds), client, to, progress).await;
    let mut repeats = 0;
    while let Err(failure) = &outcome
        && repeats < repeats_max(failure)
        && forward.is_repeatable_after(failure, progress)
    {
        repeats += 1;
        record_retry(failure, to.0.server(to.1), client);
        let lease = submit(bounds, forward, client, to)?;
        outcome = Box::pin(on_stream(lease, (forward, bounds), client, to, progress)).await;
    }
    outcome
}

/// Number of times a request is sent to the same server again after `failure` of a stream.
fn repeats_max(failure: &Failure) -> u32 {
    match failure {
        Failure::Unprocessed(_) => UNPROCESSED_REPEATS_MAX,
        _ => 1,
    }
}

/// Submits the request with the head from the client's input.
fn submit(
    bounds: Multiplexing,
    forward: &Forward,
    client: &Downstream<'_>,
    to: (&Rc<Group>, u32),
) -> Result<(Submission, Queued), Failure> {
    let mut slots = HeaderSlots::new();
    let head = client.head(&mut slots);
    let (arrived, context) = (client.received_body(), client.context());
    let submitted = forward.submit(&head, arrived, (to, bounds), context);
    submitted.map_err(Failure::Client)
}

/// Waits for the response on a stream and relays it.
async fn on_stream(
    mut lease: (Submission, Queued),
    (forward, bounds): (&mut Forward, Multiplexing),
    client: &mut Downstream<'_>,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<Option<Submission>, Failure> {
    if let Some(since) = lease.0.queued_since() {
        // Boxed: only requests that must wait need memory for it.
        lease = Box::pin(with_stream(lease, (forward, bounds, since), client, to)).await?;
    }
    let (request, queued) = lease;
    client.exchange.set_stage(Stage::Waiting);
    let Queued::Whole { body_bytes } = queued else {
        // Until then nothing was sent, and the request can go to another server.
        let opened = pin!(request.opened());
        client
            .unless_hung_up(opened)
            .await
            .map_err(Failure::Client)??;
        forward.consume_head(client);
        // Boxed: only requests whose body did not arrive with their head need memory for two directions at once.
        let streamed = Box::pin(stream_both_ways(&request, forward, client, to, progress));
        return streamed.await.map(|_| None);
    };
    progress.request_is_sent();
    let (attempt, _, reply) = start_attempt(forward, client, to, progress);
    let done = StreamDownload::new(attempt, &request, reply).run().await?;
    forward.consume(client, body_bytes);
    Ok((done == ConnectionReuse::Tunnel).then_some(request))
}

/// Waits until the request has a stream. If the connection stops accepting requests meanwhile, the request was not
/// sent; it is submitted again on another connection.
async fn with_stream(
    (mut request, mut queued): (Submission, Queued),
    (forward, bounds, since): (&Forward, Multiplexing, Instant),
    client: &mut Downstream<'_>,
    to: (&Rc<Group>, u32),
) -> Result<(Submission, Queued), Failure> {
    let by = (since + client.exchange.timeouts().queue).min(forward.until);
    while request.queued_since().is_some() {
        match has_stream(&request, client).await {
            Err(Failure::Unprocessed(_)) if client.worker.core.now() < by => {
                (request, queued) = submit(bounds, forward, client, to)?;
                if request.queued_since().is_some() {
                    request.set_deadline(by);
                }
            }
            has_stream => {
                has_stream?;
                break;
            }
        }
    }
    Ok((request, queued))
}

/// Waits until the request has a stream, with the time counted as in the queue of its group.
async fn has_stream(request: &Submission, client: &mut Downstream<'_>) -> Result<(), Failure> {
    let core = client.worker.core.clone();
    let since = request.queued_since().unwrap_or(core.now());
    client.exchange.set_stage(Stage::Queued);
    let opened = pin!(request.opened());
    let opened = client.unless_hung_up(opened).await;
    client.exchange.record_queue_time(core.now().since(since));
    opened.map_err(Failure::Client)?
}

/// Sends the body of a request whose head is written, and relays the response at the same time.
async fn stream_both_ways(
    request: &Submission,
    forward: &Forward,
    client: &mut Downstream<'_>,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<ConnectionReuse, Failure> {
    client.discard_body(UNREAD_REST_MAX);
    let (attempt, body, reply) = start_attempt(forward, client, to, progress);
    if !forward.expects_continue {
        progress.body_started();
    }
    progress.body_left(body.remaining());
    let mut up = StreamUpload::new(attempt, request, body);
    let mut down = StreamDownload::new(attempt, request, reply);
    run_both(up.run(), down.run(), progress).await
}
