//! What is spoken at a place to listen: HTTP, or what the far end of a run of load that is none has to speak.

use std::fmt;

use crate::limits;

/// What is spoken with those who connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, in these versions: routes say what the responses are.
    Http(HttpVersions),
    /// memcached's text protocol, classic and meta commands.
    Memcached(Memcached, FarEnd),
    /// Whatever comes goes back (RFC 862).
    Echo(FarEnd),
    /// Whatever comes is dropped (RFC 863).
    Sink(FarEnd),
    /// For each so many bytes that come, so many go, over TCP.
    Responder(Responder),
}

impl Protocol {
    /// As it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Protocol::Http(_) => "http",
            Protocol::Memcached(..) => "memcached",
            Protocol::Echo(_) => "echo",
            Protocol::Sink(_) => "sink",
            Protocol::Responder(_) => "responder",
        }
    }

    /// What comes by TCP or a Unix socket, and what by UDP.
    pub fn transport(&self) -> Transport {
        match self {
            Protocol::Http(_) | Protocol::Responder(_) => Transport::Tcp,
            Protocol::Memcached(_, far_end) | Protocol::Echo(far_end) | Protocol::Sink(far_end) => {
                far_end.transport
            }
        }
    }
}

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol::Http(HttpVersions::default())
    }
}

/// The versions of HTTP that are spoken at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.0 and HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone: over TLS with those who agree on it or name nothing (ALPN), without TLS by prior knowledge.
    Http2,
    /// Both: who agrees on HTTP/2, or begins with its preface, speaks it.
    #[default]
    Both,
}

/// As it is written.
impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A memcached server, as far as a run of load needs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memcached {
    /// What is set can be got, on the same core.
    Stored {
        /// Bytes that the items of one core may take, with what it costs to keep them.
        memory: u64,
        /// Bytes of a value; no more than `memory`.
        item_bytes_max: u32,
    },
    /// Every key is there, with a value of so many bytes, and nothing is kept.
    Synthetic {
        /// Bytes of a value.
        value_bytes: u32,
    },
}

impl Default for Memcached {
    fn default() -> Memcached {
        Memcached::Stored {
            memory: limits::MEMORY_DEFAULT,
            item_bytes_max: limits::ITEM_BYTES_MAX_DEFAULT,
        }
    }
}

/// Requests and responses of fixed sizes, which have nothing else: as the request/response tests of netperf have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Responder {
    /// Bytes of a request, at least one.
    pub request_bytes: u32,
    /// Bytes of its response, at least one.
    pub response_bytes: u32,
}

/// How what comes to a far end is carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FarEnd {
    /// What carries the bytes.
    pub transport: Transport,
    /// Bytes that the kernel keeps of datagrams that wait for a core; none for what it keeps anyway.
    pub receive_buffer: Option<u32>,
}

/// What carries bytes to a place to listen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Streams: TCP, or a Unix socket.
    Tcp,
    /// Datagrams.
    Udp,
    /// TCP and UDP at the same port.
    #[default]
    Both,
}

impl Transport {
    /// Whether connections are accepted.
    pub fn has_tcp(self) -> bool {
        match self {
            Transport::Tcp | Transport::Both => true,
            Transport::Udp => false,
        }
    }

    /// Whether datagrams are received.
    pub fn has_udp(self) -> bool {
        match self {
            Transport::Udp | Transport::Both => true,
            Transport::Tcp => false,
        }
    }
}
