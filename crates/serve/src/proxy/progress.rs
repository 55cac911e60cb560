//! Progress of an exchange with a server.

use std::cell::Cell;

use super::ejection::Outcome;
use crate::limits::UNREAD_REST_MAX;

#[derive(Debug, Default)]
pub(crate) struct Progress {
    request: Cell<RequestSide>,
    response: Cell<ResponseSide>,
    /// Outcome of the attempt if the rest of its response arrives.
    pub(crate) outcome: Cell<Option<Outcome>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestSide {
    /// Not completely sent. The client may be waiting for 100 (Continue) before it sends the body.
    Held(Left),
    /// Not completely sent. The client is sending the body and does not wait for a response.
    Coming(Left),
    Sent,
}

/// Bytes of the body that the client has not sent yet, if known.
type Left = Option<u64>;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum ResponseSide {
    /// Nothing has arrived; the server may not have seen the request.
    #[default]
    Awaited,
    /// The server has sent something.
    Arriving,
    /// An interim response has been written for the client.
    Interim,
    /// The head of the response has been written for the client.
    Begun,
}

impl Default for RequestSide {
    fn default() -> Self {
        RequestSide::Held(None)
    }
}

impl Progress {
    /// Resets the progress, before the request is sent to another server.
    pub(crate) fn restart_exchange(&self) {
        self.request.take();
        self.response.take();
        self.outcome.take();
    }

    pub(crate) fn request_is_sent(&self) {
        self.request.set(RequestSide::Sent);
    }

    pub(crate) fn is_request_sent(&self) -> bool {
        self.request.get() == RequestSide::Sent
    }

    /// The client has started to send its body.
    pub(crate) fn body_started(&self) {
        if let RequestSide::Held(left) = self.request.get() {
            self.request.set(RequestSide::Coming(left));
        }
    }

    /// Sets the number of body bytes that are still to come.
    pub(crate) fn body_left(&self, left: Left) {
        self.request.set(match self.request.get() {
            RequestSide::Held(_) => RequestSide::Held(left),
            RequestSide::Coming(_) => RequestSide::Coming(left),
            RequestSide::Sent => RequestSide::Sent,
        });
    }

    /// Whether the rest of the body is short enough to be discarded to keep the client's connection.
    pub(crate) fn rest_is_short(&self) -> bool {
        match self.request.get() {
            RequestSide::Held(_) => false,
            RequestSide::Coming(left) => left.is_none_or(|left| left <= u64::from(UNREAD_REST_MAX)),
            RequestSide::Sent => true,
        }
    }

    pub(crate) fn response(&self) -> ResponseSide {
        self.response.get()
    }

    /// Raises the state of the response to `side`; never lowers it.
    pub(crate) fn advance_response(&self, side: ResponseSide) {
        self.response.set(self.response.get().max(side));
    }
}
