//! Protocol of a listener: HTTP, or one of the load targets.

use std::fmt;

use crate::limits;

/// Protocol of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP in these versions, handled by routes.
    Http(HttpVersions),
    /// The text protocol of memcached, with classic and meta commands.
    Memcached(Memcached, LoadTarget),
    /// Sends back what it receives (RFC 862).
    Echo(LoadTarget),
    /// Discards what it receives (RFC 863).
    Sink(LoadTarget),
    /// Answers requests of a fixed size with responses of a fixed size, over TCP.
    Responder(Responder),
}

impl Protocol {
    /// Name in a configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Protocol::Http(_) => "http",
            Protocol::Memcached(..) => "memcached",
            Protocol::Echo(_) => "echo",
            Protocol::Sink(_) => "sink",
            Protocol::Responder(_) => "responder",
        }
    }

    /// Transport of the listener; a Unix socket counts as TCP.
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

/// HTTP versions of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.0 and HTTP/1.1 only.
    Http1,
    /// HTTP/2 only: over TLS if ALPN selects it or the client sends no ALPN, in clear text by prior knowledge.
    Http2,
    /// Both: HTTP/2 if ALPN selects it, or the client sends its preface.
    #[default]
    Both,
}

impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A memcached server for load tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memcached {
    /// A cache of values; each core has its own.
    Stored {
        /// Maximum memory for the items of one core in bytes, with overhead.
        memory: u64,
        /// Maximum size of a value in bytes; not above `memory`.
        item_bytes_max: u32,
    },
    /// Every key has a value of this size, and nothing is stored.
    Synthetic {
        /// Size of a value in bytes.
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

/// Requests and responses of fixed sizes without framing, as in netperf's request/response tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Responder {
    /// Size of a request in bytes, at least one.
    pub request_bytes: u32,
    /// Size of a response in bytes, at least one.
    pub response_bytes: u32,
}

/// Transport settings of a load target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadTarget {
    /// Transport of the listener.
    pub transport: Transport,
    /// Receive buffer of UDP sockets in bytes; `None` for the system's default.
    pub receive_buffer: Option<u32>,
}

/// Transport of a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// Streams: TCP or a Unix socket.
    Tcp,
    /// UDP.
    Udp,
    /// TCP and UDP on the same port.
    #[default]
    Both,
}

impl Transport {
    /// Whether it includes TCP.
    pub fn has_tcp(self) -> bool {
        match self {
            Transport::Tcp | Transport::Both => true,
            Transport::Udp => false,
        }
    }

    /// Whether it includes UDP.
    pub fn has_udp(self) -> bool {
        match self {
            Transport::Udp | Transport::Both => true,
            Transport::Tcp => false,
        }
    }
}
