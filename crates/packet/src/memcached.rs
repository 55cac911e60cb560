//! Frame header of memcached's UDP protocol (memcached, doc/protocol.txt, "UDP protocol").
//!
//! ```text
//!   0          2          4          6          8
//!   │ id       │ sequence │ datagrams│ 0        │ payload …     each big-endian
//! ```

/// Length of a frame header.
pub const FRAME_BYTES: usize = 8;

/// Length of a full response datagram, frame header included (UDP_MAX_PAYLOAD_SIZE in memcached): it fits an Ethernet
/// MTU.
pub const RESPONSE_BYTES_MAX: usize = 1400;

/// Frame header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Request id, chosen by the client.
    pub id: u16,
    /// Index of the datagram within its message, from 0.
    pub sequence: u16,
    /// Number of datagrams in the message. memcached 1.6 sends 0 in a frame without payload after it found none of the
    /// next keys of a long list.
    pub datagrams: u16,
}

/// Why a datagram has no valid frame header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameError {
    /// Shorter than a frame header.
    Truncated,
    /// The reserved bytes are not 0.
    Reserved,
    /// The index is not below the number of datagrams.
    Sequence,
}

impl Frame {
    /// Frame header of a message of one datagram.
    pub fn only(id: u16) -> Frame {
        Frame {
            id,
            sequence: 0,
            datagrams: 1,
        }
    }

    /// Encodes the frame header.
    pub fn bytes(self) -> [u8; FRAME_BYTES] {
        let mut bytes = [0; FRAME_BYTES];
        bytes[..2].copy_from_slice(&self.id.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.datagrams.to_be_bytes());
        bytes
    }

    /// Splits a datagram into its frame header and payload.
    ///
    /// # Errors
    /// If the frame header is not valid.
    pub fn read(datagram: &[u8]) -> Result<(Frame, &[u8]), FrameError> {
        let Some((frame, payload)) = datagram.split_first_chunk::<FRAME_BYTES>() else {
            return Err(FrameError::Truncated);
        };
        let [id, sequence, datagrams, reserved] =
            [0, 2, 4, 6].map(|at| u16::from_be_bytes([frame[at], frame[at + 1]]));
        if reserved != 0 {
            return Err(FrameError::Reserved);
        }
        let is_nothing = (sequence, datagrams) == (0, 0) && payload.is_empty();
        if sequence >= datagrams && !is_nothing {
            return Err(FrameError::Sequence);
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
    fn memcached_frame_round_trips() {
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
    fn invalid_frames_have_reason() {
        for (datagram, expected) in [
            (&[0, 1, 0, 0, 0, 1, 0][..], FrameError::Truncated),
            (&[], FrameError::Truncated),
            (&[0, 1, 0, 0, 0, 1, 0, 1], FrameError::Reserved),
            (&[0, 1, 0, 1, 0, 1, 0, 0], FrameError::Sequence),
            (&[0, 1, 0, 0, 0, 0, 0, 0, b'x'], FrameError::Sequence),
        ] {
            assert_eq!(Frame::read(datagram), Err(expected), "{datagram:?}");
        }
        // Response of memcached 1.6.18 to a list of a hundred keys that it does not have.
        let nothing = Frame::read(&[0, 27, 0, 0, 0, 0, 0, 0]);
        assert!(nothing.is_ok_and(|(frame, _)| frame.datagrams == 0));
    }
}
