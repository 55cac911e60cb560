//! Stalled streams of a connection: when they are reset, and how many a client address may have.

use std::net::IpAddr;

use onrush_engine::Instant;

use super::Http2;
use crate::exchange::downstream::http2::stalled::Stalled;
use crate::limits::http2::HTTP2_STALLED_MIN;

impl Http2 {
    pub(super) fn update_stalled(&mut self, now: Instant) -> Stalled {
        if !self.session.has_streams() {
            self.count_stalled(0);
            return Stalled::default();
        }
        let patience = self.service.site().settings.timeouts.client_send;
        let mut stalled = self.session.update_stalls(patience, now);
        if self.count_stalled(stalled.count) > 0 {
            let due = stalled.since.map(|since| since + HTTP2_STALLED_MIN);
            stalled.late_at = stalled.late_at.min(due);
        }
        stalled
    }

    /// Resets streams past their deadline, and those in excess of the address's limit.
    pub(super) fn end_stalled(&mut self, now: Instant) {
        let patience = self.service.site().settings.timeouts.client_send;
        self.session.reset_late_streams(patience, now);
        let left = self.session.update_stalls(patience, now).count;
        let excess = self.count_stalled(left);
        let until = now.before(HTTP2_STALLED_MIN);
        self.session.reset_longest_stalled(excess, until);
    }

    /// Sets the number of stalled streams. Returns by how many its address exceeds the limit, at most `count`.
    pub(super) fn count_stalled(&mut self, count: u32) -> u32 {
        let before = std::mem::replace(&mut self.stalled, count);
        if before == 0 && count == 0 {
            return 0;
        }
        let Some(address) = self.address() else {
            return 0;
        };
        let worker = &self.service.worker;
        let all = worker.stalled.change(address, before, count);
        let most = self.service.site().settings.stalled_streams_max;
        all.saturating_sub(most).min(count)
    }

    /// Address of the client; `None` for a Unix socket and for a trusted proxy, whose streams belong to many clients.
    fn address(&self) -> Option<IpAddr> {
        let (client, transport) = (self.session.client(), self.session.transport());
        if client.is_trusted(&self.service.site().settings.trust, transport) {
            return None;
        }
        let (address, _) = client.peer(transport)?;
        Some(address)
    }
}
