//! Sums of TCP counters.

use std::ops::AddAssign;

use onrush_engine::TcpInfo;

/// Sum of TCP counters over several connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TcpTotal {
    pub(crate) retransmits: u64,
    pub(crate) segments_out: u64,
}

impl TcpTotal {
    pub(crate) fn of(info: TcpInfo) -> TcpTotal {
        TcpTotal {
            retransmits: info.retransmits.into(),
            segments_out: info.segments_out.into(),
        }
    }
}

impl AddAssign for TcpTotal {
    fn add_assign(&mut self, other: TcpTotal) {
        self.retransmits += other.retransmits;
        self.segments_out += other.segments_out;
    }
}
