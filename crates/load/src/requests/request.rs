//! Properties of requests that do not depend on the protocol.

/// Common properties of one kind of request.
#[derive(Debug)]
pub(crate) struct RequestKind {
    /// Display name, such as a method and a path.
    pub(crate) name: String,
    pub(crate) is_repeatable: bool,
    pub(crate) lists_outcomes: bool,
}

impl RequestKind {
    /// Returns the first word of the name.
    pub(crate) fn method(&self) -> &str {
        self.name.split(' ').next().unwrap_or_default()
    }
}

/// Whether a request is the last one of its connection, which HTTP/1.1 announces to the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LastRequest {
    Yes,
    No,
}
