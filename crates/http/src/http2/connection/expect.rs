//! What a connection expects next of its peer's bytes.

use crate::http2::code::StreamError;
use crate::http2::stream::{End, Stream};

/// Where the next step begins.
#[derive(Clone, Copy)]
pub(crate) enum Expect {
    /// The preface of a client (RFC 9113 3.4).
    Preface,
    /// SETTINGS, the first frame of both (RFC 9113 3.4).
    Settings,
    /// Any frame.
    Frame,
    /// More of a DATA frame.
    Data(Data),
    /// More of a field block's frame.
    Fragment(Fragment),
    /// CONTINUATION of a field block.
    Continuation,
    /// So many bytes that nobody wants: at least one.
    Skip(u32),
    /// Nothing: the connection has failed.
    Nothing,
}

/// What is left of a DATA frame.
#[derive(Clone, Copy)]
pub(crate) struct Data {
    pub(crate) stream: Stream,
    /// Bytes of content.
    pub(crate) left: u32,
    /// Bytes of padding behind it; the windows know of them already.
    pub(crate) padding: u32,
    pub(crate) end: End,
}

/// What is left of HEADERS or CONTINUATION.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    /// Bytes of the block.
    pub(crate) left: u32,
    /// Bytes of padding behind it.
    pub(crate) padding: u32,
    pub(crate) follows: Follows,
}

/// What follows a frame of a field block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// CONTINUATION.
    Block,
    /// Any frame: END_HEADERS is set.
    Frame,
}

/// The HEADERS that a field block belongs to.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// The stream's id; 0 when there is no block.
    pub(crate) id: u32,
    pub(crate) end: End,
    /// What is wrong with the frame: an error of its stream, once the block is decoded.
    pub(crate) error: Option<StreamError>,
    /// CONTINUATION frames so far.
    pub(crate) continuations: u16,
}

impl Block {
    pub(crate) const NONE: Block = Block {
        id: 0,
        end: End::Open,
        error: None,
        continuations: 0,
    };
}
