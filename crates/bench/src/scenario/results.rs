//! `results`: whose report a client writes, and what such a report counts.

use serde::{Deserialize, Serialize};

/// How what a client measured is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Results {
    /// The file `onrush load --json` writes.
    Onrush,
    /// The same file, of which the latencies are the service times: from where a request is handed to the kernel to its response,
    /// as clients measure that count so.
    OnrushService,
    /// The text wrk prints.
    Wrk,
    /// The text wrk2 prints.
    Wrk2,
    /// The columns h1load prints.
    H1load,
    /// The text h2load prints.
    H2load,
    /// The JSON oha prints.
    Oha,
    /// The text ab prints.
    Ab,
    /// The summary of k6 as JSON.
    K6,
    /// The JSON of `vegeta report`.
    Vegeta,
    /// The JSON of `fortio load`.
    Fortio,
    /// The text memcaslap prints.
    Memcaslap,
    /// The JSON iperf3 prints.
    Iperf3,
    /// The text sockperf prints.
    Sockperf,
}

impl Results {
    /// All of them, ours first.
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

    /// What is read, for sentences.
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

    /// Whether it is the file of `onrush load --json`.
    pub fn is_ours(self) -> bool {
        matches!(self, Results::Onrush | Results::OnrushService)
    }

    /// Reads the name used in files; `None` when there is no such client.
    pub fn parse(text: &str) -> Option<Results> {
        let mut all = Results::ALL.into_iter();
        all.find(|results| results.name() == text)
    }
}

/// The moment from which a client counts the latency of a request. Latencies counted from different moments have no
/// meaningful ratio.
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
            LatencyFrom::Sent => "counts from sending a request",
            LatencyFrom::SentToFirstByte => "counts to the first byte of a response",
            LatencyFrom::Due => "counts from when a request was due",
            LatencyFrom::Backfilled => "adds samples for delayed requests",
        }
    }
}

/// What a client counts where clients of HTTP count requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Requests, of whatever protocol has them.
    #[default]
    Requests,
    /// Datagrams that arrived: iperf3 with UDP.
    Datagrams,
    /// Messages that came back, or were sent where none come back: sockperf.
    Messages,
    /// Bytes that arrived: iperf3 with TCP or SCTP.
    Bytes,
}

impl Counted {
    /// The word for several.
    pub fn plural(self) -> &'static str {
        match self {
            Counted::Requests => "requests",
            Counted::Datagrams => "datagrams",
            Counted::Messages => "messages",
            Counted::Bytes => "bytes",
        }
    }

    /// The word for one.
    pub fn singular(self) -> &'static str {
        self.plural().trim_end_matches('s')
    }
}
