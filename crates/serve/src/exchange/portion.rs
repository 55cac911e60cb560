//! What has arrived of a body, on its way from one connection to the other: as it came, but for what is only for the
//! recipient it was sent to (the extensions of chunks) or for nobody (trailers that must not pass).

use onrush_engine::{Buffer, Error, Input};
use onrush_http::body::BodyReader;
use onrush_http::{Limits, Refusal};
use onrush_tls::Transport;

use crate::exchange::output::Output;

/// Whether a trailer of this name passes.
pub(crate) type Keeps<'k> = &'k dyn Fn(&[u8]) -> bool;

/// Passes what has arrived of the body in `input` on to `output`.
///
/// # Errors
/// A refusal when it is no body; within, what the recipient's connection says.
pub(crate) fn pass(
    body: &mut BodyReader,
    input: &mut Input,
    output: &mut Output,
    to: &Transport,
    limits: &Limits,
    keeps: Keeps<'_>,
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

/// Puts a body that has arrived whole at the start of `arrived` into `out`: how many of the bytes it was. `None` when it is
/// not whole, not well-formed or does not fit; then nothing is put.
pub(crate) fn put_whole(
    body: &mut BodyReader,
    arrived: &[u8],
    out: &mut Buffer,
    limits: &Limits,
    keeps: Keeps<'_>,
) -> Option<usize> {
    let before = out.len();
    let put = put_portions(body, arrived, out, limits, keeps);
    if put.is_none() {
        out.truncate(before);
    }
    put
}

/// Appends what has arrived of the body in `input` to `data` without its framing, and what passes of its trailers to `trailers`,
/// as lines; how many bytes of the input are dealt with.
///
/// # Errors
/// A refusal when it is no body.
pub(crate) fn append_payload(
    body: &mut BodyReader,
    input: &[u8],
    (data, trailers): (&mut Vec<u8>, &mut Vec<u8>),
    limits: &Limits,
    keeps: Keeps<'_>,
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
    keeps: Keeps<'_>,
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
