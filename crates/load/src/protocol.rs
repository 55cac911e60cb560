//! Protocols of connections: a protocol writes request number `n` and parses received bytes. The code that decides when
//! and on which connection a request is sent, and that records the responses, is the same for all protocols.
//!
//! ```text
//!  Protocol ── one per core ──> Codec ── request number ──> its bytes
//!                                 └──── one per request ──> Incoming ── received bytes ──> Partial | Done | Refused
//! ```

pub mod bytes;
pub(crate) mod failure;
pub(crate) mod flight;
pub mod fuzz;

pub(crate) mod echo;
pub(crate) mod grpc;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod memcached;

use std::sync::Arc;

use onrush_tls::Transport;

use crate::pace::target::Scheme;
use crate::requests::memcached::TransportKind;
use crate::requests::memcached::workload::Workload;
use crate::requests::mix::Mix;
use crate::requests::request::{LastRequest, RequestKind};
use crate::requests::response::{IdenticalResponses, Outcomes, Response, Step};
pub(crate) use memcached::counts::{Counts, DatagramCounts};

/// Protocol of a run with its requests, shared by the cores.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Http1(Arc<Mix>),
    /// With the scheme of the target. Requests of gRPC schemes are calls.
    Http2(Arc<Mix>, Scheme),
    Memcached(Arc<Workload>),
    Echo(Arc<echo::EchoPayload>),
    /// Bytes without a response.
    Stream(Arc<echo::EchoPayload>),
}

impl Protocol {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Protocol::Http1(_) => "HTTP/1.1",
            Protocol::Http2(_, scheme) if scheme.is_grpc() => "gRPC",
            Protocol::Http2(..) => "HTTP/2",
            Protocol::Memcached(_) => match self.carrier() {
                TransportKind::Streams => "memcached",
                TransportKind::Datagrams => "memcached over UDP",
            },
            Protocol::Echo(_) => "echo",
            Protocol::Stream(_) => "stream",
        }
    }

    /// Whether it is HTTP/2, including gRPC.
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Protocol::Http2(..))
    }

    pub(crate) fn carrier(&self) -> TransportKind {
        match self {
            Protocol::Http1(_) | Protocol::Http2(..) | Protocol::Echo(_) | Protocol::Stream(_) => {
                TransportKind::Streams
            }
            Protocol::Memcached(workload) => workload.carrier(),
        }
    }

    pub(crate) fn outcomes(&self) -> &'static Outcomes {
        match self {
            Protocol::Http2(_, scheme) if scheme.is_grpc() => &grpc::OUTCOMES,
            Protocol::Http1(_) | Protocol::Http2(..) => &http1::OUTCOMES,
            Protocol::Memcached(_) => &memcached::OUTCOMES,
            Protocol::Echo(_) => &echo::OUTCOMES,
            Protocol::Stream(_) => &echo::OUTCOMES_OF_STREAM,
        }
    }

    pub(crate) fn kinds(&self) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.recipes().len(),
            Protocol::Memcached(workload) => workload.kinds().len(),
            Protocol::Echo(_) | Protocol::Stream(_) => 1,
        }
    }

    /// Returns a kind of requests by its index.
    pub(crate) fn kind(&self, place: usize) -> &RequestKind {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => &mix.recipes()[place].kind,
            Protocol::Memcached(workload) => &workload.kinds()[place],
            Protocol::Echo(bytes) | Protocol::Stream(bytes) => bytes.kind(),
        }
    }

    /// Returns the index of the kind of request `number` of the run.
    #[inline]
    pub(crate) fn kind_of(&self, number: u64) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.choose(number),
            Protocol::Memcached(workload) => workload.kind_of(number),
            Protocol::Echo(_) | Protocol::Stream(_) => 0,
        }
    }

    pub(crate) fn request_bytes(&self) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.request_bytes(),
            Protocol::Memcached(workload) => workload.bytes_max(),
            Protocol::Echo(bytes) | Protocol::Stream(bytes) => bytes.len(),
        }
    }

    /// Whether a request may be longer than `bytes`, so that a server may respond before it has read all of it.
    pub(crate) fn may_exceed(&self, bytes: usize) -> bool {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.bytes_max() > bytes,
            Protocol::Memcached(workload) => workload.bytes_max() > bytes,
            Protocol::Echo(sent) => sent.len() > bytes,
            // Responses are not expected.
            Protocol::Stream(_) => false,
        }
    }

    /// Creates the codec of a core with this many connections that pipeline up to `batch` requests each.
    pub(crate) fn codec(&self, connections: usize, batch: u64) -> Codec {
        match self {
            Protocol::Http1(mix) => Codec::Http1(http1::Codec::new(mix, connections, batch)),
            Protocol::Http2(mix, scheme) => {
                Codec::Http2(http2::Codec::new(mix, *scheme, connections))
            }
            Protocol::Memcached(workload) => {
                Codec::Memcached(memcached::Codec::new(workload, connections))
            }
            Protocol::Echo(bytes) | Protocol::Stream(bytes) => Codec::Echo(echo::Codec::new(bytes)),
        }
    }
}

/// Panic message of operations that need an order of requests.
const NO_ORDER: &str = "HTTP/2 streams have no order: see http2";

/// Writes the requests of one core and parses the responses.
pub(crate) enum Codec {
    Http1(http1::Codec),
    Http2(http2::Codec),
    Memcached(memcached::Codec),
    Echo(echo::Codec),
}

impl Codec {
    /// Queues `count` requests, from request `number` of the run on, on connection `connection` of the core. `last` is
    /// whether the connection closes after them. Returns their number of bytes.
    #[inline]
    pub(crate) fn queue(
        &self,
        stream: &Transport,
        connection: u32,
        (number, count): (u64, u64),
        last: LastRequest,
    ) -> u64 {
        match self {
            Codec::Http1(codec) => codec.queue(stream, connection, (number, count), last),
            Codec::Http2(_) => unreachable!("{NO_ORDER}"),
            // memcached has no close option: the connection is just closed.
            Codec::Memcached(codec) => codec.queue(stream, connection, (number, count)),
            Codec::Echo(codec) => codec.queue(stream, count),
        }
    }

    /// Returns the parser of the response to request `number` of the run on connection `connection` of the core.
    #[inline]
    pub(crate) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        match self {
            Codec::Http1(codec) => Incoming::Http1(codec.incoming(connection, number)),
            Codec::Http2(_) => unreachable!("{NO_ORDER}"),
            Codec::Memcached(codec) => Incoming::Memcached(codec.incoming(connection, number)),
            Codec::Echo(codec) => Incoming::Echo(codec.incoming()),
        }
    }

    /// Takes complete, ordinary and identical responses from the start of `input`: at most `most`, to the requests from
    /// `number` on of connection `connection` of the core. Returns `None` if [`Codec::incoming`] must parse the first.
    #[inline]
    pub(crate) fn take_identical(
        &self,
        connection: u32,
        (number, most): (u64, u64),
        input: &[u8],
    ) -> Option<IdenticalResponses> {
        match self {
            Codec::Memcached(codec) => codec.take(connection, (number, most), input),
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
        }
    }

    pub(crate) fn datagrams(&self) -> Option<&memcached::Codec> {
        match self {
            Codec::Memcached(codec) => codec.over_datagrams(),
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
        }
    }

    pub(crate) fn http2(&self) -> Option<&http2::Codec> {
        match self {
            Codec::Http2(codec) => Some(codec),
            Codec::Http1(_) | Codec::Memcached(_) | Codec::Echo(_) => None,
        }
    }

    /// Returns the protocol's own counters, if it has any.
    pub(crate) fn counts(&self) -> Option<Counts> {
        match self {
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
            Codec::Memcached(codec) => Some(codec.counts()),
        }
    }
}

/// Parser of the response to one request.
pub(crate) enum Incoming<'c> {
    Http1(http1::Incoming<'c>),
    Memcached(memcached::Incoming<'c>),
    Echo(echo::Incoming<'c>),
}

impl Incoming<'_> {
    /// Parses the response's next bytes in `input`. Returns how many were consumed, and the result. The remaining input
    /// must be passed again together with the bytes after it.
    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        match self {
            Incoming::Http1(incoming) => incoming.step(input),
            Incoming::Memcached(incoming) => incoming.step(input),
            Incoming::Echo(incoming) => incoming.step(input),
        }
    }

    /// Returns how many of the next bytes may be skipped without being read; 0 if unknown.
    #[inline]
    pub(crate) fn skippable(&self) -> u64 {
        match self {
            Incoming::Http1(incoming) => incoming.skippable_bytes(),
            Incoming::Memcached(incoming) => incoming.skippable_bytes(),
            Incoming::Echo(_) => 0,
        }
    }

    /// Records that `count` of these bytes were received and discarded.
    pub(crate) fn skip(&mut self, count: u64) {
        match self {
            Incoming::Http1(incoming) => incoming.skip_bytes(count),
            Incoming::Memcached(incoming) => incoming.skip_bytes(count),
            Incoming::Echo(_) => unreachable!("an echo reads all bytes"),
        }
    }

    /// Handles the end of the connection. Returns the response if this completes it.
    pub(crate) fn end(&self) -> Option<Response> {
        match self {
            Incoming::Http1(incoming) => incoming.end(),
            // Their responses are delimited by their content or by the number of bytes sent.
            Incoming::Memcached(_) | Incoming::Echo(_) => None,
        }
    }
}
