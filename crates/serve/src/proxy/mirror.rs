//! Mirroring: copies of requests to another group, whose responses are discarded, to test a new version of an
//! application with real traffic.
//!
//! The original request does not depend on its copy. Only requests that have arrived completely are copied, because a
//! streamed body would wait for the slower server. A copy never waits for capacity, and failures are only logged.

mod stream;

use std::cell::Cell;
use std::rc::Rc;

use onrush_config::plan::{Mirror, Reuse, UpstreamProtocol};
use onrush_engine::random::scaled;
use onrush_engine::{Error, Input, Instant, Kind};
use onrush_http::body::BodyReader;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, HeaderSlots, Method, Parsed, response};
use onrush_tls::Transport;

use super::ejection::{Outcome, Purpose};
use super::failure::Failure;
use super::group::{Group, NO_DEADLINE, Reservation};
use super::hash_key::hash_key;
use super::{rewrite, upgrade};
use crate::exchange::downstream::request_body::ReceivedBody;
use crate::exchange::request_context::RequestContext;
use crate::limits::{MIRROR_RESPONSE_BYTES_MAX, MIRRORED_MAX, SERVERS_TRIED_MAX};
use crate::observe::meter::MirrorOutcome;
use crate::observe::work::MIRROR;
use crate::worker::Worker;

/// A copy in progress, counted on its core until it is dropped.
struct MirroredRequest {
    worker: Rc<Worker>,
    group: Rc<Group>,
    reservation: Reservation,
    /// Outcome of the copy if the rest of its response arrives.
    outcome: Cell<Option<Outcome>>,
    key: u64,
    /// Head and body.
    request: Rc<[u8]>,
    /// The body without framing, for HTTP/2 servers.
    payload: Vec<u8>,
    method: Method,
    sensitivity: Sensitivity,
    origin: Origin<'static>,
}

/// Sends a copy of the request with this head to `group`, if it is selected and can be copied.
pub(crate) fn mirror_request(
    (mirror, group): (Mirror, &Rc<Group>),
    head: &RequestHead<'_, '_>,
    arrived: ReceivedBody<'_>,
    context: RequestContext<'_>,
) {
    let worker = context.worker;
    // A copy must not open a tunnel.
    if upgrade::is_tunnel_request(head) || !is_chosen(mirror.share, worker.random.bits()) {
        return;
    }
    let keeps = |name: &[u8]| context.exchange.request_keeps(name);
    let Some(body) = arrived.whole(&worker.core, &worker.limits, &keeps) else {
        return worker.meter.mirrored(MirrorOutcome::Skipped);
    };
    let payload = match group.plan.protocol {
        UpstreamProtocol::Http1 => Some(Vec::new()),
        // Requests with trailers are not copied.
        UpstreamProtocol::Http2(_) => arrived.payload(&worker.limits).map(|(payload, _)| payload),
    };
    let Some(payload) = payload else {
        return worker.meter.mirrored(MirrorOutcome::Skipped);
    };
    let name = &group.plan.name;
    if worker.mirrored.get() >= MIRRORED_MAX {
        worker.meter.mirrored(MirrorOutcome::Dropped);
        let what =
            format_args!("{name} got no copy: {MIRRORED_MAX} copies are in flight (the limit)");
        return worker.log.failure(&worker.core, what);
    }
    let key = hash_key(group, head, context);
    let now = worker.core.now();
    // No client waits for a copy, so a server's trial may be a copy with any method.
    let trial = group.reserve_trial(Method::Get, now);
    let reservation = match trial.map_or_else(|| group.reserve(key, &[], now), Ok) {
        Ok(reservation) => reservation,
        Err(unavailable) => {
            worker.meter.mirrored(MirrorOutcome::Dropped);
            let why = Failure::Unavailable(unavailable);
            let what = format_args!("{name} got no copy: {why}");
            return worker.log.failure(&worker.core, what);
        }
    };
    // Out of buffers: leave the remaining ones to the original request.
    let Ok(mut buffer) = worker.core.buffer() else {
        return worker.meter.mirrored(MirrorOutcome::Dropped);
    };
    rewrite::request(head, &reservation.server().authority, context, &mut buffer);
    worker.mirrored.set(worker.mirrored.get() + 1);
    let duplicate = MirroredRequest {
        worker: worker.self_rc(),
        group: Rc::clone(group),
        reservation,
        outcome: Cell::default(),
        key,
        request: [&buffer[..], &body[..]].concat().into(),
        payload,
        method: head.method,
        sensitivity: head.sensitivity,
        origin: context.proxy_header_origin(head.headers),
    };
    worker.spawn_background(MIRROR, duplicate.run());
}

/// Whether a request is selected, from 64 uniform bits; `share` is out of 10,000.
fn is_chosen(share: u16, chance: u64) -> bool {
    scaled(chance, 10_000) < u64::from(share)
}

impl Drop for MirroredRequest {
    fn drop(&mut self) {
        let mirrored = &self.worker.mirrored;
        mirrored.set(mirrored.get() - 1);
    }
}

impl MirroredRequest {
    /// Sends the copy. If a server cannot be connected to, tries the next one.
    async fn run(mut self) {
        let mut tried = Vec::new();
        loop {
            let (group, worker) = (&self.group, &self.worker);
            let Err(failure) = self.exchange().await else {
                if let Some(outcome) = self.outcome.take() {
                    group.ended(self.at(), outcome, worker);
                }
                return worker.meter.mirrored(MirrorOutcome::Answered);
            };
            let core = &worker.core;
            if core.is_stopping() {
                return worker.meter.mirrored(MirrorOutcome::Dropped);
            }
            let failed = (&failure, self.outcome.take());
            group.failed(&self.reservation, failed, &group.timeouts, worker);
            let retries = &self.group.plan.retries;
            tried.push(self.reservation.index());
            let next = match failure {
                Failure::Connect(_)
                    if retries.count > 0
                        && retries.on.connect
                        && tried.len() < SERVERS_TRIED_MAX =>
                {
                    self.group.reserve(self.key, &tried, core.now()).ok()
                }
                _ => None,
            };
            let Some(next) = next else {
                let name = self.reservation.server().label();
                worker.meter.mirrored(MirrorOutcome::Failed);
                let what = format_args!("server {name}: {failure} (for a copy of a request)");
                return self.worker.log.failure(core, what);
            };
            self.reservation = next;
        }
    }

    async fn exchange(&self) -> Result<(), Failure> {
        let server = self.reservation.server();
        if let UpstreamProtocol::Http2(bounds) = self.group.plan.protocol {
            return self.attempt_on_stream(bounds).await;
        }
        if self.group.plan.reuse == Reuse::Always
            && let Some(transport) = server.pool.take()
        {
            match self.attempt(transport).await {
                // The server closed the idle connection, or sent bytes after its last response: see `forward`.
                Err(failure)
                    if self.method.is_idempotent()
                        && (failure.is_stale_connection()
                            || matches!(failure, Failure::BadResponse(_))) => {}
                outcome => return outcome,
            }
        }
        let transport = self
            .group
            .connect(server, &self.origin, &self.worker, NO_DEADLINE)
            .await
            .map_err(Failure::Connect)?;
        self.attempt(transport).await
    }

    /// Sends the copy, and reads the response if that makes the connection reusable.
    async fn attempt(&self, transport: Transport) -> Result<(), Failure> {
        let (core, timeouts) = (&self.worker.core, &self.group.timeouts);
        transport.set_send_patience(timeouts.upstream_body);
        transport.queue(Rc::clone(&self.request));
        transport.flush().await.map_err(Failure::NoResponse)?;
        let sent = core.now_exact();
        transport.set_deadline(Some(core.now() + timeouts.upstream_first_byte));
        let mut input = Input::default();
        let (framing, keep_alive) = loop {
            if let Some(end) = self.read_head(&mut input, sent)? {
                break end;
            }
            match receive(&transport, &mut input).await {
                Ok(0) => return Err(Failure::Closed),
                Ok(_) => {}
                Err(error) => return Err(Failure::NoResponse(error)),
            }
        };
        let mut body = BodyReader::of_response(framing);
        let mut seen = 0;
        loop {
            let bytes = body
                .skip(input.bytes(), &self.worker.limits)
                .map_err(|refusal| Failure::BadResponse(refusal.into()))?;
            input.consume(bytes);
            seen += bytes;
            if body.is_complete() {
                break;
            }
            // The rest is not needed.
            if seen > MIRROR_RESPONSE_BYTES_MAX {
                return Ok(());
            }
            transport.set_deadline(Some(core.now() + timeouts.upstream_body));
            match receive(&transport, &mut input).await {
                Ok(1..) => {}
                Ok(0) if body.end_of_input().is_ok() => return Ok(()),
                Ok(0) => return Err(Failure::Cut("it closed the connection".into())),
                Err(error) => return Err(Failure::NoResponse(error).into_cut()),
            }
        }
        if keep_alive && input.is_empty() && self.group.plan.reuse != Reuse::Never {
            self.reservation.server().pool.put(transport, core.now());
        }
        Ok(())
    }

    /// Consumes heads up to the final one. Returns its framing and persistence; `None` if it has not arrived.
    fn read_head(
        &self,
        input: &mut Input,
        sent: Instant,
    ) -> Result<Option<(Framing, bool)>, Failure> {
        loop {
            let mut slots = HeaderSlots::new();
            let limits = &self.worker.limits;
            let head = match response::parse(input.bytes(), &mut slots, self.method, limits) {
                Parsed::Complete(head) => head,
                Parsed::Partial => return Ok(None),
                Parsed::Refused(refusal) => return Err(Failure::BadResponse(refusal.into())),
            };
            let (status, bytes) = (head.status, head.bytes);
            let end = (head.framing, head.keep_alive);
            input.consume(bytes);
            if status < 200 {
                continue;
            }
            self.responded(status, sent);
            return Ok(Some(end));
        }
    }

    /// Records the head of the final response to the request sent at `sent`.
    fn responded(&self, status: u16, sent: Instant) {
        let purpose = self.reservation.purpose();
        if self.group.records_outcomes(purpose, status) {
            let latency = self.worker.core.now_exact().since(sent);
            let outcome = (self.group).responded(self.at(), status, latency, &self.worker);
            self.outcome.set(outcome);
        }
    }

    fn at(&self) -> (u32, Purpose) {
        (self.reservation.index(), self.reservation.purpose())
    }
}

/// Receives bytes; returns 0 if the core is stopping.
async fn receive(transport: &Transport, input: &mut Input) -> Result<usize, Error> {
    match transport.recv_unless_stopping(input).await {
        Err(error) if error.kind == Kind::Stopping => Ok(0),
        received => received,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirror_share_is_per_ten_thousand() {
        for (share, chosen) in [(0, 0), (1, 1), (2_500, 2_500), (10_000, 10_000)] {
            let step = u64::MAX / 10_000;
            let count = (0..10_000)
                .filter(|at| is_chosen(share, at * step + step / 2))
                .count();
            assert_eq!(count, chosen);
        }
    }
}
