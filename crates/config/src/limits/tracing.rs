//! Bounds and defaults of exports to a trace collector.

use std::time::Duration;

/// Spans in one message to a collector: the default of OpenTelemetry's exporters (OTEL_BSP_MAX_EXPORT_BATCH_SIZE).
pub const TRACING_BATCH: u32 = 512;

/// Largest value: with the longest attributes the spans have 20 MiB, the most that collectors read of one message.
pub const TRACING_BATCH_MAX: u32 = 4096;

/// Requests whose spans wait for the collector: 16 messages of the usual size, and 8 MiB of memory.
pub const TRACING_QUEUE: u32 = 8192;

/// Largest value: at a thousand bytes each they take 1 GB.
pub const TRACING_QUEUE_MAX: u32 = 1_000_000;

/// How long spans are collected before a message is sent: the default of OpenTelemetry's exporters (OTEL_BSP_SCHEDULE_DELAY) and
/// of nginx.
pub const TRACING_INTERVAL: Duration = Duration::from_secs(5);

/// Largest value: users expect traces of the last minute to be there.
pub const TRACING_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// How long a collector may take for a message: the default of OpenTelemetry's exporters (OTEL_EXPORTER_OTLP_TIMEOUT).
pub const TRACING_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest timeout: an export that takes longer delays all later spans.
pub const TRACING_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Attributes of the resource, and fields for the collector: more would be most of every message.
pub const TRACING_TEXTS_MAX: usize = 64;

/// Bytes of one of those attributes: they are sent with each message.
pub const TRACING_TEXT_MAX: usize = 1024;
