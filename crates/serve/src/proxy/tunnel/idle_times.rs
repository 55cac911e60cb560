//! The time in which nothing may move in a tunnel.

use std::time::Duration;

use onrush_config::plan::Timeouts;

/// How long nothing may move in a tunnel. Whole milliseconds, rounded up: each tunnel holds them, and two `Duration`s take 32
/// bytes. Times above 49 days are 49 days.
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

    /// While neither end has ended its side.
    pub(super) fn open(self) -> Duration {
        Duration::from_millis(self.open_ms.into())
    }

    /// After one has: the other may never end its own.
    pub(super) fn half_closed(self) -> Duration {
        Duration::from_millis(self.half_closed_ms.into())
    }
}

fn milliseconds(time: Duration) -> u32 {
    let whole = time.as_nanos().div_ceil(1_000_000);
    u32::try_from(whole).unwrap_or(u32::MAX)
}
