//! Bounds of traces, each with its reason.

use std::time::Duration;

use crate::limits::SERVERS_TRIED_MAX;

/// How long the last spans may take when the server ends: a collector that does not respond must not keep it.
pub(crate) const SPANS_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of spans that wait for the exporter, of each core: 10,000 requests of 800 bytes.
pub(crate) const SPANS_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of requests whose spans are one message: collectors read 20 MiB at most (confighttp's max_request_body_size), and names
/// of attributes are as long as what they say.
pub(crate) const SPANS_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Attempts of one request that have spans: as many as servers that are tried, and each once more.
pub(crate) const ATTEMPTS_TRACED_MAX: usize = 2 * SERVERS_TRIED_MAX;

/// Bytes of a tracestate that spans have: what everybody has to pass on at least (W3C Trace Context, 3.3.1.5), and its name.
pub(crate) const TRACE_STATE_KEPT_MAX: usize = 512 + 14;

/// Bytes of User-Agent that spans have: browsers send 150.
pub(crate) const USER_AGENT_TRACED_MAX: usize = 256;

/// What traceparent adds to the head of a request, and the name of tracestate, which may be longer than it was.
pub(crate) const TRACE_FIELDS_BYTES_MAX: usize = 96;

/// Bytes of a collector's response that are read: a success has none, and an error a sentence.
pub(crate) const COLLECTOR_RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a file with fields for the collector: a token has a few hundred.
pub(crate) const COLLECTOR_FIELDS_BYTES_MAX: u64 = 16 * 1024;

/// Descriptors of the exporter of spans: its driver's, its wake-up twice, and its connection.
pub(crate) const DESCRIPTORS_OF_EXPORTER: u64 = 5;
