//! Answers that the query describes, in the language of httpterm and haterm.

mod pattern;
mod query;

use std::time::Duration;

use onrush_engine::{Error, Kind, Part, random::Random};
use onrush_http::request::RequestHead;
use onrush_http::write::{HeadWriter, LAST_CHUNK};
use onrush_http::{Framing, Method, Refusal, Version};

use super::refuse::refuse;
use super::{Context, Writer};
use crate::connection::Connection;
use crate::hangup::unless_hung_up;
use crate::limits::SYNTHETIC_BYTES_PER_TURN;
use crate::worker::Worker;

use query::{Announced, Asked, Query};

/// An answer that takes time, or room, or has a will of its own about the connection.
pub(crate) struct Synthetic {
    query: Query,
    request: Request,
}

/// What is needed of a request once its head is gone.
#[derive(Clone, Copy)]
struct Request {
    method: Method,
    version: Version,
    /// Length of its head.
    bytes: usize,
    has_body: bool,
    expects_continue: bool,
    keep_alive: bool,
    etag: Option<u64>,
}

/// Answers a request at once if that is possible, or returns what has to be done.
pub(crate) fn answer(
    head: &RequestHead<'_, '_>,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<Option<Box<Synthetic>>, Error> {
    let mut drawn = 0;
    let draw = || {
        drawn += 1;
        random(writer.worker, drawn)
    };
    let query = match Query::parse(head.query, draw) {
        Asked::Answer(query) => query,
        Asked::Help => {
            answer_help(context, writer)?;
            return Ok(None);
        }
        Asked::Nonsense(why) => {
            refuse(400, why, &[], context, writer)?;
            return Ok(None);
        }
    };
    let request = Request {
        method: head.method,
        version: head.version,
        bytes: head.bytes,
        has_body: !matches!(head.framing, Framing::None | Framing::Length(0)),
        expects_continue: head.expect_continue,
        keep_alive: head.keep_alive,
        etag: query.etag.map(|seed| hash(seed, head)),
    };
    if !query.is_simple() || (request.has_body && !query.answers_first) {
        return Ok(Some(Box::new(Synthetic { query, request })));
    }
    write_head(&query, &request, Duration::ZERO, context, writer)?;
    let body = Body::of(&query, &request);
    if let Some(part) = body.part(0, body.length) {
        writer.put_or_part(part)?;
    }
    Ok(None)
}

impl Query {
    /// Whether it can be answered at once, in one go, and leaves the connection alone.
    fn is_simple(&self) -> bool {
        self.wait.is_zero()
            && self.pause.is_zero()
            && self.idle.is_none()
            && self.persists.is_none()
            && self.announced == Announced::Truth
            && !self.chunked
            && self.piece.is_none()
            && self.size <= pattern::LINES.len() as u64
    }

    /// Whether an answer of this status has a body, and a length (RFC 9110 6.4.1, 15.3.6).
    fn has_body(&self) -> bool {
        !matches!(self.status, 204 | 205 | 304)
    }
}

impl Request {
    /// Chunks are unknown to HTTP/1.0.
    fn is_answered_in_chunks(&self, query: &Query) -> bool {
        query.chunked && self.version == Version::Http11 && query.has_body()
    }
}

/// Bodies up to this length are copied behind their head; longer ones are sent from where they are.
const COPY_MAX: usize = 2048;

impl Writer<'_> {
    fn put_or_part(&mut self, part: &'static [u8]) -> Result<(), Error> {
        if part.len() <= COPY_MAX {
            return self.output.put(self.stream, part);
        }
        self.output.part(self.stream, Part::Static(part));
        Ok(())
    }
}

fn write_head(
    query: &Query,
    request: &Request,
    waited: Duration,
    context: Context,
    writer: &mut Writer<'_>,
) -> Result<(), Error> {
    writer.head(query.status, context, |head| {
        write_length(query, request, head);
        if !query.cacheable {
            head.raw(b"Cache-Control: no-cache\r\n");
        }
        if let Some(etag) = request.etag {
            head.header("ETag", format!("\"{etag:x}\"").as_bytes());
        }
        if query.verbose {
            write_report(query, request, waited, head);
        }
    })
}

fn write_length(query: &Query, request: &Request, head: &mut HeadWriter<'_>) {
    if !query.has_body() {
        // Of these only 205 may say so, and must (RFC 9110 15.3.6).
        if query.status == 205 {
            head.content_length(0);
        }
        return;
    }
    if query.size > 0 {
        let media: &[u8] = match query.random {
            true => b"application/octet-stream",
            false => b"text/plain",
        };
        head.header("Content-Type", media);
    }
    if request.is_answered_in_chunks(query) {
        head.chunked();
        return;
    }
    match query.announced {
        Announced::Truth => {
            head.content_length(query.size);
        }
        Announced::Lie(length) => {
            head.content_length(length);
        }
        Announced::Nothing => {}
    }
}

/// `X-req` about the request, `X-rsp` about the answer, worded as httpterm does. The time a head took to arrive is not
/// measured: nearly always it comes in one packet.
fn write_report(query: &Query, request: &Request, waited: Duration, head: &mut HeadWriter<'_>) {
    let mut digits = itoa::Buffer::new();
    let mut number = |head: &mut HeadWriter<'_>, number: u64| {
        head.raw(digits.format(number).as_bytes());
    };
    head.raw(b"X-req: size=");
    number(head, request.bytes as u64);
    head.raw(b", time=0 ms\r\nX-rsp: id=onrush, code=");
    number(head, u64::from(query.status));
    head.raw(b", cache=");
    number(head, u64::from(query.cacheable));
    if request.is_answered_in_chunks(query) {
        head.raw(b", chunked");
    }
    head.raw(b", size=");
    number(head, query.size);
    head.raw(b", time=");
    number(head, query.wait.as_millis() as u64);
    head.raw(b" ms (");
    number(head, waited.as_millis() as u64);
    head.raw(b" real)\r\n");
}

/// The bytes behind a head.
struct Body {
    /// Repeated up to `length`.
    pattern: &'static [u8],
    length: u64,
    /// What ends it.
    end: &'static [u8],
}

impl Body {
    fn of(query: &Query, request: &Request) -> Body {
        if !query.has_body() || request.method == Method::Head {
            return Body {
                pattern: b"",
                length: 0,
                end: b"",
            };
        }
        if request.is_answered_in_chunks(query) {
            return Body {
                pattern: &pattern::CHUNKS,
                length: query.size * pattern::CHUNK as u64,
                end: LAST_CHUNK,
            };
        }
        Body {
            pattern: if query.random {
                &pattern::RANDOM
            } else {
                &pattern::LINES
            },
            length: query.size,
            end: b"",
        }
    }

    /// As much as there is in one place from `at` on, at most `most`; `None` at the end.
    fn part(&self, at: u64, most: u64) -> Option<&'static [u8]> {
        let left = (self.length - at).min(most);
        if left == 0 {
            return None;
        }
        let from = (at % self.pattern.len() as u64) as usize;
        let rest = &self.pattern[from..];
        let count = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
        Some(&rest[..count])
    }
}

impl Synthetic {
    /// Reads what is to be read, waits, answers, waits again.
    pub(crate) async fn send(&self, connection: &mut Connection) -> Result<(), Error> {
        let Self { query, request } = self;
        let mut may_persist = request.keep_alive;
        if request.has_body && !query.answers_first && query.body_max > 0 {
            if request.expects_continue {
                connection
                    .output
                    .put(&connection.stream, b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            if !read_body(query.body_max, connection).await? {
                return Ok(());
            }
        } else if request.expects_continue && request.has_body {
            // Nobody knows whether the body will come.
            may_persist = false;
        }
        let waited = wait(query.wait, connection).await?;
        // Decided behind the wait: the server may have been asked to stop meanwhile.
        let is_followed = !connection.input.is_empty();
        let persists = query.persists(request, may_persist)
            && !connection
                .worker()
                .ends_with_this(is_followed, &connection.stream);
        connection.closing = !persists;
        let context = Context {
            method: request.method,
            version: request.version,
            keep_alive: persists,
        };
        write_head(query, request, waited, context, &mut connection.writer())?;
        send_body(query, &Body::of(query, request), connection).await?;
        if !query.pause.is_zero() {
            connection.flush().await?;
            let core = &connection.worker().core;
            core.sleep_unless_stopping(query.pause).await;
        }
        match query.idle {
            Some(idle) if persists => wait_for_next(idle, connection).await,
            _ => Ok(()),
        }
    }
}

impl Query {
    /// Whether the connection stays open behind the answer, when the client would have it so or not.
    fn persists(&self, request: &Request, wanted: bool) -> bool {
        let is_framed = !self.has_body()
            || request.method == Method::Head
            || request.is_answered_in_chunks(self);
        match self.announced {
            // Only the end of the connection ends the body.
            Announced::Nothing if !is_framed => false,
            Announced::Lie(length) if !is_framed && length != self.size => {
                self.persists == Some(true)
            }
            Announced::Truth | Announced::Nothing | Announced::Lie(_) => {
                self.persists.unwrap_or(wanted)
            }
        }
    }
}

/// Reads the request's body, at least `most` bytes of it or to its end. `false`: it is no body, or its end will not
/// come; what there was to say is written.
async fn read_body(most: u64, connection: &mut Connection) -> Result<bool, Error> {
    let mut read = 0;
    loop {
        match take_body(most - read, connection) {
            Ok(bytes) => read += bytes,
            Err(refusal) => {
                connection.exchange.record().refuse();
                return refuse_body(refusal, connection);
            }
        }
        if connection.unread.is_complete() || read >= most {
            return Ok(true);
        }
        connection.flush().await?;
        let timeout = connection.exchange.site().timeouts.client_body;
        let deadline = connection.worker().core.now() + timeout;
        connection.stream.set_deadline(Some(deadline));
        match connection.stream.recv(&mut connection.input).await {
            Ok(0) => {
                connection.closing = true;
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) if error.kind == Kind::TimedOut => {
                let reason = "the request's body took too long";
                return refuse_body(Refusal::new(408, reason), connection);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Consumes what has arrived of the body, until it is more than `most`.
fn take_body(most: u64, connection: &mut Connection) -> Result<u64, Refusal> {
    let limits = &connection.service.worker.limits;
    let mut taken = 0;
    while taken < most {
        let step = connection
            .unread
            .advance(connection.input.bytes(), limits)?;
        if step.consumed == 0 {
            break;
        }
        connection.input.consume(step.consumed);
        taken += step.payload.len() as u64;
    }
    Ok(taken)
}

/// Answers a body that is none, and ends the connection.
fn refuse_body(refusal: Refusal, connection: &mut Connection) -> Result<bool, Error> {
    connection.closing = true;
    let context = Context {
        method: Method::Get,
        version: Version::Http11,
        keep_alive: false,
    };
    let writer = &mut connection.writer();
    refuse(refusal.status, refusal.reason, &[], context, writer)?;
    Ok(false)
}

/// Waits before the answer and says how long that took. A core that stops lets it, for as long as it lets anybody.
async fn wait(time: Duration, connection: &mut Connection) -> Result<Duration, Error> {
    if time.is_zero() {
        return Ok(time);
    }
    if !connection.output.is_empty() {
        connection.flush().await?;
    }
    let core = &connection.worker().core;
    let since = core.now_exact();
    unless_hung_up(&connection.stream, core.sleep(time)).await?;
    Ok(core.now_exact() - since)
}

/// What a part counts at least towards a turn.
const PART_COST: usize = 4096;

async fn send_body(query: &Query, body: &Body, connection: &mut Connection) -> Result<(), Error> {
    let mut at = 0;
    let mut this_turn = 0;
    if query.piece.is_some() {
        connection.flush().await?;
    }
    while let Some(part) = body.part(at, query.piece.unwrap_or(u64::MAX)) {
        at += part.len() as u64;
        // However small it is, a part costs a system call.
        this_turn += part.len().max(PART_COST);
        connection
            .output
            .part(&connection.stream, Part::Static(part));
        let is_last = at == body.length;
        // The last part goes with its end, and with answers that follow.
        if !is_last || query.piece.is_some() {
            connection.flush().await?;
        }
        if this_turn >= SYNTHETIC_BYTES_PER_TURN {
            this_turn = 0;
            connection.worker().core.pause().await;
        }
    }
    connection.output.put(&connection.stream, body.end)
}

/// Waits for the next request for as long as this answer allows, instead of the usual time.
async fn wait_for_next(idle: Duration, connection: &mut Connection) -> Result<(), Error> {
    connection.flush().await?;
    if !connection.input.is_empty() || !connection.unread.is_complete() {
        return Ok(());
    }
    let deadline = connection.worker().core.now() + idle;
    connection.stream.set_deadline(Some(deadline));
    let received = connection
        .stream
        .recv_unless_stopping(&mut connection.input)
        .await;
    match received {
        Ok(0) => connection.closing = true,
        Ok(_) => {}
        Err(error) if error.kind == Kind::TimedOut => connection.closing = true,
        // Who ends the others that are idle ends this one, too.
        Err(error) if error.kind == Kind::Stopping => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Of the request line's method and target (FNV-1a): the same for the same request, on every core and server.
fn hash(seed: u64, head: &RequestHead<'_, '_>) -> u64 {
    let bytes = head.method_text.bytes().chain(head.target.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Random bits for the `r` of numbers, the `nth` of a request: from the clock and the number of requests so far, so that
/// a simulated core with the same seed draws the same.
fn random(worker: &Worker, nth: u64) -> u64 {
    let stream = worker.meter.totals().requests + (nth << 48);
    Random::stream(worker.core.now_exact().nanoseconds(), stream).bits()
}

fn answer_help(context: Context, writer: &mut Writer<'_>) -> Result<(), Error> {
    writer.head(200, context, |head| {
        head.header("Content-Type", b"text/plain; charset=utf-8")
            .header("Cache-Control", b"no-cache")
            .content_length(HELP.len() as u64);
    })?;
    if context.method == Method::Head {
        return Ok(());
    }
    writer.put_or_part(HELP.as_bytes())
}

const HELP: &str = "\
Onrush answers what the query asks for, in the language of httpterm and haterm.

  /?s=SIZE     bytes of the body                            /?s=20k
  /?r=STATUS   status of the answer, 200 to 999             /?r=404
  /?t=TIME     wait before the answer, in ms                /?t=500  /?t=5000r for 0 to 5 s
  /?P=TIME     pause behind the answer, in ms
  /?w=TIME     how long the connection may be idle then, in ms
  /?c=0        not cacheable
  /?C=1        close the connection                         /?C=0 keeps it
  /?K=1        keep the connection                          /?K=0 closes it
  /?k=1        chunked, one byte per chunk
  /?b=LENGTH   announce this length; 0 none; below 0 the true one
  /?B=BYTES    read no more than this of the request's body before the answer
  /?A=1        answer before the request's body is read
  /?e=NUMBER   an ETag, made of the request line and this number
  /?R=1        random bytes
  /?p=SIZE     send in pieces no larger than this
  /?v=0        without the fields X-req and X-rsp
  /?S=0        accepted, and without effect
  /? or /?h    this text

Numbers are decimal and may end in any of k, m, g (2^10, 2^20, 2^30) and r (by chance, from 0 up to the number).
Arguments are separated by any of & ? , ; /

  /?s=20k&c=0&t=700
  /?r=500,s=0,t=1000r
";

#[cfg(test)]
mod tests;
