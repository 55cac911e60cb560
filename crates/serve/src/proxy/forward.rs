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

use super::download::{Done, Download};
use super::failure::Failure;
use super::group::Server;
use super::rewrite;
use super::upload::{Stopped, Upload};
use crate::connection::Connection;
use crate::respond::refuse::refuse;
use crate::respond::{Context, Writer};
use crate::worker::Worker;

/// A request that goes to a server. Its head stays at the start of the client's input until nobody can ask for it to
/// be sent again.
pub(crate) struct Forward {
    group: usize,
    head_bytes: usize,
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
    /// The head of the answer has been written for the client.
    pub(crate) answer_has_begun: Cell<bool>,
}

impl Forward {
    pub(crate) fn new(group: usize, head: &RequestHead<'_, '_>) -> Self {
        Self {
            group,
            head_bytes: head.bytes,
            method: head.method,
            version: head.version,
            keep_alive: head.keep_alive,
            framing: head.framing,
            is_consumed: false,
        }
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

    /// Takes the request's first `bytes` out of the client's input.
    fn consume(&mut self, client: &mut Connection, bytes: usize) {
        client.request_is_consumed(bytes);
        self.is_consumed = true;
    }
}

/// A connection to a server while it serves one request.
struct Link {
    stream: Stream,
    input: Input,
    /// Whether it has served a request before: the server may have closed it in the meantime.
    is_reused: bool,
}

/// What of the request has been queued for the server.
enum Queued {
    /// All of it: the first bytes of the client's input.
    Whole { input_bytes: usize },
    /// Its head; the body is still to be sent.
    Head { body: BodyReader },
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
    let server = worker.groups[forward.group].choose();
    let progress = Progress::default();
    loop {
        let mut link = match connect(server, &worker).await {
            Ok(link) => link,
            Err(error) => return fail(forward, client, server, &progress, Failure::Connect(error)),
        };
        match attempt(forward, client, &mut link, server, &progress).await {
            Ok(done) => {
                client.closing |= !done.client_lives;
                if done.server_lives && link.input.is_empty() {
                    server.pool.put(link.stream, worker.core.now());
                }
                return Ok(());
            }
            // The server closed the idle connection just when we took it (RFC 9112 9.3.1). A fresh one will do, unless
            // the request might have had an effect (RFC 9110 9.2.2).
            Err(failure)
                if link.is_reused
                    && failure.is_stale_connection()
                    && forward.method.is_idempotent()
                    && !forward.is_consumed =>
            {
                worker.meter.retry();
            }
            Err(failure) => return fail(forward, client, server, &progress, failure),
        }
    }
}

async fn connect(server: &Server, worker: &Worker) -> Result<Link, Error> {
    if let Some(stream) = server.pool.take() {
        return Ok(Link {
            stream,
            input: Input::default(),
            is_reused: true,
        });
    }
    let deadline = worker.core.now_exact() + worker.timeouts.connect;
    let stream = Stream::connect(&worker.core, &server.address, Some(deadline)).await?;
    Ok(Link {
        stream,
        input: Input::default(),
        is_reused: false,
    })
}

/// Sends the request over `link` and relays the answer.
async fn attempt(
    forward: &mut Forward,
    client: &mut Connection,
    link: &mut Link,
    server: &Server,
    progress: &Progress,
) -> Result<Done, Failure> {
    let input_bytes = match queue_request(forward, client, link, server).map_err(Failure::Client)? {
        Queued::Whole { input_bytes } => input_bytes,
        Queued::Head { body } => {
            forward.consume(client, forward.head_bytes);
            // Boxed: only requests whose body did not come with their head pay for two directions at once.
            return Box::pin(exchange_streaming(forward, client, link, body, progress)).await;
        }
    };
    let mut download = Download {
        forward,
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

/// Renders the head for the server and puts a body behind it that has arrived whole.
fn queue_request(
    forward: &Forward,
    client: &Connection,
    link: &Link,
    server: &Server,
) -> Result<Queued, Error> {
    let worker = &client.worker;
    let input = client.input.bytes();
    let mut slots = HeaderSlots::new();
    let Parsed::Complete(head) = request::parse(input, &mut slots, &worker.limits) else {
        unreachable!("it was complete when its route was chosen, and is still there");
    };
    let mut buffer = worker.core.buffer()?;
    rewrite::request(&head, &server.name, &mut buffer);
    let unsent = BodyReader::new(forward.framing);
    let arrived = &input[forward.head_bytes..];
    let mut body = unsent;
    // A malformed body is left to the upload, which knows how to say so.
    let queued = match body.skip(arrived, &worker.limits) {
        Ok(bytes) if body.is_complete() && buffer.put(&arrived[..bytes]) => Queued::Whole {
            input_bytes: forward.head_bytes + bytes,
        },
        _ => Queued::Head { body: unsent },
    };
    link.stream.queue(buffer);
    Ok(queued)
}

/// Both directions at once: a server may answer before it has read the whole request.
async fn exchange_streaming(
    forward: &Forward,
    client: &mut Connection,
    link: &mut Link,
    mut body: BodyReader,
    progress: &Progress,
) -> Result<Done, Failure> {
    let Connection {
        stream,
        worker,
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

/// Tells the client, the log and the meter that no server has answered.
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
    worker.meter.failure();
    let Some(status) = failure
        .status()
        .filter(|_| !progress.answer_has_begun.get())
    else {
        worker.log.failure(
            &worker.core,
            format_args!("server {}: {failure}; the client was cut off", server.name),
        );
        // Half an answer is on its way: only the end of the connection tells the client that it is half.
        client.closing = true;
        return Ok(());
    };
    worker.log.failure(
        &worker.core,
        format_args!("server {}: {failure}; the client got {status}", server.name),
    );
    if !forward.is_consumed {
        let bytes = forward.head_bytes;
        forward.consume(client, bytes);
        client.unread = BodyReader::new(forward.framing);
    }
    // A body that was on its way when the server failed may be long, or never come.
    let keep_alive = forward.keep_alive && client.unread.is_complete() && !worker.stopping.get();
    client.closing |= !keep_alive;
    let context = Context {
        method: forward.method,
        version: forward.version,
        keep_alive,
    };
    let mut writer = Writer {
        worker: &worker,
        stream: &client.stream,
        output: &mut client.output,
    };
    refuse(status, failure.reason(), &[], context, &mut writer)
}
