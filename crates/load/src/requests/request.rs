//! What the run knows of a request, whatever its protocol.

/// What requests of one kind have in common.
#[derive(Debug)]
pub(crate) struct RequestKind {
    /// For people: what is done and to what, such as a method and a path.
    pub(crate) name: String,
    /// Whether doing it twice is as good as doing it once.
    pub(crate) is_repeatable: bool,
    /// Whether the request lists its expected outcomes.
    pub(crate) lists_outcomes: bool,
}

impl RequestKind {
    /// What is done: the first word of its name.
    pub(crate) fn method(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }
}

/// Whether a request is its connection's last, and says so where its protocol can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Last {
    Yes,
    No,
}
