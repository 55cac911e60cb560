//! Tracing of requests.

use std::time::Duration;

use super::file::FilePath;
use super::upstream::{ServerAddress, UpstreamTls};

/// Trace settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracing {
    /// Receiver of spans.
    pub collector: Collector,
    /// Resource attribute `service.name`.
    pub service_name: String,
    /// Further resource attributes, in order.
    pub resource: Vec<(String, String)>,
    /// Sampling ratio of traces that begin here.
    pub sample: SamplingRatio,
    /// Clients with trusted trace parents.
    pub parents: ParentTrust,
    /// Maximum number of spans in an export.
    pub batch: usize,
    /// Maximum time between exports.
    pub interval: Duration,
    /// Timeout of an export.
    pub timeout: Duration,
    /// Maximum number of requests whose spans wait for export, over all cores.
    pub queue: usize,
}

/// Receiver of spans, over OTLP/HTTP in binary protobuf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// Address.
    pub address: ServerAddress,
    /// TLS settings; `None` for plain HTTP.
    pub tls: Option<UpstreamTls>,
    /// Request target: a path with an optional query.
    pub target: String,
    /// Additional header fields: names and values.
    pub headers: Vec<(String, String)>,
    /// File with additional fields, one `Name: value` per line. Its content is not checked here.
    pub headers_file: Option<FilePath>,
}

/// Sampling ratio. A trace is sampled if the last 56 bits of its ID are at or above a threshold, as in OpenTelemetry's
/// consistent probability sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingRatio(u64);

/// Samples every trace, as OpenTelemetry's samplers do by default: new users look for their first request.
impl Default for SamplingRatio {
    fn default() -> Self {
        SamplingRatio::ALL
    }
}

impl SamplingRatio {
    /// Range of the 56 bits.
    const ALL_BITS: u64 = 1 << 56;
    /// No traces.
    pub const NONE: SamplingRatio = SamplingRatio(0);
    /// All traces.
    pub const ALL: SamplingRatio = SamplingRatio(Self::ALL_BITS);

    /// Samples this ratio of traces, from 0 to 1; `None` for another number.
    pub fn of(ratio: f64) -> Option<SamplingRatio> {
        // Truncation changes the ratio by less than 1/2^56.
        (0.0..=1.0)
            .contains(&ratio)
            .then_some(SamplingRatio((ratio * Self::ALL_BITS as f64) as u64))
    }

    /// Whether the trace with this ID is sampled.
    #[inline]
    pub fn includes(self, trace: u128) -> bool {
        let bits = trace as u64 & (Self::ALL_BITS - 1);
        bits >= Self::ALL_BITS - self.0
    }
}

/// Clients with trusted trace parents: the parent's trace ID and sampling decision are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentTrust {
    /// Traces of trusted proxies; requests of other clients begin new traces.
    #[default]
    Trusted,
    /// Traces of all clients.
    All,
    /// None.
    None,
}

/// Tracing of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteTracing {
    /// The general settings.
    #[default]
    Inherit,
    /// Off: trace fields of requests pass unchanged.
    Off,
    /// A different ratio for traces that begin here.
    Sample(SamplingRatio),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_ratio_is_applied() {
        let count = |sample: SamplingRatio| {
            let numbers = (0..100_000_u128).map(|number| number * 0x9e37_79b9_7f4a_7c15_f39c);
            numbers.filter(|&number| sample.includes(number)).count()
        };
        assert_eq!(count(SamplingRatio::NONE), 0);
        assert_eq!(count(SamplingRatio::ALL), 100_000);
        // Five standard deviations of a binomial with n = 100,000 are 158 for p = 1/100, and 790 for p = 1/2.
        for (ratio, expected, within) in [(0.01, 1_000, 158), (0.5, 50_000, 790)] {
            let count = count(SamplingRatio::of(ratio).expect("a ratio"));
            assert!(count.abs_diff(expected) <= within, "{ratio}: {count}");
        }
        assert_eq!(SamplingRatio::of(1.0), Some(SamplingRatio::ALL));
        assert_eq!(SamplingRatio::of(0.0), Some(SamplingRatio::NONE));
        assert_eq!([1.01, -0.1, f64::NAN].map(SamplingRatio::of), [None; 3]);
        // A trace sampled at a small ratio is also sampled at a larger one, so that parts of a trace stay together.
        let (small, large) = (SamplingRatio::of(0.1), SamplingRatio::of(0.2));
        let (small, large) = (small.expect("a ratio"), large.expect("a ratio"));
        assert!(
            (0..u128::from(u64::MAX))
                .step_by(usize::MAX / 1000)
                .all(|number| !small.includes(number) || large.includes(number))
        );
    }
}
