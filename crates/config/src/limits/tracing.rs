//! Bounds and defaults of trace export.

use std::time::Duration;

/// Default number of spans in an export: that of OpenTelemetry's exporters (OTEL_BSP_MAX_EXPORT_BATCH_SIZE).
pub const TRACING_BATCH: u32 = 512;

/// Maximum: with the longest attributes, 20 MiB, the largest message that collectors accept.
pub const TRACING_BATCH_MAX: u32 = 4096;

/// Default number of requests whose spans wait for export: 16 messages of the default size, and 8 MiB of memory.
pub const TRACING_QUEUE: u32 = 8192;

/// Maximum: at a thousand bytes each, 1 GB.
pub const TRACING_QUEUE_MAX: u32 = 1_000_000;

/// Default export interval: that of OpenTelemetry's exporters (OTEL_BSP_SCHEDULE_DELAY) and of nginx.
pub const TRACING_INTERVAL: Duration = Duration::from_secs(5);

/// Maximum: users expect to find traces of the last minute.
pub const TRACING_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Default timeout of an export: that of OpenTelemetry's exporters (OTEL_EXPORTER_OTLP_TIMEOUT).
pub const TRACING_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum: a slow export delays all later spans.
pub const TRACING_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Resource attributes, and header fields for the collector.
pub const TRACING_TEXTS_MAX: usize = 64;

/// Maximum size of a resource attribute in bytes: every message carries all attributes.
pub const TRACING_TEXT_MAX: usize = 1024;
