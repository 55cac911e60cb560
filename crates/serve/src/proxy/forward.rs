//! Forwards a request to a server and relays its response.
//!
//! ```text
//!   client ── head ──> rewrite ──> server          client <── rewrite <── head ── server
//!          ── body ──> upload  ──>                        <── relay   <── body ──
//! ```
//! Bodies stream in both directions at once and are never held whole; a buffer that arrives is the buffer that leaves.

pub(crate) mod complete_response;
mod record_failure;
pub(crate) mod request;
mod retry;
mod start_attempt;
mod stream;
mod tunnel;

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::UpstreamProtocol;
use onrush_engine::Error;
use onrush_http::HeaderSlots;
use onrush_http::http2::code::Code;
use onrush_tls::Transport;

use self::record_failure::account;
use self::request::{Forward, origin, queue_request};
use self::retry::record_retry;
use self::start_attempt::start_attempt;
use self::stream::exchange_on_streams;
use super::download::{ConnectionReuse, Download};
use super::failure::Failure;
use super::group::{Group, Reservation, Server};
use super::lease::{Exclusive, Lease, Queued};
use super::multiplexed::TunnelStream;
use super::progress::{Progress, ResponseSide};
use super::tunnel::{ServerEnd, Tunnel};
use super::unavailable::Unavailable;
use super::upload::{Upload, run_both};
use crate::exchange::downstream::Downstream;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::Persistence;
use crate::limits::UNREAD_REST_MAX;
use crate::observe::in_flight::Stage;
use crate::worker::Worker;
use crate::worker::admit::key::Key;

/// Forwards a request and relays the response. Afterwards the client has a response, or its connection ends within one,
/// or a tunnel is returned that the caller must run.
///
/// # Errors
/// If the client disconnected.
pub(crate) async fn exchange(
    forward: &mut Forward,
    mut client: Downstream<'_>,
) -> Result<Option<Box<Tunnel>>, Error> {
    let client = &mut client;
    if client.has_unsent() {
        client.flush().await?;
    }
    let worker = Rc::clone(client.worker);
    let group = Rc::clone(&forward.group);
    let progress = Progress::default();
    loop {
        let reservation = match forward.reservation.take() {
            Some(reservation) => reservation,
            // Boxed: only requests that must wait need memory for it.
            None => {
                let queue = client.exchange.timeouts().queue;
                let of_client = forward.client(&group, client);
                let found = Box::pin(reserve(forward, &group, of_client, &worker, queue));
                let since = worker.core.now();
                client.exchange.set_stage(Stage::Queued);
                let found = client.unless_hung_up(found).await?;
                client
                    .exchange
                    .record_queue_time(worker.core.now().since(since));
                match found {
                    Ok(reservation) => reservation,
                    Err(unavailable) => {
                        let failure = Failure::Unavailable(unavailable);
                        fail(forward, client, &group.plan.name, &progress, failure)?;
                        return Ok(None);
                    }
                }
            }
        };
        forward.purpose = reservation.purpose();
        let failure = match try_on(&reservation, forward, client, &group, &progress).await {
            Ok(None) => return Ok(None),
            Ok(Some(server)) => {
                return Ok(Some(Box::new(Tunnel::new(reservation, server))));
            }
            Err(failure) => failure,
        };
        let now = worker.core.now();
        client
            .exchange
            .fail_attempt(failure.class_without_status(), &worker);
        let outcome = progress.outcome.take();
        if !forward.failed_by_deadline(&failure, now) {
            let timeouts = client.exchange.timeouts();
            group.failed(&reservation, (&failure, outcome), timeouts, &worker);
        }
        if !forward.should_retry(&failure, &group, reservation.index(), &progress, now) {
            let name = reservation.server().label();
            fail(forward, client, &name, &progress, failure)?;
            return Ok(None);
        }
        client.exchange.retries(failure.class());
        progress.restart_exchange();
        let seldom = forward.seldom.get_or_insert_default();
        seldom.tried.push(reservation.index());
    }
}

async fn reserve(
    forward: &Forward,
    group: &Rc<Group>,
    client: Option<Key>,
    worker: &Worker,
    queue: Duration,
) -> Result<Reservation, Unavailable> {
    let until = forward.deadline(&worker.core, queue);
    let wanted = (forward.key, forward.tried());
    group
        .reserve_or_wait(forward.method, wanted, client, &worker.core, until)
        .await
}

/// Sends the request to the server of `reservation` and relays its response. Returns the server's end of a tunnel.
async fn try_on(
    reservation: &Reservation,
    forward: &mut Forward,
    client: &mut Downstream<'_>,
    group: &Rc<Group>,
    progress: &Progress,
) -> Result<Option<ServerEnd>, Failure> {
    let server = reservation.server();
    let to = (group, reservation.index());
    client.exchange.set_server(reservation.shared_server());
    client
        .exchange
        .begin_attempt(server, || server.address(), client.worker);
    if let UpstreamProtocol::Http2(bounds) = group.plan.protocol {
        let core = client.worker.core.clone();
        let streams = exchange_on_streams(bounds, forward, client, to, progress);
        let tunnel = core.in_block(streams).await?;
        return Ok(tunnel.map(|stream| ServerEnd::Stream(TunnelStream::new(stream))));
    }
    let (mut idle, mut queued) = match forward.lease.take() {
        Some(Lease::Exclusive(transport, queued)) => (Some(transport), Some(queued)),
        Some(Lease::Stream(..)) => unreachable!("its group has streams alone"),
        // The request had to wait for its reservation, or another server has failed.
        None => (forward.take_idle(group, server), None),
    };
    loop {
        let is_reused = idle.is_some();
        let transport = match idle.take() {
            Some(transport) => transport,
            None => connect(forward, client, group, server).await?,
        };
        let queued = match queued.take() {
            Some(queued) => queued,
            None => queue_again(client, &transport, server).map_err(Failure::Client)?,
        };
        client.exchange.set_stage(Stage::Waiting);
        let mut link = Exclusive::new(transport);
        forward.record_sent(&client.worker.core);
        match attempt(forward, client, &mut link, queued, to, progress).await {
            Ok(ConnectionReuse::Tunnel) => {
                return Ok(Some(ServerEnd::Connection(link.transport, link.input)));
            }
            Ok(ConnectionReuse::Reusable) if forward.leaves_reusable(group) => {
                link.return_to_pool(server, client.worker.core.now());
                return Ok(None);
            }
            Ok(ConnectionReuse::Reusable | ConnectionReuse::Spent) => return Ok(None),
            Err(failure) if is_reused && forward.is_repeatable_after_reuse(&failure, progress) => {
                record_retry(&failure, server, client);
            }
            Err(failure) => {
                failure.reset_if_client_gone(&link.transport);
                return Err(failure);
            }
        }
    }
}

async fn connect(
    forward: &Forward,
    client: &mut Downstream<'_>,
    group: &Group,
    server: &Server,
) -> Result<Transport, Failure> {
    let origin = origin(group, client);
    let by = forward.deadline_exact(&client.worker.core, client.exchange.timeouts().connect);
    let times = (by, forward.until);
    let connected = pin!(group.connect_by(server, &origin, client.worker, times));
    let since = client.worker.core.now();
    client.exchange.set_stage(Stage::Connecting);
    let connected = client.unless_hung_up(connected).await;
    let waited = client.worker.core.now().since(since);
    client.exchange.record_connect_time(waited);
    connected
        .map_err(Failure::Client)?
        .map_err(Failure::Connect)
}

/// Sends the request over `link` and relays the response.
async fn attempt(
    forward: &mut Forward,
    client: &mut Downstream<'_>,
    link: &mut Exclusive,
    queued: Queued,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<ConnectionReuse, Failure> {
    let body_bytes = match queued {
        Queued::Whole { body_bytes } => body_bytes,
        Queued::Head => {
            forward.consume_head(client);
            // Boxed: only requests whose body did not arrive with their head need memory for two directions at once.
            return Box::pin(exchange_streaming(forward, client, link, to, progress)).await;
        }
    };
    let (attempt, _, reply) = start_attempt(forward, client, to, progress);
    let mut download = Download {
        attempt,
        server: &link.transport,
        server_input: &mut link.input,
        reply,
    };
    let done = download.send_and_run().await?;
    forward.consume(client, body_bytes);
    Ok(done)
}

/// [`queue_request`] with the head from the client's input.
fn queue_again(
    client: &Downstream<'_>,
    stream: &Transport,
    server: &Server,
) -> Result<Queued, Error> {
    let mut slots = HeaderSlots::new();
    let head = client.head(&mut slots);
    queue_request(
        &head,
        client.received_body(),
        stream,
        server,
        client.context(),
    )
}

/// Sends the body of a request whose head is queued, and relays the response at the same time.
async fn exchange_streaming(
    forward: &Forward,
    client: &mut Downstream<'_>,
    link: &mut Exclusive,
    to: (&Rc<Group>, u32),
    progress: &Progress,
) -> Result<ConnectionReuse, Failure> {
    client.discard_body(UNREAD_REST_MAX);
    let (attempt, body, reply) = start_attempt(forward, client, to, progress);
    if !forward.expects_continue {
        progress.body_started();
    }
    progress.body_left(body.remaining());
    let mut up = Upload {
        attempt,
        body,
        server: &link.transport,
    };
    let mut down = Download {
        attempt,
        server: &link.transport,
        server_input: &mut link.input,
        reply,
    };
    run_both(up.run(), down.run(), progress).await
}

/// Reports a missing or incomplete response to the client, the log and the record.
fn fail(
    forward: &mut Forward,
    client: &mut Downstream<'_>,
    name: &str,
    progress: &Progress,
    failure: Failure,
) -> Result<(), Error> {
    if let Failure::Client(error) = failure {
        return Err(error);
    }
    let code = failure
        .code()
        .filter(|_| client.has_streams() && Forward::is_reported_by_code(&failure, progress));
    let status = failure
        .status()
        .filter(|_| progress.response() < ResponseSide::Begun && code.is_none());
    account(
        client.worker,
        client.exchange.record(),
        name,
        status,
        failure,
    );
    let Some(status) = status else {
        client.cut_off(code.unwrap_or(Code::INTERNAL_ERROR));
        return Ok(());
    };
    let form = forward.error_form(client);
    let is_read = match forward.is_consumed {
        true => client.split(forward.method).0.is_complete(),
        false => {
            forward.consume_head(client);
            client.skip_body()
        }
    };
    // The rest of the body may be long, may never arrive, or may be malformed.
    let is_readable = !matches!(failure, Failure::BadRequest(_)) && progress.rest_is_short();
    let mut reply = client.reply(
        forward.method,
        match is_read || is_readable {
            true => Persistence::AsRequested,
            false => Persistence::Close,
        },
    );
    let what = (status, failure.reason());
    refuse(what, failure.fields(), form, &mut reply)?;
    reply.end()
}
