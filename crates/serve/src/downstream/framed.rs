//! A second protocol, for tests: messages in frames, and several requests at a time on one connection. It is as unlike
//! HTTP/1 as HTTP/2 is, and shows that nothing above and below needs to know which of them a client speaks.
//!
//! ```text
//!   kind (1) id (4) length (4) payload
//! ```
//! A request is a head (method, path and host, a line each, and its fields), data, and its end. So is a response, which may
//! have interim heads before and trailers behind its data.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use onrush_engine::{Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::http2::hpack::Sensitivity;
use onrush_http::request::RequestHead;
use onrush_http::write::{CHUNK_END, LAST_CHUNK};
use onrush_http::{Framing, Header, HeaderSlots, Method, Version};
use onrush_tls::Transport;

use super::request_body::{Arrived, RequestBody};
use super::{Downstream, Side};
use crate::chosen::{Responded, respond};
use crate::client::Client;
use crate::exchange::Exchange;
use crate::output::Output;
use crate::proxy::forward;
use crate::record::End;
use crate::reply;
use crate::reply::framed::Reply;
use crate::request_context::Source;
use crate::service::Service;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    Head,
    /// A head with nothing behind it.
    HeadOnly,
    Interim,
    Data,
    Trailer,
    End,
    /// What came before is not whole.
    Reset,
}

const FRAMES: [Frame; 7] = [
    Frame::Head,
    Frame::HeadOnly,
    Frame::Interim,
    Frame::Data,
    Frame::Trailer,
    Frame::End,
    Frame::Reset,
];

const FRAME_HEAD_BYTES: usize = 9;

/// A frame as it is sent.
pub(crate) fn frame(kind: Frame, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    bytes.extend(id.to_be_bytes());
    bytes.extend((payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// The frame at the start of `bytes`: what it is, whose, what it carries, and its length.
pub(crate) fn parse(bytes: &[u8]) -> Option<(Frame, u32, &[u8], usize)> {
    let head = bytes.get(..FRAME_HEAD_BYTES)?;
    let number = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().expect("four"));
    let end = FRAME_HEAD_BYTES + number(5) as usize;
    let payload = bytes.get(FRAME_HEAD_BYTES..end)?;
    Some((FRAMES[usize::from(head[0])], number(1), payload, end))
}

/// What the requests of a connection share.
pub(crate) struct Shared {
    pub(crate) transport: Transport,
    requests: RefCell<HashMap<u32, Rc<Arriving>>>,
}

impl Shared {
    pub(crate) fn write(&self, kind: Frame, id: u32, payload: &[u8]) {
        let bytes: Rc<[u8]> = frame(kind, id, payload).into();
        self.transport.queue(bytes);
    }

    pub(crate) async fn flush(&self, patience: Duration) -> Result<(), Error> {
        self.transport.set_send_patience(patience);
        self.transport.flush().await
    }
}

/// What arrives of the body of one request.
#[derive(Default)]
struct Arriving {
    data: RefCell<Vec<u8>>,
    is_whole: Cell<bool>,
    /// The connection has ended before.
    is_cut: Cell<bool>,
    waiter: RefCell<Option<Waker>>,
}

impl Arriving {
    fn wake(&self) {
        self.waiter.take().into_iter().for_each(Waker::wake);
    }
}

/// One request of a connection.
pub(crate) struct Stream {
    shared: Rc<Shared>,
    id: u32,
    /// Method, path and host.
    start: [String; 3],
    fields: Vec<(String, Vec<u8>)>,
    /// What had arrived of the body when the request began.
    first: Vec<u8>,
    framing: Framing,
    arriving: Rc<Arriving>,
}

impl Stream {
    fn new(shared: &Rc<Shared>, id: u32, head: &[u8], arriving: &Rc<Arriving>) -> Self {
        let text = str::from_utf8(head).expect("a head is text");
        let mut lines = text.lines();
        let mut next = || lines.next().expect("a head has three lines").to_owned();
        let start = [next(), next(), next()];
        let fields = lines.map(|line| line.split_once(':').expect("a field"));
        let fields = fields.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        Self {
            shared: Rc::clone(shared),
            id,
            start,
            fields: fields.collect(),
            first: Vec::new(),
            framing: Framing::None,
            arriving: Rc::clone(arriving),
        }
    }

    /// What has arrived is what came with the head.
    fn begin(&mut self) {
        self.first = self.arriving.data.borrow().clone();
        let length = self
            .fields
            .iter()
            .find(|(name, _)| name == "content-length");
        let length = length.and_then(|(_, value)| str::from_utf8(value).ok()?.parse().ok());
        self.framing = match length {
            _ if self.arriving.is_whole.get() && self.first.is_empty() => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        };
    }

    pub(super) fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    pub(super) fn head<'h, 'b>(&'b self, slots: &'h mut HeaderSlots<'b>) -> RequestHead<'h, 'b> {
        let [method, target, host] = &self.start;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&**target, None),
        };
        let fields = self
            .fields
            .iter()
            .map(|(name, value)| Header { name, value });
        RequestHead {
            method: Method::of(method),
            method_text: method,
            target,
            path,
            query,
            authority: Some(host),
            version: Version::Http11,
            headers: slots.hold(fields),
            framing: self.framing,
            keep_alive: true,
            expect_continue: false,
            bytes: 256,
            sensitivity: Sensitivity::Usual,
        }
    }

    pub(super) fn arrived(&self) -> Arrived<'_> {
        // Of a body of unknown length nothing goes with the head.
        let bytes: &[u8] = match self.framing {
            Framing::Length(_) => &self.first,
            _ => b"",
        };
        Arrived::Framed(BodyReader::new(self.framing), bytes)
    }

    pub(super) fn take_request(&mut self, bytes: usize) {
        self.arriving.data.borrow_mut().drain(..bytes);
    }

    pub(super) async fn flush(&mut self, patience: Duration) -> Result<(), Error> {
        self.shared.flush(patience).await
    }

    pub(super) fn cut_off(&mut self) {
        self.shared.write(Frame::Reset, self.id, b"");
    }

    pub(super) fn split(&mut self) -> (RequestBody<'_>, reply::To<'_>) {
        let body = Body {
            arriving: &self.arriving,
            framing: self.framing,
        };
        (RequestBody::Framed(body), reply::To::Framed(self.reply()))
    }

    fn reply(&self) -> Reply<'_> {
        Reply::new(&self.shared, self.id)
    }
}

/// Where a body comes from.
pub(crate) struct Body<'a> {
    arriving: &'a Arriving,
    framing: Framing,
}

impl Body<'_> {
    pub(super) fn has_arrived(&self) -> bool {
        !self.arriving.data.borrow().is_empty()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.arriving.is_whole.get() && !self.has_arrived()
    }

    pub(super) fn left(&self) -> Option<u64> {
        let is_whole = self.arriving.is_whole.get();
        is_whole.then(|| self.arriving.data.borrow().len() as u64)
    }

    pub(super) fn take(&mut self) -> u64 {
        self.arriving.data.take().len() as u64
    }

    pub(super) fn append_to(&mut self, data: &mut Vec<u8>) {
        data.append(&mut self.arriving.data.borrow_mut());
    }

    pub(super) fn pass(&mut self, output: &mut Output, server: &Transport) -> Result<(), Error> {
        let data = self.arriving.data.take();
        if self.framing != Framing::Chunked {
            return output.put(server, &data);
        }
        if !data.is_empty() {
            output.put(server, format!("{:x}\r\n", data.len()).as_bytes())?;
            output.put(server, &data)?;
            output.put(server, CHUNK_END)?;
        }
        match self.arriving.is_whole.get() {
            true => output.put(server, LAST_CHUNK),
            false => Ok(()),
        }
    }

    pub(super) async fn receive(&mut self) -> Result<usize, Error> {
        poll_fn(|context| {
            if self.has_arrived() || self.arriving.is_whole.get() {
                return Poll::Ready(Ok(1));
            }
            if self.arriving.is_cut.get() {
                return Poll::Ready(Ok(0));
            }
            self.arriving.waiter.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// Requests whose responses are being made.
type Running = Vec<Pin<Box<dyn Future<Output = ()>>>>;

/// Serves a client of this protocol: all of its requests in one task.
pub(crate) async fn serve(transport: Transport, client: Client, service: Rc<Service>) {
    service.worker.meter.connection();
    let client = Rc::new(client);
    let shared = Rc::new(Shared {
        transport,
        requests: RefCell::default(),
    });
    let mut input = Input::default();
    let mut received = Vec::new();
    let mut running: Running = Vec::new();
    let mut has_ended = false;
    poll_fn(|context| {
        while !has_ended && let Poll::Ready(outcome) = shared.transport.poll_recv(&mut input) {
            has_ended = !matches!(outcome, Ok(1..));
            received.extend_from_slice(input.bytes());
            let bytes = input.bytes().len();
            input.consume(bytes);
        }
        while let Some((kind, id, payload, bytes)) = parse(&received) {
            match kind {
                Frame::Head | Frame::HeadOnly => {
                    let arriving: Rc<Arriving> = Rc::default();
                    arriving.is_whole.set(kind == Frame::HeadOnly);
                    let stream = Stream::new(&shared, id, payload, &arriving);
                    shared.requests.borrow_mut().insert(id, arriving);
                    let (client, service) = (Rc::clone(&client), Rc::clone(&service));
                    running.push(Box::pin(run(stream, client, service)));
                }
                Frame::Data => arrive(&shared, id, |it| it.data.borrow_mut().extend(payload)),
                _ => arrive(&shared, id, |it| it.is_whole.set(true)),
            }
            received.drain(..bytes);
        }
        if has_ended {
            let requests = shared.requests.borrow();
            requests.values().for_each(|it| it.is_cut.set(true));
            requests.values().for_each(|it| it.wake());
        }
        running.retain_mut(|request| request.as_mut().poll(context).is_pending());
        end_or_flush(&shared, has_ended && running.is_empty(), context)
    })
    .await;
}

fn arrive(shared: &Shared, id: u32, change: impl FnOnce(&Arriving)) {
    let requests = shared.requests.borrow();
    let arriving = requests.get(&id).expect("its head has come");
    change(arriving);
    arriving.wake();
}

/// Sends what the requests have written; ready when that is done and nothing follows.
fn end_or_flush(shared: &Shared, has_ended: bool, _: &mut Context<'_>) -> Poll<()> {
    match shared.transport.poll_flush() {
        Poll::Pending => Poll::Pending,
        Poll::Ready(Err(_)) => Poll::Ready(()),
        Poll::Ready(Ok(())) if has_ended => Poll::Ready(()),
        Poll::Ready(Ok(())) => Poll::Pending,
    }
}

/// Responds to one request.
async fn run(mut stream: Stream, client: Rc<Client>, service: Rc<Service>) {
    let site = service.site();
    let worker = &service.worker;
    let mut exchange = Exchange::default();
    let outcome = loop {
        stream.begin();
        let mut slots = HeaderSlots::new();
        let source = Source {
            worker,
            client: &client,
            stream: stream.transport(),
            origin: &OnceCell::new(),
        };
        let to = reply::To::Framed(stream.reply());
        let head = stream.head(&mut slots);
        let from = (source, &mut false);
        let responded = respond((&head, stream.arrived()), from, &site, &mut exchange, to);
        let side = Side::Framed(&mut stream);
        let downstream = Downstream {
            worker,
            client: &client,
            exchange: &mut exchange,
            side,
            origin: OnceCell::new(),
        };
        break match responded {
            Ok(Responded::Whole) => Ok(()),
            Ok(Responded::Begun(mut rest)) => rest.send(downstream).await,
            Ok(Responded::Forwarded(mut forward)) => {
                let outcome = forward::exchange(&mut forward, downstream).await;
                outcome.map(|tunnel| assert!(tunnel.is_none(), "none was asked for"))
            }
            Ok(Responded::Pending(mut pending)) => {
                let outcome = pending.outcome().await;
                exchange.verified(outcome, worker);
                continue;
            }
            Err(error) => Err(error),
        };
    };
    match outcome {
        Ok(()) => exchange.finish(End::Complete, 0),
        Err(_) => exchange.finish_with_client(outcome, 0),
    }
}
