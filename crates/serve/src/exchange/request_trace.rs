//! Tracing of a request, from its head to its end.

use std::time::Duration;

use onrush_engine::Address;
use onrush_engine::clock::Instant;
use onrush_http::request::RequestHead;

use super::Exchange;
use super::rare_state::RareState;
use crate::exchange::request_context::Source;
use crate::exchange::settings::Settings;
use crate::observe::access_log::entry::RoutingNames;
use crate::observe::in_flight::Destination;
use crate::observe::log::Loss;
use crate::observe::record::FailureClass;
use crate::observe::trace::span::{Span, Trace};
use crate::observe::trace::{Forwards, SpanOutcome, TraceQuery};
use crate::observe::traffic::{EndedRequest, Traffic};
use crate::worker::Worker;

impl Exchange {
    /// Starts or continues a trace, if tracing is configured. A request that is dispatched again keeps its trace.
    pub(crate) fn begin_trace(
        &mut self,
        head: &RequestHead<'_, '_>,
        source: Source<'_>,
        forwards: Forwards,
    ) {
        let Some(settings) = &self.settings else {
            return;
        };
        let Some(tracing) = &settings.tracing else {
            return;
        };
        if self.trace().is_some() {
            return;
        }
        let context = source.of(self);
        let asked = TraceQuery {
            route: self.route(),
            about: &context,
            is_trusted: &|| context.is_trusted(),
            forwards,
        };
        if let Some(trace) = tracing.begin(head, asked) {
            let kept = self
                .rare_state
                .get_or_insert_with(|| RareState::take(&source.worker.spare_kept));
            kept.trace = Some(Box::new(trace));
        }
    }

    /// The request's trace.
    #[inline]
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.rare_state.as_ref()?.trace.as_deref()
    }

    /// The request's span, if it is sampled.
    #[inline]
    pub(super) fn span(&self) -> Option<&Span> {
        self.rare_state.as_ref()?.span()
    }

    /// Starts an attempt at this server, unless it has started already.
    #[inline]
    pub(crate) fn begin_attempt(
        &self,
        server: &impl Destination,
        address: impl FnOnce() -> Option<Address>,
        worker: &Worker,
    ) {
        if let Some(span) = self.span()
            && let Some(tracing) = &self.settings().tracing
        {
            let to = (&*server.display_name(), address);
            span.begin_attempt(|| tracing.span_id(), to, worker.core.now_exact());
        }
    }

    /// Ends the current attempt as failed: with this error class, or because of the response status.
    #[inline]
    pub(crate) fn fail_attempt(&self, class: Option<FailureClass>, worker: &Worker) {
        if let Some(span) = self.span() {
            span.fail_attempt(class, worker.core.now_exact());
        }
    }

    /// Records the response head of the current attempt.
    #[inline]
    pub(crate) fn record_attempt_status(&self, status: u16, worker: &Worker) {
        if let Some(span) = self.span() {
            span.respond(status, worker.core.now());
        }
    }

    /// Records how long the connection to a server took to succeed or fail.
    pub(crate) fn record_connect_time(&self, duration: Duration) {
        if let Some(entry) = self.log_entry() {
            entry.connect(duration);
        }
        if let Some(span) = self.span() {
            span.connect(duration);
        }
    }

    pub(super) fn finish_trace(
        &mut self,
        (began, ended): (Instant, EndedRequest<'_>),
        (route, group): (Option<&Traffic>, Option<&Traffic>),
        settings: &Settings,
    ) {
        let Some(tracing) = &settings.tracing else {
            return;
        };
        let worker = &settings.worker;
        let Some(trace) = self.rare_state.as_mut().and_then(|kept| kept.trace.take()) else {
            return;
        };
        let way = RoutingNames {
            listener: "",
            route: route.map(Traffic::name),
            group: group.map(Traffic::name),
        };
        // Attempts have timestamps of this clock, so use the request's own start instead of subtracting the duration.
        let times = (began, worker.core.now_exact());
        if tracing.finish(*trace, ended, way, times) == SpanOutcome::Lost {
            worker.log.loss(&worker.core, Loss::Span);
        }
    }
}
