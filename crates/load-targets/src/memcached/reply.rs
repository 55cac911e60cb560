//! Whether a command has a response, and the response to a refused command.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reply {
    Wanted,
    /// `noreply`, or the flag q.
    Unwanted,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    /// The response, unless the client wants none.
    pub(super) text: Option<&'static str>,
    /// Number of bytes of the data block to skip.
    pub(super) skip: u64,
}

impl Refusal {
    pub(super) fn with_text(text: &'static str) -> Self {
        Self {
            text: Some(text),
            skip: 0,
        }
    }

    pub(super) fn if_wanted(reply: Reply, text: &'static str) -> Self {
        Self {
            text: (reply == Reply::Wanted).then_some(text),
            skip: 0,
        }
    }
}
