//! One stream (RFC 9113 5.1): state, windows, and position in the send queue. Only open streams have a slot.

mod closed;
mod index;
mod send_queue;
mod slab;

pub(crate) use closed::ClosedStreams;
pub(crate) use slab::Streams;

use super::flow::{ReceiveWindow, SendWindow};
use super::priority::Priority;

/// Open stream of a connection. Its slot is reused afterwards: a user can index its data by [`Stream::slot`] and
/// compare [`Stream::id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    pub(crate) id: u32,
    pub(crate) slot: u32,
}

impl Stream {
    /// Stream id on the wire.
    #[inline]
    pub fn id(self) -> u32 {
        self.id
    }

    /// Index of its slot; less than the maximum number of streams that were open at a time.
    #[inline]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Whether a frame ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// More follows.
    Open,
    /// Nothing follows.
    Stream,
}

/// Frames that the peer may send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// Head of a response, possibly interim. On a server, a stream begins with the head already received.
    Head,
    /// Content or trailers.
    Content,
    /// Nothing: END_STREAM was received.
    Nothing,
}

/// Frames that we may send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// Frames, the last with END_STREAM.
    Frames,
    /// Nothing: END_STREAM was sent.
    Nothing,
}

/// Content allowed in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any content, or as much as Content-Length announces.
    Any,
    /// No content, even with a Content-Length: the response to a HEAD, or a response with a status that excludes
    /// content.
    None,
    /// In an extended CONNECT (RFC 8441), tunnel data. In its response, any content, or after a 2xx status tunnel data,
    /// for which Content-Length is meaningless (RFC 9110 9.3.6).
    Tunnel,
}

/// Whether a stream waits to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendState {
    /// Nothing to send.
    None,
    /// In the queue of its priority.
    Queued,
    /// Blocked by flow control.
    Blocked,
}

pub(crate) const NO_SLOT: u32 = u32::MAX;

/// Unknown length of content.
pub(crate) const UNKNOWN: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// 0 in a free slot.
    pub(crate) id: u32,
    pub(crate) sending: SendWindow,
    pub(crate) receiving: ReceiveWindow,
    /// Number of bytes of content still to be received, or `UNKNOWN`.
    pub(crate) content_left: u64,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// Content allowed in the response, or after the head of an extended CONNECT.
    pub(crate) content: Content,
    pub(crate) priority: Priority,
    pub(crate) turn: SendState,
    /// Neighbours in the queue, or the next free slot.
    pub(crate) next: u32,
    pub(crate) previous: u32,
}

const _: () = assert!(
    size_of::<Slot>() <= 64,
    "the budget of an idle stream is 512 bytes, mostly for the data of the user"
);

impl Slot {
    pub(crate) fn new(id: u32, sending: SendWindow, receiving: ReceiveWindow) -> Self {
        Slot {
            id,
            sending,
            receiving,
            content_left: UNKNOWN,
            incoming: Incoming::Content,
            outgoing: Outgoing::Frames,
            content: Content::Any,
            priority: Priority::DEFAULT,
            turn: SendState::None,
            next: NO_SLOT,
            previous: NO_SLOT,
        }
    }

    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.incoming == Incoming::Nothing && self.outgoing == Outgoing::Nothing
    }
}
