//! Observable state of a request: its access log entry and its entry in the list of requests in flight.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_http::request::RequestHead;

use super::rare_state::{EntryState, RareState};
use super::{Exchange, NONE};
use crate::observe::access_log::entry::{Entry, RoutingNames};
use crate::observe::access_log::{CoreLog, Line};
use crate::observe::in_flight::{Destination, InFlight, Stage};
use crate::observe::log::Loss;
use crate::observe::record::FailureClass;
use crate::observe::traffic::{EndedRequest, Traffic};
use crate::worker::Worker;

impl Exchange {
    pub(super) fn write_line(
        &self,
        log: &CoreLog,
        ended: EndedRequest<'_>,
        (route, group): (Option<&Traffic>, Option<&Traffic>),
        worker: &Worker,
    ) {
        if self.route != NONE && !log.includes(self.route.0 as usize) {
            return;
        }
        let listener = worker.registry.listener_at(self.listener);
        let way = RoutingNames {
            listener: listener.as_ref().map_or("", |listener| listener.name()),
            route: route.map(Traffic::name),
            group: group.map(Traffic::name),
        };
        if log.write(ended, (self.log_entry(), self.trace()), way) == Line::Lost {
            worker.log.loss(&worker.core, Loss::Line);
        }
    }

    /// Lists a request that does not complete before the next poll of the kernel; `client` is the client's address and
    /// connection number.
    pub(crate) fn list_in_flight(
        &mut self,
        (method, target): (&str, &str),
        client: (Option<IpAddr>, u32),
        stage: Stage,
    ) {
        let Some(settings) = &self.settings else {
            return;
        };
        let worker = &settings.worker;
        let kept = self
            .rare_state
            .get_or_insert_with(|| RareState::take(&worker.spare_kept));
        // A request that waited for its password check is listed already.
        match &kept.underway {
            Some(underway) => underway.is_at(stage),
            None => {
                let underway = worker
                    .live
                    .begin((method, target), client, self.since.0, stage);
                kept.underway = Some(underway);
            }
        }
    }

    /// Entry in the list of requests in flight, if there is one.
    #[inline]
    pub(crate) fn in_flight(&self) -> Option<&InFlight> {
        self.rare_state.as_ref()?.underway.as_ref()
    }

    /// Records the first byte of a response that completes in a later turn.
    #[cold]
    pub(crate) fn record_first_byte(&self, worker: &Worker) {
        if self.record.has_first_byte_recorded() {
            return;
        }
        self.record.set_first_byte_recorded();
        self.set_stage(Stage::Responding);
        if let Some(entry) = self.log_entry() {
            entry.begin_response(worker.core.now().since(self.since.0));
        }
        let Some(settings) = &self.settings else {
            return;
        };
        let (route, group) = self.traffic_counters(settings);
        let since = (&worker.core, self.since.0);
        let registry = &worker.registry;
        registry.first_byte(since, self.listener, route, group);
    }

    /// Records the server that the request is sent to.
    pub(crate) fn set_server<D: Destination + 'static>(&self, server: &Rc<D>) {
        if let Some(underway) = self.in_flight() {
            underway.goes_to(Rc::clone(server) as Rc<dyn Destination>);
        }
        if let Some(entry) = self.log_entry() {
            entry.forward(&server.display_name());
        }
    }

    #[inline]
    pub(crate) fn set_stage(&self, stage: Stage) {
        if let Some(underway) = self.in_flight() {
            underway.is_at(stage);
        }
    }

    /// Records the time spent waiting for capacity of a server.
    pub(crate) fn record_queue_time(&self, duration: Duration) {
        if let Some(entry) = self.log_entry() {
            entry.queue(duration);
        }
        if let Some(span) = self.span() {
            span.entry.queue(duration);
        }
        if let Some(group) = self.group_traffic() {
            group.effort().record_queue_time(duration);
        }
    }

    /// Records a retry and the class of the failure that caused it.
    pub(crate) fn retries(&self, why: FailureClass) {
        self.record.retry();
        if let Some(group) = self.group_traffic() {
            group.effort().record_retry(why);
        }
    }

    fn group_traffic(&self) -> Option<&Traffic> {
        self.traffic_counters(self.settings.as_deref()?).1
    }

    /// The access log entry, if there is a log.
    pub(crate) fn log_entry(&self) -> Option<&Entry> {
        let kept = self.rare_state.as_ref()?;
        kept.entry
            .as_deref()
            .filter(|_| kept.logged == EntryState::Yes)
    }

    /// Starts an access log entry with only the client's address, for input that is not a request.
    pub(crate) fn start_log_entry_without_head(&mut self, client: impl FnOnce() -> Option<IpAddr>) {
        let Some(settings) = &self.settings else {
            return;
        };
        if let Some(log) = &settings.log {
            let kept = self
                .rare_state
                .get_or_insert_with(|| RareState::take(&settings.worker.spare_kept));
            let entry = kept.entry.get_or_insert_default();
            entry.begin_without_head(client(), log.headers().len());
            kept.logged = EntryState::Yes;
        }
    }

    /// Starts an access log entry with the data of this head.
    pub(crate) fn start_log_entry(
        &mut self,
        head: &RequestHead<'_, '_>,
        client: Option<IpAddr>,
        names: &[String],
        worker: &Worker,
    ) {
        let kept = self
            .rare_state
            .get_or_insert_with(|| RareState::take(&worker.spare_kept));
        kept.entry
            .get_or_insert_default()
            .begin(head, client, names);
        kept.logged = EntryState::Yes;
    }
}
