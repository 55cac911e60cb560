//! One request to a server and its answer back.
//!
//! ```text
//!   client ── head ──> rewrite ──> server          client <── rewrite <── head ── server
//!          ── body ──> upload  ──>                        <── relay   <── body ──
//! ```
//! Bodies stream in both directions at once and are never held whole; a buffer that arrives is the buffer that leaves.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use onrush_engine::{Error, Input, Stream};
use onrush_http::body::BodyReader;
use onrush_http::request::{self, RequestHead};
use onrush_http::{Framing, HeaderSlots, Method, Parsed, Version};
use onrush_tls::Transport;

use super::download::{Done, Download};
use super::failure::Failure;
use super::group::Server;
use super::rewrite;
use super::upload::{Stopped, Upload};
use crate::connection::Connection;
use crate::passage::Asker;
use crate::respond::Context;
use crate::respond::refuse::refuse;
use crate::worker::Worker;

/// A request that goes to a server. Its head stays at the start of the client's input until nobody can ask for it to
/// be sent again.
///
/// Its numbers are small ones: this is part of every connection's memory.
pub(crate) struct Forward {
    group: u32,
    /// Which of the group's servers was chosen.
    server: u32,
    /// An idle connection to it, on which the request is queued already: rendered from the head while that was at
    /// hand, since parsing it once more costs as much as all the rest of the rewriting.
    queued: Option<(Transport, Queued)>,
    head_bytes: u32,
    method: Method,
    version: Version,
    keep_alive: bool,
    framing: Framing,
    /// Whether the head has left the client's input: from then on the request cannot be repeated.
    is_consumed: bool,
}

/// How far an exchange has come; both directions look at it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// All of the request has been sent.
    pub(crate) request_is_sent: Cell<bool>,
    /// The server has sent something: it has seen the request.
    pub(crate) server_has_spoken: Cell<bool>,
    /// The head of the answer has been written for the client.
    pub(crate) answer_has_begun: Cell<bool>,
    /// The client knows the end of the answer by the end of the connection, and by nothing else.
    pub(crate) ends_by_closing: Cell<bool>,
}

impl Forward {
    /// Chooses a server for the request whose `head` stands at the start of `input`.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn new(
        asker: Asker<'_>,
        group: usize,
        head: &RequestHead<'_, '_>,
        input: &[u8],
    ) -> Result<Self, Error> {
        let worker = asker.worker;
        let server = worker.groups[group].choose();
        let chosen = worker.groups[group].server(server);
        let queued = match chosen.pool.take() {
            Some(stream) => {
                let queued = queue_request(head, input, &stream, chosen, asker)?;
                Some((stream, queued))
            }
            None => None,
        };
        Ok(Self {
            group: group as u32,
            server: server as u32,
            queued,
            head_bytes: head.bytes as u32,
            method: head.method,
            version: head.version,
            keep_alive: head.keep_alive,
            framing: head.framing,
            is_consumed: false,
        })
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

    /// The server that was chosen, as it was written.
    pub(crate) fn server_name<'w>(&self, worker: &'w Worker) -> &'w str {
        let group = &worker.groups[self.group as usize];
        &group.server(self.server as usize).name
    }

    /// Takes the request's first `bytes` out of the client's input.
    fn consume(&mut self, client: &mut Connection, bytes: u32) {
        client.request_is_consumed(bytes as usize);
        self.is_consumed = true;
    }
}

/// A connection to a server while it serves one request.
struct Link {
    stream: Transport,
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
/// with an answer, or with a connection that ends in the middle of one.
///
/// # Errors
/// When the client is gone.
pub(crate) async fn exchange(forward: &mut Forward, client: &mut Connection) -> Result<(), Error> {
    if !client.output.is_empty() {
        client.flush().await?;
    }
    let worker = Rc::clone(&client.worker);
    let server = worker.groups[forward.group as usize].server(forward.server as usize);
    let progress = Progress::default();
    loop {
        let is_reused = forward.queued.is_some();
        let (stream, queued) = match forward.queued.take() {
            Some(queued) => queued,
            None => match connect(server, &worker).await {
                Ok(stream) => {
                    let queued = queue_again(client, &stream, server)?;
                    (stream, queued)
                }
                Err(error) => {
                    return fail(forward, client, server, &progress, Failure::Connect(error));
                }
            },
        };
        let mut link = Link {
            stream,
            input: Input::default(),
        };
        match attempt(forward, client, &mut link, queued, &progress).await {
            Ok(done) => {
                client.closing |= !done.client_lives;
                if done.server_lives && link.input.is_empty() {
                    server.pool.put(link.stream, worker.core.now());
                }
                return Ok(());
            }
            // The server closed the idle connection just when we took it (RFC 9112 9.3.1). A fresh one will do, unless
            // the request might have had an effect (RFC 9110 9.2.2). Once: a request that kills servers must not go
            // through all the idle connections there are.
            Err(failure)
                if is_reused
                    && failure.is_stale_connection()
                    && forward.method.is_idempotent()
                    && !forward.is_consumed
                    && !progress.server_has_spoken.get() =>
            {
                worker.meter.retry();
            }
            Err(failure) => return fail(forward, client, server, &progress, failure),
        }
    }
}

async fn connect(server: &Server, worker: &Worker) -> Result<Transport, Error> {
    let deadline = worker.core.now_exact() + worker.timeouts.connect;
    let stream = Stream::connect(&worker.core, &server.address, Some(deadline)).await?;
    Ok(Transport::plain(stream))
}

/// Sends the request over `link` and relays the answer.
async fn attempt(
    forward: &mut Forward,
    client: &mut Connection,
    link: &mut Link,
    queued: Queued,
    progress: &Progress,
) -> Result<Done, Failure> {
    let input_bytes = match queued {
        Queued::Whole { input_bytes } => input_bytes,
        Queued::Head => {
            forward.consume(client, forward.head_bytes);
            // Boxed: only requests whose body did not come with their head pay for two directions at once.
            return Box::pin(exchange_streaming(forward, client, link, progress)).await;
        }
    };
    let mut download = Download {
        forward,
        passage: &client.passage,
        worker: &client.worker,
        server: &link.stream,
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
    // A malformed body is left to the upload, which knows how to say so.
    let queued = match body.skip(arrived, &worker.limits) {
        Ok(bytes) if body.is_complete() && buffer.put(&arrived[..bytes]) => Queued::Whole {
            input_bytes: (head.bytes + bytes) as u32,
        },
        _ => Queued::Head,
    };
    stream.queue(buffer);
    Ok(queued)
}

/// [`queue_request`] from the client's input, where the head still stands.
fn queue_again(client: &Connection, stream: &Transport, server: &Server) -> Result<Queued, Error> {
    let worker = &client.worker;
    let input = client.input.bytes();
    let mut slots = HeaderSlots::new();
    let Parsed::Complete(head) = request::parse(input, &mut slots, &worker.limits) else {
        unreachable!("it was complete when its route was chosen, and is still there");
    };
    queue_request(&head, input, stream, server, client.asker())
}

/// Both directions at once: a server may answer before it has read the whole request.
async fn exchange_streaming(
    forward: &Forward,
    client: &mut Connection,
    link: &mut Link,
    progress: &Progress,
) -> Result<Done, Failure> {
    let mut body = BodyReader::new(forward.framing);
    let Connection {
        stream,
        worker,
        passage,
        input,
        output,
        unread,
        ..
    } = client;
    let outcome = {
        let (worker, client, server) = (&**worker, &*stream, &link.stream);
        let mut up = Upload {
            worker,
            client,
            input,
            server,
            body: &mut body,
        };
        let mut down = Download {
            forward,
            passage,
            worker,
            server,
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
    outcome
}

/// Tells the client, the log and the meter that no server has answered, or not to the end.
fn fail(
    forward: &mut Forward,
    client: &mut Connection,
    server: &Server,
    progress: &Progress,
    failure: Failure,
) -> Result<(), Error> {
    if let Failure::Client(error) = failure {
        return Err(error);
    }
    let worker = Rc::clone(&client.worker);
    let status = failure
        .status()
        .filter(|_| !progress.answer_has_begun.get());
    account(&worker, server, status, failure);
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
    // A body that was on its way when the server failed may be long, or never come.
    let keep_alive = forward.keep_alive
        && client.unread.is_complete()
        && !client.closing
        && !worker.stopping.get();
    client.closing |= !keep_alive;
    let context = Context {
        method: forward.method,
        version: forward.version,
        keep_alive,
    };
    refuse(status, failure.reason(), &[], context, &mut client.writer())
}

/// Tells the log and the meter; what the client did wrong is no news of the server.
fn account(worker: &Worker, server: &Server, status: Option<u16>, failure: Failure) {
    if let Failure::BadRequest(_) = failure {
        return worker.meter.refusal();
    }
    worker.meter.failure();
    let name = &server.name;
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
