//! Feeds the crate with bytes in pieces of any size, as a connection does, and collects the results.

use onrush_http::body::BodyReader;
use onrush_http::{
    Framing, HeaderSlots, Limits, Method, Parsed, Refusal, Version, request, response,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) path: String,
    pub(crate) query: Option<String>,
    pub(crate) authority: Option<String>,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) version: Version,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    pub(crate) expect_continue: bool,
    pub(crate) bytes: usize,
}

/// Parses a request head from exactly these bytes.
pub(crate) fn request_head(input: &[u8], limits: &Limits) -> Parsed<Head> {
    let mut slots = HeaderSlots::new();
    match request::parse(input, &mut slots, limits) {
        Parsed::Complete(head) => Parsed::Complete(Head {
            method: head.method_text.into(),
            target: head.target.into(),
            path: head.path.into(),
            query: head.query.map(String::from),
            authority: head.authority.map(String::from),
            status: 0,
            reason: String::new(),
            version: head.version,
            headers: head
                .headers
                .iter()
                .map(|h| (h.name.into(), h.value.into()))
                .collect(),
            framing: head.framing,
            keep_alive: head.keep_alive,
            expect_continue: head.expect_continue,
            bytes: head.bytes,
        }),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

/// Parses a response head from exactly these bytes.
pub(crate) fn response_head(input: &[u8], method: Method, limits: &Limits) -> Parsed<Head> {
    let mut slots = HeaderSlots::new();
    match response::parse(input, &mut slots, method, limits) {
        Parsed::Complete(head) => Parsed::Complete(Head {
            method: String::new(),
            target: String::new(),
            path: String::new(),
            query: None,
            authority: None,
            status: head.status,
            reason: head.reason.into(),
            version: head.version,
            headers: head
                .headers
                .iter()
                .map(|h| (h.name.into(), h.value.into()))
                .collect(),
            framing: head.framing,
            keep_alive: head.keep_alive,
            expect_continue: false,
            bytes: head.bytes,
        }),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Client,
    Server,
}

impl Sender {
    fn reader(self, framing: Framing) -> BodyReader {
        match self {
            Sender::Client => BodyReader::new(framing),
            Sender::Server => BodyReader::of_response(framing),
        }
    }
}

/// State at the end of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Complete,
    /// More input is needed; the end of the connection here would be an error.
    More,
    /// The body ends here if the connection does.
    Open,
    Refused(u16),
}

/// Result of reading a body. After a refusal only `end` is meaningful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) end: End,
    pub(crate) payload: Vec<u8>,
    pub(crate) trailers: Vec<u8>,
    pub(crate) consumed: usize,
}

impl Body {
    fn refused(refusal: Refusal) -> Body {
        Body {
            end: End::Refused(refusal.status),
            payload: Vec::new(),
            trailers: Vec::new(),
            consumed: 0,
        }
    }
}

/// Reads a body that arrives in these pieces.
pub(crate) fn body<'p>(
    sender: Sender,
    framing: Framing,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: &Limits,
) -> Body {
    let mut reader = sender.reader(framing);
    let mut body = Body {
        end: End::More,
        payload: Vec::new(),
        trailers: Vec::new(),
        consumed: 0,
    };
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let in_trailers = reader.is_in_trailers();
            let step = match reader.advance(&buffer, limits) {
                Ok(step) => step,
                Err(refusal) => return Body::refused(refusal),
            };
            assert!(step.payload.start <= step.payload.end && step.payload.end <= step.consumed);
            assert!(step.surplus.start <= step.surplus.end && step.surplus.end <= step.consumed);
            assert!(step.consumed <= buffer.len());
            body.payload.extend_from_slice(&buffer[step.payload]);
            if in_trailers {
                body.trailers.extend_from_slice(&buffer[..step.consumed]);
            }
            body.consumed += step.consumed;
            buffer.drain(..step.consumed);
            if step.consumed == 0 {
                break;
            }
        }
    }
    body.end = match (reader.is_complete(), reader.end_of_input()) {
        (true, _) => End::Complete,
        (false, Ok(())) => End::Open,
        (false, Err(_)) => End::More,
    };
    body
}

/// Reads it with `skip`, which returns no payload.
pub(crate) fn skipped<'p>(
    sender: Sender,
    framing: Framing,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: &Limits,
) -> (bool, usize) {
    let mut reader = sender.reader(framing);
    let mut consumed = 0;
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        match reader.skip(&buffer, limits) {
            Ok(bytes) => {
                consumed += bytes;
                buffer.drain(..bytes);
            }
            Err(_) => return (false, 0),
        }
    }
    (true, consumed)
}

/// Bytes to forward; empty after a refusal.
pub(crate) fn forwarded_bytes<'p>(
    sender: Sender,
    framing: Framing,
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: &Limits,
) -> Vec<u8> {
    let mut reader = sender.reader(framing);
    let mut passed = Vec::new();
    let mut buffer = Vec::new();
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let Ok(passing) = reader.pass(&buffer, limits, &|_| true) else {
                return Vec::new();
            };
            passed.extend_from_slice(&buffer[..passing.surplus.start]);
            passed.extend_from_slice(&buffer[passing.surplus.end..passing.consumed]);
            buffer.drain(..passing.consumed);
            if passing.surplus.is_empty() {
                break;
            }
        }
    }
    passed
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Message {
        head: Box<Head>,
        payload: Vec<u8>,
    },
    /// The input ends within a head or a body; no event at the end of a message.
    Partial,
    Refused(u16),
}

pub(crate) fn pipeline<'p>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    limits: &Limits,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut buffer = Vec::new();
    let mut open: Option<(Head, BodyReader, Vec<u8>)> = None;
    for piece in pieces {
        buffer.extend_from_slice(piece);
        if let Err(refusal) = pipeline_piece(&mut buffer, &mut open, &mut events, limits) {
            events.push(Event::Refused(refusal.status));
            return events;
        }
    }
    if open.is_some() || !buffer.is_empty() {
        events.push(Event::Partial);
    }
    events
}

fn pipeline_piece(
    buffer: &mut Vec<u8>,
    open: &mut Option<(Head, BodyReader, Vec<u8>)>,
    events: &mut Vec<Event>,
    limits: &Limits,
) -> Result<(), Refusal> {
    loop {
        if open.is_none() {
            match request_head(buffer, limits) {
                Parsed::Complete(head) => {
                    buffer.drain(..head.bytes);
                    let reader = BodyReader::new(head.framing);
                    *open = Some((head, reader, Vec::new()));
                }
                Parsed::Partial => return Ok(()),
                Parsed::Refused(refusal) => return Err(refusal),
            }
        }
        let Some((head, mut reader, mut payload)) = open.take() else {
            return Ok(());
        };
        loop {
            let step = reader.advance(buffer, limits)?;
            payload.extend_from_slice(&buffer[step.payload]);
            buffer.drain(..step.consumed);
            if step.consumed == 0 {
                break;
            }
        }
        if !reader.is_complete() {
            *open = Some((head, reader, payload));
            return Ok(());
        }
        events.push(Event::Message {
            head: Box::new(head),
            payload,
        });
    }
}
