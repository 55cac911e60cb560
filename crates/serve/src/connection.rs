//! One client from accept to goodbye.

use std::mem;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Error, Input, Instant, Kind};
use onrush_http::body::BodyReader;
use onrush_http::request::{self, RequestHead};
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Refusal, Version};
use onrush_tls::Transport;

use crate::access::{Outcome, Pending};
use crate::asker::Asker;
use crate::chosen::{Chosen, Rest, choose};
use crate::client::Client;
use crate::ending::Behind;
use crate::exchange::Exchange;
use crate::limits::LINGER_BYTES;
use crate::output::Output;
use crate::proxy::forward::{self, Forward, Way};
use crate::proxy::mirror;
use crate::record::End;
use crate::respond::refuse::refuse;
use crate::respond::{Context, Writer};
use crate::service::Service;
use crate::worker::Worker;

/// A client's connection and what of it is half done.
pub(crate) struct Connection {
    pub(crate) stream: Transport,
    pub(crate) service: Rc<Service>,
    client: Client,
    /// The request in hand.
    pub(crate) exchange: Exchange,
    /// Received, not consumed: at its start stands the next head, or the rest of `unread`.
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// The body of the last request, as far as nobody wanted it.
    pub(crate) unread: BodyReader,
    /// How much of it is read at most; then the connection ends.
    pub(crate) unread_max: u32,
    /// When the head that is arriving began to arrive; [`NOT_YET`] while none does. An `Option` would take twice the room.
    head_since: Instant,
    /// No request of it has been forwarded yet.
    is_first: bool,
    /// The connection ends behind the answers that are written.
    pub(crate) closing: bool,
    /// It ends with a reset, since the last answer is not whole and an orderly end would say that it is.
    pub(crate) resetting: bool,
}

/// No bound on what is read of a body that nobody wants.
const ALL_OF_IT: u32 = u32::MAX;

/// Later than any head.
const NOT_YET: Instant = Instant::from_nanoseconds(u64::MAX);

/// What has to happen before the next request can be answered.
enum Next {
    /// More bytes of the client.
    Receive,
    /// Room for more answers.
    Flush,
    /// What is left of an answer of our own.
    Rest(Rest),
    /// The answer of a server.
    Forward(Forward),
    /// Whether its password is right.
    Verify(Pending),
    /// Nothing will: the last answer is written.
    Close,
}

/// What a client sends next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    /// More of a body that nobody wants.
    Body,
    /// More of a head.
    Head,
    /// Another request, if it likes.
    Request,
}

/// Serves the `client` at the other end of `stream` until either side has had enough. `input` has come of it already.
///
/// Not an `async fn`, which would keep its arguments beside the connection made of them: this future is most of what an
/// idle connection costs.
pub(crate) fn serve(
    stream: Transport,
    input: Input,
    client: Client,
    service: Rc<Service>,
) -> impl Future<Output = ()> {
    service.worker.meter.connection();
    let mut connection = Connection::new(stream, input, client, service);
    async move {
        let end = connection.run().await;
        connection.exchange.finish_with_client(end);
    }
}

impl Connection {
    fn new(stream: Transport, input: Input, client: Client, service: Rc<Service>) -> Self {
        let head_since = service.worker.core.now();
        Self {
            stream,
            service,
            client,
            exchange: Exchange::default(),
            input,
            output: Output::default(),
            unread: BodyReader::new(Framing::None),
            unread_max: ALL_OF_IT,
            head_since,
            is_first: true,
            closing: false,
            resetting: false,
        }
    }

    async fn run(&mut self) -> Result<(), Error> {
        loop {
            // Matched by reference: moved out of it, what is there would take its room twice.
            let mut next = self.answer_what_has_arrived()?;
            match &mut next {
                Next::Receive => {
                    if !self.output.is_empty() {
                        self.flush().await?;
                    }
                    if self.receive().await? == 0 {
                        return Ok(());
                    }
                }
                Next::Flush => self.flush().await?,
                // In a block, both kinds of answers: what they need is most of what a busy connection needs, and an idle one should
                // not have to keep it. The block that was used last is in the CPU's cache, which the connection's own
                // memory is not.
                Next::Rest(Rest::File(pieces)) => {
                    let core = self.worker().core.clone();
                    core.in_block(pieces.send(self)).await?;
                    self.exchange.finish(End::Complete);
                }
                Next::Rest(Rest::Synthetic(answer)) => {
                    let core = self.worker().core.clone();
                    core.in_block(answer.send(self)).await?;
                    self.exchange.finish(End::Complete);
                }
                Next::Forward(forward) => {
                    // By itself: what the exchange needed is given up before its tunnel begins.
                    let core = self.worker().core.clone();
                    let tunnel = core.in_block(forward::exchange(forward, self)).await?;
                    if let Some(tunnel) = tunnel {
                        return Box::pin(tunnel.run(self)).await;
                    }
                    self.exchange.finish(End::Complete);
                }
                Next::Verify(pending) => {
                    let outcome = Box::pin(self.verify(pending)).await?;
                    self.exchange.verified(outcome, &self.service.worker);
                }
                Next::Close => {
                    self.flush().await?;
                    if self.resetting {
                        self.stream.reset_when_dropped();
                        return Ok(());
                    }
                    return self.linger().await;
                }
            }
        }
    }

    /// Answers every request that is complete, as far as that needs no waiting.
    fn answer_what_has_arrived(&mut self) -> Result<Next, Error> {
        loop {
            if self.closing {
                return Ok(Next::Close);
            }
            if !self.unread.is_complete() && !self.skip_unread() {
                return Ok(if self.closing {
                    Next::Close
                } else {
                    Next::Receive
                });
            }
            if self.output.is_full() {
                return Ok(Next::Flush);
            }
            if self.input.is_empty() {
                return Ok(Next::Receive);
            }
            if let Some(next) = self.answer_one()? {
                return Ok(next);
            }
        }
    }

    /// Answers the request at the start of the input; `None` when that is done.
    fn answer_one(&mut self) -> Result<Option<Next>, Error> {
        let Self {
            stream,
            service,
            client,
            exchange,
            input,
            output,
            unread,
            unread_max,
            closing,
            is_first,
            ..
        } = self;
        let worker = &service.worker;
        let mut slots = HeaderSlots::new();
        let head = match request::parse(input.bytes(), &mut slots, &worker.limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(Some(Next::Receive)),
            Parsed::Refused(refusal) => {
                return self.refuse_and_close(refusal).map(|()| Some(Next::Close));
            }
        };
        // As soon as it is known, and before anybody acts on the head.
        if head.framing == Framing::Chunked {
            let arrived = &input.bytes()[head.bytes..];
            if let Err(refusal) = BodyReader::new(head.framing).skip(arrived, &worker.limits) {
                return self.refuse_and_close(refusal).map(|()| Some(Next::Close));
            }
            exchange.keep_connection_fields(head.headers, worker);
        }
        let site = exchange.start(service);
        let context = context(&head, input.bytes().len(), worker, stream);
        let chosen = choose(&head, &site, worker, client, stream, exchange)?;
        let asker = Asker {
            worker,
            client,
            stream,
            exchange,
        };
        let mut writer = Writer {
            worker,
            stream,
            output,
            edits: exchange.answer_edits(""),
            record: exchange.record(),
        };
        let rest = match chosen {
            Chosen::Own(own) => own.answer(&head, asker, context, &mut writer)?,
            Chosen::Verify(pending) => return Ok(Some(Next::Verify(pending))),
            Chosen::Forward(group) => {
                let way = Way {
                    group,
                    is_first: mem::replace(is_first, false),
                    key: site.groups[group].key(&head, asker),
                };
                let forward = begin_forward(way, &head, input.bytes(), asker)?;
                return Ok(Some(Next::Forward(forward)));
            }
        };
        if rest.is_none() {
            exchange.finish(End::Complete);
        }
        *closing |= !context.keep_alive;
        *unread = BodyReader::new(head.framing);
        *unread_max = ALL_OF_IT;
        let bytes = head.bytes;
        self.request_is_consumed(bytes);
        Ok(rest.map(Next::Rest))
    }

    /// Throws away what has arrived of a body that nobody wanted; whether all of it has.
    pub(crate) fn skip_unread(&mut self) -> bool {
        match self
            .unread
            .skip(self.input.bytes(), &self.service.worker.limits)
        {
            Ok(bytes) => {
                self.input.consume(bytes);
                if self.unread_max != ALL_OF_IT {
                    self.unread_max = self.unread_max.saturating_sub(bytes as u32);
                }
                let is_complete = self.unread.is_complete();
                self.closing |= !is_complete && self.unread_max == 0;
                is_complete
            }
            Err(_) => {
                // Its answer is written already; all that is left is to end.
                self.worker().meter.garbage();
                self.closing = true;
                false
            }
        }
    }

    /// The first `bytes` of the input were a request, which is dealt with.
    pub(crate) fn request_is_consumed(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.head_since = NOT_YET;
    }

    /// Waits for more of the client's bytes, as long as what it is sending may take. 0 is the end.
    async fn receive(&mut self) -> Result<usize, Error> {
        match self.expect_more() {
            Expected::Body => return self.stream.recv(&mut self.input).await,
            Expected::Head => {}
            Expected::Request => {
                return match self.stream.recv_unless_stopping(&mut self.input).await {
                    Err(Error {
                        kind: Kind::Stopping,
                        ..
                    }) => Box::pin(self.receive_last()).await,
                    received => received,
                };
            }
        }
        match self.stream.recv(&mut self.input).await {
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

    /// Sets until when the client has to have sent more, and says what of. An idle connection must not keep its site, which
    /// is why this is no part of what waits.
    fn expect_more(&mut self) -> Expected {
        let now = self.worker().core.now();
        let timeouts = &self.service.site().timeouts;
        // An empty line is what some clients send behind a body (RFC 9112 2.2), not the beginning of a head.
        let is_idle = matches!(self.input.bytes(), b"" | b"\r" | b"\r\n");
        let (expected, deadline) = if !self.unread.is_complete() {
            (Expected::Body, now + timeouts.client_body)
        } else if is_idle && self.head_since == NOT_YET {
            (Expected::Request, now + timeouts.client_idle)
        } else {
            self.head_since = self.head_since.min(now);
            let expected = match is_idle {
                true => Expected::Request,
                false => Expected::Head,
            };
            (expected, self.head_since + timeouts.client_head)
        };
        self.stream.set_deadline(Some(deadline));
        expected
    }

    /// [`Self::receive`] for a connection that is idle and is to end: a last request may still come, and after that it is
    /// told of the end.
    async fn receive_last(&mut self) -> Result<usize, Error> {
        // Asked of the deadline: remembered while it waits, it would cost memory of every idle connection.
        let since = match (self.head_since, self.stream.deadline()) {
            (NOT_YET, Some(deadline)) => deadline.before(self.service.site().timeouts.client_idle),
            (NOT_YET, None) => self.worker().core.now(),
            (since, _) => since,
        };
        self.stream
            .set_deadline(Some(self.worker().idle_until(since)));
        match self.stream.recv(&mut self.input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        match self.stream.recv_arrived(&mut self.input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        // Others wait for the descriptor of one that makes room.
        if self.worker().stopping.get() {
            self.say_goodbye(Behind::Nothing).await?;
        }
        Ok(0)
    }

    /// Waits until the password of the request in hand has been checked. The request stays where it is, and so does what
    /// of its body has come; a client that goes away meanwhile is noticed when it is answered.
    async fn verify(&mut self, pending: &mut Pending) -> Result<Outcome, Error> {
        if !self.output.is_empty() {
            self.flush().await?;
        }
        Ok(pending.outcome().await)
    }

    /// Sends the answers written so far.
    pub(crate) fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.stream.set_send_patience(self.send_patience());
        self.output.flush(&self.stream)
    }

    fn send_patience(&self) -> Duration {
        match self.exchange.site_in_hand() {
            Some(site) => site.timeouts.client_send,
            None => self.service.site().timeouts.client_send,
        }
    }

    /// Answers what was no request. Nothing behind it can be understood.
    fn refuse_and_close(&mut self, refusal: Refusal) -> Result<(), Error> {
        self.closing = true;
        self.exchange.start(&self.service);
        self.exchange.record().refuse();
        let context = Context {
            method: Method::Get,
            version: Version::Http11,
            keep_alive: false,
        };
        refuse(
            refusal.status,
            refusal.reason,
            &[],
            context,
            &mut self.writer(),
        )?;
        self.exchange.finish(End::Complete);
        Ok(())
    }

    pub(crate) fn worker(&self) -> &Rc<Worker> {
        &self.service.worker
    }

    /// Where the answer to the request in hand is written.
    pub(crate) fn writer(&mut self) -> Writer<'_> {
        Writer {
            worker: &self.service.worker,
            stream: &self.stream,
            output: &mut self.output,
            edits: self.exchange.answer_edits(""),
            record: self.exchange.record(),
        }
    }

    /// Who has sent the request in hand.
    pub(crate) fn asker(&self) -> Asker<'_> {
        Asker {
            worker: &self.service.worker,
            client: &self.client,
            stream: &self.stream,
            exchange: &self.exchange,
        }
    }

    /// Ends the connection so that its last answer arrives: closing with bytes unread would reset it (RFC 9112 9.6).
    async fn linger(&mut self) -> Result<(), Error> {
        // As far as one can know. While the server stops, clients that it did not expect to end are still sending.
        let all_read = self.input.is_empty()
            && self.unread.is_complete()
            && !self.stream.is_spent()
            && !self.worker().is_ending();
        if all_read {
            return Ok(());
        }
        self.say_goodbye(Behind::Answer).await
    }

    /// Ends our side, and reads on until the client ends its own, or has had enough time to.
    async fn say_goodbye(&mut self, behind: Behind) -> Result<(), Error> {
        // What is on its way has the time of the flush; only what comes after it is hurried.
        self.stream.shutdown().await?;
        self.stream
            .set_deadline(Some(self.worker().linger_until(behind)));
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            self.input.consume(self.input.bytes().len());
            match self.stream.recv(&mut self.input).await? {
                0 => return Ok(()),
                bytes => discarded += bytes,
            }
        }
        Ok(())
    }
}

/// What the answer to `head` depends on, with which so many bytes have come.
fn context(
    head: &RequestHead<'_, '_>,
    arrived: usize,
    worker: &Worker,
    stream: &Transport,
) -> Context {
    let has_body = head.framing != Framing::None;
    // Who waits for "100 Continue" and gets a final answer instead may or may not send the body: no way to know
    // where the next request would begin.
    let is_followed = !has_body && arrived > head.bytes;
    Context {
        method: head.method,
        version: head.version,
        keep_alive: head.keep_alive
            && !(head.expect_continue && has_body)
            && !worker.ends_with_this(is_followed, stream),
    }
}

/// Sends the request to its group, and a copy to another, where its route wants one. The head stays in `input` until a
/// server has answered: the request may have to be sent again.
fn begin_forward(
    way: Way,
    head: &RequestHead<'_, '_>,
    input: &[u8],
    asker: Asker<'_>,
) -> Result<Forward, Error> {
    if let Some(mirror) = asker.target().and_then(|target| target.mirror) {
        mirror::duplicate(mirror, head, input, asker);
    }
    Forward::new(asker, way, head, input)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Origin;
    use crate::crowd::Crowd;
    use crate::descriptors::Shares;
    use crate::harness::resources;
    use crate::site::Site;
    use onrush_config::plan::{OneLiner, Plan};
    use onrush_engine::{Address, Claim, Core, Listener, Simulation, Stream};
    use onrush_http::forwarded::Scheme;

    #[test]
    fn an_idle_connection_costs_little_memory() {
        let core = Core::simulated(Simulation::with_seed(1));
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        let crowd = Crowd::new(Shares::UNLIMITED);
        let worker = Worker::new(core.clone(), &crowd, plan.timeouts.drain);
        let site = Site::new(&worker, &resources(&plan, None), None)
            .ok()
            .unwrap();
        let service = Service::new(worker, site);
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::new(&core, &claim).unwrap();
        let (address, client) = (claim.address().clone(), core.clone());
        core.spawn(async move {
            let _client = Stream::connect(&client, &address, None).await.unwrap();
            let stream = listener.accept().await.unwrap();
            let client = Client::new(Scheme::Http, Origin::OfSocket);
            let bytes = size_of_val(&serve(
                Transport::plain(stream),
                Input::default(),
                client,
                service,
            ));
            // 1 KiB per idle connection leaves room for this, the socket's slot (200), its timer and its task entry.
            assert!(
                bytes <= 496,
                "the future of a connection has grown to {bytes} bytes"
            );
        });
        core.run();
    }
}
