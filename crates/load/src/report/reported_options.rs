//! Options of a run in its result.

use onrush_engine::Io;
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Shard};
use crate::record::provenance::secret::{HIDDEN, is_secret};

/// Options of a run, with defaults filled in.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ReportedOptions {
    /// Connections over all threads.
    pub connections: usize,
    /// Threads.
    pub threads: usize,
    /// CPUs to which threads are pinned, in turn; empty if they are not pinned.
    pub cpus: Vec<usize>,
    /// Driver in use, `epoll` or `io_uring`.
    pub io: String,
    /// Duration after which the run ends.
    pub duration_s: Option<f64>,
    /// Number of requests after which the run ends.
    pub count: Option<u64>,
    /// Requests after which a connection is closed.
    pub requests_per_connection: Option<u64>,
    /// Requests to start per second; `None` in a closed loop.
    pub rate: Option<u64>,
    /// Pipelined requests per connection.
    pub pipeline: u64,
    /// Concurrent streams per HTTP/2 connection; `None` with other protocols.
    #[serde(default)]
    pub streams: Option<u64>,
    /// Method; `mixed` if there are several.
    pub method: String,
    /// Additional fields as `Name: value`; values of credentials and cookies are hidden.
    pub headers: Vec<String>,
    /// Time without received data after which a request fails.
    pub timeout_s: f64,
    /// This generator's share of a distributed run, to which connections, count and rate refer.
    #[serde(default)]
    pub shard: Option<ShardRow>,
    /// Source addresses of connections, if given.
    #[serde(default)]
    pub source: Option<String>,
    /// Address of connections, if it differs from the URL's.
    #[serde(default)]
    pub connect_to: Option<String>,
    /// Version of the PROXY protocol header that connections start with.
    #[serde(default)]
    pub proxy_protocol: Option<String>,
}

/// One generator's share of a distributed run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ShardRow {
    /// Number of the share, from 1.
    pub part: u64,
    /// Number of shares.
    pub of: u64,
}

impl ReportedOptions {
    pub(super) fn of(plan: &Plan, io: Io) -> ReportedOptions {
        let options = &plan.options;
        ReportedOptions {
            connections: plan.connections(),
            threads: options.threads,
            cpus: options.cpus.clone(),
            io: match io {
                Io::IoUring => "io_uring",
                Io::Auto | Io::Epoll => "epoll",
            }
            .to_owned(),
            duration_s: options.stop.after.map(|after| after.as_secs_f64()),
            count: plan.count(),
            requests_per_connection: options.requests_per_connection,
            rate: plan.target_rate(),
            shard: (options.shard != Shard::default()).then(|| ShardRow {
                part: options.shard.index + 1,
                of: options.shard.count,
            }),
            source: (!options.reach.sources.is_empty()).then(|| options.reach.sources.to_string()),
            connect_to: options.reach.connect_to.as_ref().map(ToString::to_string),
            proxy_protocol: options
                .reach
                .proxy_protocol
                .map(|version| version.name().to_owned()),
            pipeline: options.pipeline,
            streams: options.streams,
            method: plan.method().to_owned(),
            headers: options
                .headers
                .iter()
                .map(|(name, value)| match is_secret(name) {
                    true => format!("{name}: {HIDDEN}"),
                    false => format!("{name}: {value}"),
                })
                .collect(),
            timeout_s: options.timeout.as_secs_f64(),
        }
    }
}

impl ReportedOptions {
    /// Streams per HTTP/2 connection as text.
    pub(crate) fn streams_text(&self) -> String {
        self.streams.map_or_else(
            || "HTTP/1.1".to_owned(),
            |count| format!("{count} of HTTP/2"),
        )
    }
}
