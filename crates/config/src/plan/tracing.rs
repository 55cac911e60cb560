//! Traces: what is recorded of requests, and where it goes.

use std::time::Duration;

use super::file::FilePath;
use super::upstream::{ServerAddress, UpstreamTls};

/// What is recorded of requests, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// Where spans go.
    pub collector: Collector,
    /// The resource attribute `service.name`.
    pub service_name: String,
    /// Further attributes of the resource, in the order written.
    pub resource: Vec<(String, String)>,
    /// Of requests that begin a trace here so many are recorded.
    pub sample: Sample,
    /// Whose traces are gone on with.
    pub parents: Parents,
    /// Spans in one message to the collector.
    pub batch: usize,
    /// How long spans are gathered for a message, unless there are enough before.
    pub interval: Duration,
    /// How long the collector may take for one message.
    pub timeout: Duration,
    /// Requests whose spans wait for the collector, of all cores together.
    pub queue: usize,
}

/// Who takes spans, as OTLP over HTTP in binary protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Where it listens.
    pub address: ServerAddress,
    /// How TLS is spoken there; none for http.
    pub tls: Option<UpstreamTls>,
    /// What is asked for: a path, with a query if one was written.
    pub target: String,
    /// Further fields of requests, names and values.
    pub headers: Vec<(String, String)>,
    /// A file with more of them, a line `Name: value` for each. Nothing of it is known here.
    pub headers_file: Option<FilePath>,
}

/// A share of all traces, by their numbers: those whose last 56 bits are not below what is left out, as in OpenTelemetry's
/// consistent probability sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample(u64);

/// All of them, as OpenTelemetry's own samplers have it: who tries it looks for the first request.
impl Default for Sample {
    fn default() -> Self {
        Sample::ALL
    }
}

impl Sample {
    /// Traces by their last 56 bits.
    const ALL_BITS: u64 = 1 << 56;
    /// None of them.
    pub const NONE: Sample = Sample(0);
    /// All of them.
    pub const ALL: Sample = Sample(Self::ALL_BITS);

    /// `ratio` of them, from 0 to 1; `None` for another number.
    pub fn of(ratio: f64) -> Option<Sample> {
        // A product below 2^56 is a whole number or has few bits behind the point: nothing is lost that matters.
        (0.0..=1.0)
            .contains(&ratio)
            .then_some(Sample((ratio * Self::ALL_BITS as f64) as u64))
    }

    /// Whether the trace with this number is one of them.
    #[inline]
    pub fn includes(self, trace: u128) -> bool {
        let bits = trace as u64 & (Self::ALL_BITS - 1);
        bits >= Self::ALL_BITS - self.0
    }
}

/// Whose traces are gone on with: what a client says of a trace decides whether it is recorded, and which one it is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parents {
    /// Those of proxies that are trusted to tell of their clients; others begin new ones.
    #[default]
    Trusted,
    /// Everybody's.
    All,
    /// Nobody's.
    None,
}

/// What a route does about traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteTracing {
    /// What all others do.
    #[default]
    AsAll,
    /// Nothing: the fields of its requests pass as they are.
    Off,
    /// Another share of those that begin a trace here.
    Sample(Sample),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_of_all_traces_is_sampled() {
        let count = |sample: Sample| {
            let numbers = (0..100_000_u128).map(|number| number * 0x9e37_79b9_7f4a_7c15_f39c);
            numbers.filter(|&number| sample.includes(number)).count()
        };
        assert_eq!(count(Sample::NONE), 0);
        assert_eq!(count(Sample::ALL), 100_000);
        // Five standard deviations of a binomial with n = 100,000 are 158 for p = 1/100, and 790 for p = 1/2.
        for (ratio, expected, within) in [(0.01, 1_000, 158), (0.5, 50_000, 790)] {
            let count = count(Sample::of(ratio).expect("a ratio"));
            assert!(count.abs_diff(expected) <= within, "{ratio}: {count}");
        }
        assert_eq!(Sample::of(1.0), Some(Sample::ALL));
        assert_eq!(Sample::of(0.0), Some(Sample::NONE));
        assert_eq!([1.01, -0.1, f64::NAN].map(Sample::of), [None; 3]);
        // What is sampled at a small ratio is sampled at a larger one: parts of a trace stay together.
        let (small, large) = (Sample::of(0.1), Sample::of(0.2));
        let (small, large) = (small.expect("a ratio"), large.expect("a ratio"));
        assert!(
            (0..u128::from(u64::MAX))
                .step_by(usize::MAX / 1000)
                .all(|number| !small.includes(number) || large.includes(number))
        );
    }
}
