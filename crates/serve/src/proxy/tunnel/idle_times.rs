//! The time in which nothing may move in a tunnel.

use std::time::Duration;

use onrush_config::plan::Timeouts;

/// How long nothing may move in a tunnel.
#[derive(Clone, Copy)]
pub(super) struct IdleTimes {
    /// While neither end has ended its side.
    pub(super) open: Duration,
    /// After one has: the other may never end its own.
    pub(super) half_closed: Duration,
}

impl IdleTimes {
    pub(super) fn of(timeouts: &Timeouts) -> Self {
        Self {
            open: timeouts.tunnel_idle,
            half_closed: timeouts.tunnel_fin.min(timeouts.tunnel_idle),
        }
    }
}
