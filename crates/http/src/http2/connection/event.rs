//! Events that received bytes cause.

use crate::http2::code::{Code, StreamError};
use crate::http2::fields::FieldSection;
use crate::http2::stream::{End, Stream};

/// One step over the input. The connection (`'c`) can be used while parts of the input (`'i`) are held.
pub struct Step<'c, 'i> {
    /// Number of bytes of the input consumed; the next step begins after them.
    pub bytes: usize,
    /// The event.
    pub event: Event<'c, 'i>,
}

/// Result of a step. A stream is closed once both sides have ended it or one has reset it; its slot is reused.
pub enum Event<'c, 'i> {
    /// Head of a request, which opens its stream, or of a response; a status of 1xx is interim. Each field is valid,
    /// but the user must check that the message is well-formed. A head larger than `list_bytes_max` is truncated, so
    /// that it can be refused with a status.
    Head {
        /// Stream of the head.
        stream: Stream,
        /// Fields, including pseudo-fields.
        fields: &'c FieldSection,
        /// Whether the stream ends here, without content.
        end: End,
    },
    /// Content. Its bytes count against the windows until they are [released](super::Connection::release).
    Data {
        /// Stream of the content.
        stream: Stream,
        /// A part of the content; empty only at its end.
        bytes: &'i [u8],
        /// Whether the content ends here.
        end: End,
    },
    /// Trailer fields after the complete content, without pseudo-fields.
    Trailers {
        /// Stream of the trailers.
        stream: Stream,
        /// Fields.
        fields: &'c FieldSection,
    },
    /// A stream was reset and is closed.
    Reset {
        /// The stream.
        stream: Stream,
        /// The side that reset it, and the reason.
        cause: Cause,
    },
    /// DATA was received on this closed stream, certainly not because of our reset: the peer had ended or reset the
    /// stream. RST_STREAM was written, and further frames on the stream are ignored.
    DataOfClosed(u32),
    /// The peer accepts no new streams. Our streams above `last` were not processed, are closed, and may be retried.
    GoAway {
        /// Last of our streams that the peer may process.
        last: u32,
        /// Code of the frame.
        code: Code,
    },
    /// An exhausted send window opened: that of a stream, or with `None` that of the connection.
    Window(Option<Stream>),
    /// The peer's settings changed. Windows of streams and the number of allowed streams may have increased.
    Settings,
    /// PING acknowledgement.
    Pong([u8; 8]),
    /// Nothing of interest to the user.
    Nothing,
    /// More input is needed: this many bytes from the start of the input, at most
    /// [`FRAME_WHOLE_BYTES_MAX`](crate::http2::limits::FRAME_WHOLE_BYTES_MAX). Nothing was consumed.
    NeedMore(usize),
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The peer reset it, with this code.
    Peer(Code),
    /// We reset it because of an error of the peer. RST_STREAM was written.
    Local(StreamError),
}

/// [`Step`] without borrowed data.
pub(crate) struct Progress {
    pub(crate) bytes: usize,
    pub(crate) found: EventKind,
}

impl Progress {
    #[inline]
    pub(crate) fn of(bytes: usize, found: EventKind) -> Self {
        Progress { bytes, found }
    }

    #[inline]
    pub(crate) fn need(bytes: usize) -> Self {
        Progress::of(0, EventKind::NeedMore(bytes))
    }
}

/// [`Event`] without borrowed data.
#[derive(Clone, Copy)]
pub(crate) enum EventKind {
    Head {
        stream: Stream,
        end: End,
    },
    /// The bytes are at the end of the consumed input.
    Data {
        stream: Stream,
        bytes: usize,
        end: End,
    },
    Trailers(Stream),
    Reset {
        stream: Stream,
        cause: Cause,
    },
    DataOfClosed(u32),
    GoAway {
        last: u32,
        code: Code,
    },
    Window(Option<Stream>),
    Settings,
    Pong([u8; 8]),
    Nothing,
    NeedMore(usize),
}
