//! Access log: a line for each completed request.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Target, format and selection of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Destination of the lines.
    pub to: LogTarget,
    /// Format of a line.
    pub format: LogFormat,
    /// Requests to log.
    pub select: LogFilter,
}

/// Destination of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Appended to this file.
    File(PathBuf),
    /// Standard output.
    StandardOutput,
    /// Syslog messages (RFC 5424) as datagrams to this Unix socket.
    SyslogUnix(PathBuf),
    /// Syslog messages over UDP (RFC 5426).
    SyslogUdp(SocketAddr),
}

/// Format of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A JSON object with every field.
    Json,
    /// The combined log format of the Apache HTTP server.
    Combined,
    /// A template of pieces.
    Template(Vec<LogPiece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// Literal text.
    Text(String),
    /// A field of the request; `-` if it has none.
    Field(LogField),
}

/// Field of a completed request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogField {
    /// Time when the head was received, in RFC 3339 format, in UTC with microseconds.
    Time,
    /// Client address, from trusted proxies if they send one.
    Client,
    /// Method.
    Method,
    /// Request target as received.
    Target,
    /// Host and port of the request.
    Host,
    /// HTTP version.
    Version,
    /// Status code.
    Status,
    /// Bytes of the response with its head.
    Sent,
    /// Bytes of the response without heads.
    BodySent,
    /// Seconds from the request head to the end of the response.
    Duration,
    /// Seconds from the request head to the first byte of the response.
    FirstByte,
    /// Seconds spent in the queue for a server.
    Queued,
    /// Seconds to connect to the server; none for a reused connection.
    Connected,
    /// Name of the listener.
    Listener,
    /// Name of the route.
    Route,
    /// Name of the group.
    Group,
    /// Server of the last attempt.
    Server,
    /// Number of retries.
    Retries,
    /// How the request ended.
    End,
    /// Why no server responded.
    Failure,
    /// Trace ID, if requests are traced.
    TraceId,
    /// Span ID, if requests are traced.
    SpanId,
    /// Number of the core.
    Core,
    /// Header field of the request, by its name in lower case.
    Header(String),
}

/// Selection of the logged requests. A request is logged if one of the criteria selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFilter {
    /// Log failed requests: a status from 400 on, none, or an incomplete response.
    pub errors: bool,
    /// Log requests that took at least this long.
    pub slower_than: Option<Duration>,
    /// Number out of 10,000 other requests to log, chosen at random.
    pub sample: u16,
}

impl LogFilter {
    /// All requests.
    pub const ALL: LogFilter = LogFilter {
        errors: true,
        slower_than: None,
        sample: 10_000,
    };
}
