//! Message bodies (RFC 9112, sections 6 and 7.1): finds a body's payload and its end.

mod chunk_line;
mod step;
mod trailer;

use self::chunk_line::ChunkLine;
pub(crate) use self::chunk_line::hex;
pub use self::step::{Forwardable, Step};
pub(crate) use self::trailer::is_forbidden;
use self::trailer::{TRAILERS_TOO_LARGE, TrailerLine};
use crate::framing::{Framing, Sender};
use crate::limits::Limits;
use crate::refusal::{Position, Refusal};

/// Reads one body, in pieces of any size. Does not borrow a buffer, so a connection keeps it while it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyReader {
    state: State,
    /// Bytes of payload that further chunks may announce.
    chunks_left: u64,
    /// Chunk lines read, for the position of an error.
    chunks: u32,
    /// Bytes of chunk lines not offset by payload; <= `chunk_excess_bytes_max`.
    excess: u16,
    sender: Sender,
}

// Every connection has one, even without a buffer.
const _: () = assert!(size_of::<BodyReader>() <= 32);

const TOO_LARGE: Refusal = Refusal::new(413, "the body is too large");

/// Input that the reader expects next.
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
    /// Bytes left; never 0.
    ExpectLength(u64),
    ExpectClose,
    ExpectChunkLine,
    /// Bytes left of the chunk; never 0.
    ExpectChunkData(u64),
    /// CRLF after a chunk's data.
    ExpectChunkEnd,
    /// Size and number of the trailers read; `bytes` <= `trailer_bytes_max`, `fields` <= `trailers_max`.
    ExpectTrailers {
        bytes: u32,
        fields: u16,
    },
}

impl BodyReader {
    /// Creates a reader for a request body. It refuses anything that two recipients could read differently.
    #[inline]
    pub const fn new(framing: Framing) -> BodyReader {
        BodyReader::of(framing, Sender::Client)
    }

    /// Creates a reader for a response body. White space at the end of a chunk line is accepted, because some servers
    /// pad the size, and forbidden trailers (RFC 9110 6.5.1) are marked as surplus; [`pass`](BodyReader::pass) removes
    /// both.
    #[inline]
    pub const fn of_response(framing: Framing) -> BodyReader {
        BodyReader::of(framing, Sender::Server)
    }

    const fn of(framing: Framing, sender: Sender) -> BodyReader {
        let state = match framing {
            Framing::None | Framing::Length(0) => State::Complete,
            Framing::Length(length) => State::ExpectLength(length),
            Framing::Chunked => State::ExpectChunkLine,
            Framing::UntilClose => State::ExpectClose,
        };
        BodyReader {
            state,
            chunks_left: u64::MAX,
            chunks: 0,
            excess: 0,
            sender,
        }
    }

    /// Limits the payload of a chunked body that has not begun. The first chunk line that exceeds it is refused with
    /// 413 (RFC 9110 15.5.14). Has no effect on a body with Content-Length.
    #[inline]
    pub const fn limit_chunks(&mut self, payload_max: u64) {
        self.chunks_left = payload_max;
    }

    /// Reads from `input`, which starts where the last step's `consumed` ended, and returns at most one run of payload.
    /// Call again while something was consumed; `consumed == 0` before the end means that more input is needed. Chunk
    /// and trailer lines are consumed only whole, so up to `chunk_line_bytes_max` or `trailer_bytes_max` bytes may
    /// remain. Do not use the reader after a refusal.
    #[inline]
    pub fn advance(&mut self, input: &[u8], limits: &Limits) -> Result<Step, Refusal> {
        self.step(input, limits, &|_| true)
    }

    #[inline]
    fn step(
        &mut self,
        input: &[u8],
        limits: &Limits,
        keeps: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Step, Refusal> {
        match self.state {
            State::Complete => Ok(Step::without_payload(0)),
            State::ExpectLength(left) => {
                let take = take(left, input.len());
                self.state = match left - take as u64 {
                    0 => State::Complete,
                    left => State::ExpectLength(left),
                };
                Ok(Step {
                    consumed: take,
                    payload: 0..take,
                    surplus: take..take,
                })
            }
            State::ExpectClose => Ok(Step {
                consumed: input.len(),
                payload: 0..input.len(),
                surplus: 0..0,
            }),
            State::ExpectTrailers { .. } => self.advance_trailers(input, limits, keeps),
            State::ExpectChunkLine | State::ExpectChunkData(_) | State::ExpectChunkEnd => {
                self.advance_chunked(input, limits)
            }
        }
    }

    /// Returns how much of `input` to forward unchanged, chunk lines and trailers included, except for surplus bytes:
    /// chunk extensions, and trailers whose names `keeps` rejects. Stops after the first surplus.
    #[inline]
    pub fn pass(
        &mut self,
        input: &[u8],
        limits: &Limits,
        keeps: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Forwardable, Refusal> {
        let mut at = 0;
        while at < input.len() {
            let step = self.step(&input[at..], limits, keeps)?;
            if step.consumed == 0 {
                break;
            }
            let surplus = at + step.surplus.start..at + step.surplus.end;
            at += step.consumed;
            if !surplus.is_empty() {
                return Ok(Forwardable {
                    consumed: at,
                    surplus,
                });
            }
        }
        Ok(Forwardable {
            consumed: at,
            surplus: at..at,
        })
    }

    /// Returns how many bytes of `input` belong to this message, chunk lines and trailers included. For draining.
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

    /// Whether the whole body has been read. Never true for a body that ends with the connection.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.state == State::Complete
    }

    /// Whether trailer lines come next; then `advance` consumes only those and the empty line after them.
    pub fn is_in_trailers(&self) -> bool {
        matches!(self.state, State::ExpectTrailers { .. })
    }

    /// Remaining bytes of the body; `None` for a chunked body or a body that ends with the connection.
    #[inline]
    pub fn remaining(&self) -> Option<u64> {
        match self.state {
            State::Complete => Some(0),
            State::ExpectLength(left) => Some(left),
            State::ExpectClose
            | State::ExpectChunkLine
            | State::ExpectChunkData(_)
            | State::ExpectChunkEnd
            | State::ExpectTrailers { .. } => None,
        }
    }

    /// Counts `count` bytes of the body as read that were forwarded without being inspected.
    ///
    /// # Panics
    /// If fewer bytes than `count` are [left](BodyReader::remaining), or if that is unknown.
    pub fn count_forwarded(&mut self, count: u64) {
        let left = self.remaining().and_then(|left| left.checked_sub(count));
        self.state = match left.expect("no more passes than is known to be left") {
            0 => State::Complete,
            left => State::ExpectLength(left),
        };
    }

    /// Reports the end of the connection: an error unless the body is complete or ends with it (RFC 9112 8).
    pub fn end_of_input(&self) -> Result<(), Refusal> {
        match self.state {
            State::Complete | State::ExpectClose => Ok(()),
            State::ExpectLength(_)
            | State::ExpectChunkLine
            | State::ExpectChunkData(_)
            | State::ExpectChunkEnd
            | State::ExpectTrailers { .. } => {
                Err(Refusal::bad("the connection ended within a body"))
            }
        }
    }

    /// Consumes chunk ends and lines up to and including one run of payload, or the last chunk's line.
    fn advance_chunked(&mut self, input: &[u8], limits: &Limits) -> Result<Step, Refusal> {
        let mut at = 0;
        if self.state == State::ExpectChunkEnd {
            at += self.take_chunk_end(input)?;
        }
        let mut surplus = at..at;
        if self.state == State::ExpectChunkLine {
            let line = self.take_chunk_line(&input[at..], limits)?;
            surplus = at + line.surplus.start..at + line.surplus.end;
            at += line.bytes;
        }
        let State::ExpectChunkData(left) = self.state else {
            return Ok(Step {
                consumed: at,
                payload: at..at,
                surplus,
            });
        };
        let take = take(left, input.len() - at);
        let payload = at..at + take;
        at += take;
        self.state = match left - take as u64 {
            0 => State::ExpectChunkEnd,
            left => State::ExpectChunkData(left),
        };
        if self.state == State::ExpectChunkEnd {
            at += self.take_chunk_end(&input[at..])?;
        }
        Ok(Step {
            consumed: at,
            payload,
            surplus,
        })
    }

    /// Requires exactly CRLF; a chunk longer than announced would otherwise move the message boundary.
    fn take_chunk_end(&mut self, input: &[u8]) -> Result<usize, Refusal> {
        match input {
            [] | [b'\r'] => Ok(0),
            [b'\r', b'\n', ..] => {
                self.state = State::ExpectChunkLine;
                Ok(2)
            }
            _ => Err(Refusal::bad("no CRLF after a chunk").at(Position::Chunk(self.chunks))),
        }
    }

    fn take_chunk_line(&mut self, input: &[u8], limits: &Limits) -> Result<ChunkLine, Refusal> {
        let place = Position::Chunk(self.chunks.saturating_add(1));
        let line =
            ChunkLine::parse(input, self.sender, limits).map_err(|refusal| refusal.at(place))?;
        let Some(line) = line else {
            return Ok(ChunkLine::NOT_YET);
        };
        let paid = line.size.saturating_mul(2).saturating_add(16);
        let excess = (u64::from(self.excess) + line.bytes as u64).saturating_sub(paid);
        self.excess = match u16::try_from(excess) {
            Ok(excess) if excess <= limits.chunk_excess_bytes_max => excess,
            _ => return Err(Refusal::bad("too many bytes in chunk lines").at(place)),
        };
        self.chunks_left = match self.chunks_left.checked_sub(line.size) {
            Some(left) => left,
            None => return Err(TOO_LARGE.at(place)),
        };
        self.chunks = self.chunks.saturating_add(1);
        self.state = match line.size {
            0 => State::ExpectTrailers {
                bytes: 0,
                fields: 0,
            },
            size => State::ExpectChunkData(size),
        };
        Ok(line)
    }

    /// Consumes whole trailer lines, up to and including a surplus one or the empty line at the end (RFC 9112 7.1.2).
    fn advance_trailers(
        &mut self,
        input: &[u8],
        limits: &Limits,
        keeps: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Step, Refusal> {
        let mut at = 0;
        loop {
            match input[at..] {
                [b'\r', b'\n', ..] => {
                    self.state = State::Complete;
                    return Ok(Step::without_payload(at + 2));
                }
                [] | [b'\r'] => return Ok(Step::without_payload(at)),
                _ => {}
            }
            let Some(line) = self.take_trailer(&input[at..], limits)? else {
                return Ok(Step::without_payload(at));
            };
            let end = at + line.bytes;
            if line.is_surplus || !keeps(&input[at..at + line.name_bytes]) {
                return Ok(Step {
                    consumed: end,
                    payload: end..end,
                    surplus: at..end,
                });
            }
            at = end;
        }
    }

    /// `None` if the line is incomplete.
    fn take_trailer(
        &mut self,
        input: &[u8],
        limits: &Limits,
    ) -> Result<Option<TrailerLine>, Refusal> {
        let State::ExpectTrailers { bytes, fields } = self.state else {
            unreachable!("trailers follow the last chunk")
        };
        let place = Position::Trailer(u32::from(fields) + 1);
        let room = limits.trailer_bytes_max.saturating_sub(bytes as usize);
        let window = &input[..input.len().min(room)];
        let Some(line_feed) = memchr::memchr(b'\n', window) else {
            return if window.len() == room {
                Err(TRAILERS_TOO_LARGE.at(place))
            } else {
                Ok(None)
            };
        };
        if fields >= limits.trailers_max {
            return Err(TRAILERS_TOO_LARGE.at(place));
        }
        let line = TrailerLine::parse(&input[..line_feed], self.sender);
        let line = line.map_err(|refusal| refusal.at(place))?;
        self.state = State::ExpectTrailers {
            bytes: bytes + line.bytes as u32,
            fields: fields + 1,
        };
        Ok(Some(line))
    }
}

#[inline]
fn take(left: u64, there: usize) -> usize {
    usize::try_from(left).map_or(there, |left| left.min(there))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_bytes_reduce_remaining_length() {
        let mut body = BodyReader::new(Framing::Length(10));
        assert_eq!(body.skip(b"123", &Limits::DEFAULT), Ok(3));
        body.count_forwarded(5);
        assert_eq!(body.remaining(), Some(2));
        body.count_forwarded(2);
        assert!(body.is_complete());
        body.count_forwarded(0);
    }

    #[test]
    fn chunk_exceeding_limit_is_refused_at_its_header() {
        for (max, body, taken) in [
            (5, "5\r\nhello\r\n0\r\n\r\n", Ok(15)),
            (4, "5\r\nhello\r\n0\r\n\r\n", Err(1)),
            (5, "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", Ok(20)),
            (4, "3\r\nhel\r\n2\r\n", Err(2)),
            (0, "0\r\n\r\n", Ok(5)),
            (u64::MAX, "5\r\nhello\r\n", Ok(10)),
        ] {
            let mut reader = BodyReader::new(Framing::Chunked);
            reader.limit_chunks(max);
            let refused = |chunk| TOO_LARGE.at(Position::Chunk(chunk));
            let found = reader.skip(body.as_bytes(), &Limits::DEFAULT);
            assert_eq!(found, taken.map_err(refused), "{body:?} within {max}");
        }
    }

    #[test]
    #[should_panic(expected = "no more passes")]
    fn count_forwarded_panics_for_chunked_body() {
        BodyReader::new(Framing::Chunked).count_forwarded(1);
    }
}
