//! What is known of a request when it has ended. Each has one, and it is written in one place: where its exchange ends.

use std::cell::Cell;

/// Why a forwarded request got no response from a server, or not all of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// No server is up.
    NoServer,
    /// All servers have as much to do as they may have.
    Full,
    /// The connection to the server failed.
    Connect,
    /// It took too long.
    Timeout,
    /// The server ended the connection without a response.
    Reset,
    /// What it sent was no response, or not one to pass on.
    Garbage,
    /// The response stopped in its middle.
    Cut,
    /// It was the client's doing.
    Client,
    /// The client has its share of the capacity of the group.
    ClientShare,
}

impl Class {
    /// All of them, in the order of their counters.
    pub const ALL: [Class; 9] = [
        Class::NoServer,
        Class::Full,
        Class::Connect,
        Class::Timeout,
        Class::Reset,
        Class::Garbage,
        Class::Cut,
        Class::Client,
        Class::ClientShare,
    ];

    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Class::NoServer => "no server",
            Class::Full => "busy",
            Class::Connect => "connect",
            Class::Timeout => "timeout",
            Class::Reset => "reset",
            Class::Garbage => "bad answer",
            Class::Cut => "cut off",
            Class::Client => "client",
            Class::ClientShare => "client share",
        }
    }
}

/// Filled while the request is under way; small, as every connection has room for one.
#[derive(Debug, Default)]
pub(crate) struct Record {
    /// 0 before the head of its response has been written.
    status: Cell<u16>,
    kind: Cell<Kind>,
    failure: Cell<Option<Class>>,
    retries: Cell<u8>,
    /// What else is known of its response: bits.
    response: Cell<u8>,
}

/// It began a while before it ended, and somebody has been told when.
const FIRST_BYTE_TOLD: u8 = 1;

/// It was cut off.
const CUT: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Ordinary,
    /// What was received was no valid request.
    Refused,
    /// Its connection has become a tunnel.
    Tunnel,
}

/// How it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// All of its response was written, and handed to the kernel where that takes time.
    Complete,
    /// There was no more of its response: the client was told so by a reset, or by the end of its connection.
    Partial,
    /// The client was gone before, or took nothing for too long.
    GivenUp,
    /// Its connection was ended before for something else, such as want of memory.
    Broken,
    /// The core had to end before.
    CutOff,
}

impl Record {
    /// The head of its response has been written.
    #[inline]
    pub(crate) fn respond(&self, status: u16) {
        self.status.set(status);
    }

    /// What was received is no valid request.
    pub(crate) fn refuse(&self) {
        self.kind.set(Kind::Refused);
    }

    /// It has become a tunnel.
    pub(crate) fn tunnel(&self) {
        self.kind.set(Kind::Tunnel);
    }

    /// No server has responded to it, or not to the end.
    pub(crate) fn fail(&self, class: Class) {
        self.failure.set(Some(class));
    }

    /// It is sent to a server again.
    pub(crate) fn retry(&self) {
        self.retries.set(self.retries.get().saturating_add(1));
    }

    /// Its response began a while before it ended, and somebody has been told when.
    pub(crate) fn begin_before(&self) {
        self.response.set(self.response.get() | FIRST_BYTE_TOLD);
    }

    pub(crate) fn has_begun_before(&self) -> bool {
        self.response.get() & FIRST_BYTE_TOLD != 0
    }

    /// There will be no more of its response, which is not whole, if it has begun at all.
    pub(crate) fn cut_off(&self) {
        self.response.set(self.response.get() | CUT);
    }

    /// How it has ended, where `end` is how it went as far as its connection knows.
    #[inline]
    pub(crate) fn end(&self, end: End) -> End {
        match end {
            End::Complete if self.response.get() & CUT != 0 => End::Partial,
            end => end,
        }
    }

    pub(crate) fn is_tunnel(&self) -> bool {
        self.kind.get() == Kind::Tunnel
    }

    /// That of its response, if it has begun.
    #[inline]
    pub(crate) fn status(&self) -> Option<u16> {
        Some(self.status.get()).filter(|&status| status > 0)
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind.get()
    }

    pub(crate) fn failure(&self) -> Option<Class> {
        self.failure.get()
    }

    pub(crate) fn retries(&self) -> u8 {
        self.retries.get()
    }

    /// Whether its status and its end are all there is to say, as of nearly all requests.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.kind.get() == Kind::Ordinary && self.failure.get().is_none() && self.retries.get() == 0
    }
}
