//! What connections speak: a protocol writes request number `n` and steps over received bytes. When requests are sent,
//! on which connections, and what is recorded of them is the same for all protocols and knows none of them.
//!
//! ```text
//!  Protocol ── one per core ──> Codec ── number of a request ──> its bytes
//!                                 └──── one per request ──> Incoming ── received bytes ──> Partial | Done | Refused
//! ```

pub mod bytes;
pub(crate) mod failure;
pub(crate) mod flight;
pub mod untrusted;

pub(crate) mod echo;
pub(crate) mod grpc;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod memcached;

use std::sync::Arc;

use onrush_tls::Transport;

use crate::pace::target::Scheme;
use crate::requests::memcached::Carrier;
use crate::requests::memcached::workload::Workload;
use crate::requests::mix::Mix;
use crate::requests::request::{Last, RequestKind};
use crate::requests::response::{Alike, Outcomes, Response, Step};
pub(crate) use memcached::counts::{Counts, DatagramCounts};

/// What a run speaks, and the requests that it makes. The cores share it.
#[derive(Clone, Debug)]
pub(crate) enum Protocol {
    Http1(Arc<Mix>),
    /// To a server of this scheme; of those of gRPC, requests are calls.
    Http2(Arc<Mix>, Scheme),
    Memcached(Arc<Workload>),
    Echo(Arc<echo::Bytes>),
    /// Bytes that nobody answers.
    Stream(Arc<echo::Bytes>),
}

impl Protocol {
    /// Its name, for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Protocol::Http1(_) => "HTTP/1.1",
            Protocol::Http2(_, scheme) if scheme.is_grpc() => "gRPC",
            Protocol::Http2(..) => "HTTP/2",
            Protocol::Memcached(_) => match self.carrier() {
                Carrier::Streams => "memcached",
                Carrier::Datagrams => "memcached over UDP",
            },
            Protocol::Echo(_) => "echo",
            Protocol::Stream(_) => "stream",
        }
    }

    /// Whether it is HTTP/2, calls of gRPC among it.
    pub(crate) fn is_http2(&self) -> bool {
        matches!(self, Protocol::Http2(..))
    }

    /// What carries it.
    pub(crate) fn carrier(&self) -> Carrier {
        match self {
            Protocol::Http1(_) | Protocol::Http2(..) | Protocol::Echo(_) | Protocol::Stream(_) => {
                Carrier::Streams
            }
            Protocol::Memcached(workload) => workload.carrier(),
        }
    }

    /// All that responses can say.
    pub(crate) fn outcomes(&self) -> &'static Outcomes {
        match self {
            Protocol::Http2(_, scheme) if scheme.is_grpc() => &grpc::OUTCOMES,
            Protocol::Http1(_) | Protocol::Http2(..) => &http1::OUTCOMES,
            Protocol::Memcached(_) => &memcached::OUTCOMES,
            Protocol::Echo(_) => &echo::OUTCOMES,
            Protocol::Stream(_) => &echo::OUTCOMES_OF_STREAM,
        }
    }

    /// How many kinds of requests there are.
    pub(crate) fn kinds(&self) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.recipes().len(),
            Protocol::Memcached(workload) => workload.kinds().len(),
            Protocol::Echo(_) | Protocol::Stream(_) => 1,
        }
    }

    /// One of the kinds, by its place.
    pub(crate) fn kind(&self, place: usize) -> &RequestKind {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => &mix.recipes()[place].kind,
            Protocol::Memcached(workload) => &workload.kinds()[place],
            Protocol::Echo(bytes) | Protocol::Stream(bytes) => bytes.kind(),
        }
    }

    /// The place of the kind of request `number` of the run.
    #[inline]
    pub(crate) fn kind_of(&self, number: u64) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.choose(number),
            Protocol::Memcached(workload) => workload.kind_of(number),
            Protocol::Echo(_) | Protocol::Stream(_) => 0,
        }
    }

    /// Bytes of the longest request.
    pub(crate) fn request_bytes(&self) -> usize {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.request_bytes(),
            Protocol::Memcached(workload) => workload.bytes_max(),
            Protocol::Echo(bytes) | Protocol::Stream(bytes) => bytes.len(),
        }
    }

    /// Whether a request may have more bytes than `bytes`, so that a server may respond before it has taken all of it.
    pub(crate) fn may_exceed(&self, bytes: usize) -> bool {
        match self {
            Protocol::Http1(mix) | Protocol::Http2(mix, _) => mix.bytes_max() > bytes,
            Protocol::Memcached(workload) => workload.bytes_max() > bytes,
            Protocol::Echo(sent) => sent.len() > bytes,
            // Nobody responds before it is taken, nor behind it.
            Protocol::Stream(_) => false,
        }
    }

    /// What writes the requests of a core with so many connections and reads the responses; up to `batch` requests are
    /// sent at once on a connection.
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

/// Why nobody asks for the next request of a connection, or its response.
const NO_ORDER: &str = "streams have no order: see http2";

/// One core's side of a protocol.
pub(crate) enum Codec {
    Http1(http1::Codec),
    Http2(http2::Codec),
    Memcached(memcached::Codec),
    Echo(echo::Codec),
}

impl Codec {
    /// Queues `count` requests from number `number` of the run on for connection `connection` of the core; `last`: whether
    /// the connection ends behind them. Returns how many bytes that are.
    #[inline]
    pub(crate) fn queue(
        &self,
        stream: &Transport,
        connection: u32,
        (number, count): (u64, u64),
        last: Last,
    ) -> u64 {
        match self {
            Codec::Http1(codec) => codec.queue(stream, connection, (number, count), last),
            Codec::Http2(_) => unreachable!("{NO_ORDER}"),
            // Nothing is said behind the last: a connection just ends.
            Codec::Memcached(codec) => codec.queue(stream, connection, (number, count)),
            Codec::Echo(codec) => codec.queue(stream, count),
        }
    }

    /// What reads the response to request `number` of the run, which connection `connection` of the core has sent.
    #[inline]
    pub(crate) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        match self {
            Codec::Http1(codec) => Incoming::Http1(codec.incoming(connection, number)),
            Codec::Http2(_) => unreachable!("{NO_ORDER}"),
            Codec::Memcached(codec) => Incoming::Memcached(codec.incoming(connection, number)),
            Codec::Echo(codec) => Incoming::Echo(codec.incoming()),
        }
    }

    /// The responses to the requests of connection `connection` of the core from `number` on, `most` of them at most, that stand at
    /// the beginning of `input`, whole, as usual and all alike; none where [`Codec::incoming`] has to look at the first.
    #[inline]
    pub(crate) fn take(
        &self,
        connection: u32,
        (number, most): (u64, u64),
        input: &[u8],
    ) -> Option<Alike> {
        match self {
            Codec::Memcached(codec) => codec.take(connection, (number, most), input),
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
        }
    }

    /// What writes and reads datagrams, where it is spoken over them.
    pub(crate) fn over_datagrams(&self) -> Option<&memcached::Codec> {
        match self {
            Codec::Memcached(codec) => codec.over_datagrams(),
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
        }
    }

    /// What writes and reads messages of streams, where HTTP/2 is spoken.
    pub(crate) fn over_http2(&self) -> Option<&http2::Codec> {
        match self {
            Codec::Http2(codec) => Some(codec),
            Codec::Http1(_) | Codec::Memcached(_) | Codec::Echo(_) => None,
        }
    }

    /// What the protocol counts of its own beside responses; none where it has nothing of the kind.
    pub(crate) fn counts(&self) -> Option<Counts> {
        match self {
            Codec::Http1(_) | Codec::Http2(_) | Codec::Echo(_) => None,
            Codec::Memcached(codec) => Some(codec.counts()),
        }
    }
}

/// The response to one request, as far as it has come.
pub(crate) enum Incoming<'c> {
    Http1(http1::Incoming<'c>),
    Memcached(memcached::Incoming<'c>),
    Echo(echo::Incoming<'c>),
}

impl Incoming<'_> {
    /// Steps over what `input` has of it. Returns how many bytes that are, and what they come to; what is left of the input
    /// is to be shown again, with more behind it.
    #[inline]
    pub(crate) fn step(&mut self, input: &[u8]) -> (usize, Step) {
        match self {
            Incoming::Http1(incoming) => incoming.step(input),
            Incoming::Memcached(incoming) => incoming.step(input),
            Incoming::Echo(incoming) => incoming.step(input),
        }
    }

    /// How many bytes follow of which nothing but their number matters; 0 where that is not known.
    #[inline]
    pub(crate) fn unseen(&self) -> u64 {
        match self {
            Incoming::Http1(incoming) => incoming.unseen(),
            Incoming::Memcached(incoming) => incoming.unseen(),
            Incoming::Echo(_) => 0,
        }
    }

    /// So many of these have come, and were dropped.
    pub(crate) fn pass_unseen(&mut self, count: u64) {
        match self {
            Incoming::Http1(incoming) => incoming.pass_unseen(count),
            Incoming::Memcached(incoming) => incoming.pass_unseen(count),
            Incoming::Echo(_) => unreachable!("there are none"),
        }
    }

    /// The peer has ended the connection: the response, where that completes it.
    pub(crate) fn end(&self) -> Option<Response> {
        match self {
            Incoming::Http1(incoming) => incoming.end(),
            // Their responses end by what they say, or with as many bytes as were sent.
            Incoming::Memcached(_) | Incoming::Echo(_) => None,
        }
    }
}
