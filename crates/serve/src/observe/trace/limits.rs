//! Limits of tracing, each with its reason.

use std::time::Duration;

use crate::limits::SERVERS_TRIED_MAX;

/// Maximum time by which sending the last spans delays the server's exit if the collector does not respond.
pub(crate) const SPANS_PATIENCE: Duration = Duration::from_secs(2);

/// Maximum number of bytes of waiting spans per core: 10,000 requests of 800 bytes.
pub(crate) const SPANS_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Maximum number of bytes of requests per message: collectors accept 20 MiB (confighttp's max_request_body_size), and
/// attribute names are as long as the values.
pub(crate) const SPANS_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Maximum number of attempts with spans per request: two for each server that may be tried.
pub(crate) const ATTEMPTS_TRACED_MAX: usize = 2 * SERVERS_TRIED_MAX;

/// Maximum number of bytes kept of tracestate: the minimum that everyone must propagate (W3C Trace Context, 3.3.1.5),
/// plus the field name.
pub(crate) const TRACE_STATE_KEPT_MAX: usize = 512 + 14;

/// Maximum number of bytes kept of User-Agent: browsers send 150.
pub(crate) const USER_AGENT_TRACED_MAX: usize = 256;

/// Number of bytes that traceparent and the name of tracestate add to a request head.
pub(crate) const TRACE_FIELDS_BYTES_MAX: usize = 96;

/// Maximum number of bytes read from a collector's response: a success is empty, an error is a sentence.
pub(crate) const COLLECTOR_RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// Size limit of the file with fields for the collector: a token has a few hundred bytes.
pub(crate) const COLLECTOR_FIELDS_BYTES_MAX: u64 = 16 * 1024;

/// Number of file descriptors of the exporter: its driver, its wake-up (two), and its connection.
pub(crate) const DESCRIPTORS_OF_EXPORTER: u64 = 5;
