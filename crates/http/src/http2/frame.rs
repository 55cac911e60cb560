//! Frames (RFC 9113 4 and 6): header and payload formats. Stateless; `connection` decides which frames are allowed.
//!
//! ```text
//!   length (24)  type (8)  flags (8)  R (1) stream id (31)  payload …
//! ```

mod payload;
mod write;

pub use write::{
    PREFACE, go_away, ping, ping_ack, priority_update, reset, settings_ack, window_update,
};
pub(crate) use write::{put_head, set_flags, set_length};

pub(crate) use payload::{
    dependency, go_away as read_go_away, headers as read_headers, number_at, padded,
    ping as read_ping, priority as read_priority, priority_update as read_priority_update,
    reset as read_reset, window_update as read_window_update,
};

use super::code::ConnectionError;

/// Length of a frame header.
pub const HEAD_BYTES: usize = 9;

/// Initial SETTINGS_MAX_FRAME_SIZE, which every peer accepts (RFC 9113 4.2).
pub const PAYLOAD_BYTES_DEFAULT: u32 = 1 << 14;
/// Maximum of SETTINGS_MAX_FRAME_SIZE, and of the length field.
pub const PAYLOAD_BYTES_MAX: u32 = (1 << 24) - 1;

/// Maximum stream id and window: 31 bits.
pub const NUMBER_MAX: u32 = (1 << 31) - 1;

/// Frame type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Content of a message.
    Data,
    /// A head or trailers.
    Headers,
    /// Deprecated priority of RFC 7540; parsed and ignored.
    Priority,
    /// RST_STREAM: abnormal end of a stream.
    Reset,
    /// Settings of the sender.
    Settings,
    /// Server push; never allowed here.
    PushPromise,
    /// PING and its acknowledgement.
    Ping,
    /// GOAWAY: no new streams.
    GoAway,
    /// Increment of a window.
    WindowUpdate,
    /// Continuation of a head or trailers.
    Continuation,
    /// The priority of a response (RFC 9218 7.1).
    PriorityUpdate,
    /// Any other type; ignored (RFC 9113 4.1).
    Unknown,
}

impl Kind {
    /// Frame type of a number.
    #[inline]
    pub const fn of(number: u8) -> Kind {
        match number {
            0x0 => Kind::Data,
            0x1 => Kind::Headers,
            0x2 => Kind::Priority,
            0x3 => Kind::Reset,
            0x4 => Kind::Settings,
            0x5 => Kind::PushPromise,
            0x6 => Kind::Ping,
            0x7 => Kind::GoAway,
            0x8 => Kind::WindowUpdate,
            0x9 => Kind::Continuation,
            0x10 => Kind::PriorityUpdate,
            _ => Kind::Unknown,
        }
    }

    /// Number on the wire. `Unknown` is 0x21, the first that HTTP/3 reserves for this; RFC 9113 reserves none.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Kind::Data => 0x0,
            Kind::Headers => 0x1,
            Kind::Priority => 0x2,
            Kind::Reset => 0x3,
            Kind::Settings => 0x4,
            Kind::PushPromise => 0x5,
            Kind::Ping => 0x6,
            Kind::GoAway => 0x7,
            Kind::WindowUpdate => 0x8,
            Kind::Continuation => 0x9,
            Kind::PriorityUpdate => 0x10,
            Kind::Unknown => 0x21,
        }
    }
}

/// Flags (RFC 9113 6). The meaning of a bit depends on the frame type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// DATA, HEADERS: the sender ends the stream.
    pub const END_STREAM: Flags = Flags(0x1);
    /// SETTINGS, PING: an acknowledgement.
    pub const ACK: Flags = Flags(0x1);
    /// HEADERS, CONTINUATION: the field block ends here.
    pub const END_HEADERS: Flags = Flags(0x4);
    /// DATA, HEADERS: the payload is padded.
    pub const PADDED: Flags = Flags(0x8);
    /// HEADERS: five bytes of RFC 7540's priority precede the block.
    pub const PRIORITY: Flags = Flags(0x20);

    /// Whether all bits of `flags` are set.
    #[inline]
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Union of both.
    #[inline]
    pub const fn and(self, flags: Flags) -> Flags {
        Flags(self.0 | flags.0)
    }
}

/// Frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Length of the payload.
    pub length: u32,
    /// Frame type.
    pub kind: Kind,
    /// Flags as received; unknown ones are ignored.
    pub flags: Flags,
    /// Stream id; 0 is the connection.
    pub stream: u32,
}

impl Head {
    /// Parses the header at the start of `input`; `None` if it is incomplete.
    #[inline]
    pub fn read(input: &[u8]) -> Option<Head> {
        let &[a, b, c, kind, flags, s, t, u, v] = input.first_chunk::<HEAD_BYTES>()?;
        Some(Head {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: Kind::of(kind),
            flags: Flags(flags),
            stream: u32::from_be_bytes([s, t, u, v]) & NUMBER_MAX,
        })
    }

    /// Checks the frame's length, and whether it belongs to a stream or the connection (RFC 9113 4.2, 6), without
    /// regard to payload and state. The length of PRIORITY is not checked, because that is only a stream error.
    ///
    /// # Errors
    /// A connection error.
    #[inline]
    pub fn check(&self, length_max: u32) -> Result<(), ConnectionError> {
        if self.length > length_max {
            return Err(ConnectionError::size(
                "frame larger than SETTINGS_MAX_FRAME_SIZE",
            ));
        }
        match self.kind {
            Kind::Data | Kind::Headers => self.check_stream(),
            Kind::Continuation | Kind::Priority => self.check_stream(),
            Kind::Reset => self.check_stream().and(self.check_length(4)),
            Kind::WindowUpdate => self.check_length(4),
            Kind::Ping => self.check_connection().and(self.check_length(8)),
            Kind::Settings => self.check_connection().and(self.check_settings()),
            Kind::GoAway => self.check_connection().and(self.check_length_min(8)),
            Kind::PriorityUpdate => self.check_connection().and(self.check_length_min(4)),
            Kind::PushPromise | Kind::Unknown => Ok(()),
        }
    }

    #[inline]
    fn check_stream(&self) -> Result<(), ConnectionError> {
        match self.stream {
            0 => Err(ConnectionError::protocol("stream frame on stream 0")),
            _ => Ok(()),
        }
    }

    #[inline]
    fn check_connection(&self) -> Result<(), ConnectionError> {
        match self.stream {
            0 => Ok(()),
            _ => Err(ConnectionError::protocol(
                "connection frame with a stream ID other than 0",
            )),
        }
    }

    #[inline]
    fn check_length(&self, length: u32) -> Result<(), ConnectionError> {
        match self.length == length {
            true => Ok(()),
            false => Err(ConnectionError::size("wrong length for this type of frame")),
        }
    }

    #[inline]
    fn check_length_min(&self, length: u32) -> Result<(), ConnectionError> {
        match self.length >= length {
            true => Ok(()),
            false => Err(ConnectionError::size("frame too short for its type")),
        }
    }

    fn check_settings(&self) -> Result<(), ConnectionError> {
        match (self.flags.has(Flags::ACK), self.length) {
            (true, 0) => Ok(()),
            (true, _) => Err(ConnectionError::size(
                "SETTINGS acknowledgement with a payload",
            )),
            (false, length) if length.is_multiple_of(6) => Ok(()),
            (false, _) => Err(ConnectionError::size("truncated SETTINGS frame")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::code::Code;

    fn head(length: u32, kind: Kind, flags: Flags, stream: u32) -> Head {
        Head {
            length,
            kind,
            flags,
            stream,
        }
    }

    #[test]
    fn frame_header_round_trips() {
        let mut out = Vec::new();
        let written = head(0x0102_0304 & PAYLOAD_BYTES_MAX, Kind::Ping, Flags::ACK, 7);
        put_head(written, &mut out);
        assert_eq!(out, [2, 3, 4, 6, 1, 0, 0, 0, 7]);
        assert_eq!(Head::read(&out), Some(written));
        assert_eq!(Head::read(&out[..8]), None);
    }

    #[test]
    fn reserved_bit_is_ignored() {
        let read = Head::read(&[0, 0, 0, 0, 0, 0x80, 0, 0, 1]);
        assert_eq!(read.map(|head| head.stream), Some(1));
        for number in 0..=255 {
            let kind = Kind::of(number);
            assert!(kind == Kind::Unknown || kind.number() == number);
        }
    }

    #[test]
    fn frame_length_and_stream_are_validated() {
        let none = Flags::default();
        let cases = [
            (
                head(16385, Kind::Data, none, 1),
                Some(Code::FRAME_SIZE_ERROR),
            ),
            (head(16384, Kind::Data, none, 1), None),
            (head(0, Kind::Data, none, 0), Some(Code::PROTOCOL_ERROR)),
            (head(0, Kind::Headers, none, 0), Some(Code::PROTOCOL_ERROR)),
            (head(5, Kind::Priority, none, 0), Some(Code::PROTOCOL_ERROR)),
            (head(4, Kind::Priority, none, 1), None),
            (head(4, Kind::Reset, none, 0), Some(Code::PROTOCOL_ERROR)),
            (head(3, Kind::Reset, none, 1), Some(Code::FRAME_SIZE_ERROR)),
            (head(6, Kind::Settings, none, 1), Some(Code::PROTOCOL_ERROR)),
            (
                head(3, Kind::Settings, none, 0),
                Some(Code::FRAME_SIZE_ERROR),
            ),
            (
                head(6, Kind::Settings, Flags::ACK, 0),
                Some(Code::FRAME_SIZE_ERROR),
            ),
            (head(0, Kind::Settings, Flags::ACK, 0), None),
            (head(8, Kind::Ping, none, 1), Some(Code::PROTOCOL_ERROR)),
            (head(6, Kind::Ping, none, 0), Some(Code::FRAME_SIZE_ERROR)),
            (head(8, Kind::GoAway, none, 1), Some(Code::PROTOCOL_ERROR)),
            (head(7, Kind::GoAway, none, 0), Some(Code::FRAME_SIZE_ERROR)),
            (
                head(3, Kind::WindowUpdate, none, 0),
                Some(Code::FRAME_SIZE_ERROR),
            ),
            (
                head(0, Kind::Continuation, none, 0),
                Some(Code::PROTOCOL_ERROR),
            ),
            (
                head(9, Kind::PriorityUpdate, none, 1),
                Some(Code::PROTOCOL_ERROR),
            ),
            (head(9, Kind::Unknown, none, 1), None),
        ];
        for (head, wanted) in cases {
            let found = head.check(PAYLOAD_BYTES_DEFAULT).err();
            assert_eq!(found.map(|error| error.code), wanted, "{head:?}");
        }
    }
}
