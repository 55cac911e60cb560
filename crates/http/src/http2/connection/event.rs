//! What comes of received bytes.

use crate::http2::code::{Code, StreamError};
use crate::http2::fields::FieldSection;
use crate::http2::stream::{End, Stream};

/// One step over the input. What it has of the input (`'i`) does not keep the connection (`'c`) from being used.
pub struct Step<'c, 'i> {
    /// Bytes of the input that are done with; the next step begins behind them.
    pub bytes: usize,
    /// What they came to.
    pub event: Event<'c, 'i>,
}

/// What a step came to. Streams of which one ends here are closed when both sides have ended or one has reset it; their
/// slots are used again by later ones.
pub enum Event<'c, 'i> {
    /// A head: a request, which opens its stream, or a response, of which those with a status of 1xx are interim. Whether
    /// it is a message that is well formed is for the user to find out; its single fields are. One that is too large for
    /// `list_bytes_max` comes all the same, cut, so that it can be refused with a status.
    Head {
        /// Its stream.
        stream: Stream,
        /// The fields, pseudo-fields included.
        fields: &'c FieldSection,
        /// Whether there is no content.
        end: End,
    },
    /// Content. Its bytes count against the windows until they are [released](super::Connection::release).
    Data {
        /// Its stream.
        stream: Stream,
        /// Some of it, and never empty but at an end.
        bytes: &'i [u8],
        /// Whether it is whole.
        end: End,
    },
    /// Fields behind the content, which is whole; none of them is a pseudo-field.
    Trailers {
        /// Its stream.
        stream: Stream,
        /// The fields.
        fields: &'c FieldSection,
    },
    /// A stream has ended before it was whole, and is closed.
    Reset {
        /// Which one.
        stream: Stream,
        /// Who has ended it, and why.
        cause: Cause,
    },
    /// DATA has come for this stream, which is closed, and certainly not because we have reset it: the peer had ended it before,
    /// or reset it itself. RST_STREAM is written; what more comes for it is passed over.
    DataOfClosed(u32),
    /// The peer takes no new streams. Those of ours above `last` are closed: nothing was done for them, and they may be
    /// tried elsewhere.
    GoAway {
        /// The last stream of ours that it may do something for.
        last: u32,
        /// Why.
        code: Code,
    },
    /// A window that was full has room again: that of a stream, or without one that of the connection.
    Window(Option<Stream>),
    /// The peer has said its settings. Windows of streams may have room again, and there may be room for more streams.
    Settings,
    /// The answer to our PING.
    Pong([u8; 8]),
    /// Nothing that matters to the user.
    Nothing,
    /// Nothing can be done before so many bytes are there, counted from the start of the input; at most
    /// [`FRAME_WHOLE_BYTES_MAX`](crate::http2::limits::FRAME_WHOLE_BYTES_MAX). No bytes are done with.
    NeedMore(usize),
}

/// Why a stream was reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The peer has reset it, for this reason.
    Peer(Code),
    /// We have: the peer has broken a rule. RST_STREAM is written.
    Local(StreamError),
}

/// The same as [`Step`] without what it borrows.
pub(crate) struct Progress {
    pub(crate) bytes: usize,
    pub(crate) found: Found,
}

impl Progress {
    #[inline]
    pub(crate) fn of(bytes: usize, found: Found) -> Self {
        Progress { bytes, found }
    }

    #[inline]
    pub(crate) fn need(bytes: usize) -> Self {
        Progress::of(0, Found::NeedMore(bytes))
    }
}

/// The same as [`Event`] without what it borrows.
#[derive(Clone, Copy)]
pub(crate) enum Found {
    Head {
        stream: Stream,
        end: End,
    },
    /// The bytes stand right before the end of what the step is done with.
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
