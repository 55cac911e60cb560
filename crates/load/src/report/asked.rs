//! What was asked for, as a result tells it.

use onrush_engine::Io;
use serde::{Deserialize, Serialize};

use crate::plan::{Plan, Shard};
use crate::record::provenance::secret::{HIDDEN, is_secret};

/// What was asked for, with defaults filled in.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Asked {
    /// Connections over all threads.
    pub connections: usize,
    /// Threads.
    pub threads: usize,
    /// The CPUs they are pinned to, in turn; empty when they are not.
    pub cpus: Vec<usize>,
    /// The driver that was taken, `epoll` or `io_uring`.
    pub io: String,
    /// After how long the run was to end.
    pub duration_s: Option<f64>,
    /// After how many requests the run was to end.
    pub count: Option<u64>,
    /// Requests after which a connection is closed.
    pub requests_per_connection: Option<u64>,
    /// Requests per second that were to be started; none for a closed loop.
    pub rate: Option<u64>,
    /// Requests sent at once on a connection.
    pub pipeline: u64,
    /// Requests that each connection has on its way at once over HTTP/2; none where that is not spoken.
    #[serde(default)]
    pub streams: Option<u64>,
    /// The method; `mixed` when there are several.
    pub method: String,
    /// Fields sent besides the usual ones, as `Name: value`; what credentials and cookies are is left out.
    pub headers: Vec<String>,
    /// How long nothing may arrive while a response is due.
    pub timeout_s: f64,
    /// Which part of a run of several generators this is; its connections, count and rate are those of the part.
    #[serde(default)]
    pub shard: Option<ShardRow>,
    /// The addresses that connections came from, where they were given.
    #[serde(default)]
    pub source: Option<String>,
    /// Where connections went, where that was not what the URL says.
    #[serde(default)]
    pub connect_to: Option<String>,
    /// The version of the PROXY protocol that connections began with.
    #[serde(default)]
    pub proxy_protocol: Option<String>,
}

/// One part of a run of several generators.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct ShardRow {
    /// Its number, from 1.
    pub part: u64,
    /// How many there are.
    pub of: u64,
}

impl Asked {
    pub(super) fn of(plan: &Plan, io: Io) -> Asked {
        let options = &plan.options;
        Asked {
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
            rate: plan.rate_asked(),
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

impl Asked {
    /// How many streams each connection has over HTTP/2, for people.
    pub(crate) fn streams_told(&self) -> String {
        self.streams.map_or_else(
            || "HTTP/1.1".to_owned(),
            |count| format!("{count} of HTTP/2"),
        )
    }
}
