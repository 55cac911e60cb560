//! How datagrams leave: each by a call of its own, several in a call, or several in a message that the kernel parts.

use std::fmt;

use crate::limits::{BURST_TIME_MAX, DATAGRAM_BYTES_MAX, MESSAGES_PER_CALL, SEGMENTS_MAX};

/// How datagrams leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Departure {
    /// Each by a call of its own.
    #[default]
    Single,
    /// Up to 32 in one call (sendmmsg(2)); each is a walk through the network stack all the same.
    Batch,
    /// Up to 64 of one size in a message (UDP_SEGMENT, udp(7)), and up to 32 messages in a call: one walk through the stack
    /// for all of a message. What is counted are datagrams; on the loopback and on virtual links a message may stay one packet all
    /// the way, so that an interface counts fewer.
    Offload,
}

impl Departure {
    /// All of them.
    pub const ALL: [Departure; 3] = [Departure::Single, Departure::Batch, Departure::Offload];

    /// Its name on command lines and in results.
    pub fn name(self) -> &'static str {
        match self {
            Departure::Single => "single",
            Departure::Batch => "batch",
            Departure::Offload => "offload",
        }
    }

    /// The most messages of one call.
    pub(crate) fn messages(self) -> usize {
        match self {
            Departure::Single => 1,
            Departure::Batch | Departure::Offload => MESSAGES_PER_CALL,
        }
    }

    /// The datagrams of one message, of so many bytes each at most; at a rate, in datagrams per second of a flow, no more than a
    /// millisecond has, so that they still come evenly.
    pub(crate) fn segments(self, bytes: u16, rate: Option<f64>) -> usize {
        match self {
            Departure::Single | Departure::Batch => 1,
            Departure::Offload => {
                let fit = (DATAGRAM_BYTES_MAX / usize::from(bytes)).clamp(1, SEGMENTS_MAX);
                let due = rate.map_or(fit as f64, |rate| rate * BURST_TIME_MAX.as_secs_f64());
                (due as usize).clamp(1, fit)
            }
        }
    }
}

impl fmt::Display for Departure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_as_many_as_fit_and_a_millisecond_has() {
        let of = |bytes, rate| Departure::Offload.segments(bytes, rate);
        assert_eq!(of(64, None), 64);
        assert_eq!(of(1400, None), 46);
        assert_eq!(of(60_000, None), 1);
        assert_eq!(of(64, Some(20_000.0)), 20);
        assert_eq!(of(64, Some(10.0)), 1);
        assert_eq!(Departure::Batch.segments(64, None), 1);
    }
}
