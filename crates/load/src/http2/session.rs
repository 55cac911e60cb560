//! What is said over one connection of HTTP/2, from its preface to its end: frames of all lanes leave together, and what has
//! come is stepped over at once.

use std::task::Poll;

use onrush_engine::Instant;
use onrush_http::Limits;
use onrush_http::http2::code::Code;
use onrush_http::http2::limits::STREAMS_BEFORE_SETTINGS;
use onrush_http::http2::message::response_trailers;
use onrush_http::http2::{
    CannotOpen, Cause, Connection, End as Ends, Event, LocalSettings, Role, Stream,
};
use onrush_tls::Transport;

use super::lane::{End, Lane, State};
use super::limits::{LOOKS_PER_TIMEOUT, UNSENT_BYTES_MAX, WINDOW_BYTES};
use crate::core_run::CoreRun;
use crate::core_run::recorder::Received;
use crate::failure::{Failure, Lost};
use crate::protocol::http1::outcome;
use crate::protocol::http2::Codec;
use crate::protocol::queue::queue_bytes;
use crate::protocol::request::Last;
use crate::protocol::response::{Met, Response};

/// What a connection says of itself.
const SETTINGS: LocalSettings = LocalSettings {
    // Servers open none: they are told not to push.
    concurrent_streams_max: u32::MAX,
    stream_window: WINDOW_BYTES,
    connection_window: WINDOW_BYTES,
    ..LocalSettings::DEFAULT
};

/// A connection and what is known of it.
pub(super) struct Session {
    connection: Connection,
    /// Frames that wait to be sent.
    out: Vec<u8>,
    /// For each slot of a stream, the lane that it is of.
    lane_of_slot: Box<[u32]>,
    /// Lanes whose requests are in `out`, and those whose requests left with the last flush.
    unsent: Vec<u32>,
    sent: Vec<u32>,
    /// When that was begun.
    flushed: Instant,
    /// The kernel has not taken all of it yet.
    is_flushing: bool,
    /// A response is due, and there is a moment by which something has to come.
    is_timed: bool,
    /// Streams opened so far.
    opened: u64,
    has_responded: bool,
    /// The server has said its settings.
    is_settled: bool,
    /// No stream is opened any more.
    is_leaving: bool,
    /// Why the server goes away, where it has said so.
    gone: Option<Code>,
    /// When it was last looked for streams on which nothing happens, and told that time passes.
    looked: Instant,
    told: Instant,
}

impl Session {
    /// One that begins at `now`, for so many lanes.
    pub(super) fn new(lanes: usize, now: Instant) -> Session {
        let mut out = Vec::new();
        Session {
            connection: Connection::new(Role::Client, SETTINGS, &mut out),
            out,
            lane_of_slot: vec![0; lanes].into(),
            unsent: Vec::with_capacity(lanes),
            sent: Vec::with_capacity(lanes),
            flushed: now,
            is_flushing: false,
            is_timed: false,
            opened: 0,
            has_responded: false,
            is_settled: false,
            is_leaving: false,
            gone: None,
            looked: now,
            told: now,
        }
    }

    pub(super) fn has_responded(&self) -> bool {
        self.has_responded
    }

    /// Why the server has gone away, where something was wrong.
    pub(super) fn gone_for(&self) -> Option<Code> {
        self.gone.filter(|&code| code != Code::NO_ERROR)
    }

    /// How many streams may be opened now.
    pub(super) fn room(&self) -> u32 {
        if self.is_leaving {
            return 0;
        }
        let most = match self.is_settled {
            true => self.connection.peer().concurrent_streams_max,
            false => STREAMS_BEFORE_SETTINGS,
        };
        most.saturating_sub(self.connection.open_streams())
    }

    /// Whether there is nothing left to do on the connection.
    pub(super) fn is_over(&self) -> bool {
        self.is_leaving
            && self.connection.open_streams() == 0
            && self.out.is_empty()
            && !self.is_flushing
    }

    /// Whether something waits to be sent that can be.
    pub(super) fn is_unsent(&self) -> bool {
        !self.out.is_empty() && !self.is_flushing
    }

    /// Opens a stream for the request of `lane`, which is at `place` of connection `index`. Returns how many bytes that are;
    /// `None` when there can be none.
    pub(super) fn open(
        &mut self,
        core_run: &CoreRun,
        index: u32,
        (place, lane): (usize, &mut Lane),
    ) -> Option<u64> {
        let before = self.out.len();
        let request = (lane.number, lane.kind);
        let opened = codec_of(core_run).open(&mut self.connection, index, request, &mut self.out);
        let opened = match opened {
            Ok(opened) => opened,
            Err(CannotOpen::Full) => return None,
            Err(CannotOpen::GoingAway | CannotOpen::Exhausted) => {
                self.is_leaving = true;
                return None;
            }
        };
        let stream = opened.stream;
        self.lane_of_slot[stream.slot()] = place as u32;
        self.unsent.push(place as u32);
        lane.begin(stream, core_run.core.now());
        lane.is_early = !self.is_settled;
        if let Some(body) = opened.body {
            lane.body = Some((body, 0));
            self.connection.ready(stream);
        }
        self.opened += 1;
        if core_run.supply.is_last(self.opened) == Last::Yes {
            self.is_leaving = true;
            self.connection.go_away(Code::NO_ERROR, &mut self.out);
        }
        Some((self.out.len() - before) as u64)
    }

    /// Sends what waits, as far as the kernel takes it.
    ///
    /// # Errors
    /// When it takes nothing any more.
    pub(super) fn send(
        &mut self,
        core_run: &CoreRun,
        stream: &Transport,
        lanes: &mut [Lane],
    ) -> Result<(), Lost> {
        loop {
            if !self.is_flushing {
                self.fill(lanes, core_run.core.now());
                if self.out.is_empty() {
                    return Ok(());
                }
                self.note_written(stream, lanes);
                std::mem::swap(&mut self.unsent, &mut self.sent);
                self.flushed = core_run.core.now_exact();
                queue_bytes(stream, &self.out);
                self.out.clear();
                self.is_flushing = true;
                if !self.is_timed && self.connection.open_streams() > 0 {
                    self.is_timed = true;
                    core_run.extend_deadline(stream, self.flushed);
                }
            }
            match stream.poll_flush() {
                Poll::Pending => return Ok(()),
                Poll::Ready(flushed) => flushed?,
            }
            self.is_flushing = false;
            self.connection.sent();
        }
    }

    /// Queues the last frame, if there is one, of a connection that is given up.
    pub(super) fn send_last(&mut self, stream: &Transport) {
        queue_bytes(stream, &self.out);
        self.out.clear();
        // Whether it arrives changes nothing.
        let _ = stream.poll_flush();
    }

    /// Writes as much of bodies as windows and memory have room for.
    fn fill(&mut self, lanes: &mut [Lane], now: Instant) {
        while self.out.len() < UNSENT_BYTES_MAX
            && let Some(stream) = self.connection.next_ready()
        {
            let lane = &mut lanes[self.lane_of_slot[stream.slot()] as usize];
            let (body, from) = lane.body.take().expect("ready is who has a body");
            let left = &body[from..];
            let count = self.connection.sendable(stream).min(left.len());
            let end = match count == left.len() {
                true => Ends::Stream,
                false => Ends::Open,
            };
            let begun = self.connection.data(stream, count, end, &mut self.out);
            begun.expect("ready is who is open");
            self.out.extend_from_slice(&left[..count]);
            lane.at = now;
            if end == Ends::Open {
                lane.body = Some((body, from + count));
            }
        }
    }

    /// It is known when the requests of the last flush were written.
    fn note_written(&mut self, stream: &Transport, lanes: &mut [Lane]) {
        if self.sent.is_empty() {
            return;
        }
        let known = stream.written().unwrap_or(self.flushed);
        let written = known.max(self.flushed);
        for place in self.sent.drain(..) {
            lanes[place as usize].written = written;
        }
    }

    /// Steps over all that has come at `now`, and returns how many bytes of `input` that are.
    ///
    /// # Errors
    /// When what came ends the connection.
    pub(super) fn take(
        &mut self,
        core_run: &CoreRun,
        index: u32,
        (stream, input): (&Transport, &[u8]),
        lanes: &mut [Lane],
        now: Instant,
    ) -> Result<usize, Lost> {
        self.note_written(stream, lanes);
        if !self.is_settled && input.starts_with(b"HTTP/") {
            return Err(Lost::Refused(
                "the server speaks HTTP/1: leave --http2 out, or ask where HTTP/2 is spoken (https:// as a rule)",
            ));
        }
        let codec = codec_of(core_run);
        let mut at = 0;
        while let Some(bytes) = self.hear(codec, index, &input[at..], lanes, now)? {
            at += bytes;
        }
        self.expire(core_run, lanes, now);
        if self.connection.open_streams() == 0 {
            self.is_timed = false;
            stream.set_deadline(None);
        }
        Ok(at)
    }

    /// Makes one step over `input`. Returns how many bytes of it are done with; `None` when more has to come first.
    fn hear(
        &mut self,
        codec: &Codec,
        index: u32,
        input: &[u8],
        lanes: &mut [Lane],
        now: Instant,
    ) -> Result<Option<usize>, Lost> {
        let step = self.connection.receive(input, &mut self.out);
        let step = step.map_err(|error| Lost::Refused(error.reason))?;
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
                self.take_head(codec, (lane, stream), status, end);
            }
            Event::Data { stream, bytes, end } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.at = now;
                let expected = &codec.recipe(lane.kind).expected;
                if let (Some(search), Some(expected)) = (&mut lane.search, expected) {
                    expected.look(search, bytes);
                }
                let bytes = bytes.len() as u32; // of one receive
                self.connection.release(stream, bytes, &mut self.out);
                if end == Ends::Stream {
                    self.answer(codec, lane, stream);
                }
            }
            Event::Trailers { stream, fields } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.at = now;
                let are_some = response_trailers(fields, &Limits::DEFAULT).is_ok();
                match are_some {
                    true => self.answer(codec, lane, stream),
                    false => self.refuse(lane, stream, "malformed trailers"),
                }
            }
            Event::Reset { stream, cause } => {
                let lane = &mut lanes[lane_of(stream)];
                lane.end(reset(lane, cause));
            }
            Event::GoAway { last, code } => self.go(lanes, last, code),
            Event::Settings => self.is_settled = true,
            Event::Window(_) | Event::Pong(_) | Event::Nothing => {}
        }
        Ok(Some(done))
    }

    /// The head of a response has come, or something that should be one.
    fn take_head(
        &mut self,
        codec: &Codec,
        (lane, stream): (&mut Lane, Stream),
        status: Result<u16, &'static str>,
        end: Ends,
    ) {
        match status {
            Err(reason) => self.refuse(lane, stream, reason),
            // It is not the response yet (RFC 9110 15.2).
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

    /// The response to the request of `lane` is whole.
    fn answer(&mut self, codec: &Codec, lane: &mut Lane, stream: Stream) {
        // The server does not want the rest of the request.
        self.connection.reset(stream, Code::CANCEL, &mut self.out);
        let met = match &codec.recipe(lane.kind).expected {
            Some(expected) => expected.judge(lane.status, lane.search.as_deref()),
            None => Met::Yes,
        };
        let response = Response {
            outcome: outcome(lane.status),
            keep_alive: true,
            met,
        };
        let mut received = Received::new(response, lane.first_byte);
        received.is_first = !std::mem::replace(&mut self.has_responded, true);
        lane.end(End::Answered {
            received,
            written: lane.written,
            at: lane.at,
        });
    }

    /// What has come for the request of `lane` is no response.
    fn refuse(&mut self, lane: &mut Lane, stream: Stream, reason: &'static str) {
        let code = Code::PROTOCOL_ERROR;
        self.connection.reset(stream, code, &mut self.out);
        lane.end(End::Refused(reason));
    }

    /// The server takes no new streams, and has done nothing for those above `last`.
    fn go(&mut self, lanes: &mut [Lane], last: u32, code: Code) {
        self.is_leaving = true;
        self.gone = Some(code);
        for lane in lanes {
            if let State::Open(stream) = lane.state
                && stream.id() > last
            {
                lane.end(End::Untouched);
            }
        }
    }

    /// Streams on which nothing has happened for too long are given up.
    fn expire(&mut self, core_run: &CoreRun, lanes: &mut [Lane], now: Instant) {
        let passed = now.since(self.told);
        if passed.as_secs() > 0 {
            self.connection.elapsed(passed);
            self.told = now;
        }
        let timeout = core_run.timeout();
        if now < self.looked + timeout / LOOKS_PER_TIMEOUT {
            return;
        }
        self.looked = now;
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

/// What becomes of the request of `lane`, whose stream was reset.
fn reset(lane: &Lane, cause: Cause) -> End {
    match cause {
        // Before it has said how many streams it takes (RFC 9113 8.7).
        Cause::Peer(Code::REFUSED_STREAM) if lane.is_early => End::Untouched,
        Cause::Peer(code) => End::Cancelled(Failure::StreamReset, code),
        Cause::Local(error) => End::Refused(error.reason),
    }
}

fn codec_of(core_run: &CoreRun) -> &Codec {
    let codec = core_run.codec.over_http2();
    codec.expect("there are sessions where HTTP/2 is spoken")
}
