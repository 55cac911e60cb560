//! A check over HTTP/2, one request on a connection of its own.

use std::rc::Rc;

use onrush_engine::{Input, Instant, Kind};
use onrush_http::Method;
use onrush_http::http2::hpack::Indexing;
use onrush_http::http2::message::{self, Lines};
use onrush_http::http2::{Cause, Connection, Content, End, Event, LocalSettings, Role, Stream};
use onrush_http::{HeaderSlots, Limits};
use onrush_tls::Transport;

use crate::limits::CHECK_BYTES_MAX;
use crate::proxy::failure::Failure;

pub(super) struct CheckRequest<'q> {
    /// The head as HTTP/1.1 text.
    pub(super) head: &'q str,
    pub(super) scheme: &'static str,
    /// The body; must fit a window of the default size.
    pub(super) body: &'q [u8],
}

#[derive(Debug, Default)]
pub(super) struct CheckResponse {
    /// 0 before it has arrived.
    pub(super) status: u16,
    /// The first bytes of the body.
    pub(super) body: Vec<u8>,
    /// Value of `grpc-status`, from the head or the trailers.
    pub(super) grpc_status: Option<u16>,
    pub(super) is_whole: bool,
}

/// Sends the request on a new `transport` and reads the response, as far as necessary, by `until`.
pub(super) async fn ask(
    transport: &Transport,
    question: &CheckRequest<'_>,
    limits: &Limits,
    until: Instant,
) -> Result<CheckResponse, Failure> {
    transport.set_deadline(Some(until));
    let mut out = Vec::new();
    let mut http = Connection::new(Role::Client, LocalSettings::DEFAULT, &mut out);
    let lines = Lines::of(question.head.as_bytes());
    let end = match question.body {
        [] => End::Stream,
        _ => End::Open,
    };
    let opened = http.open(end, Content::Any, &mut out, |encoder, out| {
        lines.put(question.scheme, Indexing::Without, encoder, out);
    });
    let stream = opened.expect("it is the first of its connection");
    if end == End::Open {
        let sent = http.send_body(stream, question.body, End::Stream, &mut out);
        sent.expect("it was opened for a body");
    }
    let mut asking = CheckExchange {
        http,
        out,
        stream,
        answer: CheckResponse::default(),
        limits,
    };
    let mut received = Vec::new();
    let mut input = Input::default();
    loop {
        if !asking.out.is_empty() {
            transport.queue(Rc::<[u8]>::from(std::mem::take(&mut asking.out)));
            transport.flush().await.map_err(Failure::NoResponse)?;
        }
        match transport.recv(&mut input).await {
            Ok(0) => return Err(Failure::Closed),
            Ok(_) => {}
            Err(error) if error.kind == Kind::TimedOut && asking.answer.status >= 200 => {
                return Ok(asking.answer);
            }
            Err(error) => return Err(Failure::NoResponse(error)),
        }
        received.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
        let bytes = asking.take(&received)?;
        received.drain(..bytes);
        if asking.answer.is_whole || asking.answer.body.len() >= CHECK_BYTES_MAX {
            return Ok(asking.answer);
        }
    }
}

struct CheckExchange<'l> {
    http: Connection,
    out: Vec<u8>,
    stream: Stream,
    answer: CheckResponse,
    limits: &'l Limits,
}

impl CheckExchange<'_> {
    /// Processes received frames. Returns the number of bytes consumed.
    fn take(&mut self, received: &[u8]) -> Result<usize, Failure> {
        if self.http.is_http1_response(received) {
            return Err(Failure::BadResponse("it speaks HTTP/1".into()));
        }
        let mut at = 0;
        while at < received.len() {
            let step = self.http.receive(&received[at..], &mut self.out);
            let step = step.map_err(|error| Failure::BadResponse(error.reason.into()))?;
            at += step.bytes;
            match step.event {
                Event::NeedMore(_) => break,
                Event::Head { fields, end, .. } => {
                    let mut slots = HeaderSlots::new();
                    let head =
                        message::response(fields, &mut slots, Method::Get, end.into(), self.limits);
                    let head = head.map_err(|rejection| Failure::BadResponse(rejection.into()))?;
                    self.answer.status = head.status;
                    self.answer.is_whole = end == End::Stream;
                    self.answer.grpc_status = grpc_status(fields.iter());
                }
                Event::Data { bytes, end, .. } => {
                    self.answer.body.extend_from_slice(bytes);
                    self.answer.is_whole = end == End::Stream;
                    let count = bytes.len() as u32; // of one receive
                    self.http.release(self.stream, count, &mut self.out);
                }
                Event::Trailers { fields, .. } => {
                    self.answer.grpc_status = grpc_status(fields.iter());
                    self.answer.is_whole = true;
                }
                Event::Reset { cause, .. } => {
                    return Err(Failure::BadResponse(match cause {
                        Cause::Peer(_) => "it reset the stream".into(),
                        Cause::Local(error) => error.reason.into(),
                    }));
                }
                Event::GoAway { last, .. } if last < self.stream.id() => {
                    return Err(Failure::Unprocessed("it accepts no requests"));
                }
                Event::DataOfClosed(_)
                | Event::GoAway { .. }
                | Event::Window(_)
                | Event::Settings
                | Event::Pong(_)
                | Event::Nothing => {}
            }
        }
        Ok(at)
    }
}

fn grpc_status<'f>(mut fields: impl Iterator<Item = (&'f str, &'f [u8])>) -> Option<u16> {
    let (_, value) = fields.find(|(name, _)| *name == "grpc-status")?;
    str::from_utf8(value).ok()?.parse().ok()
}
