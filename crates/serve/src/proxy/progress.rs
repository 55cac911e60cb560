//! How far an exchange with a server has come.

use std::cell::Cell;

use crate::limits::UNREAD_REST_MAX;

/// How far an exchange has come; both directions look at it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// All of the request has been sent.
    pub(crate) request_is_sent: Cell<bool>,
    /// The server has sent something: it has seen the request.
    pub(crate) server_has_spoken: Cell<bool>,
    /// Something has been written for the client, be it an interim answer.
    pub(crate) client_is_told: Cell<bool>,
    /// The head of the answer has been written for the client.
    pub(crate) answer_has_begun: Cell<bool>,
    /// The client knows the end of the answer by the end of the connection, and by nothing else.
    pub(crate) ends_by_closing: Cell<bool>,
    /// The client sends the body, whatever it is answered: it does not wait, or not any more, to be told so.
    pub(crate) body_will_come: Cell<bool>,
    /// How many bytes of the body are still to come from the client, if that is known.
    pub(crate) body_left: Cell<Option<u64>>,
}

impl Progress {
    /// Whether so little of the body is missing that the client's connection is worth it.
    pub(crate) fn rest_is_short(&self) -> bool {
        self.body_will_come.get()
            && self
                .body_left
                .get()
                .is_none_or(|left| left <= u64::from(UNREAD_REST_MAX))
    }
}
