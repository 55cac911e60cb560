//! How far an exchange with a server has come.

use std::cell::Cell;

use crate::limits::UNREAD_REST_MAX;

/// How far an exchange has come; both directions look at it.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    request: Cell<RequestSide>,
    response: Cell<ResponseSide>,
}

/// What is known of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequestSide {
    /// Not all of it has been sent. Its client may hold the body back until it is told to send it.
    Held(Left),
    /// Not all of it has been sent. Its client sends the body, whatever the response is.
    Coming(Left),
    /// All of it has been sent.
    Sent,
}

/// How many bytes of the body are still to come from the client, if that is known.
type Left = Option<u64>;

/// What is known of the response.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) enum ResponseSide {
    /// Nothing: the server may not have seen the request.
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
    /// The request is sent to another server.
    pub(crate) fn begin_again(&self) {
        self.request.take();
        self.response.take();
    }

    pub(crate) fn request_is_sent(&self) {
        self.request.set(RequestSide::Sent);
    }

    pub(crate) fn is_request_sent(&self) -> bool {
        self.request.get() == RequestSide::Sent
    }

    /// The client sends its body now.
    pub(crate) fn body_comes(&self) {
        if let RequestSide::Held(left) = self.request.get() {
            self.request.set(RequestSide::Coming(left));
        }
    }

    /// So many bytes of it are still to come.
    pub(crate) fn body_left(&self, left: Left) {
        self.request.set(match self.request.get() {
            RequestSide::Held(_) => RequestSide::Held(left),
            RequestSide::Coming(_) => RequestSide::Coming(left),
            RequestSide::Sent => RequestSide::Sent,
        });
    }

    /// Whether so little of the body is missing that the client's connection is worth it.
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

    /// The response has come so far, or farther.
    pub(crate) fn response_is(&self, side: ResponseSide) {
        self.response.set(self.response.get().max(side));
    }
}
