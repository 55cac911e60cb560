//! State of a lane of an HTTP/2 connection. Pure.

use std::rc::Rc;
use std::task::{Context, Waker};

use onrush_engine::Instant;
use onrush_http::http2::Stream;
use onrush_http::http2::code::Code;

use crate::connection::core_run::recorder::Received;
use crate::protocol::failure::Failure;
use crate::protocol::grpc::Call;
use crate::requests::expect::Search;

pub(super) struct Lane {
    waker: Option<Waker>,
    pub(super) state: State,
    /// Run-wide number of the request, and its kind.
    pub(super) number: u64,
    pub(super) kind: usize,
    /// Number of the connection, from 1, that existed when it began to wait for one.
    pub(super) waits_since: u64,
    /// Whether its stream was opened before the server's SETTINGS.
    pub(super) is_early: bool,
    /// Connections so far that processed neither this request nor any other.
    pub(super) failed_connections: u32,
    /// First time that the request was sent, or that it waited for a connection without success.
    pub(super) sent: Option<Instant>,
    pub(super) written: Instant,
    /// Last event on its stream; before the first one, the first send of the request on any stream.
    pub(super) at: Instant,
    /// When the response's outcome was known; the default instant before.
    pub(super) first_byte: Instant,
    /// Status of the response; below 200 until the final head.
    pub(super) status: u16,
    pub(super) search: Option<Box<Search>>,
    /// State of the response, for gRPC.
    pub(super) call: Call,
    /// The response, if it was complete before the request.
    pub(super) answer: Option<End>,
    /// Rest of the request's body: the bytes and the offset of the next.
    pub(super) body: Option<(Rc<[u8]>, usize)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// No request.
    Idle,
    Waiting,
    /// May open a stream.
    MayOpen,
    /// Waiting for the response on this stream.
    Open(Stream),
    Ended(End),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// A response, which was complete at `at`.
    Answered {
        received: Received,
        written: Instant,
        at: Instant,
    },
    /// A GOAWAY of the server excludes the request from processing.
    Unprocessed(Untouched),
    /// The server refused the stream before it had sent its SETTINGS (REFUSED_STREAM); the request is sent again.
    NoStream,
    /// No response, and none is awaited.
    Lost(Failure),
    /// The server ended the stream or the connection with an error code.
    Cancelled(Failure, Code),
    Refused(&'static str),
}

/// A request that the server excluded from processing with GOAWAY.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untouched {
    pub(crate) code: Code,
    /// Number of consecutive connections without any response, including this one.
    pub(crate) failed_connections: u32,
    /// First send of the request.
    pub(crate) sent: Instant,
}

/// Requests of a connection that a GOAWAY left unprocessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GoAwayScope {
    /// All: no response was received over the connection.
    Everybody,
    Some,
}

impl Lane {
    pub(super) fn new(now: Instant) -> Lane {
        Lane {
            waker: None,
            state: State::Idle,
            number: 0,
            kind: 0,
            waits_since: 0,
            is_early: false,
            failed_connections: 0,
            sent: None,
            written: now,
            at: now,
            first_byte: Instant::default(),
            status: 0,
            search: None,
            call: Call::default(),
            answer: None,
            body: None,
        }
    }

    /// Records that its request was sent on `stream` at `now`.
    pub(super) fn begin(&mut self, stream: Stream, now: Instant) {
        self.state = State::Open(stream);
        (self.written, self.at) = (now, *self.sent.get_or_insert(now));
        self.first_byte = Instant::default();
        self.status = 0;
    }

    /// Handles a GOAWAY with `code` that excludes its request from processing.
    pub(super) fn exclude(&mut self, code: Code, passed: GoAwayScope) {
        self.failed_connections += u32::from(passed == GoAwayScope::Everybody);
        self.end(End::Unprocessed(Untouched {
            code,
            failed_connections: self.failed_connections,
            sent: self.sent.unwrap_or(self.at),
        }));
    }

    /// Ends its request with `end`, unless a complete response is present.
    pub(super) fn end(&mut self, end: End) {
        self.state = State::Ended(self.answer.take().unwrap_or(end));
        self.search = None;
        self.body = None;
        self.wake();
    }

    /// Stores the waker.
    pub(super) fn await_more(&mut self, context: &Context<'_>) {
        match &mut self.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.first_byte != Instant::default()
    }
}
