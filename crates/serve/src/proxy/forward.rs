//! One request to a server and its answer back.
//!
//! ```text
//!   client ── head ──> rewrite ──> server          client <── rewrite <── head ── server
//!          ── body ──> upload  ──>                        <── relay   <── body ──
//! ```
//! Bodies stream in both directions at once and are never held whole; a buffer that arrives is the buffer that leaves.

mod retry;

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use onrush_config::plan::Reuse;
use onrush_engine::{Core, Error, Input, Instant};
use onrush_http::body::BodyReader;
use onrush_http::forwarded::Scheme;
use onrush_http::proxy_protocol::Origin;
use onrush_http::request::{self, RequestHead};
use onrush_http::response::ResponseHead;
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Version};
use onrush_tls::Transport;

use super::download::{Done, Download};
use super::failure::Failure;
use super::group::{Errand, FOREVER, Group, Place, Server, Unplaced};
use super::portion;
use super::progress::Progress;
use super::rewrite::{self, Afterwards};
use super::trunk;
use super::tunnel::{self, Tunnel};
use super::upload::{Stopped, Upload};
use crate::asker::Asker;
use crate::compress::Wish;
use crate::connection::Connection;
use crate::hangup::unless_hung_up;
use crate::limits::UNREAD_REST_MAX;
use crate::record::Record;
use crate::respond::Context;
use crate::respond::refuse::refuse;
use crate::worker::Worker;

/// A request that goes to a server. Its head stays at the start of the client's input until nobody can ask for it to
/// be sent again.
///
/// Its numbers are small ones: this is part of every connection's memory.
pub(crate) struct Forward {
    /// The server that was chosen, while one is.
    place: Option<Place>,
    /// How it is on its way already: rendered from the head while that was at hand, since parsing it once more costs as
    /// much as all the rest of the rewriting.
    sent_on: Option<SentOn>,
    /// What equal requests have in common, for groups that choose by it.
    key: u64,
    /// The server that the client's cookie names.
    sticks_to: u32,
    /// When the whole exchange has to be over.
    until: Instant,
    /// When the request was sent.
    sent: Cell<Instant>,
    /// Servers that have failed: none, for nearly all requests.
    #[allow(clippy::box_collection, reason = "16 bytes less in every exchange")]
    tried: Option<Box<Vec<u32>>>,
    /// Attempts after the first that count as such.
    attempts: Cell<u8>,
    /// Why it goes to the server that it goes to.
    errand: Errand,
    group: u32,
    head_bytes: u32,
    method: Method,
    version: Version,
    keep_alive: bool,
    framing: Framing,
    /// How the client asks, in groups that keep it with its server.
    pub(crate) scheme: Scheme,
    /// Whether the client waits for 100 before it sends the body.
    expects_continue: bool,
    /// How its answer is encoded, on a route that does that.
    pub(crate) wish: Wish,
    /// Whether the head has left the client's input: from then on the request cannot be repeated.
    is_consumed: bool,
    /// Whether it is the first request of its client.
    is_first: bool,
    /// Whether it asks for a tunnel: then it has a connection of its own, before and behind the answer.
    asks_for_tunnel: bool,
    /// Whether bytes of another request came with it.
    is_followed: bool,
}

/// What carries a request.
enum SentOn {
    /// An idle connection of the server, which is its own now.
    Pooled(Transport, Queued),
    /// A connection that it shares.
    Trunk(trunk::Ticket),
}

/// Where a request comes from and where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    /// Index of the group.
    pub(crate) group: usize,
    /// Whether it is the first request of its client.
    pub(crate) is_first: bool,
    /// [`hash::key`](super::balance::hash::key) of what the group chooses by.
    pub(crate) key: u64,
}

impl Forward {
    /// Chooses a server for the request whose `head` stands at the start of `input`, if that needs no waiting.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn new(
        asker: Asker<'_>,
        way: Way,
        head: &RequestHead<'_, '_>,
        input: &[u8],
    ) -> Result<Self, Error> {
        let worker = asker.worker;
        let site = asker.site();
        let group = &site.groups[way.group];
        let now = worker.core.now();
        let mut forward = Self {
            place: None,
            sent_on: None,
            key: way.key,
            sticks_to: group.sticks_to(head),
            until: match site.timeouts.request {
                Some(timeout) => now + timeout,
                None => FOREVER,
            },
            sent: Cell::default(),
            tried: None,
            attempts: Cell::new(0),
            errand: Errand::Ordinary,
            group: way.group as u32,
            head_bytes: head.bytes as u32,
            method: head.method,
            version: head.version,
            keep_alive: head.keep_alive,
            framing: head.framing,
            scheme: match group.plan.sticky {
                Some(_) => asker.scheme(head.headers),
                None => Scheme::Http,
            },
            expects_continue: head.expect_continue,
            wish: asker
                .exchange
                .offer()
                .map_or(Wish::default(), |offer| Wish::of(head, offer)),
            is_consumed: false,
            is_first: way.is_first,
            asks_for_tunnel: tunnel::is_asked(head),
            is_followed: head.framing == Framing::None && input.len() > head.bytes,
        };
        group.count_request(now);
        if group.queue.is_empty()
            && let Some(place) = group
                .place_on(forward.sticks_to)
                .or_else(|| group.place_on_trial(head.method, now))
                .or_else(|| group.place_first(head.method, way.key, now).ok())
        {
            forward.errand = place.errand();
            forward.sent_on = forward.send_at_once(&place, group, head, input, asker)?;
            forward.place = Some(place);
        }
        Ok(forward)
    }

    /// Sends the request on a connection that exists, if one may be used.
    fn send_at_once(
        &self,
        place: &Place,
        group: &Rc<Group>,
        head: &RequestHead<'_, '_>,
        input: &[u8],
        asker: Asker<'_>,
    ) -> Result<Option<SentOn>, Error> {
        let server = place.server();
        if let Some(depth) = group.plan.pipeline
            && trunk::fits(head)
        {
            let to = (group, place.index());
            let ticket = server
                .trunks
                .submit(depth.get(), to, head, asker, self.until)?;
            return Ok(Some(SentOn::Trunk(ticket)));
        }
        if !self.may_reuse(group) {
            return Ok(None);
        }
        let Some(transport) = server.pool.take() else {
            return Ok(None);
        };
        let queued = queue_request(head, input, &transport, server, asker)?;
        Ok(Some(SentOn::Pooled(transport, queued)))
    }

    pub(crate) fn method(&self) -> Method {
        self.method
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    pub(crate) fn is_followed(&self) -> bool {
        self.is_followed
    }

    /// `wait` from now, but not longer than the whole exchange may take.
    pub(crate) fn deadline(&self, core: &Core, wait: Duration) -> Instant {
        (core.now() + wait).min(self.until)
    }

    fn tried(&self) -> &[u32] {
        self.tried.as_ref().map_or(&[], |tried| tried)
    }

    /// Takes the request's first `bytes` out of the client's input.
    fn consume(&mut self, client: &mut Connection, bytes: u32) {
        client.request_is_consumed(bytes as usize);
        self.is_consumed = true;
    }

    /// Whether it may go on a connection that has been idle, and that the server may be closing just now.
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

    /// Whether another request may use the connection that this one is done with, and that its server keeps open.
    fn leaves_reusable(&self, link: &Link, group: &Group) -> bool {
        link.input.is_empty() && group.plan.reuse != Reuse::Never && !self.asks_for_tunnel
    }

    /// Whether the answer of `server` has to tell the client to come back to it.
    pub(crate) fn needs_cookie(&self, server: u32, group: &Group) -> bool {
        group.plan.sticky.is_some() && self.sticks_to != server
    }

    /// Whether a 101 of its server is one that was asked for.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) fn grants(&self, head: &ResponseHead<'_, '_>) -> Result<(), Failure> {
        match self.asks_for_tunnel {
            true => tunnel::granted(head),
            false => Err(Failure::BadAnswer(
                "it changed the protocol without being asked to".into(),
            )),
        }
    }

    /// The request leaves: its answer is measured from here, by the turns of the core. A read of the clock would say when
    /// we had time for the answer, and not when it came.
    pub(crate) fn is_sent_now(&self, core: &Core) {
        self.sent.set(core.now());
    }

    /// The answer's head has come.
    pub(crate) fn is_answered_now(&self, server: u32, group: &Group, worker: &Worker, status: u16) {
        if group.measures(self.errand) {
            let latency = worker.core.time_without_stalls(self.sent.get());
            group.answered((server, self.errand), status, latency, worker);
        }
    }
}

/// A connection to a server while it serves one request.
struct Link {
    transport: Transport,
    input: Input,
}

/// What of the request has been queued for the server.
#[derive(Clone, Copy)]
enum Queued {
    /// All of it: the first bytes of the client's input.
    Whole { input_bytes: u32 },
    /// Its head; the body is still to be sent.
    Head,
}

/// Forwards the request at the start of the client's input and relays the answer. Whatever happens, the client is left
/// with an answer, or with a connection that ends in the middle of one, or with a tunnel that is still to be run.
///
/// # Errors
/// When the client is gone.
pub(crate) async fn exchange(
    forward: &mut Forward,
    client: &mut Connection,
) -> Result<Option<Box<Tunnel>>, Error> {
    if !client.output.is_empty() {
        client.flush().await?;
    }
    let worker = Rc::clone(client.worker());
    let group = Rc::clone(&client.exchange.site().groups[forward.group as usize]);
    let progress = Progress::default();
    loop {
        let place = match forward.place.take() {
            Some(place) => place,
            // Boxed: only who has to wait pays for waiting.
            None => {
                let found = Box::pin(find_place(forward, &group, &worker));
                match unless_hung_up(&client.stream, found).await? {
                    Ok(place) => place,
                    Err(unplaced) => {
                        let failure = Failure::Unplaced(unplaced);
                        fail(forward, client, &group.plan.name, &progress, failure)?;
                        return Ok(None);
                    }
                }
            }
        };
        forward.errand = place.errand();
        let failure = match try_on(&place, forward, client, &group, &progress).await {
            Ok(None) => return Ok(None),
            Ok(Some(link)) => {
                let tunnel = Tunnel::new(place, link.transport, link.input);
                return Ok(Some(Box::new(tunnel)));
            }
            Err(failure) => failure,
        };
        let now = worker.core.now();
        if !forward.has_hurried(&failure, now) {
            group.failed(&place, &failure, &worker);
        }
        if !forward.takes_again(&failure, &group, place.index(), &progress, now) {
            let name = place.server().label();
            fail(forward, client, &name, &progress, failure)?;
            return Ok(None);
        }
        client.exchange.record().retry();
        progress.request_is_sent.set(false);
        progress.server_has_spoken.set(false);
        forward.tried.get_or_insert_default().push(place.index());
    }
}

async fn find_place(
    forward: &Forward,
    group: &Rc<Group>,
    worker: &Worker,
) -> Result<Place, Unplaced> {
    let until = forward.deadline(&worker.core, group.timeouts.queue);
    let wanted = (forward.key, forward.tried());
    group
        .place_patiently(forward.method, wanted, &worker.core, until)
        .await
}

/// Sends the request to the server of `place` and relays its answer. When that begins a tunnel, its link is returned.
async fn try_on(
    place: &Place,
    forward: &mut Forward,
    client: &mut Connection,
    group: &Group,
    progress: &Progress,
) -> Result<Option<Link>, Failure> {
    let server = place.server();
    let to = (group, place.index());
    let mut sent_on = match forward.sent_on.take() {
        // It had to wait for its place, or another server has failed.
        None if forward.may_reuse(group) => send_on_pooled(server, client)?,
        sent_on => sent_on,
    };
    loop {
        let is_reused = sent_on.is_some();
        let (transport, queued) = match sent_on.take() {
            Some(SentOn::Pooled(transport, queued)) => (transport, queued),
            Some(SentOn::Trunk(ticket)) => {
                match on_trunk(ticket, forward, client, to, progress).await {
                    Err(failure) if forward.survives(&failure, progress) => {
                        client.exchange.record().retry();
                        continue;
                    }
                    outcome => return outcome.map(|()| None),
                }
            }
            None => {
                let origin = origin(group, client);
                let connected =
                    pin!(group.connect(server, &origin, client.worker(), forward.until));
                let connected = unless_hung_up(&client.stream, connected).await;
                let connected = connected.map_err(Failure::Client)?;
                let transport = connected.map_err(Failure::Connect)?;
                let queued = queue_again(client, &transport, server).map_err(Failure::Client)?;
                (transport, queued)
            }
        };
        let mut link = Link {
            transport,
            input: Input::default(),
        };
        forward.is_sent_now(&client.worker().core);
        match attempt(forward, client, &mut link, queued, to, progress).await {
            Ok(done) if done.afterwards == Afterwards::Tunnel => return Ok(Some(link)),
            Ok(done) => {
                client.closing |= done.afterwards == Afterwards::End;
                if done.server_lives && forward.leaves_reusable(&link, group) {
                    server.pool.put(link.transport, client.worker().core.now());
                }
                return Ok(None);
            }
            Err(failure) if is_reused && forward.survives(&failure, progress) => {
                client.exchange.record().retry();
            }
            Err(failure) => {
                failure.tell(&link.transport);
                return Err(failure);
            }
        }
    }
}

/// Queues the request on an idle connection of its server, if there is one.
fn send_on_pooled(server: &Server, client: &Connection) -> Result<Option<SentOn>, Failure> {
    let Some(transport) = server.pool.take() else {
        return Ok(None);
    };
    let queued = queue_again(client, &transport, server).map_err(Failure::Client)?;
    Ok(Some(SentOn::Pooled(transport, queued)))
}

/// Waits for the answer on a shared connection and relays it.
async fn on_trunk(
    ticket: trunk::Ticket,
    forward: &mut Forward,
    client: &mut Connection,
    to: (&Group, u32),
    progress: &Progress,
) -> Result<(), Failure> {
    forward.is_sent_now(&client.worker().core);
    let answer = unless_hung_up(&client.stream, ticket.answer()).await;
    let (transport, mut input) = match answer.map_err(Failure::Client)?? {
        trunk::Answer::Whole(input) => (None, input),
        trunk::Answer::Handed(transport, input) => (Some(transport), input),
    };
    progress.request_is_sent.set(true);
    progress.server_has_spoken.set(true);
    let mut download = Download {
        forward,
        to,
        exchange: &client.exchange,
        worker: &client.service.worker,
        server: transport.as_ref(),
        server_input: &mut input,
        client: &client.stream,
        output: &mut client.output,
        progress,
    };
    let done = download.run().await.inspect_err(|failure| {
        transport.iter().for_each(|server| failure.tell(server));
    })?;
    forward.consume(client, forward.head_bytes);
    client.closing |= done.afterwards == Afterwards::End;
    Ok(())
}

/// Sends the request over `link` and relays the answer.
async fn attempt(
    forward: &mut Forward,
    client: &mut Connection,
    link: &mut Link,
    queued: Queued,
    to: (&Group, u32),
    progress: &Progress,
) -> Result<Done, Failure> {
    let input_bytes = match queued {
        Queued::Whole { input_bytes } => input_bytes,
        Queued::Head => {
            forward.consume(client, forward.head_bytes);
            // Boxed: only requests whose body did not come with their head pay for two directions at once.
            return Box::pin(exchange_streaming(forward, client, link, to, progress)).await;
        }
    };
    let mut download = Download {
        forward,
        to,
        exchange: &client.exchange,
        worker: &client.service.worker,
        server: Some(&link.transport),
        server_input: &mut link.input,
        client: &client.stream,
        output: &mut client.output,
        progress,
    };
    let done = download.send_and_run().await?;
    forward.consume(client, input_bytes);
    Ok(done)
}

/// Renders the head for the server and puts a body behind it that has arrived whole. `input` begins with the head.
fn queue_request(
    head: &RequestHead<'_, '_>,
    input: &[u8],
    stream: &Transport,
    server: &Server,
    asker: Asker<'_>,
) -> Result<Queued, Error> {
    let worker = asker.worker;
    let mut buffer = worker.core.buffer()?;
    rewrite::request(head, &server.authority, asker, &mut buffer);
    let arrived = &input[head.bytes..];
    let mut body = BodyReader::new(head.framing);
    let keeps = |name: &[u8]| asker.exchange.request_keeps(name);
    // A malformed body is left to the upload, which knows how to say so.
    let put = portion::put_whole(&mut body, arrived, &mut buffer, &worker.limits, &keeps);
    let queued = match put {
        Some(bytes) => Queued::Whole {
            input_bytes: (head.bytes + bytes) as u32,
        },
        None => Queued::Head,
    };
    stream.queue(buffer);
    Ok(queued)
}

/// [`queue_request`] from the client's input, where the head still stands.
fn queue_again(client: &Connection, stream: &Transport, server: &Server) -> Result<Queued, Error> {
    let mut slots = HeaderSlots::new();
    let head = head_again(client, &mut slots);
    queue_request(&head, client.input.bytes(), stream, server, client.asker())
}

/// Whom a connection to a server is made for, where servers want to know.
fn origin(group: &Group, client: &Connection) -> Origin<'static> {
    if group.plan.proxy_protocol.is_none() {
        return Origin::Local;
    }
    let mut slots = HeaderSlots::new();
    let head = head_again(client, &mut slots);
    client.asker().origin(head.headers)
}

/// The request's head, which still stands in the client's input.
fn head_again<'h, 'b>(
    client: &'b Connection,
    slots: &'h mut HeaderSlots<'b>,
) -> RequestHead<'h, 'b> {
    match request::parse(client.input.bytes(), slots, &client.worker().limits) {
        Parsed::Complete(head) => head,
        Parsed::Partial | Parsed::Refused(_) => {
            unreachable!("it was complete when its route was chosen, and is still there")
        }
    }
}

/// Both directions at once: a server may answer before it has read the whole request.
async fn exchange_streaming(
    forward: &Forward,
    client: &mut Connection,
    link: &mut Link,
    to: (&Group, u32),
    progress: &Progress,
) -> Result<Done, Failure> {
    let mut body = BodyReader::new(forward.framing);
    progress.body_will_come.set(!forward.expects_continue);
    progress.body_left.set(body.left());
    let Connection {
        stream,
        service,
        exchange,
        input,
        output,
        unread,
        unread_max,
        ..
    } = client;
    let outcome = {
        let (worker, client, server) = (&*service.worker, &*stream, &link.transport);
        let mut up = Upload {
            forward,
            exchange,
            worker,
            client,
            input,
            server,
            body: &mut body,
            progress,
        };
        let mut down = Download {
            forward,
            to,
            exchange,
            worker,
            server: Some(server),
            server_input: &mut link.input,
            client,
            output,
            progress,
        };
        let mut upload = pin!(up.run());
        let mut download = pin!(down.run());
        let mut uploading = true;
        poll_fn(|context| {
            if uploading && let Poll::Ready(outcome) = upload.as_mut().poll(context) {
                uploading = false;
                match outcome {
                    Ok(()) => progress.request_is_sent.set(true),
                    // What the server has to say about it comes by the other direction.
                    Err(Stopped::ByServer) => {}
                    Err(Stopped::ByClient(failure)) => return Poll::Ready(Err(failure)),
                }
            }
            download.as_mut().poll(context)
        })
        .await
    };
    *unread = body;
    *unread_max = UNREAD_REST_MAX;
    outcome
}

/// Tells the client, the log and the record that no server has answered, or not to the end.
fn fail(
    forward: &mut Forward,
    client: &mut Connection,
    name: &str,
    progress: &Progress,
    failure: Failure,
) -> Result<(), Error> {
    if let Failure::Client(error) = failure {
        return Err(error);
    }
    let worker = Rc::clone(client.worker());
    let status = failure
        .status()
        .filter(|_| !progress.answer_has_begun.get());
    account(&worker, client.exchange.record(), name, status, failure);
    let Some(status) = status else {
        // Half an answer is on its way: only the end of the connection tells the client that it is half, and when that
        // would be its end anyway, a reset.
        client.closing = true;
        client.resetting = progress.ends_by_closing.get();
        return Ok(());
    };
    if !forward.is_consumed {
        let bytes = forward.head_bytes;
        forward.consume(client, bytes);
        client.unread = BodyReader::new(forward.framing);
        client.skip_unread();
    }
    // A body that was on its way when the server failed may be long, or never come, or be none.
    let is_readable = !matches!(failure, Failure::BadRequest(_)) && progress.rest_is_short();
    let keep_alive = forward.keep_alive
        && (client.unread.is_complete() || is_readable)
        && !client.closing
        && !worker.ends_with_this(forward.is_followed, &client.stream);
    client.closing |= !keep_alive;
    let context = Context {
        method: forward.method,
        version: forward.version,
        keep_alive,
    };
    refuse(
        status,
        failure.reason(),
        failure.fields(),
        context,
        &mut client.writer(),
    )
}

/// Tells the log and the record; what the client did wrong is no news of the server.
fn account(worker: &Worker, record: &Record, name: &str, status: Option<u16>, failure: Failure) {
    if let Failure::BadRequest(_) = failure {
        return record.refuse();
    }
    record.fail(failure.class());
    match status {
        Some(status) => worker.log.failure(
            &worker.core,
            format_args!("server {name}: {failure}; the client got {status}"),
        ),
        None => worker.log.failure(
            &worker.core,
            format_args!("server {name}: {failure}; the client was cut off"),
        ),
    }
}
