//! Results of reading a part of a body.

use std::ops::Range;

/// Result of [`BodyReader::advance`](super::BodyReader::advance).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Bytes consumed from the start of the input; pass the rest again.
    pub consumed: usize,
    /// Payload among them, as a range of the input; may be empty.
    pub payload: Range<usize>,
    /// Bytes among them that may be left out of the message, as a range of the input: a chunk extension (RFC 9112
    /// 7.1.1) or a trailer that must not be forwarded. Usually empty.
    pub surplus: Range<usize>,
}

impl Step {
    pub(super) fn without_payload(consumed: usize) -> Step {
        Step {
            consumed,
            payload: consumed..consumed,
            surplus: consumed..consumed,
        }
    }
}

/// Result of [`BodyReader::pass`](super::BodyReader::pass).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwardable {
    /// Bytes consumed from the start of the input; pass the rest again.
    pub consumed: usize,
    /// Range of them that must not be forwarded; if it is not empty, more of the input may follow at once.
    pub surplus: Range<usize>,
}
