//! The frame that memcached's datagrams begin with (memcached, doc/protocol.txt, "UDP protocol"): which request a datagram
//! belongs to, and which part of its message it is.
//!
//! ```text
//!   0          2          4          6          8
//!   │ id       │ sequence │ datagrams│ 0        │ payload …     each big-endian
//! ```

/// Bytes of a frame.
pub const FRAME_BYTES: usize = 8;

/// Bytes of a datagram of an answer, its frame among them, as memcached parts them: what passes any network that Ethernet is part
/// of.
pub const ANSWER_BYTES: usize = 1400;

/// What a datagram says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The request, as whoever asks numbers it.
    pub id: u16,
    /// Which datagram of its message it is, from 0.
    pub sequence: u16,
    /// How many its message has. With 0 there is no message: memcached 1.6 sends such a frame, alone, where it has looked for
    /// some keys of a long list and found none.
    pub datagrams: u16,
}

/// Why the beginning of a datagram is no frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WrongFrame {
    /// It is too short.
    Truncated,
    /// What must be 0 is not.
    Reserved,
    /// The number is beyond those of the message.
    Sequence,
}

impl Frame {
    /// That of a message which is one datagram.
    pub fn only(id: u16) -> Frame {
        Frame {
            id,
            sequence: 0,
            datagrams: 1,
        }
    }

    /// As it is sent.
    pub fn bytes(self) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..2].copy_from_slice(&self.id.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.datagrams.to_be_bytes());
        bytes
    }

    /// Reads a datagram: its frame and what follows.
    ///
    /// # Errors
    /// When it does not begin with one.
    pub fn read(datagram: &[u8]) -> Result<(Frame, &[u8]), WrongFrame> {
        let Some((frame, payload)) = datagram.split_first_chunk::<FRAME_BYTES>() else {
            return Err(WrongFrame::Truncated);
        };
        let [id, sequence, datagrams, reserved] =
            [0, 2, 4, 6].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]));
        if reserved != 0 {
            return Err(WrongFrame::Reserved);
        }
        let is_nothing = (sequence, datagrams) == (0, 0) && payload.is_empty();
        if sequence >= datagrams && !is_nothing {
            return Err(WrongFrame::Sequence);
        }
        let frame = Frame {
            id,
            sequence,
            datagrams,
        };
        Ok((frame, payload))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let frame = Frame {
            id: 0x1234,
            sequence: 3,
            datagrams: 0x0102,
        };
        let bytes = frame.bytes();
        assert_eq!(bytes, [0x12, 0x34, 0, 3, 1, 2, 0, 0]);
        let datagram = [&bytes[..], b"END\r\n"].concat();
        assert_eq!(Frame::read(&datagram), Ok((frame, &b"END\r\n"[..])));
        assert_eq!(
            Frame::read(&Frame::only(7).bytes()),
            Ok((Frame::only(7), &b""[..]))
        );
    }

    #[test]
    fn what_is_no_frame_has_its_reason() {
        for (datagram, expected) in [
            (&[0, 1, 0, 0, 0, 1, 0][..], WrongFrame::Truncated),
            (&[], WrongFrame::Truncated),
            (&[0, 1, 0, 0, 0, 1, 0, 1], WrongFrame::Reserved),
            (&[0, 1, 0, 1, 0, 1, 0, 0], WrongFrame::Sequence),
            (&[0, 1, 0, 0, 0, 0, 0, 0, b'x'], WrongFrame::Sequence),
        ] {
            assert_eq!(Frame::read(datagram), Err(expected), "{datagram:?}");
        }
        // As memcached 1.6.18 answers a list of a hundred keys that it does not have.
        let nothing = Frame::read(&[0, 27, 0, 0, 0, 0, 0, 0]);
        assert!(nothing.is_ok_and(|(frame, _)| frame.datagrams == 0));
    }
}
