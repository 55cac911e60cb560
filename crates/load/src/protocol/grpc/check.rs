//! Checks of untrusted gRPC input for tests and the fuzzer: responses split into pieces of any size, descriptor sets,
//! and messages.

use onrush_http::http2::End;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::hpack::{Decoder, Encoder};

use super::{Call, OUTCOMES};
use crate::requests::grpc::descriptors::Descriptors;
use crate::requests::response::Outcome;

const LIST_BYTES_MAX: u32 = 1 << 20;

/// Parses any response: a head, a body and optional trailers, separated by 0xfe. The first two bytes choose the status
/// and the size of the body's pieces. The outcome must not depend on the pieces, must agree with a simple reference
/// parser, and must have a name.
pub(crate) fn any_response(input: &[u8]) {
    let [status, piece, rest @ ..] = input else {
        return;
    };
    // Half of the values give 200, the others any status.
    let status = if *status < 128 {
        200
    } else {
        200 + u16::from(*status - 128) * 6
    };
    let mut parts = rest.splitn(3, |byte| *byte == 0xfe);
    let head = section(parts.next().unwrap_or_default());
    let body = parts.next().unwrap_or_default();
    let trailers = parts.next().map(section);
    let piece = usize::from(*piece).max(1);
    let whole = outcome_of(
        status,
        &head,
        body.chunks(body.len().max(1)),
        trailers.as_ref(),
    );
    let cut = outcome_of(status, &head, body.chunks(piece), trailers.as_ref());
    assert_eq!(cut, whole, "in pieces of {piece}");
    assert_eq!(
        whole.is_ok(),
        is_response(status, &head, body, trailers.as_ref())
    );
    if let Ok(outcome) = whole {
        assert!(outcome.number < OUTCOMES.count, "{outcome:?}");
        assert!(
            usize::from(outcome.class) < OUTCOMES.classes.len(),
            "{outcome:?}"
        );
        assert!(!OUTCOMES.phrase(outcome).is_empty());
        assert_eq!((OUTCOMES.is_failure)(outcome.number), outcome.number >= 200);
    }
}

/// Converts lines `name: value` to a section by way of HPACK.
fn section(lines: &[u8]) -> FieldSection {
    let mut block = Vec::new();
    let mut encoder = Encoder::new();
    encoder.begin(&mut block);
    for line in lines.split(|byte| *byte == b'\n') {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or_default();
        encoder.field_with_default_indexing(name, value.trim_ascii(), &mut block);
    }
    let mut section = FieldSection::default();
    // Too many malformed fields are a connection error; the fields before the error still form a section.
    let _ = Decoder::new(0).decode(&block, LIST_BYTES_MAX, &mut section);
    section
}

/// Returns the outcome of a response. Without `trailers` and body, the head ends the stream (Trailers-Only in the gRPC
/// protocol); with a body but without `trailers` the response is incomplete.
fn outcome_of<'a>(
    status: u16,
    head: &FieldSection,
    body: impl Iterator<Item = &'a [u8]>,
    trailers: Option<&FieldSection>,
) -> Result<Outcome, &'static str> {
    let mut body = body.peekable();
    let end = match (body.peek(), trailers) {
        (None, None) => End::Stream,
        (Some(_), _) | (None, Some(_)) => End::Open,
    };
    let mut call = Call::begin(status, head, end)?;
    for piece in body {
        call.take(piece)?;
    }
    if let Some(trailers) = trailers {
        call.end(trailers)?;
    }
    call.outcome()
}

/// Reference parser: whether these parts form a valid response.
fn is_response(
    status: u16,
    head: &FieldSection,
    body: &[u8],
    trailers: Option<&FieldSection>,
) -> bool {
    if status != 200 {
        return true;
    }
    let first = |section: &FieldSection, wanted: &str| {
        let mut fields = section.iter();
        let field = fields.find(|(name, _)| *name == wanted);
        field.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    };
    let content_type = first(head, "content-type").map(|value| value.to_ascii_lowercase());
    let rest = content_type
        .as_deref()
        .and_then(|value| value.strip_prefix("application/grpc"));
    let is_grpc = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['+', ';', ' ']));
    let is_plain = first(head, "grpc-encoding").is_none_or(|value| value == "identity");
    let ending = match trailers {
        Some(trailers) => Some(trailers),
        None => body.is_empty().then_some(head),
    };
    let ending = ending.filter(|ending| {
        let codes = ending.iter().filter(|(name, _)| *name == "grpc-status");
        codes.count() == 1
    });
    let code = ending.and_then(|ending| first(ending, "grpc-status"));
    let code = code.filter(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let code = code.and_then(|code| code.parse::<u64>().ok());
    let Some(code @ 0..=16) = code else {
        return false;
    };
    is_grpc && is_plain && is_body(body, code)
}

/// Whether a body is valid before `code`: one complete message with OK, otherwise at most one, possibly incomplete.
fn is_body(body: &[u8], code: u64) -> bool {
    let is_plain = body.first().is_none_or(|flag| *flag == 0);
    let length = body.get(1..5).map(|length| {
        length
            .iter()
            .fold(0_u64, |length, byte| length * 256 + u64::from(*byte))
    });
    let message = body.len().saturating_sub(5) as u64;
    match length {
        Some(length) if code == 0 => is_plain && message == length,
        Some(length) => is_plain && message <= length,
        None => is_plain && code > 0,
    }
}

/// Parses any descriptor set and any JSON message; the first two bytes are the length of the set. A method is callable
/// or refused with a message, and an encoded message decodes as its type.
pub(crate) fn any_descriptors(input: &[u8]) {
    let [high, low, rest @ ..] = input else {
        return;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low])).min(rest.len());
    let (set, json) = rest.split_at(length);
    let json = String::from_utf8_lossy(json);
    match Descriptors::parse(set) {
        Err(sentence) => assert!(!sentence.is_empty()),
        Ok(descriptors) => descriptors.encode_all(&json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u8, piece: u8, parts: &[&[u8]]) -> Vec<u8> {
        [&[status, piece][..], &parts.join(&0xfe)].concat()
    }

    #[test]
    fn truncated_grpc_responses_match_reference_parser() {
        const HEAD: &[u8] = b"content-type: application/grpc+proto\nserver: x";
        for parts in [
            &[HEAD, b"\0\0\0\0\x02ab", b"grpc-status: 0"][..],
            &[HEAD, b"\0\0\0\0\x02ab\0", b"grpc-status: 0"],
            &[HEAD, b"\0\0\0\0\x02ab", b"grpc-status: 0\ngrpc-status: 14"],
            &[HEAD, b"\0\0\0\0\x02a", b"grpc-status: 13\ngrpc-message: x"],
            &[b"content-type: application/grpc\ngrpc-status: 12"],
            &[b"content-type: text/html", b"no"],
        ] {
            let all = response(0, 1, parts);
            for end in 0..=all.len() {
                any_response(&all[..end]);
            }
            any_response(&response(200, 3, parts));
        }
    }
}
