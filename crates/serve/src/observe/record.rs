//! The result of a request. Exactly one is recorded for each, where its exchange ends.

use std::cell::Cell;

/// Why a forwarded request got no complete response from a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FailureClass {
    /// No server is up.
    NoServer,
    /// All servers are at their capacity.
    Full,
    /// The connection to the server failed.
    Connect,
    /// A timeout expired.
    Timeout,
    /// The server closed the connection without a response.
    Reset,
    /// The server sent an invalid response, or a response that cannot be forwarded.
    InvalidResponse,
    /// The response ended early.
    Cut,
    /// The client caused it.
    Client,
    /// The client has used up its share of the group's capacity.
    ClientShare,
}

impl FailureClass {
    /// All classes, in the order of their counters.
    pub const ALL: [FailureClass; 9] = [
        FailureClass::NoServer,
        FailureClass::Full,
        FailureClass::Connect,
        FailureClass::Timeout,
        FailureClass::Reset,
        FailureClass::InvalidResponse,
        FailureClass::Cut,
        FailureClass::Client,
        FailureClass::ClientShare,
    ];

    /// Label in logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            FailureClass::NoServer => "no server",
            FailureClass::Full => "busy",
            FailureClass::Connect => "connect",
            FailureClass::Timeout => "timeout",
            FailureClass::Reset => "reset",
            FailureClass::InvalidResponse => "bad answer",
            FailureClass::Cut => "cut off",
            FailureClass::Client => "client",
            FailureClass::ClientShare => "client share",
        }
    }
}

/// Filled while the request is in flight. Small, because every connection holds one.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// 0 before the response head is written.
    status: Cell<u16>,
    kind: Cell<RequestKind>,
    failure: Cell<Option<FailureClass>>,
    retries: Cell<u8>,
    /// Bits: [`FIRST_BYTE_TOLD`], [`CUT`].
    response: Cell<u8>,
}

/// The time to first byte was recorded, because the response completes in a later turn.
const FIRST_BYTE_TOLD: u8 = 1;

/// The response was cut off.
const CUT: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum RequestKind {
    #[default]
    Ordinary,
    /// The input was not a valid request.
    Refused,
    /// The connection became a tunnel.
    Tunnel,
}

/// How a request ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RequestEnd {
    /// The whole response was written and, if that takes time, handed to the kernel.
    Complete,
    /// The response was cut off with a reset or by closing the connection.
    Partial,
    /// The client disconnected or stopped reading for too long.
    GivenUp,
    /// The connection was ended for another reason, such as lack of memory.
    Broken,
    /// The core shut down first.
    CutOff,
}

impl Record {
    /// Records the status when the response head is written.
    #[inline]
    pub(crate) fn respond(&self, status: u16) {
        self.status.set(status);
    }

    /// Records that the input is not a valid request.
    pub(crate) fn refuse(&self) {
        self.kind.set(RequestKind::Refused);
    }

    /// Records that the connection became a tunnel.
    pub(crate) fn tunnel(&self) {
        self.kind.set(RequestKind::Tunnel);
    }

    /// Records that no server sent a complete response.
    pub(crate) fn fail(&self, class: FailureClass) {
        self.failure.set(Some(class));
    }

    pub(crate) fn retry(&self) {
        self.retries.set(self.retries.get().saturating_add(1));
    }

    /// Records that the time to first byte has been reported separately.
    pub(crate) fn set_first_byte_recorded(&self) {
        self.response.set(self.response.get() | FIRST_BYTE_TOLD);
    }

    pub(crate) fn has_first_byte_recorded(&self) -> bool {
        self.response.get() & FIRST_BYTE_TOLD != 0
    }

    /// Records that the response ends here, incomplete or not even started.
    pub(crate) fn cut_off(&self) {
        self.response.set(self.response.get() | CUT);
    }

    /// The end of the request; `end` is the end from the view of its connection.
    #[inline]
    pub(crate) fn end(&self, end: RequestEnd) -> RequestEnd {
        match end {
            RequestEnd::Complete if self.response.get() & CUT != 0 => RequestEnd::Partial,
            end => end,
        }
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        self.kind.get() == RequestKind::Tunnel
    }

    /// Status of the response, if it has started.
    #[inline]
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.status.get()).filter(|&status| status > 0)
    }

    pub(crate) fn kind(&self) -> RequestKind {
        self.kind.get()
    }

    pub(crate) fn failure(&self) -> Option<FailureClass> {
        self.failure.get()
    }

    pub(crate) fn retries(&self) -> u8 {
        self.retries.get()
    }

    /// Whether the request has no failure, retry or special kind, as nearly all have not.
    #[inline]
    pub(crate) fn is_ordinary(&self) -> bool {
        self.kind.get() == RequestKind::Ordinary
            && self.failure.get().is_none()
            && self.retries.get() == 0
    }
}
