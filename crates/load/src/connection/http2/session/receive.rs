//! Processes received frames. Each belongs to a lane or to the connection.

use onrush_engine::Instant;
use onrush_http::http2::code::Code;
use onrush_http::http2::fields::FieldSection;
use onrush_http::http2::message::response_trailers;
use onrush_http::http2::{Cause, End as Ends, Event, Stream};
use onrush_tls::Transport;

use super::{Session, codec_of};
use crate::connection::core_run::CoreRun;
use crate::connection::core_run::recorder::Received;
use crate::connection::http2::lane::{End, Lane, State};
use crate::limits::http1::RESPONSE_LIMITS;
use crate::limits::http2::CHECKS_PER_TIMEOUT;
use crate::protocol::failure::{Failure, NoResponse};
use crate::protocol::grpc::Call;
use crate::protocol::http1::outcome;
use crate::protocol::http2::{Codec, MessageKind};
use crate::requests::response::{ExpectationResult, Response};

impl Session {
    /// Processes what was received at `now`, and returns the number of bytes of `input` consumed.
    ///
    /// # Errors
    /// If the received bytes end the connection.
    pub(in crate::connection::http2) fn take(
        &mut self,
        core_run: &CoreRun,
        index: u32,
        (stream, input): (&Transport, &[u8]),
        lanes: &mut [Lane],
        now: Instant,
    ) -> Result<usize, NoResponse> {
        self.note_written(stream, lanes);
        if self.connection.is_http1_response(input) {
            return Err(NoResponse::Refused(match codec_of(core_run).speaks() {
                MessageKind::Http => {
                    "the server speaks HTTP/1: leave --http2 out, or use a URL that serves HTTP/2 (usually https://)"
                }
                MessageKind::Grpc => {
                    "the server speaks HTTP/1, but gRPC needs HTTP/2: use a URL that serves gRPC (grpcs:// with TLS)"
                }
            }));
        }
        let codec = codec_of(core_run);
        let mut at = 0;
        while let Some(bytes) = self.process_frame(codec, index, &input[at..], lanes, now)? {
            at += bytes;
            if self.is_exceeded {
                self.is_exceeded = false;
                core_run.unexpected_bytes();
            }
        }
        self.expire(core_run, lanes, now);
        if !self.is_flushing {
            // A WINDOW_UPDATE may permit more of the bodies.
            self.fill(lanes, now);
        }
        if self.connection.open_streams() == 0 {
            self.is_timed = false;
            stream.set_deadline(None);
        }
        Ok(at)
    }

    /// Processes one frame of `input`. Returns the number of bytes consumed; `None` if it is incomplete.
    fn process_frame(
        &mut self,
        codec: &Codec,
        index: u32,
        input: &[u8],
        lanes: &mut [Lane],
        now: Instant,
    ) -> Result<Option<usize>, NoResponse> {
        let step = self.connection.receive(input, &mut self.out);
        let step = step.map_err(|error| NoResponse::Refused(error.reason))?;
        let done = step.bytes;
        let lane_of_slot = &self.lane_of_slot;
        let lane_of = |stream: Stream| lane_of_slot[stream.slot()] as usize;
        match step.event {
            Event::NeedMore(_) => return Ok(None),
            Event::Head {
                stream,
                fields,
                end,
            } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.at = now;
                let method = codec.recipe(lane.kind).method;
                let status = codec.status(index, method, fields, end);
                let begun = begin(codec, lane, status, (fields, end));
                self.take_head(codec, (lane, stream), begun, end);
            }
            Event::Data { stream, bytes, end } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.at = now;
                let taken = look(codec, lane, bytes);
                let bytes = bytes.len() as u32; // at most one receive buffer
                self.connection.release(stream, bytes, &mut self.out);
                match (taken, end) {
                    (Err(reason), _) => self.refuse(lane, stream, reason),
                    (Ok(()), Ends::Stream) => self.answer(codec, lane, stream),
                    (Ok(()), Ends::Open) => {}
                }
            }
            Event::Trailers { stream, fields } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.at = now;
                match end(codec, lane, fields) {
                    Ok(()) => self.answer(codec, lane, stream),
                    Err(reason) => self.refuse(lane, stream, reason),
                }
            }
            Event::Reset { stream, cause } => {
                let lane = &mut lanes[lane_of(stream)];
                if let Cause::Local(_) = cause {
                    // The response was complete before its request, and more data followed.
                    lane.answer = None;
                }
                lane.end(reset(lane, cause));
            }
            Event::DataOfClosed(_) => self.is_exceeded = true,
            Event::GoAway { last, code } => self.go_away(lanes, last, code),
            Event::Settings | Event::Window(_) | Event::Pong(_) | Event::Nothing => {}
        }
        Ok(Some(done))
    }

    fn take_head(
        &mut self,
        codec: &Codec,
        (lane, stream): (&mut Lane, Stream),
        status: Result<u16, &'static str>,
        end: Ends,
    ) {
        match status {
            Err(reason) => self.refuse(lane, stream, reason),
            // An interim response (RFC 9110 section 15.2).
            Ok(..200) => {}
            Ok(status) => {
                (lane.status, lane.first_byte) = (status, lane.at);
                let expected = codec.recipe(lane.kind).expected.as_ref();
                lane.search = expected.and_then(|expected| expected.search());
                if end == Ends::Stream {
                    self.answer(codec, lane, stream);
                }
            }
        }
    }

    /// Handles the end of the response to the request of `lane`.
    fn answer(&mut self, codec: &Codec, lane: &mut Lane, stream: Stream) {
        let outcome = match codec.speaks() {
            MessageKind::Http => outcome(lane.status),
            MessageKind::Grpc => match lane.call.outcome() {
                Ok(outcome) => {
                    lane.status = outcome.number;
                    outcome
                }
                Err(reason) => return self.refuse(lane, stream, reason),
            },
        };
        let met = match &codec.recipe(lane.kind).expected {
            Some(expected) => expected.judge(lane.status, lane.search.as_deref()),
            None => ExpectationResult::Yes,
        };
        let response = Response {
            outcome,
            keep_alive: true,
            expectation: met,
        };
        let mut received = Received::new(response, lane.first_byte);
        received.is_first = !std::mem::replace(&mut self.has_responded, true);
        let end = End::Answered {
            received,
            written: lane.written,
            at: lane.at,
        };
        match self.connection.is_open(stream) {
            false => lane.end(end),
            // The rest of the request is sent unless the server ends the stream.
            true => lane.answer = Some(end),
        }
    }

    fn refuse(&mut self, lane: &mut Lane, stream: Stream, reason: &'static str) {
        let code = Code::PROTOCOL_ERROR;
        self.connection.reset(stream, code, &mut self.out);
        lane.end(End::Refused(reason));
    }

    /// Handles GOAWAY: the server accepts no new streams and has not processed those above `last`.
    fn go_away(&mut self, lanes: &mut [Lane], last: u32, code: Code) {
        self.is_leaving = true;
        self.goaway_code = Some(code);
        let passed = self.passed();
        for lane in lanes {
            if let State::Open(stream) = lane.state
                && stream.id() > last
            {
                lane.exclude(code, passed);
            }
        }
    }

    /// Resets streams without any event for one timeout.
    fn expire(&mut self, core_run: &CoreRun, lanes: &mut [Lane], now: Instant) {
        let passed = now.since(self.elapsed_reported);
        if passed.as_secs() > 0 {
            self.connection.elapsed(passed);
            self.elapsed_reported = now;
        }
        let timeout = core_run.timeout();
        if now < self.idle_checked + timeout / CHECKS_PER_TIMEOUT {
            return;
        }
        self.idle_checked = now;
        for lane in lanes {
            if let State::Open(stream) = lane.state
                && lane.at + timeout <= now
            {
                self.connection.reset(stream, Code::CANCEL, &mut self.out);
                lane.end(End::Lost(Failure::Timeout));
            }
        }
    }
}

/// Handles a head of a response, for gRPC as well. Returns the status, or why the head is invalid.
fn begin(
    codec: &Codec,
    lane: &mut Lane,
    status: Result<u16, &'static str>,
    (fields, end): (&FieldSection, Ends),
) -> Result<u16, &'static str> {
    if let (MessageKind::Grpc, Ok(known @ 200..)) = (codec.speaks(), status) {
        lane.call = Call::begin(known, fields, end)?;
    }
    status
}

/// Handles data of a body.
///
/// # Errors
/// The reason why it is invalid.
fn look(codec: &Codec, lane: &mut Lane, bytes: &[u8]) -> Result<(), &'static str> {
    let expected = &codec.recipe(lane.kind).expected;
    if let (Some(search), Some(expected)) = (&mut lane.search, expected) {
        expected.search_piece(search, bytes);
    }
    match codec.speaks() {
        MessageKind::Http => Ok(()),
        MessageKind::Grpc => lane.call.take(bytes),
    }
}

/// Handles trailers.
///
/// # Errors
/// The reason why they are invalid.
fn end(codec: &Codec, lane: &mut Lane, fields: &FieldSection) -> Result<(), &'static str> {
    if response_trailers(fields, &RESPONSE_LIMITS).is_err() {
        return Err("malformed trailers");
    }
    match codec.speaks() {
        MessageKind::Http => Ok(()),
        MessageKind::Grpc => lane.call.end(fields),
    }
}

/// Returns the result of the request of `lane` when its stream is reset.
fn reset(lane: &Lane, cause: Cause) -> End {
    match cause {
        // Refused because the limit of streams was unknown before the server's SETTINGS (RFC 9113 section 8.7).
        Cause::Peer(Code::REFUSED_STREAM) if lane.is_early => End::NoStream,
        Cause::Peer(code) => End::Cancelled(Failure::StreamReset, code),
        Cause::Local(error) => End::Refused(error.reason),
    }
}
