//! What others can observe of a request: its access log entry and its entry in the list of requests in flight.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use onrush_http::request::RequestHead;

use super::kept::{Kept, Logged};
use super::{Exchange, NONE};
use crate::observe::access_log::entry::{Entry, Way};
use crate::observe::access_log::{CoreLog, Line};
use crate::observe::live::{Destination, Stage, Underway};
use crate::observe::log::Loss;
use crate::observe::record::Class;
use crate::observe::traffic::{Ended, Traffic};
use crate::worker::Worker;

impl Exchange {
    pub(super) fn write_line(
        &self,
        log: &CoreLog,
        ended: Ended<'_>,
        (route, group): (Option<&Traffic>, Option<&Traffic>),
        worker: &Worker,
    ) {
        if self.route != NONE && !log.includes(self.route.0 as usize) {
            return;
        }
        let listener = worker.registry.listener_at(self.listener);
        let way = Way {
            listener: listener.as_ref().map_or("", |listener| listener.name()),
            route: route.map(Traffic::name),
            group: group.map(Traffic::name),
        };
        if log.write(ended, (self.entry(), self.trace()), way) == Line::Lost {
            worker.log.loss(&worker.core, Loss::Line);
        }
    }

    /// Lists a request that does not complete in this turn; `client` is the client's address and connection number.
    pub(crate) fn goes_on(
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
            .kept
            .get_or_insert_with(|| Kept::take(&worker.spare_kept));
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
    pub(crate) fn underway(&self) -> Option<&Underway> {
        self.kept.as_ref()?.underway.as_ref()
    }

    /// Records the first byte of a response that completes in a later turn.
    #[cold]
    pub(crate) fn tell_first_byte(&self, worker: &Worker) {
        if self.record.has_begun_before() {
            return;
        }
        self.record.begin_before();
        self.is_at(Stage::Responding);
        if let Some(entry) = self.entry() {
            entry.begin_response(worker.core.now().since(self.since.0));
        }
        let Some(settings) = &self.settings else {
            return;
        };
        let (route, group) = self.way(settings);
        let since = (&worker.core, self.since.0);
        let registry = &worker.registry;
        registry.first_byte(since, self.listener, route, group);
    }

    /// Records the server that the request is sent to.
    pub(crate) fn goes_to<D: Destination + 'static>(&self, server: &Rc<D>) {
        if let Some(underway) = self.underway() {
            underway.goes_to(Rc::clone(server) as Rc<dyn Destination>);
        }
        if let Some(entry) = self.entry() {
            entry.forward(&server.known_as());
        }
    }

    #[inline]
    pub(crate) fn is_at(&self, stage: Stage) {
        if let Some(underway) = self.underway() {
            underway.is_at(stage);
        }
    }

    /// Records the time spent waiting for capacity of a server.
    pub(crate) fn has_queued(&self, duration: Duration) {
        if let Some(entry) = self.entry() {
            entry.queue(duration);
        }
        if let Some(span) = self.span() {
            span.entry.queue(duration);
        }
        if let Some(group) = self.group_traffic() {
            group.effort().has_queued(duration);
        }
    }

    /// Records a retry and the class of the failure that caused it.
    pub(crate) fn retries(&self, why: Class) {
        self.record.retry();
        if let Some(group) = self.group_traffic() {
            group.effort().retries(why);
        }
    }

    fn group_traffic(&self) -> Option<&Traffic> {
        self.way(self.settings.as_deref()?).1
    }

    /// The access log entry, if there is a log.
    pub(crate) fn entry(&self) -> Option<&Entry> {
        let kept = self.kept.as_ref()?;
        kept.entry.as_deref().filter(|_| kept.logged == Logged::Yes)
    }

    /// Starts an access log entry with only the client's address, for input that is not a request.
    pub(crate) fn keep_client(&mut self, client: impl FnOnce() -> Option<IpAddr>) {
        let Some(settings) = &self.settings else {
            return;
        };
        if let Some(log) = &settings.log {
            let kept = self
                .kept
                .get_or_insert_with(|| Kept::take(&settings.worker.spare_kept));
            let entry = kept.entry.get_or_insert_default();
            entry.begin_without_head(client(), log.headers().len());
            kept.logged = Logged::Yes;
        }
    }

    /// Starts an access log entry with the data of this head.
    pub(crate) fn keep_entry(
        &mut self,
        head: &RequestHead<'_, '_>,
        client: Option<IpAddr>,
        names: &[String],
        worker: &Worker,
    ) {
        let kept = self
            .kept
            .get_or_insert_with(|| Kept::take(&worker.spare_kept));
        kept.entry
            .get_or_insert_default()
            .begin(head, client, names);
        kept.logged = Logged::Yes;
    }
}
