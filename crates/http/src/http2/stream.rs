//! One stream (RFC 9113 5.1): what of it has come and is sent, its windows, and its place among those that have something
//! to send. A stream takes a slot while it is open; an idle connection has none.

mod gone;
mod index;
mod ready;
mod slab;

pub(crate) use gone::Gone;
pub(crate) use slab::Streams;

use super::flow::{Receiving, Sending};
use super::priority::Priority;

/// A stream of a connection, as long as it is open. Its slot is reused afterwards: whoever keeps something for each
/// stream can index it by [`Stream::slot`] and compare [`Stream::id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    pub(crate) id: u32,
    pub(crate) slot: u32,
}

impl Stream {
    /// Its id on the wire.
    #[inline]
    pub fn id(self) -> u32 {
        self.id
    }

    /// Its slot: below the most streams that were open at a time.
    #[inline]
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Whether the sender of a frame ends its stream with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// More follows.
    Open,
    /// Nothing follows.
    Stream,
}

/// What is expected of the peer on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incoming {
    /// The head of a response, interim ones included. A server has the head when a stream begins.
    Head,
    /// Content, or trailers.
    Content,
    /// Nothing: END_STREAM has come.
    Nothing,
}

/// What may be sent on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outgoing {
    /// Frames, the last one with END_STREAM.
    Frames,
    /// Nothing: END_STREAM is sent.
    Nothing,
}

/// What a message may have as content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Anything, or what its Content-Length says.
    Any,
    /// None, whatever Content-Length says: it is the response to a HEAD, or one without content by its status.
    None,
    /// That of an extended CONNECT (RFC 8441): the bytes of a tunnel. Of its response: anything, and behind a status of 2xx the
    /// bytes of a tunnel, of which Content-Length says nothing (RFC 9110 9.3.6).
    Tunnel,
}

/// Where a stream stands among those that have something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It has nothing.
    None,
    /// It is in the queue of its priority.
    Queued,
    /// Its window has no room.
    Blocked,
}

/// No slot.
pub(crate) const NOWHERE: u32 = u32::MAX;

/// Bytes of content that are not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// What is kept of an open stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// 0 in a free slot.
    pub(crate) id: u32,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    /// Bytes of content that have to come yet, or `UNKNOWN`.
    pub(crate) content_left: u64,
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
    /// What the response may have, or what of an extended CONNECT comes behind its head.
    pub(crate) content: Content,
    pub(crate) priority: Priority,
    pub(crate) turn: Turn,
    /// The neighbours in its queue, or the next free slot.
    pub(crate) next: u32,
    pub(crate) previous: u32,
}

const _: () = assert!(
    size_of::<Slot>() <= 64,
    "an idle stream has 512 bytes in all, which are the user's for the most part"
);

impl Slot {
    pub(crate) fn new(id: u32, sending: Sending, receiving: Receiving) -> Self {
        Slot {
            id,
            sending,
            receiving,
            content_left: UNKNOWN,
            incoming: Incoming::Content,
            outgoing: Outgoing::Frames,
            content: Content::Any,
            priority: Priority::DEFAULT,
            turn: Turn::None,
            next: NOWHERE,
            previous: NOWHERE,
        }
    }

    /// Whether both sides have ended.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.incoming == Incoming::Nothing && self.outgoing == Outgoing::Nothing
    }
}
