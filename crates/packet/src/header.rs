//! The header of a test datagram: 18 bytes, which is the payload of the shortest Ethernet frame over IPv4 and UDP
//! (64 bytes with its check sequence). All numbers are big-endian.
//!
//! ```text
//!  0      1      2           4                 8                 12                       18
//!  +------+------+-----------+-----------------+-----------------+------------------------+
//!  | mark | kind | flow      | run             | sequence        | sent, nanoseconds      |
//!  +------+------+-----------+-----------------+-----------------+------------------------+
//! ```

/// Length of a header.
pub const HEADER_BYTES: usize = 18;

/// First byte of every header. No common UDP protocol starts its first message with it (DNS, memcached, NTP, QUIC), and
/// two more bytes must match.
pub const MARK: u8 = 0xD7;

/// Timestamps wrap after 48 bits, which is 78 hours.
const SENT_MASK: u64 = (1 << 48) - 1;

/// Type of a datagram. The high four bits of its byte are the version of the format, 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A test datagram, to be counted or echoed.
    Data,
    /// Asks the receiver for its counters of the flow. The sequence number identifies the question.
    ReportRequest,
    /// The response to a question, with the same number.
    Report,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Kind::Data => 0x11,
            Kind::ReportRequest => 0x12,
            Kind::Report => 0x13,
        }
    }

    fn of(byte: u8) -> Option<Kind> {
        match byte {
            0x11 => Some(Kind::Data),
            0x12 => Some(Kind::ReportRequest),
            0x13 => Some(Kind::Report),
            _ => None,
        }
    }
}

/// Identifies a flow of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// Random id of the run, so that datagrams of another run are recognized.
    pub run: u32,
    /// Number of the flow within the run: one socket of the sender.
    pub number: u16,
}

/// Header of a test datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its type.
    pub kind: Kind,
    /// Its flow.
    pub flow: Flow,
    /// Sequence number within the flow, from 0. It wraps; see [`window::Window`](crate::window::Window).
    pub sequence: u32,
    /// Send time in nanoseconds by the sender's clock. Only the low 48 bits are transmitted.
    pub sent: u64,
}

impl Header {
    /// Encodes the header.
    pub fn bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = MARK;
        bytes[1] = self.kind.byte();
        bytes[2..4].copy_from_slice(&self.flow.number.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.flow.run.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[12..].copy_from_slice(&self.sent.to_be_bytes()[2..]);
        bytes
    }

    /// Decodes the header of a datagram. `None` if it is not a test datagram, or has another version.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = datagram.first_chunk()?;
        if bytes[0] != MARK {
            return None;
        }
        let number = |from: usize| -> u32 {
            let four = [
                bytes[from],
                bytes[from + 1],
                bytes[from + 2],
                bytes[from + 3],
            ];
            u32::from_be_bytes(four)
        };
        let sent_high = u16::from_be_bytes([bytes[12], bytes[13]]);
        Some(Header {
            kind: Kind::of(bytes[1])?,
            flow: Flow {
                run: number(4),
                number: u16::from_be_bytes([bytes[2], bytes[3]]),
            },
            sequence: number(8),
            sent: u64::from(sent_high) << 32 | u64::from(number(14)),
        })
    }
}

/// Nanoseconds from `sent`, a header's timestamp, to `now` by the same clock, modulo 48 bits.
pub fn since(sent: u64, now: u64) -> u64 {
    now.wrapping_sub(sent) & SENT_MASK
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn header_round_trips(
            kind in prop_oneof![Just(Kind::Data), Just(Kind::ReportRequest), Just(Kind::Report)],
            run: u32, number: u16, sequence: u32, sent in 0..=SENT_MASK, behind in 0..100usize,
        ) {
            let header = Header { kind, flow: Flow { run, number }, sequence, sent };
            let mut bytes = header.bytes().to_vec();
            bytes.resize(HEADER_BYTES + behind, 0xFF);
            prop_assert_eq!(Header::read(&bytes), Some(header));
        }

        #[test]
        fn arbitrary_header_bytes_round_trip_or_fail(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(header) = Header::read(&bytes) {
                prop_assert_eq!(&header.bytes()[..], &bytes[..HEADER_BYTES]);
            }
        }
    }

    #[test]
    fn short_or_unknown_header_is_refused() {
        let header = Header {
            kind: Kind::Data,
            flow: Flow { run: 1, number: 2 },
            sequence: 3,
            sent: 4,
        };
        let mut bytes = header.bytes();
        assert_eq!(Header::read(&bytes[..17]), None);
        bytes[1] = 0x21;
        assert_eq!(Header::read(&bytes), None);
        bytes[..2].copy_from_slice(&[b'G', 0x11]);
        assert_eq!(Header::read(&bytes), None);
    }

    #[test]
    fn wrapped_timestamps_give_elapsed_time() {
        assert_eq!(since(5, 12), 7);
        assert_eq!(since(SENT_MASK, SENT_MASK + 11), 11);
    }
}
