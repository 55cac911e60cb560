//! One client from accept to goodbye.

use std::rc::Rc;

use onrush_engine::{Error, Input, Instant, Kind, Stream};
use onrush_http::body::BodyReader;
use onrush_http::request::{self, RequestHead};
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Refusal, Version};
use onrush_tls::Transport;

use crate::limits::{LINGER, LINGER_BYTES};
use crate::output::Output;
use crate::path;
use crate::proxy::forward::{self, Forward};
use crate::respond::file::Pieces;
use crate::respond::refuse::refuse;
use crate::respond::synthetic::{self, Synthetic};
use crate::respond::{Context, Writer};
use crate::route;
use crate::worker::{Answer, Worker};

/// A client's connection and what of it is half done.
pub(crate) struct Connection {
    pub(crate) stream: Transport,
    pub(crate) worker: Rc<Worker>,
    /// Received, not consumed: at its start stands the next head, or the rest of `unread`.
    pub(crate) input: Input,
    pub(crate) output: Output,
    /// The body of the last request, as far as nobody wanted it.
    pub(crate) unread: BodyReader,
    /// When the head that is arriving began to arrive.
    head_since: Option<Instant>,
    /// The connection ends behind the answers that are written.
    pub(crate) closing: bool,
    /// It ends with a reset, since the last answer is not whole and an orderly end would say that it is.
    pub(crate) resetting: bool,
}

/// What has to happen before the next request can be answered.
enum Next {
    /// More bytes of the client.
    Receive,
    /// Room for more answers.
    Flush,
    /// The rest of a file behind its head.
    File(Box<Pieces>),
    /// An answer that takes time or room.
    Synthetic(Box<Synthetic>),
    /// The answer of a server.
    Forward(Forward),
    /// Nothing will: the last answer is written.
    Close,
}

/// Serves `stream` until either side has had enough.
///
/// Not an `async fn`, which would keep its arguments beside the connection made of them: this future is most of what an
/// idle connection costs.
pub(crate) fn serve(stream: Stream, worker: Rc<Worker>) -> impl Future<Output = ()> {
    worker.meter.connection();
    let mut connection = Connection::new(Transport::plain(stream), worker);
    async move {
        // Why a client went away is its own business; what it was answered has been counted.
        let _: Result<(), Error> = connection.run().await;
    }
}

impl Connection {
    fn new(stream: Transport, worker: Rc<Worker>) -> Self {
        let head_since = Some(worker.core.now());
        Self {
            stream,
            worker,
            input: Input::default(),
            output: Output::default(),
            unread: BodyReader::new(Framing::None),
            head_since,
            closing: false,
            resetting: false,
        }
    }

    async fn run(&mut self) -> Result<(), Error> {
        loop {
            let next = self.answer_what_has_arrived()?;
            match next {
                Next::Receive => {
                    if !self.output.is_empty() {
                        self.flush().await?;
                    }
                    if self.receive().await? == 0 {
                        return Ok(());
                    }
                }
                Next::Flush => self.flush().await?,
                Next::File(pieces) => pieces.send(self).await?,
                Next::Synthetic(answer) => answer.send(self).await?,
                Next::Forward(mut forward) => forward::exchange(&mut forward, self).await?,
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
            worker,
            input,
            output,
            unread,
            closing,
            ..
        } = self;
        let mut slots = HeaderSlots::new();
        let head = match request::parse(input.bytes(), &mut slots, &worker.limits) {
            Parsed::Complete(head) => head,
            Parsed::Partial => return Ok(Some(Next::Receive)),
            Parsed::Refused(refusal) => {
                self.refuse_and_close(refusal)?;
                return Ok(Some(Next::Close));
            }
        };
        let has_body = head.framing != Framing::None;
        // Who waits for "100 Continue" and gets a final answer instead may or may not send the body: no way to know
        // where the next request would begin.
        let keep_alive =
            head.keep_alive && !worker.stopping.get() && !(head.expect_continue && has_body);
        let context = Context {
            method: head.method,
            version: head.version,
            keep_alive,
        };
        let mut writer = Writer {
            worker,
            stream,
            output,
        };
        let next = match choose(worker, &head) {
            Chosen::Fixed(fixed) => {
                fixed.answer(context, &mut writer)?;
                None
            }
            Chosen::Refuse(status, reason) => {
                refuse(status, reason, &[], context, &mut writer)?;
                None
            }
            Chosen::Files(files, path) => files
                .answer(&head, &path, context, &mut writer)?
                .map(Next::File),
            Chosen::Synthetic => {
                synthetic::answer(&head, context, &mut writer)?.map(Next::Synthetic)
            }
            Chosen::Forward(group) => {
                // The head stays in the input until a server has answered: the request may have to be sent again.
                let forward = Forward::new(worker, group, &head, input.bytes())?;
                return Ok(Some(Next::Forward(forward)));
            }
        };
        if !keep_alive {
            *closing = true;
        }
        *unread = BodyReader::new(head.framing);
        let bytes = head.bytes;
        self.request_is_consumed(bytes);
        Ok(next)
    }

    /// Throws away what has arrived of a body that nobody wanted; whether all of it has.
    pub(crate) fn skip_unread(&mut self) -> bool {
        match self.unread.skip(self.input.bytes(), &self.worker.limits) {
            Ok(bytes) => {
                self.input.consume(bytes);
                self.unread.is_complete()
            }
            Err(_) => {
                // Its answer is written already; all that is left is to end.
                self.worker.meter.refusal();
                self.closing = true;
                false
            }
        }
    }

    /// The first `bytes` of the input were a request, which is dealt with.
    pub(crate) fn request_is_consumed(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.head_since = None;
    }

    /// Waits for more of the client's bytes, as long as what it is sending may take. 0 is the end.
    async fn receive(&mut self) -> Result<usize, Error> {
        let now = self.worker.core.now();
        let timeouts = &self.worker.timeouts;
        if !self.unread.is_complete() {
            self.stream.set_deadline(Some(now + timeouts.client_body));
            return self.stream.recv(&mut self.input).await;
        }
        // An empty line is what some clients send behind a body (RFC 9112 2.2), not the beginning of a head.
        let is_idle = matches!(self.input.bytes(), b"" | b"\r" | b"\r\n");
        let deadline = match self.head_since {
            None if is_idle => now + timeouts.client_idle,
            since => *self.head_since.insert(since.unwrap_or(now)) + timeouts.client_head,
        };
        self.stream.set_deadline(Some(deadline));
        if is_idle {
            return self.stream.recv_unless_stopping(&mut self.input).await;
        }
        match self.stream.recv(&mut self.input).await {
            Err(Error {
                kind: Kind::TimedOut,
                ..
            }) => {
                self.refuse_and_close(Refusal {
                    status: 408,
                    reason: "the request's head took too long",
                })?;
                self.flush().await?;
                self.linger().await?;
                Ok(0)
            }
            received => received,
        }
    }

    /// Sends the answers written so far.
    pub(crate) fn flush(&mut self) -> impl Future<Output = Result<(), Error>> {
        self.stream
            .set_send_patience(self.worker.timeouts.client_send);
        self.output.flush(&self.stream)
    }

    /// Answers what was no request. Nothing behind it can be understood.
    fn refuse_and_close(&mut self, refusal: Refusal) -> Result<(), Error> {
        self.closing = true;
        self.worker.meter.refusal();
        let context = Context {
            method: Method::Get,
            version: Version::Http11,
            keep_alive: false,
        };
        let mut writer = Writer {
            worker: &self.worker,
            stream: &self.stream,
            output: &mut self.output,
        };
        refuse(refusal.status, refusal.reason, &[], context, &mut writer)
    }

    /// Ends the connection so that its last answer arrives: closing with bytes unread would reset it (RFC 9112 9.6).
    async fn linger(&mut self) -> Result<(), Error> {
        // As far as one can know. While the server stops, clients that it did not expect to end are still sending.
        let all_read = self.input.is_empty()
            && self.unread.is_complete()
            && !self.stream.is_spent()
            && !self.worker.stopping.get();
        if all_read {
            return Ok(());
        }
        // What is on its way has the time of the flush; only what comes after it is hurried.
        self.stream.shutdown().await?;
        self.stream
            .set_deadline(Some(self.worker.core.now() + LINGER));
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

/// What a request gets.
enum Chosen<'w, 'b> {
    Fixed(&'w crate::respond::fixed::Fixed),
    Files(&'w crate::respond::file::Files, std::borrow::Cow<'b, [u8]>),
    Synthetic,
    Forward(usize),
    Refuse(u16, &'static str),
}

fn choose<'w, 'b>(worker: &'w Worker, head: &RequestHead<'_, 'b>) -> Chosen<'w, 'b> {
    if head.method == Method::Connect {
        return Chosen::Refuse(501, "this is no tunnel");
    }
    let path = match path::normalize(head.path) {
        Ok(path) => path,
        Err(bad) => return Chosen::Refuse(400, bad.reason()),
    };
    let Some(route) = route::choose(&worker.routes, head.authority, &path) else {
        return Chosen::Refuse(404, "no route matches");
    };
    match &route.target {
        Answer::Fixed(fixed) => Chosen::Fixed(fixed),
        Answer::Synthetic => Chosen::Synthetic,
        Answer::Forward(group) => Chosen::Forward(*group),
        Answer::Files(files) => {
            let skipped = path.len() - route.rest(&path).len();
            Chosen::Files(
                files,
                match path {
                    std::borrow::Cow::Borrowed(path) => {
                        std::borrow::Cow::Borrowed(&path[skipped..])
                    }
                    std::borrow::Cow::Owned(path) => {
                        std::borrow::Cow::Owned(path[skipped..].to_vec())
                    }
                },
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::{OneLiner, Plan};
    use onrush_engine::{Address, Claim, Core, Listener, Simulation};

    #[test]
    fn an_idle_connection_costs_little_memory() {
        let core = Core::simulated(Simulation::with_seed(1));
        let plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
        let worker = Worker::new(core.clone(), &plan, &[]).ok().unwrap();
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::new(&core, &claim).unwrap();
        let (address, client) = (claim.address().clone(), core.clone());
        core.spawn(async move {
            let _client = Stream::connect(&client, &address, None).await.unwrap();
            let stream = listener.accept().await.unwrap();
            let bytes = size_of_val(&serve(stream, worker));
            // 1 KiB per idle connection leaves room for this, the socket's slot (200), its timer and its task entry.
            assert!(
                bytes <= 704,
                "the future of a connection has grown to {bytes} bytes"
            );
        });
        core.run();
    }
}
