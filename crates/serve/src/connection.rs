//! A client connection from accept to close.
//!
//! The task receives, responds to every complete request, sends, and repeats. An accepted socket is read at once,
//! because its first request has usually arrived. Responses are sent in one call when no complete request is left, or
//! when four buffers are full.

pub(crate) mod ending;
pub(crate) mod listen;
pub(crate) mod target_client;

mod graceful_close;
mod http2;
mod next;

use std::cell::OnceCell;
use std::rc::Rc;

use onrush_config::plan::HttpVersions;
use onrush_engine::{Error, Input, Kind};
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Refusal};
use onrush_tls::Transport;

use self::next::{NextProtocol, NextStep};
use crate::dispatch::route_action::{DispatchResult, respond};
use crate::exchange::access::password_verifier::{Outcome, Pending};
use crate::exchange::downstream::http1::{Http1, Request};
use crate::exchange::downstream::request_body::ReceivedBody;
use crate::exchange::downstream::{ClientProtocol, Downstream};
use crate::exchange::refuse::refuse;
use crate::exchange::reply::Persistence;
use crate::exchange::reply::http1::Ending;
use crate::exchange::request_context::Source;
use crate::exchange::{Exchange, NOT_YET};
use crate::observe::record::RequestEnd;
use crate::observe::work::{CLIENT, SERVER, TUNNEL};
use crate::proxy::forward;
use crate::routing::client::Client;
use crate::rules::error_page::ErrorFormat;
use crate::site::Site;
use crate::site::service::Service;
use crate::worker::Worker;
use crate::worker::connections::{self, ConnectionState, note};

/// A client's HTTP/1 connection and its state.
pub(crate) struct Connection {
    service: Rc<Service>,
    client: Client,
    exchange: Exchange,
    side: Http1,
    /// No request has been forwarded yet.
    is_first: bool,
    /// HTTP versions of its listener.
    versions: HttpVersions,
}

/// The client's next bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Body,
    /// The rest of a head.
    Head,
    Request,
}

/// Serves the `client` of `stream`, accepted by `listener` with these HTTP versions, until either side ends the
/// connection. `input` has already been received; `counted` is dropped at the end.
///
/// Not an `async fn`, which would also store its arguments: this future takes most of an idle connection's memory.
pub(crate) fn serve(
    (stream, versions): (Transport, HttpVersions),
    input: Input,
    client: Client,
    (listener, service): (u16, Rc<Service>),
    counted: impl Sized + 'static,
) -> impl Future<Output = ()> {
    service.worker.meter.connection_opens();
    let exchange = Exchange::for_listener(listener, service.worker.core.now());
    connections::begin(&stream, listener, &service.worker);
    let mut connection = Connection {
        service,
        client,
        exchange,
        side: Http1::new(stream, input),
        is_first: true,
        versions,
    };
    async move {
        let end = match connection.run().await {
            Ok(NextProtocol::Http2) => return connection.switch_to_http2(counted),
            Ok(NextProtocol::Nothing) => Ok(()),
            Err(error) => Err(error),
        };
        if end.is_err() {
            connection.reset_if_incomplete();
        }
        let sent = connection.side.output.written();
        connection.exchange.finish_with_client(end, sent);
    }
}

impl Connection {
    async fn run(&mut self) -> Result<NextProtocol, Error> {
        if self.speaks_http2() {
            return Ok(NextProtocol::Http2);
        }
        let mut next = self.respond_to_received()?;
        loop {
            // Matched by reference: moved out, the value would take its space in the future twice.
            match &mut next {
                NextStep::Receive => {
                    if !self.side.output.is_empty() {
                        self.flush().await?;
                    }
                    if self.receive().await? == 0 {
                        return Ok(NextProtocol::Nothing);
                    }
                }
                NextStep::Flush => self.flush().await?,
                // In a separate block, for both kinds of responses: they need most of a busy connection's memory, which
                // an idle one should not keep. Also, the last used block is in the CPU's cache.
                NextStep::Rest(rest) => {
                    let core = self.worker().core.clone();
                    core.in_block(rest.send(self.downstream())).await?;
                    self.exchange
                        .finish(RequestEnd::Complete, self.side.output.written());
                }
                NextStep::Forward(forward) => {
                    // A separate statement, so that the state of the exchange is freed before its tunnel starts.
                    let core = self.worker().core.clone();
                    core.set_work(SERVER);
                    let tunnel = core
                        .in_block(forward::exchange(forward, self.downstream()))
                        .await?;
                    if let Some(tunnel) = tunnel {
                        core.set_work(TUNNEL);
                        self.set_stage(ConnectionState::Tunnel);
                        let ended = tunnel.run(&mut self.side, &mut self.exchange);
                        return Box::pin(ended).await.map(|()| NextProtocol::Nothing);
                    }
                    core.set_work(CLIENT);
                    self.exchange
                        .finish(RequestEnd::Complete, self.side.output.written());
                }
                NextStep::Verify(pending, site) => {
                    let outcome = Box::pin(self.verify(pending)).await?;
                    self.exchange
                        .store_login_outcome(outcome, &self.service.worker);
                    if let Some(then) = self.respond_to_one(&Rc::clone(site))? {
                        next = then;
                        continue;
                    }
                }
                NextStep::Close => {
                    self.flush().await?;
                    if self.side.ending == Ending::Reset {
                        self.side.stream.reset_when_dropped();
                        return Ok(NextProtocol::Nothing);
                    }
                    return self.linger().await.map(|()| NextProtocol::Nothing);
                }
                NextStep::Http2 => return Ok(NextProtocol::Http2),
            }
            next = self.respond_to_received()?;
        }
    }

    /// Responds to every complete request, as far as possible without waiting.
    fn respond_to_received(&mut self) -> Result<NextStep, Error> {
        loop {
            let side = &mut self.side;
            if side.ending != Ending::Open {
                return Ok(NextStep::Close);
            }
            if !side.unread.is_complete() && !side.skip_unread(&self.service.worker) {
                return Ok(match side.ending {
                    Ending::Open => NextStep::Receive,
                    Ending::Close | Ending::Reset => NextStep::Close,
                });
            }
            if side.output.is_full() {
                return Ok(NextStep::Flush);
            }
            if side.input.is_empty() {
                return Ok(NextStep::Receive);
            }
            let site = self.service.site();
            if let Some(next) = self.respond_to_one(&site)? {
                return Ok(next);
            }
        }
    }

    /// Responds to the request at the start of the input; `None` when done.
    fn respond_to_one(&mut self, site: &Rc<Site>) -> Result<Option<NextStep>, Error> {
        let Self {
            service,
            client,
            exchange,
            side,
            is_first,
            versions: _,
        } = self;
        let worker = &service.worker;
        let mut slots = HeaderSlots::new();
        let Request {
            head,
            arrived,
            stream,
            to,
        } = match side.next_request(&mut slots, &site.settings.request_limits) {
            Parsed::Complete(request) => request,
            Parsed::Partial => return Ok(Some(NextStep::Receive)),
            Parsed::Refused(refusal) => {
                return match self.begins_in_http2() {
                    true => Ok(Some(NextStep::Http2)),
                    false => self
                        .refuse_and_close(refusal)
                        .map(|()| Some(NextStep::Close)),
                };
            }
        };
        stream.change_note(note::with_request);
        let is_chunked = head.framing == Framing::Chunked;
        // Checked at once, before anything acts on the head.
        if is_chunked && let ReceivedBody::Framed(mut reader, bytes) = arrived {
            if let Err(refusal) = reader.skip(bytes, &worker.limits) {
                return self
                    .refuse_and_close(refusal)
                    .map(|()| Some(NextStep::Close));
            }
            exchange.store_connection_fields(head.headers, worker);
        }
        let source = Source {
            worker,
            client,
            stream,
            origin: &OnceCell::new(),
        };
        let responded = respond((&head, arrived), (source, is_first), site, exchange, to)?;
        if let Some(stage) = responded.unfinished_stage() {
            let client = source.of(exchange).address(head.headers);
            let client = (client, stream.number());
            exchange.list_in_flight((head.method_text, head.target), client, stage);
        }
        if is_chunked {
            side.unread.limit_chunks(exchange.request_body_max());
        }
        match responded {
            DispatchResult::Whole => exchange.finish(RequestEnd::Complete, side.output.written()),
            DispatchResult::Begun(rest) => {
                side.take_head();
                return Ok(Some(NextStep::Rest(rest)));
            }
            DispatchResult::Forwarded(forward) => return Ok(Some(NextStep::Forward(forward))),
            DispatchResult::Pending(pending) => {
                return Ok(Some(NextStep::Verify(pending, Rc::clone(site))));
            }
        }
        side.take_head();
        Ok(None)
    }

    /// Receives more bytes from the client, within the applicable timeout. Returns 0 at the end.
    async fn receive(&mut self) -> Result<usize, Error> {
        match self.expect_more() {
            Expected::Body => return self.side.stream.recv(&mut self.side.input).await,
            Expected::Head => {}
            Expected::Request => {
                return match self
                    .side
                    .stream
                    .recv_unless_stopping(&mut self.side.input)
                    .await
                {
                    Err(Error {
                        kind: Kind::Stopping,
                        ..
                    }) => Box::pin(self.receive_last()).await,
                    received => received,
                };
            }
        }
        match self.side.stream.recv(&mut self.side.input).await {
            Err(Error {
                kind: Kind::TimedOut,
                ..
            }) => {
                self.refuse_and_close(Refusal::new(408, "the request's head took too long"))?;
                self.flush().await?;
                self.linger().await?;
                Ok(0)
            }
            received => received,
        }
    }

    /// Sets the deadline for the client's next bytes and returns what they may be. A separate function, because an idle
    /// connection must not keep a reference to its site.
    fn expect_more(&mut self) -> Expected {
        let now = self.worker().core.now();
        let timeouts = &self.service.site().settings.timeouts;
        // Some clients send an empty line after a body (RFC 9112 2.2); it does not start a head.
        let is_idle = matches!(self.side.input.bytes(), b"" | b"\r" | b"\r\n");
        let (expected, deadline) = if !self.side.unread.is_complete() {
            (Expected::Body, now + timeouts.client_body)
        } else if is_idle && self.exchange.since() == NOT_YET {
            (Expected::Request, now + timeouts.client_idle)
        } else {
            self.exchange.head_started(now);
            let expected = match is_idle {
                true => Expected::Request,
                false => Expected::Head,
            };
            (expected, self.exchange.since() + timeouts.client_head)
        };
        self.side.stream.set_deadline(Some(deadline));
        self.set_stage(match expected {
            Expected::Body => ConnectionState::Body,
            Expected::Head => ConnectionState::Head,
            Expected::Request => ConnectionState::Idle,
        });
        expected
    }

    /// Waits until the password of the current request has been verified. The request and the received part of its body
    /// stay in the input; if the client leaves meanwhile, this is noticed at the response.
    async fn verify(&mut self, pending: &mut Pending) -> Result<Outcome, Error> {
        if !self.side.output.is_empty() {
            self.flush().await?;
        }
        Ok(pending.outcome().await)
    }

    fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        let patience = match self.exchange.current_timeouts() {
            Some(timeouts) => timeouts.client_send,
            None => self.service.site().settings.timeouts.client_send,
        };
        self.side.flush(patience)
    }

    /// Responds to a malformed request. Nothing after it can be parsed.
    fn refuse_and_close(&mut self, refusal: Refusal) -> Result<(), Error> {
        self.exchange.start(&self.service.site().settings);
        self.exchange.record().refuse();
        let peer = || self.client.peer(&self.side.stream);
        self.exchange
            .start_log_entry_without_head(|| peer().map(|(address, _)| address));
        self.side.begin_refusal();
        let mut client = self.downstream();
        let mut reply = client.reply(Method::Get, Persistence::Close);
        let what = (refusal.status, refusal.reason);
        refuse(what, &[], ErrorFormat::Text, &mut reply)?;
        let sent = self.side.output.written();
        self.exchange.finish(RequestEnd::Complete, sent);
        Ok(())
    }

    /// Resets the connection if it ends within a response, which an orderly close could complete. Not for tunnels.
    fn reset_if_incomplete(&self) {
        let record = self.exchange.record();
        if record.status().is_some() && !record.is_tunnel() {
            self.side.stream.reset_when_dropped();
        }
    }

    #[inline]
    fn set_stage(&self, state: ConnectionState) {
        self.side
            .stream
            .change_note(|note| note::with_state(note, state));
    }

    fn worker(&self) -> &Rc<Worker> {
        &self.service.worker
    }

    fn downstream(&mut self) -> Downstream<'_> {
        Downstream {
            worker: &self.service.worker,
            client: &self.client,
            exchange: &mut self.exchange,
            side: ClientProtocol::Http1(&mut self.side),
            origin: OnceCell::new(),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // If a request is in progress, the task was dropped because the core has ended.
        self.reset_if_incomplete();
        let sent = self.side.output.written();
        self.exchange.finish(RequestEnd::CutOff, sent);
        let worker = &self.service.worker;
        worker.meter.connection_closes();
        worker.identities.forget(self.side.stream.place());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::client::PeerAddress;
    use crate::testing::harness::resources;
    use crate::worker::connection_budget::ConnectionBudget;
    use crate::worker::descriptor_shares::Shares;
    use crate::worker::time_slice::run_unsliced;
    use onrush_config::plan::{OneLiner, Plan};
    use onrush_engine::{Address, Claim, Core, Listener, Simulation, Stream};
    use onrush_http::forwarded::Scheme;

    #[test]
    fn idle_connection_memory_is_within_limit() {
        let core = Core::simulated(Simulation::with_seed(1));
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        let crowd = ConnectionBudget::new(Shares::UNLIMITED);
        let worker = Worker::new(core.clone(), &crowd, plan.timeouts.drain);
        let resources = resources(&plan, Shares::UNLIMITED, None);
        let site = run_unsliced(async |slice| Site::new(&worker, &resources, None, slice).await);
        let site = site.ok().unwrap();
        let service = Service::new(worker, site);
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::new(&core, &claim).unwrap();
        let (address, client) = (claim.address().clone(), core.clone());
        core.spawn(async move {
            let _client = Stream::connect(&client, &address, None).await.unwrap();
            let stream = listener.accept().await.unwrap();
            let client = Client::new(Scheme::Http, PeerAddress::OfSocket);
            let bytes = size_of_val(&serve(
                (Transport::plain(stream), HttpVersions::Both),
                Input::default(),
                client,
                (0, service),
                (),
            ));
            // The budget of 1 KiB per idle connection also covers the socket's slot (200), its timer and its task
            // entry. With the eight bytes of malloc it fills a block of 512.
            assert!(
                bytes <= 504,
                "the future of a connection has grown to {bytes} bytes"
            );
        });
        core.run();
    }
}
