//! State shared by the cores and the exporter: configuration, queue and counts.

use std::sync::Arc;

use onrush_config::plan;
use onrush_tls::Connector;

use super::spans::{SpanCounts, Spans};

pub(super) struct Sink {
    pub(super) plan: plan::Tracing,
    /// Additional request fields for the collector, from the configuration and from its file.
    pub(super) headers: Vec<(String, String)>,
    pub(super) connector: Option<Arc<Connector>>,
    pub(super) spans: Spans,
    pub(super) counts: Arc<SpanCounts>,
}

impl Sink {
    /// The collector's name in log messages.
    pub(super) fn name(&self) -> String {
        let collector = &self.plan.collector;
        let scheme = match collector.tls {
            None => "http",
            Some(_) => "https",
        };
        let target = collector.target.split('?').next().unwrap_or("");
        format!(
            "the trace collector {scheme}://{}{target}",
            collector.address
        )
    }
}
