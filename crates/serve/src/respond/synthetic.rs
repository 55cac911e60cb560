//! Synthetic responses described by the query, as in httpterm and haterm.

mod head;
mod pattern;
mod query;

use std::time::Duration;

use onrush_engine::{Error, Kind, Part, random::Random};
use onrush_http::http2::code::Code;
use onrush_http::request::RequestHead;
use onrush_http::{Framing, Method, Refusal};

use crate::exchange::downstream::Downstream;
use crate::exchange::refuse::refuse;
use crate::exchange::reply::fields::BodyLength;
use crate::exchange::reply::{BodyPassthrough, Persistence, Reply};
use crate::limits::SYNTHETIC_BYTES_PER_TURN;
use crate::rules::error_page::ErrorFormat;
use crate::worker::Worker;

use head::{Request, write_head};
use query::{Announced, ParsedQuery, Query};

/// A synthetic response that cannot be written at once.
pub(crate) struct Synthetic {
    query: Query,
    request: Request,
}

/// Responds at once if possible, or returns the rest of the work.
pub(crate) fn respond(
    head: &RequestHead<'_, '_>,
    reply: &mut Reply<'_>,
) -> Result<Option<Box<Synthetic>>, Error> {
    let mut drawn = 0;
    let draw = || {
        drawn += 1;
        random(reply.worker, drawn)
    };
    let query = match Query::parse(head.query, draw) {
        ParsedQuery::Response(query) => query,
        ParsedQuery::Help => {
            respond_with_help(reply)?;
            return Ok(None);
        }
        ParsedQuery::Nonsense(why) => {
            refuse((400, why), &[], ErrorFormat::of(head.headers), reply)?;
            return Ok(None);
        }
    };
    let request = Request {
        method: head.method,
        version: head.version,
        bytes: head.bytes,
        has_body: !matches!(head.framing, Framing::None | Framing::Length(0)),
        expects_continue: head.expect_continue,
        etag: query.etag.map(|seed| hash(seed, head)),
    };
    if !query.is_simple() || (request.has_body && !query.responds_first) {
        return Ok(Some(Box::new(Synthetic { query, request })));
    }
    write_head(&query, &request, Duration::ZERO, reply)?;
    let body = Body::of(&query, &request, BodyPassthrough::Payload);
    if let Some(part) = body.part(0, body.length) {
        put_or_part(part, reply)?;
    }
    Ok(None)
}

impl Query {
    /// Whether the response can be written at once and leaves the connection as the client wants it.
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
}

/// Bodies up to this length are copied after their head; longer ones are sent without a copy.
const COPY_MAX: usize = 2048;

/// Adds a part to the body.
fn put_or_part(part: &'static [u8], reply: &mut Reply<'_>) -> Result<(), Error> {
    match part.len() <= COPY_MAX {
        true => reply.data(part),
        false => reply.part(Part::Static(part)),
    }
}

struct Body {
    /// Repeated up to `length`.
    pattern: &'static [u8],
    length: u64,
    /// How it is framed.
    passage: BodyPassthrough,
}

impl Body {
    /// `passage` applies to chunked bodies.
    fn of(query: &Query, request: &Request, passage: BodyPassthrough) -> Body {
        let pattern = match query.random {
            true => &pattern::RANDOM[..],
            false => &pattern::LINES[..],
        };
        let (pattern, length, passage) = if !query.has_body() || request.method == Method::Head {
            (&b""[..], 0, BodyPassthrough::Payload)
        } else if request.gets_chunks(query) && passage == BodyPassthrough::AsFramed {
            let length = query.size * pattern::CHUNK as u64;
            (&pattern::CHUNKS[..], length, passage)
        } else {
            (pattern, query.size, BodyPassthrough::Payload)
        };
        Body {
            pattern,
            length,
            passage,
        }
    }

    /// The longest contiguous part from `at`, up to `most` bytes; `None` at the end.
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
    /// Reads the request body, waits, responds, waits again.
    pub(crate) async fn send(&self, mut client: Downstream<'_>) -> Result<(), Error> {
        let Self { query, request } = self;
        let client = &mut client;
        let mut wanted = Persistence::AsRequested;
        if request.has_body && !query.responds_first && query.body_max > 0 {
            if request.expects_continue {
                client.split(request.method).1.send_continue()?;
            }
            if !read_body(query.body_max, client).await? {
                return Ok(());
            }
        } else if request.expects_continue && request.has_body {
            // It is unknown whether the client will send the body.
            wanted = Persistence::Close;
        }
        let waited = wait(query.wait, client).await?;
        // Decided after the wait, because the server may be stopping by now.
        let persistence = query.persistence(request, wanted);
        let mut reply = client.reply(request.method, persistence);
        write_head(query, request, waited, &mut reply)?;
        let body = Body::of(query, request, reply.passage(Framing::Chunked));
        send_body(query, &body, client).await?;
        if !query.pause.is_zero() {
            client.flush().await?;
            let core = &client.worker.core;
            core.sleep_unless_stopping(query.pause).await;
        }
        match query.idle {
            Some(idle) => client.wait_for_next(idle).await,
            None => Ok(()),
        }
    }
}

impl Query {
    /// The persistence of the connection; `wanted` applies unless the query sets it.
    fn persistence(&self, request: &Request, wanted: Persistence) -> Persistence {
        let is_framed =
            !self.has_body() || request.method == Method::Head || request.gets_chunks(self);
        let asked = match self.persists {
            Some(true) => Persistence::Keep,
            Some(false) => Persistence::Close,
            None => wanted,
        };
        match self.announced {
            // The body ends with the connection.
            Announced::Nothing if !is_framed => Persistence::Close,
            Announced::Different(length) if !is_framed && length != self.size => {
                match self.persists {
                    Some(true) => Persistence::Keep,
                    Some(false) | None => Persistence::Close,
                }
            }
            Announced::Truth | Announced::Nothing | Announced::Different(_) => asked,
        }
    }
}

/// Reads the request body to its end, or at least `most` bytes of it. Returns `false` if it is malformed or cut off; an
/// error response, if any, is written.
async fn read_body(most: u64, client: &mut Downstream<'_>) -> Result<bool, Error> {
    let mut read = 0;
    loop {
        let limits = &client.worker.limits;
        match client.split(Method::Get).0.take(most - read, limits) {
            Ok(bytes) => read += bytes,
            Err(refusal) => {
                client.exchange.record().refuse();
                return refuse_body(refusal, client);
            }
        }
        if client.split(Method::Get).0.is_complete() || read >= most {
            return Ok(true);
        }
        client.flush().await?;
        let timeout = client.exchange.timeouts().client_body;
        let deadline = client.worker.core.now() + timeout;
        match client.split(Method::Get).0.receive(deadline).await {
            Ok(0) => {
                client.cut_off(Code::INTERNAL_ERROR);
                return Ok(false);
            }
            Ok(_) => {}
            Err(error) if error.kind == Kind::TimedOut => {
                let reason = "the request's body took too long";
                return refuse_body(Refusal::new(408, reason), client);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Responds to a malformed body and closes the connection.
fn refuse_body(refusal: Refusal, client: &mut Downstream<'_>) -> Result<bool, Error> {
    let mut reply = client.reply(Method::Get, Persistence::Close);
    refuse(
        (refusal.status, refusal.reason),
        &[],
        ErrorFormat::Text,
        &mut reply,
    )?;
    reply.end()?;
    Ok(false)
}

/// Waits before the response; returns the actual delay. A stopping core lets it wait until the drain timeout.
async fn wait(time: Duration, client: &mut Downstream<'_>) -> Result<Duration, Error> {
    if time.is_zero() {
        return Ok(time);
    }
    if client.has_unsent() {
        client.flush().await?;
    }
    let core = &client.worker.core;
    let since = core.now_exact();
    client.unless_hung_up(core.sleep(time)).await?;
    Ok(core.now_exact() - since)
}

/// Minimum cost of a part within a turn, because each costs a system call.
const PART_COST: usize = 4096;

async fn send_body(query: &Query, body: &Body, client: &mut Downstream<'_>) -> Result<(), Error> {
    let mut at = 0;
    let mut this_turn = 0;
    if query.piece.is_some() {
        client.flush().await?;
    }
    let patience = client.exchange.timeouts().client_send;
    let mut reply = client.split(Method::Get).1;
    while let Some(part) = body.part(at, query.piece.unwrap_or(u64::MAX)) {
        // Produce data only when the client can accept it.
        reply.room().await?;
        at += part.len() as u64;
        this_turn += part.len().max(PART_COST);
        match body.passage {
            BodyPassthrough::Payload => reply.part(Part::Static(part))?,
            BodyPassthrough::AsFramed => {
                let (output, stream) = reply.as_framed();
                output.part(stream, Part::Static(part));
            }
        }
        let is_last = at == body.length;
        // The last part is sent together with the end of the body and later responses.
        if !is_last || query.piece.is_some() {
            reply.flush(patience).await?;
        }
        if this_turn >= SYNTHETIC_BYTES_PER_TURN {
            this_turn = 0;
            reply.worker.core.yield_now().await;
        }
    }
    reply.end()
}

/// Hash of method and target (FNV-1a): the same for the same request on every core and server.
fn hash(seed: u64, head: &RequestHead<'_, '_>) -> u64 {
    let bytes = head.method_text.bytes().chain(head.target.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Random bits for the `nth` number with `r`: derived from the clock and the number of requests so far, so that a
/// simulated core with the same seed draws the same.
fn random(worker: &Worker, nth: u64) -> u64 {
    let stream = worker.meter.totals().requests + (nth << 48);
    Random::stream(worker.core.now_exact().nanoseconds(), stream).bits()
}

fn respond_with_help(reply: &mut Reply<'_>) -> Result<(), Error> {
    reply.head(200, |head| {
        head.header("Content-Type", b"text/plain; charset=utf-8")
            .header("Cache-Control", b"no-cache")
            .length(BodyLength::Known(HELP.len() as u64));
    })?;
    if reply.method == Method::Head {
        return Ok(());
    }
    put_or_part(HELP.as_bytes(), reply)
}

const HELP: &str = "\
Onrush responds with the response described by the query, in the language of httpterm and haterm.

  /?s=SIZE     bytes of the body                            /?s=20k
  /?r=STATUS   status of the response, 200 to 999           /?r=404
  /?t=TIME     wait before the response, in ms              /?t=500  /?t=5000r for 0 to 5 s
  /?P=TIME     pause behind the response, in ms
  /?w=TIME     how long the connection may be idle then, in ms
  /?c=0        not cacheable
  /?C=1        close the connection                         /?C=0 keeps it
  /?K=1        keep the connection                          /?K=0 closes it
  /?k=1        chunked, one byte per chunk
  /?b=LENGTH   announce this length; 0 none; below 0 the true one
  /?B=BYTES    read no more than this of the request's body before the response
  /?A=1        respond before the request's body is read
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
