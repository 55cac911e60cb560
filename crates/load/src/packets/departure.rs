//! How datagrams are sent: one per system call, several per call, several in a message that the kernel segments, or as
//! frames that bypass the network stack.

use std::fmt;

use onrush_engine::FRAMES_PER_CALL;

use crate::limits::{BURST_TIME_MAX, DATAGRAM_BYTES_MAX, MESSAGES_PER_CALL, SEGMENTS_MAX};

/// How datagrams are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SendMode {
    /// One per system call.
    #[default]
    Single,
    /// Up to 32 in one call (sendmmsg(2)); each passes through the network stack separately.
    Batch,
    /// Up to 64 of one size in a message (UDP_SEGMENT, udp(7)), and up to 32 messages in a call; a message passes
    /// through the network stack once. Figures count datagrams. On the loopback and on virtual links a message may
    /// remain one packet, so that an interface counts fewer.
    Offload,
    /// As complete frames that a program in the kernel passes to an interface, thousands per call, bypassing sockets,
    /// routes and queues (XDP). A frame counts as sent when the interface's driver has accepted it.
    Xdp,
}

impl SendMode {
    /// Ways that use sockets.
    pub const SOCKET_MODES: [SendMode; 3] = [SendMode::Single, SendMode::Batch, SendMode::Offload];

    /// Returns the name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            SendMode::Single => "single",
            SendMode::Batch => "batch",
            SendMode::Offload => "offload",
            SendMode::Xdp => "xdp",
        }
    }

    pub(crate) fn messages(self) -> usize {
        match self {
            SendMode::Single | SendMode::Xdp => 1,
            SendMode::Batch | SendMode::Offload => MESSAGES_PER_CALL,
        }
    }

    /// Returns the number of datagrams per message, each of up to `bytes` bytes. With a `rate`, in datagrams per second
    /// of a flow, a message has at most a millisecond's datagrams, so that the rate remains even.
    pub(crate) fn segments(self, bytes: u16, rate: Option<f64>) -> usize {
        match self {
            SendMode::Single | SendMode::Batch | SendMode::Xdp => 1,
            SendMode::Offload => {
                let fit = (DATAGRAM_BYTES_MAX / usize::from(bytes)).clamp(1, SEGMENTS_MAX);
                per_millisecond(rate, fit as u64) as usize
            }
        }
    }

    /// Returns the number of datagrams sent together; see [`SendMode::segments`].
    pub(crate) fn turn(self, bytes: u16, rate: Option<f64>) -> u64 {
        match self {
            SendMode::Single | SendMode::Batch | SendMode::Offload => {
                self.segments(bytes, rate) as u64
            }
            SendMode::Xdp => per_millisecond(rate, FRAMES_PER_CALL.into()),
        }
    }
}

/// Returns the number of datagrams that `rate` has per millisecond, at most `most`.
fn per_millisecond(rate: Option<f64>, most: u64) -> u64 {
    let due = rate.map_or(most as f64, |rate| rate * BURST_TIME_MAX.as_secs_f64());
    (due as u64).clamp(1, most)
}

impl fmt::Display for SendMode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_limited_by_size_and_rate() {
        let of = |bytes, rate| SendMode::Offload.segments(bytes, rate);
        assert_eq!(of(64, None), 64);
        assert_eq!(of(1400, None), 46);
        assert_eq!(of(60_000, None), 1);
        assert_eq!(of(64, Some(20_000.0)), 20);
        assert_eq!(of(64, Some(10.0)), 1);
        assert_eq!(SendMode::Batch.segments(64, None), 1);
        let turn = |rate| SendMode::Xdp.turn(64, rate);
        assert_eq!(
            (turn(None), turn(Some(1e6)), turn(Some(1e9))),
            (16_384, 1000, 16_384)
        );
        assert_eq!(SendMode::Xdp.segments(64, None), 1, "each is a frame");
    }
}
