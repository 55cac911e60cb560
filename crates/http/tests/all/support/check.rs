//! Properties of arbitrary bytes. These functions are the fuzz targets; the tests call them too.

use std::fmt::Debug;

use onrush_http::{Framing, Limits, Method, Parsed};

use super::drive::{self, Body, End, Event, Head, Sender};
use super::{fields, hpack, http2, proxy_protocol, reference};

/// A request head: the same result for every prefix, and as the reference.
pub(crate) fn request(input: &[u8]) {
    let whole = prefixes_agree(input, |input| drive::request_head(input, &Limits::DEFAULT));
    if within_bounds(input) {
        agree(input, whole, reference::request(input));
    }
}

/// A response head; the first byte selects the method of the request.
pub(crate) fn response(input: &[u8]) {
    let Some((&first, input)) = input.split_first() else {
        return;
    };
    let method = [Method::Get, Method::Head, Method::Connect][first as usize % 3];
    let whole = prefixes_agree(input, |input| {
        drive::response_head(input, method, &Limits::DEFAULT)
    });
    if within_bounds(input) {
        agree(input, whole, reference::response(input, method));
    }
}

/// A chunked body of a client and of a server: the same result for every split, and as the reference.
pub(crate) fn chunked(input: &[u8]) {
    for sender in [Sender::Client, Sender::Server] {
        let whole = pieces_agree(sender, Framing::Chunked, input, &Limits::DEFAULT);
        if within_bounds(input) {
            let passed =
                drive::forwarded_bytes(sender, Framing::Chunked, [input], &Limits::DEFAULT);
            let read =
                (whole.end == End::Complete).then_some((whole.payload, whole.consumed, passed));
            let reference = reference::chunked(input, sender == Sender::Server)
                .map(|body| (body.payload, body.bytes, body.passed));
            assert_eq!(read, reference, "{sender:?}: {}", input.escape_ascii());
        }
    }
}

/// A PROXY protocol header: the same result for every prefix, and as `ppp`.
pub(crate) fn proxy_protocol(input: &[u8]) {
    proxy_protocol::check(input);
}

/// HPACK blocks: as another implementation, and fields are unchanged by encoding.
pub(crate) fn hpack(input: &[u8]) {
    hpack::check(input);
}

/// HTTP/2 frames: the same result for every split, and bounded replies.
pub(crate) fn http2(input: &[u8]) {
    http2::check(input);
}

/// The member that a trusted proxy appends to a forwarding field is found after any value.
pub(crate) fn forwarded(input: &[u8]) {
    if let Some(value) = fields::value(input) {
        fields::forwarded(value);
    }
}

/// Field values have the meaning that slower parsers find, and written ones are parsed back.
pub(crate) fn fields(input: &[u8]) {
    if let Some(value) = fields::value(input) {
        fields::accept_encoding(value);
        fields::basic_auth(value);
        fields::cookie(value);
        fields::query(value);
        fields::upgrade(value);
    }
}

/// Pipelined requests: the same events for every split.
pub(crate) fn pipeline(input: &[u8]) -> Vec<Event> {
    let limits = &Limits::DEFAULT;
    let whole = drive::pipeline([input], limits);
    for cut in cuts(input.len()) {
        let (first, second) = input.split_at(cut);
        assert_eq!(
            drive::pipeline([first, second], limits),
            whole,
            "cut at {cut}: {}",
            input.escape_ascii()
        );
    }
    assert_eq!(
        drive::pipeline(input.chunks(1), limits),
        whole,
        "byte by byte: {}",
        input.escape_ascii()
    );
    whole
}

/// Result with a length in the input.
pub(crate) trait Measured: Debug + PartialEq {
    fn bytes(&self) -> usize;
}

impl Measured for Head {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Parses every prefix: it must be partial or equal to the whole. Returns the result of the whole.
pub(crate) fn prefixes_agree<T: Measured>(
    input: &[u8],
    read: impl Fn(&[u8]) -> Parsed<T>,
) -> Parsed<T> {
    let whole = read(input);
    for cut in cuts(input.len()) {
        let prefix = read(&input[..cut]);
        let fine = match (&prefix, &whole) {
            (Parsed::Partial, Parsed::Complete(head)) => cut < head.bytes(),
            (Parsed::Partial, _) => true,
            (Parsed::Refused(early), Parsed::Refused(refusal)) => early.status == refusal.status,
            (prefix, whole) => prefix == whole,
        };
        assert!(
            fine,
            "cut at {cut}: {prefix:?}, whole: {whole:?}: {}",
            input.escape_ascii()
        );
    }
    whole
}

/// Reads a body split at every byte, byte by byte, with `skip` and with `pass`. Returns the result of the whole.
pub(crate) fn pieces_agree(
    sender: Sender,
    framing: Framing,
    input: &[u8],
    limits: &Limits,
) -> Body {
    let whole = drive::body(sender, framing, [input], limits);
    for cut in cuts(input.len()) {
        let (first, second) = input.split_at(cut);
        same(
            &drive::body(sender, framing, [first, second], limits),
            &whole,
            input,
        );
    }
    same(
        &drive::body(sender, framing, input.chunks(1), limits),
        &whole,
        input,
    );
    let skipped = (!matches!(whole.end, End::Refused(_)), whole.consumed);
    same(
        &drive::skipped(sender, framing, [input], limits),
        &skipped,
        input,
    );
    same(
        &drive::skipped(sender, framing, input.chunks(1), limits),
        &skipped,
        input,
    );
    if skipped.0 {
        passes_normalised(sender, framing, &whole, input, limits);
    }
    whole
}

/// The forwarded bytes do not depend on the split, and the strict parser finds the same payload without surplus.
fn passes_normalised(
    sender: Sender,
    framing: Framing,
    whole: &Body,
    input: &[u8],
    limits: &Limits,
) {
    let passed = drive::forwarded_bytes(sender, framing, [input], limits);
    same(
        &drive::forwarded_bytes(sender, framing, input.chunks(1), limits),
        &passed,
        input,
    );
    let again = drive::body(Sender::Client, framing, [&passed[..]], limits);
    same(
        &(again.end, &again.payload),
        &(whole.end, &whole.payload),
        input,
    );
    same(
        &drive::forwarded_bytes(Sender::Client, framing, [&passed[..]], limits),
        &passed,
        input,
    );
}

fn same<T: PartialEq + Debug>(left: &T, right: &T, input: &[u8]) {
    assert_eq!(left, right, "{}", input.escape_ascii());
}

fn agree(input: &[u8], read: Parsed<Head>, reference: Option<Head>) {
    match (read, reference) {
        (Parsed::Complete(head), Some(reference)) => same(&head, &reference, input),
        (Parsed::Complete(head), None) => panic!("accepted: {head:?}: {}", input.escape_ascii()),
        (Parsed::Refused(refusal), Some(_)) => {
            panic!("refused: {refusal}: {}", input.escape_ascii())
        }
        (Parsed::Partial, Some(_)) => panic!("still partial: {}", input.escape_ascii()),
        (Parsed::Partial | Parsed::Refused(_), None) => {}
    }
}

/// Well below all limits, which the reference does not have.
fn within_bounds(input: &[u8]) -> bool {
    input.len() < 200 && input.split(|&b| b == b'\n').count() <= 30
}

/// Every split point, or a sample for long inputs, where all would take quadratic time.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(1 + len / 4096)
}
