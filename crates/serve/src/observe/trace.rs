//! Tracing (OpenTelemetry): each request is a span, and each attempt at a server is a child span. Servers get
//! traceparent and tracestate; sampled spans are exported to the collector.
//!
//! ```text
//!   head ──> Trace: continued or new ──> traceparent of each attempt ──> server
//!   exchange ends, sampled ──> Finished, appended to the core's queue (a briefly held lock)
//!   exporter's thread ──> takes the queues of all cores ──> OTLP ──> collector
//! ```
//! A core never waits for the collector: spans that exceed its queue are dropped, counted and logged.

mod collector;
mod exporter;
pub(crate) mod limits;
mod otlp;
mod sink;
pub(crate) mod span;
pub(crate) mod spans;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::num::{NonZeroU64, NonZeroU128};
use std::sync::Arc;
use std::time::Duration;

use onrush_config::plan::{self, ParentTrust, RouteTracing, SamplingRatio};
use onrush_engine::clock::unix_time;
use onrush_engine::random::Random;
use onrush_engine::{Core, Instant};
use onrush_http::request::RequestHead;
use onrush_http::trace_context::{SAMPLED, TraceParent, write_trace_state};
use onrush_http::write::HeadWriter;
use onrush_tls::Connector;

use crate::observe::access_log::entry::{Entry, RoutingNames};
use crate::observe::traffic::EndedRequest;
use crate::routing::variables::RequestFacts;
use collector::Lookup;
use exporter::Exporter;
use limits::TRACE_STATE_KEPT_MAX;
use sink::Sink;
use span::{Finished, Span, Trace};
use spans::{SpanCounts, SpanLoss, Spans};

/// Tracing of one configuration, shared by all cores. When it is dropped, the exporter's thread sends the remaining
/// spans for a bounded time and ends.
pub(crate) struct Tracing {
    sink: Arc<Sink>,
    exporter: Option<Exporter>,
    seed: u64,
    salt: u64,
}

pub(crate) struct CoreTracing {
    tracing: Arc<Tracing>,
    core: usize,
    ids: Random,
    routes: Vec<RouteTracing>,
    /// Whether log lines contain trace and span IDs.
    are_logged: bool,
}

/// Request fields that spans record.
const HEADERS: [&str; 1] = ["user-agent"];

impl Tracing {
    /// Starts the exporter, or reuses `before`, the tracing of the previous configuration, if its options are the same.
    /// Fails if the thread or its core cannot be created.
    pub(crate) fn open(
        plan: &plan::Tracing,
        (headers, connector): (&[(String, String)], Option<&Arc<Connector>>),
        (cores, counts): (usize, &Arc<SpanCounts>),
        before: Option<&Arc<Tracing>>,
        lookup: Lookup,
    ) -> io::Result<Arc<Tracing>> {
        let is_same =
            |before: &&Arc<Tracing>| before.sink.plan == *plan && before.sink.headers == headers;
        if let Some(before) = before.filter(is_same) {
            return Ok(Arc::clone(before));
        }
        let sink = Arc::new(Sink {
            plan: plan.clone(),
            headers: headers.to_vec(),
            connector: connector.cloned(),
            spans: Spans::new(cores, plan.queue, plan.batch),
            counts: Arc::clone(counts),
        });
        let exporter = Exporter::start(&sink, lookup)?;
        // System randomness, so that IDs differ between processes.
        let random = || RandomState::new().build_hasher().finish();
        Ok(Arc::new(Tracing {
            sink,
            exporter: Some(exporter),
            seed: random(),
            salt: random(),
        }))
    }

    /// Tracing without an exporter, with reproducible IDs.
    pub(crate) fn without_exporter(plan: &plan::Tracing, cores: usize) -> Arc<Tracing> {
        let sink = Arc::new(Sink {
            plan: plan.clone(),
            headers: Vec::new(),
            connector: None,
            spans: Spans::new(cores, plan.queue, plan.batch),
            counts: Arc::default(),
        });
        Arc::new(Tracing {
            sink,
            exporter: None,
            seed: 1,
            salt: 1,
        })
    }

    /// Sends all waiting spans, for at most `patience`, then counts the rest as lost.
    pub(crate) fn close(&self, patience: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.stop(patience);
            exporter.wait(patience);
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        if let Some(exporter) = &self.exporter {
            exporter.stop(limits::SPANS_PATIENCE);
        }
    }
}

impl CoreTracing {
    pub(crate) fn new(tracing: &Arc<Tracing>, plan: &onrush_config::Plan, core: &Core) -> Self {
        Self {
            tracing: Arc::clone(tracing),
            core: core.id(),
            ids: Random::stream(tracing.seed, core.id() as u64),
            routes: plan.routes.iter().map(|route| route.tracing).collect(),
            are_logged: plan.access_log.is_some(),
        }
    }

    /// The trace context of a request with this head; `None` if it needs none.
    pub(crate) fn begin(&self, head: &RequestHead<'_, '_>, asked: TraceQuery<'_>) -> Option<Trace> {
        let sample = match asked.route.map(|route| self.routes[route]) {
            Some(RouteTracing::Off) => return None,
            Some(RouteTracing::Sample(sample)) => sample,
            Some(RouteTracing::Inherit) | None => self.tracing.sink.plan.sample,
        };
        let parent = match self.tracing.sink.plan.parents {
            ParentTrust::None => None,
            ParentTrust::All => TraceParent::of(head.headers),
            ParentTrust::Trusted => TraceParent::of(head.headers).filter(|_| (asked.is_trusted)()),
        };
        // The IDs would not be used.
        if parent.is_none()
            && sample == SamplingRatio::NONE
            && asked.forwards == Forwards::Nowhere
            && !self.are_logged
        {
            return None;
        }
        let own = match parent {
            Some(parent) => TraceParent {
                span: self.span_id(),
                ..parent
            },
            None => self.root(sample),
        };
        let span = own
            .is_sampled()
            .then(|| Self::span(head, asked.about, parent));
        Some(Trace {
            own,
            parent: parent.map(|parent| parent.span),
            span,
        })
    }

    fn span(
        head: &RequestHead<'_, '_>,
        about: &dyn RequestFacts,
        parent: Option<TraceParent>,
    ) -> Box<Span> {
        let names = HEADERS.map(str::to_owned);
        let mut entry = Entry::default();
        entry.begin(head, about.address(head.headers), &names);
        let mut state = Vec::new();
        if parent.is_some() {
            let mut room = [0; TRACE_STATE_KEPT_MAX];
            let mut writer = HeadWriter::new(&mut room);
            write_trace_state(head.headers, &mut writer);
            // A tracestate that is too long is forwarded but not recorded.
            let bytes = writer.finish().unwrap_or(0);
            let value = room[..bytes].trim_ascii_end();
            state.extend_from_slice(value.strip_prefix(b"tracestate: ").unwrap_or_default());
        }
        Span::new(entry, about.scheme(head.headers), state)
    }

    /// Starts a new trace.
    fn root(&self, sample: SamplingRatio) -> TraceParent {
        let (high, low) = (self.ids.bits() ^ self.tracing.salt, self.ids.bits());
        let trace = u128::from(high) << 64 | u128::from(low);
        TraceParent {
            // Zero is invalid; its probability is 1 in 2^128.
            trace: NonZeroU128::new(trace).unwrap_or(NonZeroU128::MIN),
            span: self.span_id(),
            flags: if sample.includes(trace) { SAMPLED } else { 0 },
        }
    }

    pub(crate) fn span_id(&self) -> NonZeroU64 {
        NonZeroU64::new(self.ids.bits()).unwrap_or(NonZeroU64::MIN)
    }

    /// Queues the span of an ended request, if it is sampled. Returns whether there was room for it.
    pub(crate) fn finish(
        &self,
        trace: Trace,
        ended: EndedRequest<'_>,
        way: RoutingNames<'_>,
        (began, now): (Instant, Instant),
    ) -> SpanOutcome {
        let Some(span) = trace.span else {
            return SpanOutcome::Kept;
        };
        let record = ended.record;
        let finished = Finished {
            own: trace.own,
            parent: trace.parent,
            span,
            route: way.route.map(str::to_owned),
            group: way.group.map(str::to_owned),
            status: record.status(),
            failure: record.failure(),
            end: ended.end,
            is_tunnel: record.is_tunnel(),
            began,
            duration: ended.duration,
            clock: unix_time().saturating_sub(Duration::from_nanos(now.nanoseconds())),
        };
        match self.tracing.sink.spans.push(self.core, finished) {
            Ok(()) => SpanOutcome::Kept,
            Err(lost) => {
                let counts = &self.tracing.sink.counts;
                counts.lose(SpanLoss::Full, lost);
                SpanOutcome::Lost
            }
        }
    }
}

/// Arguments of [`CoreTracing::begin`] about a request.
pub(crate) struct TraceQuery<'a> {
    /// Index of the route, if any.
    pub(crate) route: Option<usize>,
    pub(crate) about: &'a dyn RequestFacts,
    /// Whether the peer is a trusted proxy.
    pub(crate) is_trusted: &'a dyn Fn() -> bool,
    pub(crate) forwards: Forwards,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwards {
    ToServer,
    Nowhere,
}

/// Whether the spans of a request were queued.
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum SpanOutcome {
    /// Queued, or there were none.
    Kept,
    /// The queue is full.
    Lost,
}
