//! One attempt to get a response from a server; shared by the upload and the download.

use onrush_config::plan::Timeouts;
use onrush_engine::Instant;

use super::forward::request::Forward;
use super::group::Group;
use super::progress::Progress;
use crate::exchange::Exchange;
use crate::worker::Worker;

#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    pub(crate) forward: &'a Forward,
    pub(crate) group: &'a Group,
    pub(crate) server: u32,
    pub(crate) exchange: &'a Exchange,
    pub(crate) worker: &'a Worker,
    pub(crate) progress: &'a Progress,
}

impl<'a> Attempt<'a> {
    pub(crate) fn timeouts(&self) -> &'a Timeouts {
        self.exchange.timeouts()
    }

    /// Records that the head of the response has arrived.
    pub(crate) fn record_response_head(&self, status: u16) {
        self.exchange.record_attempt_status(status, self.worker);
        let (group, purpose) = (self.group, self.forward.purpose);
        let latency = self.worker.core.now().since(self.forward.sent.get());
        group.server(self.server).responses.observe(status, latency);
        if group.records_outcomes(purpose, status) {
            let latency = self
                .worker
                .core
                .time_without_stalls(self.forward.sent.get());
            let at = (self.server, purpose);
            let outcome = group.responded(at, status, latency, self.worker);
            self.progress.outcome.set(outcome);
        }
    }

    /// Records that the whole response has arrived, with its head at `begun`. Within one turn of the core, the total time
    /// is the time to the first byte.
    #[inline]
    pub(crate) fn record_complete(&self, begun: Instant) {
        if let Some(outcome) = self.progress.outcome.take() {
            let at = (self.server, self.forward.purpose);
            self.group.ended(at, outcome, self.worker);
        }
        let now = self.worker.core.now();
        if now > begun {
            let sent = self.forward.sent.get();
            let responses = &self.group.server(self.server).responses;
            responses.end(begun.since(sent), now.since(sent));
        }
    }

    /// The stickiness cookie to set, if the client does not already have the cookie of this server.
    pub(crate) fn cookie(&self) -> Option<String> {
        match self.forward.sticks_to == self.server {
            true => None,
            false => self.group.cookie(self.server, self.forward.scheme),
        }
    }
}
