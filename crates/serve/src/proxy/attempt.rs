//! One attempt to get the response to a request from a server: what both directions look at.

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
    /// Which of its servers.
    pub(crate) server: u32,
    pub(crate) exchange: &'a Exchange,
    pub(crate) worker: &'a Worker,
    pub(crate) progress: &'a Progress,
}

impl<'a> Attempt<'a> {
    pub(crate) fn timeouts(&self) -> &'a Timeouts {
        self.exchange.timeouts()
    }

    /// The response's head has come.
    pub(crate) fn responded_now(&self, status: u16) {
        self.exchange.responded(status, self.worker);
        let (group, purpose) = (self.group, self.forward.purpose);
        let latency = self.worker.core.now().since(self.forward.sent.get());
        group.server(self.server).responses.observe(status, latency);
        if group.measures(purpose) {
            let latency = self
                .worker
                .core
                .time_without_stalls(self.forward.sent.get());
            group.responded((self.server, purpose), status, latency, self.worker);
        }
    }

    /// All of the response has come, whose head came at `begun`. When that was in this turn, the first byte says it all.
    #[inline]
    pub(crate) fn is_complete_now(&self, begun: Instant) {
        let now = self.worker.core.now();
        if now > begun {
            let sent = self.forward.sent.get();
            let responses = &self.group.server(self.server).responses;
            responses.end(begun.since(sent), now.since(sent));
        }
    }

    /// The cookie that makes the client come back to its server, if it needs one.
    pub(crate) fn cookie(&self) -> Option<String> {
        match self.forward.sticks_to == self.server {
            true => None,
            false => self.group.cookie(self.server, self.forward.scheme),
        }
    }
}
