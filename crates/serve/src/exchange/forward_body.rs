//! Forwards the received part of a body from one connection to another, without chunk extensions and without trailers
//! that must not pass.

use onrush_engine::{Buffer, Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::{Limits, Refusal};
use onrush_tls::Transport;

use crate::exchange::output::Output;

/// Whether a trailer with this name passes.
pub(crate) type TrailerFilter<'k> = &'k dyn Fn(&[u8]) -> bool;

/// Forwards the received part of the body from `input` to `output`.
///
/// # Errors
/// A refusal if the body is malformed; the inner error is from the recipient's connection.
pub(crate) fn pass(
    body: &mut BodyReader,
    input: &mut Input,
    output: &mut Output,
    to: &Transport,
    limits: &Limits,
    keeps: TrailerFilter<'_>,
) -> Result<Result<(), Error>, Refusal> {
    loop {
        let passing = body.pass(input.bytes(), limits, keeps)?;
        if passing.surplus.is_empty() {
            return Ok(output.take_from(to, input, passing.consumed));
        }
        let bytes = &input.bytes()[..passing.consumed];
        let written = output
            .put(to, &bytes[..passing.surplus.start])
            .and_then(|()| output.put(to, &bytes[passing.surplus.end..]));
        if written.is_err() {
            return Ok(written);
        }
        input.consume(passing.consumed);
    }
}

/// Copies a complete body at the start of `arrived` into `out` and returns its length. Returns `None` and copies
/// nothing if the body is incomplete, malformed or too long for `out`.
pub(crate) fn put_whole(
    body: &mut BodyReader,
    arrived: &[u8],
    out: &mut Buffer,
    limits: &Limits,
    keeps: TrailerFilter<'_>,
) -> Option<usize> {
    let before = out.len();
    let put = put_portions(body, arrived, out, limits, keeps);
    if put.is_none() {
        out.truncate(before);
    }
    put
}

/// Appends the received part of the body to `data` without framing, and the trailers that pass to `trailers` as lines.
/// Returns the number of bytes of input consumed.
///
/// # Errors
/// A refusal if the body is malformed.
pub(crate) fn append_payload(
    body: &mut BodyReader,
    input: &[u8],
    (data, trailers): (&mut Vec<u8>, &mut Vec<u8>),
    limits: &Limits,
    keeps: TrailerFilter<'_>,
) -> Result<usize, Refusal> {
    let mut at = 0;
    while at < input.len() && !body.is_complete() {
        let rest = &input[at..];
        if body.is_in_trailers() {
            let passing = body.pass(rest, limits, keeps)?;
            if passing.consumed == 0 {
                break;
            }
            trailers.extend_from_slice(&rest[..passing.surplus.start]);
            trailers.extend_from_slice(&rest[passing.surplus.end..passing.consumed]);
            at += passing.consumed;
            continue;
        }
        let step = body.advance(rest, limits)?;
        if step.consumed == 0 {
            break;
        }
        data.extend_from_slice(&rest[step.payload]);
        at += step.consumed;
    }
    Ok(at)
}

fn put_portions(
    body: &mut BodyReader,
    arrived: &[u8],
    out: &mut Buffer,
    limits: &Limits,
    keeps: TrailerFilter<'_>,
) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &arrived[at..];
        let passing = body.pass(rest, limits, keeps).ok()?;
        let is_last = passing.surplus.is_empty();
        if is_last && !body.is_complete() {
            return None;
        }
        let fits = out.put(&rest[..passing.surplus.start])
            && out.put(&rest[passing.surplus.end..passing.consumed]);
        at += passing.consumed;
        match (fits, is_last) {
            (false, _) => return None,
            (true, true) => return Some(at),
            (true, false) => {}
        }
    }
}
