//! What has come for a request that waits for its answer.

use std::task::{Context, Waker};

use onrush_engine::Instant;

use crate::limits::BATCH_BYTES_MAX;
use crate::protocol::memcached::assembly::{Assembly, Messages};

/// A lane's wait for an answer.
pub(super) struct Wait {
    waker: Option<Waker>,
    pub(super) assembly: Assembly,
    /// What has come of the answer and was not read yet.
    pub(super) input: Vec<u8>,
    /// When it came.
    pub(super) at: Instant,
    /// Why nobody waits any more.
    pub(super) end: Option<NoAnswer>,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoAnswer {
    /// None came in time.
    Lost,
    /// The request did not get there: nobody listens, or the kernel says something else.
    Unreached,
    /// What came is no answer to it.
    Refused(&'static str),
}

impl Wait {
    /// Nothing is waited for yet.
    pub(super) fn new(now: Instant) -> Wait {
        Wait {
            waker: None,
            assembly: Assembly::new(),
            input: Vec::new(),
            at: now,
            end: None,
        }
    }

    /// Another request is sent, whose answer may be so many messages; `held` gets back the room that the last one has taken.
    pub(super) fn begin(&mut self, messages: Messages, held: &mut usize) {
        self.assembly.begin(messages, held);
        self.input.clear();
        self.input.shrink_to(BATCH_BYTES_MAX);
        self.end = None;
    }

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

    pub(super) fn end(&mut self, why: NoAnswer) {
        self.end = Some(why);
        self.wake();
    }
}
