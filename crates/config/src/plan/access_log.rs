//! What is written of each request that has ended.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Lines about requests: where they go, what they say, and which requests have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLog {
    /// Where they go.
    pub to: LogTarget,
    /// What they say.
    pub format: LogFormat,
    /// Which requests have one.
    pub select: LogSelect,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// To the end of this file.
    File(PathBuf),
    /// To standard output.
    StandardOutput,
    /// As messages (RFC 5424), by datagrams to this Unix socket.
    SyslogUnix(PathBuf),
    /// The same by UDP (RFC 5426).
    SyslogUdp(SocketAddr),
}

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// An object with every field.
    Json,
    /// The combined log format of the Apache HTTP server.
    Combined,
    /// These pieces, one behind the other.
    Template(Vec<LogPiece>),
}

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPiece {
    /// As it is.
    Text(String),
    /// What stands there for each request; `-` where there is none.
    Field(LogField),
}

/// What is known of a request that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogField {
    /// When its head had come, as in RFC 3339, in UTC, with microseconds.
    Time,
    /// The client's address, as far as trusted proxies say it.
    Client,
    /// Its method.
    Method,
    /// Its target as received.
    Target,
    /// Host and port that it names.
    Host,
    /// The version of HTTP.
    Version,
    /// The status of its response.
    Status,
    /// Bytes of its response, the head included.
    Sent,
    /// The same without its heads.
    BodySent,
    /// Seconds from its head to the end of its response.
    Duration,
    /// Seconds from its head to the first byte of its response.
    FirstByte,
    /// Seconds for which it waited for capacity of a server.
    Queued,
    /// Seconds that the connection to its server took to be made; none for one that was there.
    Connected,
    /// The listener that it came by.
    Listener,
    /// The name of its route.
    Route,
    /// The group that it was forwarded to.
    Group,
    /// The server that it was sent to last.
    Server,
    /// How often it was sent again.
    Retries,
    /// How it ended.
    End,
    /// Why no server has responded.
    Failure,
    /// The number of its trace, where requests are traced.
    TraceId,
    /// The number of its span there.
    SpanId,
    /// The number of the core.
    Core,
    /// A header field of the request, in lower case.
    Header(String),
}

/// Which requests have a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSelect {
    /// Whether those have that ended with an error: a status from 400 on, none, or an end before all was sent.
    pub errors: bool,
    /// Those that took as long or longer have.
    pub slower_than: Option<Duration>,
    /// Of the others so many of 10,000 have, by chance.
    pub sample: u16,
}

impl LogSelect {
    /// All requests.
    pub const ALL: LogSelect = LogSelect {
        errors: true,
        slower_than: None,
        sample: 10_000,
    };
}
