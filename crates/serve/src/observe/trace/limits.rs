//! Limits of tracing, each with its reason.

use std::time::Duration;

use crate::limits::SERVERS_TRIED_MAX;

/// How long sending the last spans may delay the server's exit if the collector does not respond.
pub(crate) const SPANS_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of waiting spans per core: 10,000 requests of 800 bytes.
pub(crate) const SPANS_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of requests per message: collectors accept 20 MiB (confighttp's max_request_body_size), and attribute names
/// are as long as the values.
pub(crate) const SPANS_MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Attempts of one request that have spans: each tried server, twice.
pub(crate) const ATTEMPTS_TRACED_MAX: usize = 2 * SERVERS_TRIED_MAX;

/// Bytes of tracestate kept: what everyone must propagate at least (W3C Trace Context, 3.3.1.5), plus the field name.
pub(crate) const TRACE_STATE_KEPT_MAX: usize = 512 + 14;

/// Bytes of User-Agent kept: browsers send 150.
pub(crate) const USER_AGENT_TRACED_MAX: usize = 256;

/// Bytes that traceparent and the name of tracestate add to a request head.
pub(crate) const TRACE_FIELDS_BYTES_MAX: usize = 96;

/// Bytes read of a collector's response: a success is empty, an error is a sentence.
pub(crate) const COLLECTOR_RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// Size limit of the file with fields for the collector: a token has a few hundred bytes.
pub(crate) const COLLECTOR_FIELDS_BYTES_MAX: u64 = 16 * 1024;

/// File descriptors of the exporter: its driver, its wake-up (two), and its connection.
pub(crate) const DESCRIPTORS_OF_EXPORTER: u64 = 5;
