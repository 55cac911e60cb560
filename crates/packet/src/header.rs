//! The header of a test datagram: 18 bytes, which is the payload of the shortest Ethernet frame over IPv4 and UDP
//! (64 bytes with its check sequence). All numbers are big-endian.
//!
//! ```text
//!  0      1      2           4                 8                 12                       18
//!  +------+------+-----------+-----------------+-----------------+------------------------+
//!  | mark | kind | flow      | run             | sequence        | sent, nanoseconds      |
//!  +------+------+-----------+-----------------+-----------------+------------------------+
//! ```

/// Bytes of a header.
pub const HEADER_BYTES: usize = 18;

/// The first byte of each header. No text and no protocol that is common on UDP begins with it: DNS, memcached's frame, NTP and QUIC
/// have other bytes there in what they send first, and two further bytes must fit.
pub const MARK: u8 = 0xD7;

/// Nanoseconds of a header wrap here, after 78 hours.
const SENT_MASK: u64 = (1 << 48) - 1;

/// What a datagram is. The high half of the byte is the version of this format, 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// One to be counted, or to be sent back by an echo.
    Data,
    /// Asks the receiver what it has counted of the run and flow. The sequence is the question's own number.
    Question,
    /// The response to a question, with its number.
    Report,
}

impl Kind {
    fn byte(self) -> u8 {
        match self {
            Kind::Data => 0x11,
            Kind::Question => 0x12,
            Kind::Report => 0x13,
        }
    }

    fn of(byte: u8) -> Option<Kind> {
        match byte {
            0x11 => Some(Kind::Data),
            0x12 => Some(Kind::Question),
            0x13 => Some(Kind::Report),
            _ => None,
        }
    }
}

/// Whose a datagram is: a flow of a run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Flow {
    /// The run's number, chosen at random, so that datagrams of another run are known as such.
    pub run: u32,
    /// The number of the flow within the run: one socket of the sender.
    pub number: u16,
}

/// The beginning of a test datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Whose it is.
    pub flow: Flow,
    /// Its number within its flow, from 0; it wraps, see [`window::Window`](crate::window::Window).
    pub sequence: u32,
    /// When it was sent by the sender's clock, in nanoseconds since a moment of the sender's choice. 48 bits of it travel.
    pub sent: u64,
}

impl Header {
    /// Its bytes.
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

    /// The header that a datagram begins with; `None` for one that is no test datagram, or one of a format that came later.
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

/// How long after `sent`, as a header has it, `now` is by the same clock, in nanoseconds. A time that seems to lie ahead is one
/// that has wrapped.
pub fn since(sent: u64, now: u64) -> u64 {
    now.wrapping_sub(sent) & SENT_MASK
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            kind in prop_oneof![Just(Kind::Data), Just(Kind::Question), Just(Kind::Report)],
            run: u32, number: u16, sequence: u32, sent in 0..=SENT_MASK, behind in 0..100usize,
        ) {
            let header = Header { kind, flow: Flow { run, number }, sequence, sent };
            let mut bytes = header.bytes().to_vec();
            bytes.resize(HEADER_BYTES + behind, 0xFF);
            prop_assert_eq!(Header::read(&bytes), Some(header));
        }

        #[test]
        fn any_bytes_are_a_header_that_is_written_so_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(header) = Header::read(&bytes) {
                prop_assert_eq!(&header.bytes()[..], &bytes[..HEADER_BYTES]);
            }
        }
    }

    #[test]
    fn what_is_too_short_or_of_another_version_is_none() {
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
    fn a_time_that_has_wrapped_is_a_time_ago() {
        assert_eq!(since(5, 12), 7);
        assert_eq!(since(SENT_MASK, SENT_MASK + 11), 11);
    }
}
