//! What the cores and the exporter share: where spans go, those that wait, and what became of others.

use std::sync::Arc;

use onrush_config::plan;
use onrush_tls::Connector;

use super::spans::{SpanCounts, Spans};

/// What the cores and the exporter share.
pub(super) struct Sink {
    pub(super) plan: plan::Tracing,
    /// Further fields of requests to the collector: those of the plan, and those of its file.
    pub(super) headers: Vec<(String, String)>,
    pub(super) connector: Option<Arc<Connector>>,
    pub(super) spans: Spans,
    pub(super) counts: Arc<SpanCounts>,
}

impl Sink {
    /// The collector, for people.
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
