//! Values of `results`: formats of client reports, and the unit that clients count.

use serde::{Deserialize, Serialize};

/// Format of a client's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The file of `onrush load --json`.
    Onrush,
    /// The same file, but with service times as latencies: from the write of the request to its response. For
    /// comparisons with clients that measure latency this way.
    OnrushService,
    /// The text printed by wrk.
    Wrk,
    /// The text printed by wrk2.
    Wrk2,
    /// The columns printed by h1load.
    H1load,
    /// The text printed by h2load.
    H2load,
    /// The JSON printed by oha.
    Oha,
    /// The text printed by ab.
    Ab,
    /// The JSON summary of k6.
    K6,
    /// The JSON of `vegeta report`.
    Vegeta,
    /// The JSON of `fortio load`.
    Fortio,
    /// The text printed by memcaslap.
    Memcaslap,
    /// The JSON printed by iperf3.
    Iperf3,
    /// The text printed by sockperf.
    Sockperf,
}

impl Results {
    /// All formats, ours first.
    pub const ALL: [Results; 14] = [
        Results::Onrush,
        Results::OnrushService,
        Results::Wrk,
        Results::Wrk2,
        Results::H1load,
        Results::H2load,
        Results::Oha,
        Results::Ab,
        Results::K6,
        Results::Vegeta,
        Results::Fortio,
        Results::Memcaslap,
        Results::Iperf3,
        Results::Sockperf,
    ];

    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Results::Onrush => "onrush",
            Results::OnrushService => "onrush-service",
            Results::Wrk => "wrk",
            Results::Wrk2 => "wrk2",
            Results::H1load => "h1load",
            Results::H2load => "h2load",
            Results::Oha => "oha",
            Results::Ab => "ab",
            Results::K6 => "k6",
            Results::Vegeta => "vegeta",
            Results::Fortio => "fortio",
            Results::Memcaslap => "memcaslap",
            Results::Iperf3 => "iperf3",
            Results::Sockperf => "sockperf",
        }
    }

    /// Description for sentences.
    pub fn form(self) -> &'static str {
        match self {
            Results::Onrush | Results::OnrushService => "the file of `onrush load --json`",
            Results::Wrk => "the text that wrk prints at its end",
            Results::Wrk2 => "the text that wrk2 prints at its end",
            Results::H1load => "the columns of h1load",
            Results::H2load => "the text that h2load prints at its end",
            Results::Oha => "the JSON of oha (`--output-format json`)",
            Results::Ab => "the text that ab prints at its end",
            Results::K6 => "the JSON of `k6 run --summary-export`",
            Results::Vegeta => "the JSON of `vegeta report -type=json`",
            Results::Fortio => "the JSON of `fortio load -json`",
            Results::Memcaslap => "the text that memcaslap prints at its end",
            Results::Iperf3 => "the JSON of `iperf3 -J`",
            Results::Sockperf => "the text that sockperf prints at its end",
        }
    }

    /// Whether the format is that of `onrush load --json`.
    pub fn is_ours(self) -> bool {
        matches!(self, Results::Onrush | Results::OnrushService)
    }

    /// Parses the name used in files; `None` if there is no such client.
    pub fn parse(text: &str) -> Option<Results> {
        let mut all = Results::ALL.into_iter();
        all.find(|results| results.name() == text)
    }
}

/// Start of a latency measurement, as each client defines it. The ratio of latencies with different starts has no
/// meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyFrom {
    /// When the request was sent, to the end of its response.
    #[default]
    Sent,
    /// When the request was sent, to the first byte of its response: h1load.
    SentToFirstByte,
    /// When the request was due by the rate: `onrush load` with a rate, and wrk2.
    Due,
    /// When the request was sent; after a slow response, samples are added for the requests that it delayed: wrk
    /// (`stats_correct` in its `src/stats.c`).
    Backfilled,
}

impl LatencyFrom {
    /// The definition, for sentences about a client.
    pub fn words(self) -> &'static str {
        match self {
            LatencyFrom::Sent => "measures from sending a request",
            LatencyFrom::SentToFirstByte => "measures to the first byte of a response",
            LatencyFrom::Due => "measures from the scheduled start of a request",
            LatencyFrom::Backfilled => "adds samples for delayed requests",
        }
    }
}

/// Unit that a client counts in place of HTTP requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedUnit {
    /// Requests, of any protocol.
    #[default]
    Requests,
    /// Received datagrams: iperf3 with UDP.
    Datagrams,
    /// Messages that were returned, or sent ones if none are returned: sockperf.
    Messages,
    /// Received bytes: iperf3 with TCP or SCTP.
    Bytes,
}

impl CountedUnit {
    /// Plural for sentences.
    pub fn plural(self) -> &'static str {
        match self {
            CountedUnit::Requests => "requests",
            CountedUnit::Datagrams => "datagrams",
            CountedUnit::Messages => "messages",
            CountedUnit::Bytes => "bytes",
        }
    }

    /// Singular for sentences.
    pub fn singular(self) -> &'static str {
        self.plural().trim_end_matches('s')
    }
}
