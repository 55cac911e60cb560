//! What a look at the bytes of a body came to.

use std::ops::Range;

/// What one look at the input came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// So many bytes from the start of the input are done with; the rest must be shown again.
    pub consumed: usize,
    /// The payload among them, as a range of the input; may be empty.
    pub payload: Range<usize>,
    /// Those among them that the message is as well without, as a range of the input; usually empty: the extensions of a
    /// chunk (RFC 9112 7.1.1), or a trailer that is not to be passed on.
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

/// What of the start of an input goes on to the next recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// So many bytes are done with; the rest must be shown again.
    pub consumed: usize,
    /// All of those go on but these; when there are any, more of the input may be passed at once.
    pub surplus: Range<usize>,
}
