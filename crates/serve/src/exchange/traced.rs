//! What a request has of a trace, from its head to its end.

use std::time::Duration;

use onrush_engine::Address;
use onrush_engine::clock::Instant;
use onrush_http::request::RequestHead;

use super::Exchange;
use super::kept::Kept;
use crate::exchange::request_context::Source;
use crate::exchange::settings::Settings;
use crate::observe::access_log::entry::Way;
use crate::observe::live::Destination;
use crate::observe::log::Loss;
use crate::observe::record::Class;
use crate::observe::trace::span::{Span, Trace};
use crate::observe::trace::{Asked, Forwards, Spoken};
use crate::observe::traffic::{Ended, Traffic};
use crate::worker::Worker;

impl Exchange {
    /// Its trace begins, or is gone on with, where there are any. A request that is looked at again goes on.
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
        let asked = Asked {
            route: self.route(),
            about: &context,
            is_trusted: &|| context.is_trusted(),
            forwards,
        };
        if let Some(trace) = tracing.begin(head, asked) {
            let kept = self
                .kept
                .get_or_insert_with(|| Kept::take(&source.worker.spare_kept));
            kept.trace = Some(Box::new(trace));
        }
    }

    /// Its part of a trace.
    #[inline]
    pub(crate) fn trace(&self) -> Option<&Trace> {
        self.kept.as_ref()?.trace.as_deref()
    }

    /// What is recorded of it.
    #[inline]
    pub(super) fn span(&self) -> Option<&Span> {
        self.kept.as_ref()?.span()
    }

    /// It is to be sent to this server, unless that has begun already.
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
            let to = (&*server.known_as(), address);
            span.begin_attempt(|| tracing.span_id(), to, worker.core.now_exact());
        }
    }

    /// The attempt in hand is over, for this reason, or for the status of its response.
    #[inline]
    pub(crate) fn fail_attempt(&self, class: Option<Class>, worker: &Worker) {
        if let Some(span) = self.span() {
            span.fail_attempt(class, worker.core.now_exact());
        }
    }

    /// The head of the response to the attempt in hand has come.
    #[inline]
    pub(crate) fn responded(&self, status: u16, worker: &Worker) {
        if let Some(span) = self.span() {
            span.respond(status, worker.core.now());
        }
    }

    /// Its connection to a server took so long to be made, or to fail.
    pub(crate) fn was_connected(&self, duration: Duration) {
        if let Some(entry) = self.entry() {
            entry.connect(duration);
        }
        if let Some(span) = self.span() {
            span.connect(duration);
        }
    }

    pub(super) fn finish_trace(
        &mut self,
        (began, ended): (Instant, Ended<'_>),
        (route, group): (Option<&Traffic>, Option<&Traffic>),
        settings: &Settings,
    ) {
        let Some(tracing) = &settings.tracing else {
            return;
        };
        let worker = &settings.worker;
        let Some(trace) = self.kept.as_mut().and_then(|kept| kept.trace.take()) else {
            return;
        };
        let way = Way {
            listener: "",
            route: route.map(Traffic::name),
            group: group.map(Traffic::name),
        };
        // Attempts have their own moments by the same clock: the beginning is the request's, never counted back from here.
        let times = (began, worker.core.now_exact());
        if tracing.finish(*trace, ended, way, times) == Spoken::Lost {
            worker.log.loss(&worker.core, Loss::Span);
        }
    }
}
