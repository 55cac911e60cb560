//! One client from accept to goodbye.

use std::cell::OnceCell;
use std::rc::Rc;

use onrush_engine::{Error, Input, Kind};
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Refusal};
use onrush_tls::Transport;

use crate::access::verify::{Outcome, Pending};
use crate::chosen::{Answered, Rest, answer};
use crate::client::Client;
use crate::downstream::http1::{Http1, NOT_YET, Request};
use crate::downstream::{Downstream, Side};
use crate::ending::Behind;
use crate::exchange::Exchange;
use crate::limits::LINGER_BYTES;
use crate::proxy::forward;
use crate::proxy::forward::request::Forward;
use crate::record::End;
use crate::reply::Persistence;
use crate::reply::http1::Ending;
use crate::request_context::Source;
use crate::respond::refuse::refuse;
use crate::service::Service;
use crate::site::Site;
use crate::worker::Worker;

/// A client's connection and what of it is half done.
pub(crate) struct Connection {
    service: Rc<Service>,
    client: Client,
    /// The request in hand.
    exchange: Exchange,
    side: Http1,
    /// No request of it has been forwarded yet.
    is_first: bool,
}

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
    /// Whether its password is right, to be answered on the site that it began with.
    Verify(Pending, Rc<Site>),
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
        let now = service.worker.core.now();
        Self {
            service,
            client,
            exchange: Exchange::default(),
            side: Http1::new(stream, input, now),
            is_first: true,
        }
    }

    async fn run(&mut self) -> Result<(), Error> {
        let mut next = self.answer_what_has_arrived()?;
        loop {
            // Matched by reference: moved out of it, what is there would take its room twice.
            match &mut next {
                Next::Receive => {
                    if !self.side.output.is_empty() {
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
                Next::Rest(rest) => {
                    let core = self.worker().core.clone();
                    core.in_block(rest.send(self.downstream())).await?;
                    self.exchange.finish(End::Complete);
                }
                Next::Forward(forward) => {
                    // By itself: what the exchange needed is given up before its tunnel begins.
                    let core = self.worker().core.clone();
                    let tunnel = core
                        .in_block(forward::exchange(forward, self.downstream()))
                        .await?;
                    if let Some(tunnel) = tunnel {
                        let ended = tunnel.run(&mut self.side, &mut self.exchange);
                        return Box::pin(ended).await;
                    }
                    self.exchange.finish(End::Complete);
                }
                Next::Verify(pending, site) => {
                    let outcome = Box::pin(self.verify(pending)).await?;
                    self.exchange.verified(outcome, &self.service.worker);
                    if let Some(then) = self.answer_one(&Rc::clone(site))? {
                        next = then;
                        continue;
                    }
                }
                Next::Close => {
                    self.flush().await?;
                    if self.side.ending == Ending::Reset {
                        self.side.stream.reset_when_dropped();
                        return Ok(());
                    }
                    return self.linger().await;
                }
            }
            next = self.answer_what_has_arrived()?;
        }
    }

    /// Answers every request that is complete, as far as that needs no waiting.
    fn answer_what_has_arrived(&mut self) -> Result<Next, Error> {
        loop {
            let side = &mut self.side;
            if side.ending != Ending::Open {
                return Ok(Next::Close);
            }
            if !side.unread.is_complete() && !side.skip_unread(&self.service.worker) {
                return Ok(match side.ending {
                    Ending::Open => Next::Receive,
                    Ending::Close | Ending::Reset => Next::Close,
                });
            }
            if side.output.is_full() {
                return Ok(Next::Flush);
            }
            if side.input.is_empty() {
                return Ok(Next::Receive);
            }
            let site = self.service.site();
            if let Some(next) = self.answer_one(&site)? {
                return Ok(next);
            }
        }
    }

    /// Answers the request at the start of the input; `None` when that is done.
    fn answer_one(&mut self, site: &Rc<Site>) -> Result<Option<Next>, Error> {
        let Self {
            service,
            client,
            exchange,
            side,
            is_first,
        } = self;
        let worker = &service.worker;
        let mut slots = HeaderSlots::new();
        let Request {
            head,
            arrived,
            stream,
            to,
        } = match side.next(&mut slots, &worker.limits) {
            Parsed::Complete(request) => request,
            Parsed::Partial => return Ok(Some(Next::Receive)),
            Parsed::Refused(refusal) => {
                return self.refuse_and_close(refusal).map(|()| Some(Next::Close));
            }
        };
        // As soon as it is known, and before anybody acts on the head.
        if head.framing == Framing::Chunked {
            let mut reader = arrived.reader;
            if let Err(refusal) = reader.skip(arrived.bytes, &worker.limits) {
                return self.refuse_and_close(refusal).map(|()| Some(Next::Close));
            }
            exchange.keep_connection_fields(head.headers, worker);
        }
        let source = Source {
            worker,
            client,
            stream,
            origin: &OnceCell::new(),
        };
        match answer((&head, arrived), (source, is_first), site, exchange, to)? {
            Answered::Whole => exchange.finish(End::Complete),
            Answered::Begun(rest) => {
                side.take_head();
                return Ok(Some(Next::Rest(rest)));
            }
            Answered::Forwarded(forward) => return Ok(Some(Next::Forward(forward))),
            Answered::Pending(pending) => {
                return Ok(Some(Next::Verify(pending, Rc::clone(site))));
            }
        }
        side.take_head();
        Ok(None)
    }

    /// Waits for more of the client's bytes, as long as what it is sending may take. 0 is the end.
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

    /// Sets until when the client has to have sent more, and says what of. An idle connection must not keep its site, which
    /// is why this is no part of what waits.
    fn expect_more(&mut self) -> Expected {
        let now = self.worker().core.now();
        let timeouts = &self.service.site().settings.timeouts;
        // An empty line is what some clients send behind a body (RFC 9112 2.2), not the beginning of a head.
        let is_idle = matches!(self.side.input.bytes(), b"" | b"\r" | b"\r\n");
        let (expected, deadline) = if !self.side.unread.is_complete() {
            (Expected::Body, now + timeouts.client_body)
        } else if is_idle && self.side.head_since == NOT_YET {
            (Expected::Request, now + timeouts.client_idle)
        } else {
            self.side.head_since = self.side.head_since.min(now);
            let expected = match is_idle {
                true => Expected::Request,
                false => Expected::Head,
            };
            (expected, self.side.head_since + timeouts.client_head)
        };
        self.side.stream.set_deadline(Some(deadline));
        expected
    }

    /// [`Self::receive`] for a connection that is idle and is to end: a last request may still come, and after that it is
    /// told of the end.
    async fn receive_last(&mut self) -> Result<usize, Error> {
        // Asked of the deadline: remembered while it waits, it would cost memory of every idle connection.
        let since = match (self.side.head_since, self.side.stream.deadline()) {
            (NOT_YET, Some(deadline)) => {
                deadline.before(self.service.site().settings.timeouts.client_idle)
            }
            (NOT_YET, None) => self.worker().core.now(),
            (since, _) => since,
        };
        self.side
            .stream
            .set_deadline(Some(self.worker().idle_until(since)));
        match self.side.stream.recv(&mut self.side.input).await {
            Err(error) if error.kind == Kind::TimedOut => {}
            received => return received,
        }
        match self.side.stream.recv_arrived(&mut self.side.input).await {
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
        if !self.side.output.is_empty() {
            self.flush().await?;
        }
        Ok(pending.outcome().await)
    }

    /// Sends the answers written so far.
    fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        let patience = match self.exchange.settings_in_hand() {
            Some(settings) => settings.timeouts.client_send,
            None => self.service.site().settings.timeouts.client_send,
        };
        self.side.flush(patience)
    }

    /// Answers what was no request. Nothing behind it can be understood.
    fn refuse_and_close(&mut self, refusal: Refusal) -> Result<(), Error> {
        self.exchange.start(&self.service.site().settings);
        self.exchange.record().refuse();
        self.side.begin_refusal();
        let mut client = self.downstream();
        let mut reply = client.reply(Method::Get, Persistence::Close);
        refuse(refusal.status, refusal.reason, &[], &mut reply)?;
        self.exchange.finish(End::Complete);
        Ok(())
    }

    fn worker(&self) -> &Rc<Worker> {
        &self.service.worker
    }

    /// The client of the request in hand.
    fn downstream(&mut self) -> Downstream<'_> {
        Downstream {
            worker: &self.service.worker,
            client: &self.client,
            exchange: &mut self.exchange,
            side: Side::Http1(&mut self.side),
            origin: OnceCell::new(),
        }
    }

    /// Ends the connection so that its last answer arrives: closing with bytes unread would reset it (RFC 9112 9.6).
    async fn linger(&mut self) -> Result<(), Error> {
        // As far as one can know. While the server stops, clients that it did not expect to end are still sending.
        let all_read = self.side.input.is_empty()
            && self.side.unread.is_complete()
            && !self.side.stream.is_spent()
            && !self.worker().is_ending();
        if all_read {
            return Ok(());
        }
        self.say_goodbye(Behind::Answer).await
    }

    /// Ends our side, and reads on until the client ends its own, or has had enough time to.
    async fn say_goodbye(&mut self, behind: Behind) -> Result<(), Error> {
        // What is on its way has the time of the flush; only what comes after it is hurried.
        self.side.stream.shutdown().await?;
        self.side
            .stream
            .set_deadline(Some(self.worker().linger_until(behind)));
        let mut discarded = 0;
        while discarded < LINGER_BYTES {
            self.side.input.consume(self.side.input.bytes().len());
            match self.side.stream.recv(&mut self.side.input).await? {
                0 => return Ok(()),
                bytes => discarded += bytes,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Origin;
    use crate::crowd::Crowd;
    use crate::descriptors::Shares;
    use crate::harness::resources;
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
