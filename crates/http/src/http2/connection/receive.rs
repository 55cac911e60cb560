//! Parses received bytes step by step: one frame, or part of one, at a time.

use super::Connection;
use super::event::{Event, EventKind, Progress, Step};
use super::parse_state::ParseState;
use crate::http2::code::ConnectionError;
use crate::http2::flood_guard::Flood;
use crate::http2::frame::{Flags, HEAD_BYTES, Head, Kind, PREFACE};

impl Connection {
    /// Makes one step over `input`, which begins where the last step ended. Replies required by the protocol
    /// (acknowledgements, resets, window updates) are written to `out`.
    ///
    /// # Errors
    /// If the peer violated a connection-level rule or a limit. GOAWAY is written; send `out` and close the connection.
    #[inline]
    pub fn receive<'c, 'i>(
        &'c mut self,
        input: &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'c, 'i>, ConnectionError> {
        let outcome = match self.expect {
            ParseState::Frame => self.frame(input, out),
            _ => self.other(input, out),
        };
        let Progress { bytes, found } = match outcome {
            Ok(progress) => progress,
            Err(error) => {
                self.fail(&error, out);
                return Err(error);
            }
        };
        Ok(Step {
            bytes,
            event: self.event(found, &input[..bytes]),
        })
    }

    #[inline]
    fn event<'c, 'i>(&'c self, found: EventKind, done: &'i [u8]) -> Event<'c, 'i> {
        match found {
            EventKind::Head { stream, end } => Event::Head {
                stream,
                fields: &self.fields,
                end,
            },
            EventKind::Data { stream, bytes, end } => Event::Data {
                stream,
                bytes: &done[done.len() - bytes..],
                end,
            },
            EventKind::Trailers(stream) => Event::Trailers {
                stream,
                fields: &self.fields,
            },
            EventKind::Reset { stream, cause } => Event::Reset { stream, cause },
            EventKind::DataOfClosed(id) => Event::DataOfClosed(id),
            EventKind::GoAway { last, code } => Event::GoAway { last, code },
            EventKind::Window(stream) => Event::Window(stream),
            EventKind::Settings => Event::Settings,
            EventKind::Pong(payload) => Event::Pong(payload),
            EventKind::Nothing => Event::Nothing,
            EventKind::NeedMore(bytes) => Event::NeedMore(bytes),
        }
    }

    /// Makes a step that does not begin with an arbitrary frame.
    fn other(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
        if input.is_empty() {
            return Ok(Progress::need(1));
        }
        match self.expect {
            ParseState::Preface => self.preface(input),
            ParseState::Settings => self.first_frame(input, out),
            ParseState::Frame => self.frame(input, out),
            ParseState::Data(rest) => self.more_data(input, 0, rest, out),
            ParseState::Fragment(rest) => self.fragment(input, 0, rest, out),
            ParseState::Continuation => self.continuation(input, out),
            ParseState::Skip(left) => {
                let bytes = input.len().min(left as usize);
                self.skip(left - bytes as u32);
                Ok(Progress::of(bytes, EventKind::Nothing))
            }
            ParseState::Nothing => Ok(Progress::of(input.len(), EventKind::Nothing)),
        }
    }

    /// Checks the preface of a client (RFC 9113 3.4). The first wrong byte is an error.
    fn preface(&mut self, input: &[u8]) -> Result<Progress, ConnectionError> {
        let bytes = input.len().min(PREFACE.len());
        if input[..bytes] != PREFACE[..bytes] {
            return Err(ConnectionError::protocol("no HTTP/2 preface"));
        }
        if bytes < PREFACE.len() {
            return Ok(Progress::need(PREFACE.len()));
        }
        self.expect = ParseState::Settings;
        Ok(Progress::of(bytes, EventKind::Nothing))
    }

    fn first_frame(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Progress, ConnectionError> {
        let Some(head) = Head::read(input) else {
            return Ok(Progress::need(HEAD_BYTES));
        };
        if head.kind != Kind::Settings || head.flags.has(Flags::ACK) {
            return Err(ConnectionError::protocol("the first frame is not SETTINGS"));
        }
        let progress = self.frame(input, out)?;
        if progress.bytes > 0 {
            self.expect = ParseState::Frame;
        }
        Ok(progress)
    }

    #[inline]
    fn frame(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Progress, ConnectionError> {
        let Some(head) = Head::read(input) else {
            return Ok(Progress::need(HEAD_BYTES));
        };
        head.check(self.local.frame_bytes_max)?;
        match head.kind {
            Kind::Headers => self.headers(head, input, out),
            Kind::Data => self.data_frame(head, input, out),
            Kind::PushPromise => Err(ConnectionError::protocol(
                "PUSH_PROMISE although server push is disabled",
            )),
            Kind::Continuation => Err(ConnectionError::protocol(
                "CONTINUATION without a HEADERS frame before it",
            )),
            Kind::Unknown => {
                self.guard.chatter(Flood::Ignored)?;
                self.skip(head.length);
                Ok(Progress::of(HEAD_BYTES, EventKind::Nothing))
            }
            Kind::Priority
            | Kind::Reset
            | Kind::Settings
            | Kind::Ping
            | Kind::GoAway
            | Kind::WindowUpdate
            | Kind::PriorityUpdate => self.control(head, input, out),
        }
    }

    #[inline]
    pub(super) fn skip(&mut self, bytes: u32) {
        self.expect = match bytes {
            0 => ParseState::Frame,
            bytes => ParseState::Skip(bytes),
        };
    }
}
