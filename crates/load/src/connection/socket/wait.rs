//! State of a request that waits for its response.

use std::task::{Context, Waker};

use onrush_engine::Instant;

use crate::limits::BATCH_BYTES_MAX;
use crate::protocol::memcached::assembly::{Assembly, Messages};

pub(super) struct ResponseWait {
    waker: Option<Waker>,
    pub(super) assembly: Assembly,
    /// Received bytes that are not parsed yet.
    pub(super) input: Vec<u8>,
    /// Time of the last receive.
    pub(super) at: Instant,
    /// Reason why the wait ended without a response.
    pub(super) end: Option<WaitFailure>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitFailure {
    /// No response within the timeout.
    Lost,
    /// The request did not arrive: nothing listens there, or another error of the kernel.
    Unreached,
    Refused(&'static str),
}

impl ResponseWait {
    pub(super) fn new(now: Instant) -> ResponseWait {
        ResponseWait {
            waker: None,
            assembly: Assembly::new(),
            input: Vec::new(),
            at: now,
            end: None,
        }
    }

    /// Starts the wait for another request, whose response may have `messages` messages. The bytes held by the last one
    /// are added back to `held`.
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

    pub(super) fn end(&mut self, why: WaitFailure) {
        self.end = Some(why);
        self.wake();
    }
}
