//! Idle timeouts of a tunnel.

use std::time::Duration;

use onrush_config::plan::Timeouts;

/// In milliseconds, rounded up, at most 49 days: every tunnel holds them, and two `Duration`s would take 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct IdleTimes {
    open_ms: u32,
    half_closed_ms: u32,
}

impl IdleTimes {
    pub(super) fn of(timeouts: &Timeouts) -> Self {
        Self {
            open_ms: milliseconds(timeouts.tunnel_idle),
            half_closed_ms: milliseconds(timeouts.tunnel_fin.min(timeouts.tunnel_idle)),
        }
    }

    /// Timeout while both sides are open.
    pub(super) fn open(self) -> Duration {
        Duration::from_millis(self.open_ms.into())
    }

    /// Timeout after one end has closed its side: the other may never close its own.
    pub(super) fn half_closed(self) -> Duration {
        Duration::from_millis(self.half_closed_ms.into())
    }
}

fn milliseconds(time: Duration) -> u32 {
    let whole = time.as_nanos().div_ceil(1_000_000);
    u32::try_from(whole).unwrap_or(u32::MAX)
}
