//! Streams of a connection whose client takes nothing: when they end, and what one client may have of them.

use std::net::IpAddr;

use onrush_engine::Instant;

use super::Http2;
use crate::downstream::http2::limits::HTTP2_STALLED_MIN;
use crate::downstream::http2::stalled::Stalled;

impl Http2 {
    /// Looks at the streams of the connection, and counts those that are stalled.
    pub(super) fn look_at_stalled(&mut self, now: Instant) -> Stalled {
        if !self.session.has_streams() {
            self.count_stalled(0);
            return Stalled::default();
        }
        let patience = self.service.site().settings.timeouts.client_send;
        let mut stalled = self.session.look_at_stalled(patience, now);
        if self.count_stalled(stalled.count) > 0 {
            let due = stalled.since.map(|since| since + HTTP2_STALLED_MIN);
            stalled.late_at = stalled.late_at.min(due);
        }
        stalled
    }

    /// Ends streams that have been stalled for too long.
    pub(super) fn end_stalled(&mut self, now: Instant) {
        let patience = self.service.site().settings.timeouts.client_send;
        self.session.end_late(patience, now);
        let left = self.session.look_at_stalled(patience, now).count;
        let excess = self.count_stalled(left);
        let until = now.before(HTTP2_STALLED_MIN);
        self.session.end_longest_stalled(excess, until);
    }

    /// The stalled streams of the connection count so many. Returns by how many its address has more of them than it may.
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

    /// The address of the client; none for a trusted proxy, which has the streams of many clients, and for one without.
    fn address(&self) -> Option<IpAddr> {
        let (client, transport) = (self.session.client(), self.session.transport());
        if client.is_trusted(&self.service.site().settings.trust, transport) {
            return None;
        }
        let (address, _) = client.peer(transport)?;
        Some(address)
    }
}
