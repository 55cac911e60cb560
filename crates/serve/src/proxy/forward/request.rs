//! A request to be forwarded, and the connection or stream that carries it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::plan::{Multiplexing, Reuse, UpstreamProtocol};
use onrush_engine::{Core, Error, Instant};
use onrush_http::forwarded::Scheme;
use onrush_http::hop::accepts_trailers;
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, HeaderSlots, Method, Version};
use onrush_tls::Transport;

use crate::exchange::Exchange;
use crate::exchange::downstream::Downstream;
use crate::exchange::downstream::request_body::ReceivedBody;
use crate::exchange::request_context::RequestContext;
use crate::exchange::websocket::Accept;
use crate::proxy::ejection::Purpose;
use crate::proxy::group::{Group, NO_DEADLINE, Reservation, Server};
use crate::proxy::lease::{Lease, Queued};
use crate::proxy::multiplexed::{self, Body, RequestTimeouts, Submission};
use crate::proxy::{rewrite, upgrade};
use crate::rules::compress::AcceptedCompression;
use crate::rules::error_page::ErrorFormat;
use crate::worker::admit::key::Key;

/// A request to be forwarded. Its head stays in the client's input as long as the request may have to be sent again.
///
/// The fields are small because this is part of every connection's memory.
pub(crate) struct Forward {
    pub(super) reservation: Option<Reservation>,
    /// The carrier, if the request has already been sent or queued. It is rendered while the parsed head is available,
    /// because parsing the head again would cost as much as the rest of the rewriting.
    pub(super) lease: Option<Lease>,
    /// The hash key of the request, for groups that balance by it.
    pub(super) key: u64,
    /// Index of the server in the client's stickiness cookie.
    pub(crate) sticks_to: u32,
    /// Deadline of the whole exchange.
    pub(super) until: Instant,
    pub(crate) sent: Cell<Instant>,
    pub(super) seldom: Option<Box<UncommonForwardState>>,
    /// Number of retries counted against `retries.count`.
    pub(super) attempts: Cell<u8>,
    pub(crate) purpose: Purpose,
    pub(super) group: Rc<Group>,
    pub(super) method: Method,
    pub(super) framing: Framing,
    /// Scheme of the request, in groups with stickiness.
    pub(crate) scheme: Scheme,
    /// Whether the client waits for 100 (Continue) before it sends the body.
    pub(super) expects_continue: bool,
    /// Format of error responses that the client prefers, if it may be needed after the head is gone.
    pub(crate) form: ErrorFormat,
    /// The compression that the client accepts, if the route compresses.
    pub(crate) wish: AcceptedCompression,
    /// Whether the head has left the client's input, so that the request cannot be repeated.
    pub(super) is_consumed: bool,
    /// Whether this is the first request on the client's connection.
    is_first: bool,
    /// Whether it asks for a tunnel. It then has a new connection of its own, which is not reused, or a stream.
    pub(super) asks_for_tunnel: bool,
    /// Whether the client accepts trailers; always false if the upstream servers do not use HTTP/2.
    pub(crate) takes_trailers: bool,
}

/// Rarely needed state.
#[derive(Default)]
pub(super) struct UncommonForwardState {
    /// Servers that have failed the request.
    pub(super) tried: Vec<u32>,
    /// Expected Sec-WebSocket-Accept of a request for a tunnel: checked in the server's response if the client uses
    /// HTTP/2, or sent to the client if the server uses HTTP/2.
    pub(super) accept: Option<Accept>,
}

/// Destination of a request.
#[derive(Debug)]
pub(crate) struct ForwardTarget {
    pub(crate) group: Rc<Group>,
    pub(crate) is_first: bool,
    pub(crate) key: u64,
}

impl Forward {
    /// Prepares the request with this head, and chooses a server and sends it if that needs no waiting.
    ///
    /// # Errors
    /// If the core is out of buffers.
    pub(crate) fn new(
        context: RequestContext<'_>,
        way: ForwardTarget,
        head: &RequestHead<'_, '_>,
        arrived: ReceivedBody<'_>,
    ) -> Result<Self, Error> {
        let worker = context.worker;
        let group = &way.group;
        let now = worker.core.now();
        let asks_for_tunnel = upgrade::is_tunnel_request(head);
        let is_judged_here = head.version == Version::Http2 || group.speaks_http2();
        let mut forward = Self {
            reservation: None,
            lease: None,
            key: way.key,
            sticks_to: group.sticky_server(head),
            until: match context.exchange.timeouts().request {
                Some(timeout) => now + timeout,
                None => NO_DEADLINE,
            },
            sent: Cell::default(),
            seldom: (asks_for_tunnel && is_judged_here).then(|| {
                Box::new(UncommonForwardState {
                    accept: Some(upgrade::accept(head)),
                    ..UncommonForwardState::default()
                })
            }),
            attempts: Cell::new(0),
            purpose: Purpose::Ordinary,
            group: Rc::clone(group),
            method: head.method,
            framing: head.framing,
            scheme: match group.plan.sticky {
                Some(_) => context.scheme(head.headers),
                None => Scheme::Http,
            },
            expects_continue: head.expect_continue,
            form: match head.framing != Framing::None || context.exchange.may_intercept() {
                true => ErrorFormat::of(head.headers),
                false => ErrorFormat::Text,
            },
            wish: context
                .exchange
                .offer()
                .map_or(AcceptedCompression::default(), |offer| {
                    AcceptedCompression::of(head, offer)
                }),
            is_consumed: false,
            is_first: way.is_first,
            asks_for_tunnel,
            takes_trailers: group.speaks_http2() && accepts_trailers(head.headers),
        };
        group.count_request(now);
        let reserve = || {
            group
                .reserve_on(forward.sticks_to)
                .or_else(|| group.reserve_trial(head.method, now))
                .map_or_else(|| group.reserve_first(head.method, way.key, now), Ok)
        };
        if let Ok(reservation) = group.reserve_for(client_of(group, head, context), reserve) {
            forward.purpose = reservation.purpose();
            let server = reservation.server();
            context
                .exchange
                .begin_attempt(server, || server.address(), worker);
            forward.lease = forward.send_at_once(&reservation, group, head, arrived, context)?;
            forward.reservation = Some(reservation);
        }
        Ok(forward)
    }

    /// Sends the request on an existing connection, if one may be used.
    fn send_at_once(
        &self,
        reservation: &Reservation,
        group: &Rc<Group>,
        head: &RequestHead<'_, '_>,
        arrived: ReceivedBody<'_>,
        context: RequestContext<'_>,
    ) -> Result<Option<Lease>, Error> {
        let server = reservation.server();
        let to = (group, reservation.index());
        if let UpstreamProtocol::Http2(bounds) = group.plan.protocol {
            let (request, queued) = self.submit(head, arrived, (to, bounds), context)?;
            return Ok(Some(Lease::Stream(request, queued)));
        }
        let Some(transport) = self.take_idle(group, server) else {
            return Ok(None);
        };
        let queued = queue_request(head, arrived, &transport, server, context)?;
        Ok(Some(Lease::Exclusive(transport, queued)))
    }

    /// Submits the request on a stream to a server, within `bounds`.
    ///
    /// # Errors
    /// If the core is out of buffers.
    pub(super) fn submit(
        &self,
        head: &RequestHead<'_, '_>,
        arrived: ReceivedBody<'_>,
        (to, bounds): ((&Rc<Group>, u32), Multiplexing),
        context: RequestContext<'_>,
    ) -> Result<(Submission, Queued), Error> {
        let worker = context.worker;
        let mut text = worker.core.buffer()?;
        let authority = &to.0.server(to.1).authority;
        rewrite::request(head, authority, context, &mut text);
        let payload = match head.framing {
            _ if self.asks_for_tunnel => None,
            Framing::None | Framing::Length(0) => Some((Vec::new(), 0)),
            Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {
                arrived.payload(&worker.limits)
            }
        };
        let (body, queued) = match payload {
            // The following bytes belong to the tunnel, if the server grants it.
            None if self.asks_for_tunnel => (Body::Follows, Queued::Whole { body_bytes: 0 }),
            None => (Body::Follows, Queued::Head),
            Some((payload, bytes)) => {
                let body_bytes = bytes as u32; // of one receive
                let body = match payload.is_empty() {
                    true => Body::None,
                    false => Body::Whole(payload),
                };
                (body, Queued::Whole { body_bytes })
            }
        };
        let timeouts = context.exchange.timeouts();
        self.record_sent(&worker.core);
        let request = multiplexed::Request {
            text: &text,
            method: self.sent_method(),
            sensitivity: head.sensitivity,
            body,
            patience: RequestTimeouts {
                settings: timeouts.connect,
                stream: timeouts.queue,
                response: timeouts.upstream_first_byte,
                until: self.until,
            },
        };
        Ok((Lease::stream(to, bounds, request, worker), queued))
    }

    /// The stream of a request that was sent completely, so that nothing is to be done before its response arrives.
    pub(crate) fn awaits_response(&self) -> Option<&Submission> {
        match &self.lease {
            Some(Lease::Stream(request, Queued::Whole { .. })) if request.is_awaited() => {
                Some(request)
            }
            _ => None,
        }
    }

    /// Sets the server in the exchange's record.
    pub(crate) fn assign_server(&self, exchange: &Exchange) {
        if let Some(reservation) = &self.reservation {
            exchange.set_server(reservation.shared_server());
        }
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    /// `wait` from now, limited by the deadline of the exchange.
    pub(crate) fn deadline(&self, core: &Core, wait: Duration) -> Instant {
        (core.now() + wait).min(self.until)
    }

    /// As `deadline`, from an exact reading of the clock.
    pub(super) fn deadline_exact(&self, core: &Core, wait: Duration) -> Instant {
        (core.now_exact() + wait).min(self.until)
    }

    pub(super) fn tried(&self) -> &[u32] {
        self.seldom.as_ref().map_or(&[], |it| &it.tried)
    }

    /// Consumes the request's head from the client's input.
    pub(super) fn consume_head(&mut self, client: &mut Downstream<'_>) {
        client.release_head();
        self.is_consumed = true;
    }

    /// Consumes the whole request; `bytes` of its body arrived with the head.
    pub(super) fn consume(&mut self, client: &mut Downstream<'_>, bytes: u32) {
        client.release_request(bytes);
        self.is_consumed = true;
    }

    /// Takes an idle connection to `server`, if the request may use one.
    pub(super) fn take_idle(&self, group: &Group, server: &Server) -> Option<Transport> {
        self.may_reuse(group).then(|| server.pool.take())?
    }

    /// Whether the request may use an idle connection, which the server may be closing at this moment.
    fn may_reuse(&self, group: &Group) -> bool {
        match group.plan.reuse {
            _ if self.asks_for_tunnel => false,
            Reuse::Always => true,
            Reuse::Safe => {
                !self.is_first || (self.method.is_idempotent() && self.framing == Framing::None)
            }
            Reuse::Never => false,
        }
    }

    /// Whether the connection may be used by other requests afterwards.
    pub(super) fn leaves_reusable(&self, group: &Group) -> bool {
        group.plan.reuse != Reuse::Never && !self.asks_for_tunnel
    }

    pub(super) fn error_form(&self, client: &Downstream<'_>) -> ErrorFormat {
        match self.is_consumed {
            true => self.form,
            false => ErrorFormat::of(client.head(&mut HeaderSlots::new()).headers),
        }
    }

    /// Key of the client, if the capacity of the group is limited.
    pub(super) fn client(&self, group: &Group, client: &Downstream<'_>) -> Option<Key> {
        if self.is_consumed || !group.has_shares() {
            return None;
        }
        let mut slots = HeaderSlots::new();
        let head = client.head(&mut slots);
        client_of(group, &head, client.context())
    }

    /// Records that the request leaves now. Latency is measured with the time of the core's turn: at the response, an
    /// exact reading would be the time when it is processed, not when it arrived.
    pub(crate) fn record_sent(&self, core: &Core) {
        self.sent.set(core.now());
    }
}

/// Key of a request's client, if the capacity of the group is limited. `None` if the client is unknown: on a Unix
/// socket, or with a trusted proxy that does not forward addresses.
fn client_of(
    group: &Group,
    head: &RequestHead<'_, '_>,
    context: RequestContext<'_>,
) -> Option<Key> {
    if !group.has_shares() {
        return None;
    }
    let address = context.address(head.headers)?;
    let is_of_many = context.is_trusted() && context.peer() == Some(address);
    (!is_of_many).then(|| group.client(address, context.worker))
}

/// Queues the head for the server, with the body if it has arrived completely.
pub(super) fn queue_request(
    head: &RequestHead<'_, '_>,
    arrived: ReceivedBody<'_>,
    stream: &Transport,
    server: &Server,
    context: RequestContext<'_>,
) -> Result<Queued, Error> {
    let worker = context.worker;
    let mut buffer = worker.core.buffer()?;
    rewrite::request(head, &server.authority, context, &mut buffer);
    let keeps = |name: &[u8]| context.exchange.request_keeps(name);
    // The upload reports a malformed body.
    let queued = match arrived.put_whole(&mut buffer, &worker.limits, &keeps) {
        Some(bytes) => Queued::Whole {
            body_bytes: bytes as u32,
        },
        None => Queued::Head,
    };
    stream.queue(buffer);
    Ok(queued)
}

/// The client in the PROXY protocol header of a connection to a server, if configured.
pub(super) fn origin(group: &Group, client: &Downstream<'_>) -> Origin<'static> {
    if group.plan.proxy_protocol.is_none() {
        return Origin::Local;
    }
    let mut slots = HeaderSlots::new();
    let head = client.head(&mut slots);
    client.context().proxy_header_origin(head.headers)
}
