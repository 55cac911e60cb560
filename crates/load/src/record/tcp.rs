//! What TCP counts, summed up.

use std::ops::AddAssign;

use onrush_engine::TcpInfo;

/// What TCP counted on several connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct TcpTotal {
    /// Segments sent again.
    pub(crate) retransmits: u64,
    /// Segments sent.
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
