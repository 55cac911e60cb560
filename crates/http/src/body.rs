//! Bodies (RFC 9112 6, 7.1): which of the bytes behind a head belong to the message, and which of those are payload.

use std::ops::Range;

use crate::field;
use crate::framing::Framing;
use crate::limits::{CHUNK_DIGITS_MAX, LENGTH_MAX, Limits};
use crate::refusal::Refusal;

/// Follows one body through its bytes, in any pieces. Small and plain, so that a connection can keep one while its
/// buffer is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyReader {
    state: State,
    /// Chunk line bytes that payload has not paid for; <= `chunk_excess_bytes_max`.
    excess: u32,
    /// Bytes of trailer lines read; <= `trailer_bytes_max`.
    trailer_bytes: u32,
    /// Trailer fields read; <= `trailers_max`.
    trailers: u16,
}

// Every connection keeps one, with or without a buffer.
const _: () = assert!(size_of::<BodyReader>() <= 32);

/// What comes next.
///
/// ```text
///                ┌──────────── ExpectChunkEnd <──────────┐
///                v                                       │
/// Chunked ──> ExpectChunkLine ── size > 0 ──> ExpectChunkData(size)
///                └───────────── size = 0 ──> ExpectTrailers ── empty line ──> Complete
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Complete,
    /// So many bytes are left; never 0.
    ExpectLength(u64),
    ExpectClose,
    ExpectChunkLine,
    /// So many bytes of the chunk are left; never 0.
    ExpectChunkData(u64),
    /// CRLF behind a chunk's data.
    ExpectChunkEnd,
    ExpectTrailers,
}

/// What one look at the input came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many bytes from the start of the input are done with; the rest must be shown again.
    pub consumed: usize,
    /// The payload among them, as a range of the input; may be empty.
    pub payload: Range<usize>,
}

impl BodyReader {
    /// A reader for the body behind a head with this framing.
    #[inline]
    pub const fn new(framing: Framing) -> BodyReader {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Complete,
            Framing::Length(length) => State::ExpectLength(length),
            Framing::Chunked => State::ExpectChunkLine,
            Framing::UntilClose => State::ExpectClose,
        };
        BodyReader {
            state,
            excess: 0,
            trailer_bytes: 0,
            trailers: 0,
        }
    }

    /// Looks at `input`, which starts where the last step's `consumed` ended, and takes at most one run of payload.
    /// Call again while something was consumed; `consumed == 0` before the end means more input is needed. Chunk and
    /// trailer lines are taken only whole, so up to `chunk_line_bytes_max` or `trailer_bytes_max` bytes may stay.
    /// After a refusal the reader is of no more use.
    #[inline]
    pub fn advance(&mut self, input: &[u8], limits: &Limits) -> Result<Step, Refusal> {
        match self.state {
            State::Complete => Ok(Step {
                consumed: 0,
                payload: 0..0,
            }),
            State::ExpectLength(left) => {
                let take = take(left, input.len());
                self.state = match left - take as u64 {
                    0 => State::Complete,
                    left => State::ExpectLength(left),
                };
                Ok(Step {
                    consumed: take,
                    payload: 0..take,
                })
            }
            State::ExpectClose => Ok(Step {
                consumed: input.len(),
                payload: 0..input.len(),
            }),
            State::ExpectChunkLine
            | State::ExpectChunkData(_)
            | State::ExpectChunkEnd
            | State::ExpectTrailers => self.advance_chunked(input, limits),
        }
    }

    /// How many bytes from the start of `input` belong to this message, its chunk lines and trailers included: to
    /// relay them as they are, or to drain them.
    #[inline]
    pub fn skip(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Refusal> {
        let mut at = 0;
        while at < input.len() {
            let consumed = self.advance(&input[at..], limits)?.consumed;
            if consumed == 0 {
                break;
            }
            at += consumed;
        }
        Ok(at)
    }

    /// Whether the body has been read to its end. One that ends with the connection never is by itself.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether what comes next are trailer lines; `advance` takes only those and the empty line behind them then.
    pub fn is_in_trailers(&self) -> bool {
        self.state == State::ExpectTrailers
    }

    /// The connection has ended here: fine for a body that is complete or ends with the connection, a truncated
    /// message otherwise (RFC 9112 8).
    pub fn end_of_input(&self) -> Result<(), Refusal> {
        match self.state {
            State::Complete | State::ExpectClose => Ok(()),
            State::ExpectLength(_)
            | State::ExpectChunkLine
            | State::ExpectChunkData(_)
            | State::ExpectChunkEnd
            | State::ExpectTrailers => Err(Refusal::bad("the connection ended within a body")),
        }
    }

    /// Takes chunk ends and lines up to and with one run of payload, the last chunk's line, or trailers.
    fn advance_chunked(&mut self, input: &[u8], limits: &Limits) -> Result<Step, Refusal> {
        let mut at = 0;
        if self.state == State::ExpectTrailers {
            return self.advance_trailers(input, limits);
        }
        if self.state == State::ExpectChunkEnd {
            at += self.take_chunk_end(input)?;
        }
        if self.state == State::ExpectChunkLine {
            at += self.take_chunk_line(&input[at..], limits)?;
        }
        let State::ExpectChunkData(left) = self.state else {
            return Ok(Step {
                consumed: at,
                payload: at..at,
            });
        };
        let take = take(left, input.len() - at);
        let payload = at..at + take;
        at += take;
        if left > take as u64 {
            self.state = State::ExpectChunkData(left - take as u64);
            return Ok(Step {
                consumed: at,
                payload,
            });
        }
        self.state = State::ExpectChunkEnd;
        at += self.take_chunk_end(&input[at..])?;
        Ok(Step {
            consumed: at,
            payload,
        })
    }

    /// Exactly CRLF; a chunk that is longer than it says would otherwise move the boundary.
    fn take_chunk_end(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        match input {
            [] | [b'\r'] => Ok(0),
            [b'\r', b'\n', ..] => {
                self.state = State::ExpectChunkLine;
                Ok(2)
            }
            _ => Err(Refusal::bad("no CRLF behind a chunk")),
        }
    }

    fn take_chunk_line(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Refusal> {
        let Some(line) = ChunkLine::parse(input, limits)? else {
            return Ok(0);
        };
        let paid = line.size.saturating_mul(2).saturating_add(16);
        let excess = (u64::from(self.excess) + line.bytes as u64).saturating_sub(paid);
        self.excess = match u32::try_from(excess) {
            Ok(excess) if excess <= limits.chunk_excess_bytes_max => excess,
            _ => return Err(Refusal::bad("too many bytes in chunk lines")),
        };
        self.state = match line.size {
            0 => State::ExpectTrailers,
            size => State::ExpectChunkData(size),
        };
        Ok(line.bytes)
    }

    /// Takes whole trailer lines, and the empty line that ends them (RFC 9112 7.1.2).
    fn advance_trailers(&mut self, input: &[u8], limits: &Limits) -> Result<Step, Refusal> {
        let mut at = 0;
        loop {
            match input[at..] {
                [b'\r', b'\n', ..] => {
                    self.state = State::Complete;
                    return Ok(Step {
                        consumed: at + 2,
                        payload: at..at,
                    });
                }
                [] | [b'\r'] => {
                    return Ok(Step {
                        consumed: at,
                        payload: at..at,
                    });
                }
                _ => match self.take_trailer(&input[at..], limits)? {
                    0 => {
                        return Ok(Step {
                            consumed: at,
                            payload: at..at,
                        });
                    }
                    bytes => at += bytes,
                },
            }
        }
    }

    fn take_trailer(&mut self, input: &[u8], limits: &Limits) -> Result<usize, Refusal> {
        let room = limits
            .trailer_bytes_max
            .saturating_sub(self.trailer_bytes as usize);
        let window = &input[..input.len().min(room)];
        let Some(line_feed) = memchr::memchr(b'\n', window) else {
            return if window.len() == room {
                Err(TRAILERS_TOO_LARGE)
            } else {
                Ok(0)
            };
        };
        if self.trailers >= limits.trailers_max {
            return Err(TRAILERS_TOO_LARGE);
        }
        judge_trailer(&input[..line_feed])?;
        self.trailers += 1;
        self.trailer_bytes += line_feed as u32 + 1;
        Ok(line_feed + 1)
    }
}

const TRAILERS_TOO_LARGE: Refusal = Refusal::new(431, "trailers too large");

/// The smaller of what is left and what is there.
#[inline]
fn take(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

/// `size [;extensions] CRLF` (RFC 9112 7.1).
struct ChunkLine {
    size: u64,
    /// Length of the line with its CRLF.
    bytes: usize,
}

impl ChunkLine {
    /// The line at the start of `input`, `None` if it is not all there. Extensions are skipped: their meaning is
    /// unknown (RFC 9112 7.1.1), only their length and their bytes matter.
    fn parse(input: &[u8], limits: &Limits) -> Result<Option<ChunkLine>, Refusal> {
        let window = &input[..input.len().min(limits.chunk_line_bytes_max)];
        let full = window.len() == limits.chunk_line_bytes_max;
        let more = if full {
            Err(Refusal::bad("chunk line too long"))
        } else {
            Ok(None)
        };
        let mut size = 0u64;
        let mut at = 0;
        while let Some(digit) = window.get(at).and_then(|&byte| hex(byte)) {
            if at == CHUNK_DIGITS_MAX {
                return Err(Refusal::bad("chunk size too long"));
            }
            size = size << 4 | u64::from(digit);
            at += 1;
        }
        if size > LENGTH_MAX {
            return Err(Refusal::bad("chunk size too large"));
        }
        if at > 0 && window.get(at) == Some(&b';') {
            at += window[at..]
                .iter()
                .take_while(|&&byte| field::is_text(byte))
                .count();
        }
        match window[at..] {
            [] | [b'\r'] => more,
            [b'\r', b'\n', ..] if at > 0 => Ok(Some(ChunkLine {
                size,
                bytes: at + 2,
            })),
            _ => Err(Refusal::bad("malformed chunk line")),
        }
    }
}

/// What a hexadecimal digit is worth.
#[inline]
pub(crate) fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// One trailer line without its LF: a field like any other, so no folding, and not one of those whose effect would
/// come too late (RFC 9110 6.5.1).
fn judge_trailer(line: &[u8]) -> Result<(), Refusal> {
    const MALFORMED: Refusal = Refusal::bad("malformed trailer");
    let Some(colon) = memchr::memchr(b':', line) else {
        return Err(MALFORMED);
    };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    let [value @ .., b'\r'] = value else {
        return Err(MALFORMED);
    };
    if !field::is_token(name) || !field::is_field_value(value) {
        return Err(MALFORMED);
    }
    let is_forbidden = TRAILERS_FORBIDDEN
        .iter()
        .any(|forbidden| name.eq_ignore_ascii_case(forbidden.as_bytes()));
    if is_forbidden {
        return Err(Refusal::bad("a field that must not be a trailer"));
    }
    Ok(())
}

/// Fields that frame the message, route it, or govern the connection: in a trailer they are useless to the honest,
/// and the next hop might merge them into the head. RFC 9110 6.5.1 also warns of authentication fields; with those that
/// tell of the client anybody could speak for a proxy.
const TRAILERS_FORBIDDEN: [&str; 18] = [
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "content-type",
    "content-range",
    "trailer",
    "host",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "expect",
    "authorization",
    "proxy-authorization",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];
