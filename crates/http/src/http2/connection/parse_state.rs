//! State of parsing: what a connection expects next.

use crate::http2::code::StreamError;
use crate::http2::stream::{End, Stream};

/// Input that the next step parses.
#[derive(Clone, Copy)]
pub(crate) enum ParseState {
    /// The preface of a client (RFC 9113 3.4).
    Preface,
    /// SETTINGS, the first frame of both (RFC 9113 3.4).
    Settings,
    Frame,
    Data(Data),
    /// Rest of a frame with a field block.
    Fragment(Fragment),
    Continuation,
    /// Bytes to skip; at least one.
    Skip(u32),
    /// Nothing: the connection has failed.
    Nothing,
}

/// Rest of a DATA frame.
#[derive(Clone, Copy)]
pub(crate) struct Data {
    pub(crate) stream: Stream,
    pub(crate) left: u32,
    /// Number of bytes of padding after it, already subtracted from the windows.
    pub(crate) padding: u32,
    pub(crate) end: End,
}

/// Rest of HEADERS or CONTINUATION.
#[derive(Clone, Copy)]
pub(crate) struct Fragment {
    pub(crate) left: u32,
    pub(crate) padding: u32,
    pub(crate) follows: FramesAllowedNext,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FramesAllowedNext {
    Block,
    /// Any frame: END_HEADERS is set.
    Frame,
}

/// HEADERS frame of a field block.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    /// Stream id; 0 outside a block.
    pub(crate) id: u32,
    pub(crate) end: End,
    /// Error in the frame, handled as a stream error after the block is decoded.
    pub(crate) error: Option<StreamError>,
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
