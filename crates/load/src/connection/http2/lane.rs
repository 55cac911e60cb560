//! One of those who ask over a connection, as the connection knows it. Pure.

use std::rc::Rc;
use std::task::{Context, Waker};

use onrush_engine::Instant;
use onrush_http::http2::Stream;
use onrush_http::http2::code::Code;

use crate::connection::core_run::recorder::Received;
use crate::protocol::failure::Failure;
use crate::protocol::grpc::Call;
use crate::requests::expect::Search;

/// A lane and the request that it has on its way, if it has one.
pub(super) struct Lane {
    waker: Option<Waker>,
    pub(super) state: State,
    /// The request's number in the run, and its kind.
    pub(super) number: u64,
    pub(super) kind: usize,
    /// Which of the connections was there when it began to wait for one, from 1.
    pub(super) waits_since: u64,
    /// Its stream was opened before the server had said how many it takes.
    pub(super) is_early: bool,
    /// Connections so far that did nothing for the request, nor for another.
    pub(super) vain: u32,
    /// When it was first sent, or first waited in vain for a connection; none before.
    pub(super) sent: Option<Instant>,
    pub(super) written: Instant,
    /// When anything last happened on its stream; before that, when the request was first sent, on whatever stream.
    pub(super) at: Instant,
    /// When it was known what the response says; the beginning of the clock before.
    pub(super) first_byte: Instant,
    /// The status of the response; below 200 before it is known.
    pub(super) status: u16,
    pub(super) search: Option<Box<Search>>,
    /// What has come of the response to a call, where requests are calls.
    pub(super) call: Call,
    /// The response, where it was whole before its request was.
    pub(super) answer: Option<End>,
    /// What is still to be sent of the request's body, from a place on.
    pub(super) body: Option<(Rc<[u8]>, usize)>,
}

/// What a lane does.
#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// It has nothing to ask.
    Idle,
    /// It waits for a stream.
    Waiting,
    /// It may open one.
    Invited,
    /// It has one, and waits for a response.
    Open(Stream),
    /// What came of its request.
    Ended(End),
}

/// What came of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// A response, whole at `at`.
    Answered {
        received: Received,
        written: Instant,
        at: Instant,
    },
    /// The server goes away, and has said that it did nothing for it.
    Untouched(Untouched),
    /// The server has refused its stream before it had said how many it takes, and did nothing for it: it is sent again.
    NoStream,
    /// None, and none is waited for.
    Lost(Failure),
    /// The server has ended its stream, or the connection, and has said why.
    Cancelled(Failure, Code),
    /// What came is no response to it.
    Refused(&'static str),
}

/// A request that a server which goes away did nothing for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Untouched {
    /// Why it goes away.
    pub(crate) code: Code,
    /// Connections one behind the other that have responded to nobody, this one among them.
    pub(crate) vain: u32,
    /// When the request was first sent.
    pub(crate) sent: Instant,
}

/// Whom a server that goes away has passed over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    /// Everybody: no response has come over the connection.
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
            vain: 0,
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

    /// Its request has a stream since `now`.
    pub(super) fn begin(&mut self, stream: Stream, now: Instant) {
        self.state = State::Open(stream);
        (self.written, self.at) = (now, *self.sent.get_or_insert(now));
        self.first_byte = Instant::default();
        self.status = 0;
    }

    /// The server goes away because of `code`, and did nothing for its request.
    pub(super) fn pass_over(&mut self, code: Code, passed: Passed) {
        self.vain += u32::from(passed == Passed::Everybody);
        self.end(End::Untouched(Untouched {
            code,
            vain: self.vain,
            sent: self.sent.unwrap_or(self.at),
        }));
    }

    /// Its request has come to this, unless there is a response already.
    pub(super) fn end(&mut self, end: End) {
        self.state = State::Ended(self.answer.take().unwrap_or(end));
        self.search = None;
        self.body = None;
        self.wake();
    }

    /// It is woken when something becomes of it.
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

    /// Whether anything of the response has come.
    pub(super) fn has_begun(&self) -> bool {
        self.first_byte != Instant::default()
    }
}
