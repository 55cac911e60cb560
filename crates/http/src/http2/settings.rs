//! SETTINGS (RFC 9113 6.5): ours, sent once, and the peer's, which may change at any time.

use super::code::{Code, ConnectionError};
use super::frame::{
    Flags, Head, Kind, NUMBER_MAX, PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX, number_at, put_head,
};
use super::limits::RESETS_PER_SECOND;
use super::message::ExtendedConnect;

/// Initial window of a connection and of its streams (RFC 9113 6.9.2).
pub const WINDOW_DEFAULT: u32 = 65_535;

/// Initial size of the dynamic table (RFC 9113 6.5.2).
pub const TABLE_BYTES_DEFAULT: u32 = 4096;

const HEADER_TABLE_SIZE: u16 = 0x1;
const ENABLE_PUSH: u16 = 0x2;
const MAX_CONCURRENT_STREAMS: u16 = 0x3;
const INITIAL_WINDOW_SIZE: u16 = 0x4;
const MAX_FRAME_SIZE: u16 = 0x5;
const MAX_HEADER_LIST_SIZE: u16 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;
const NO_RFC7540_PRIORITIES: u16 = 0x9;

const SETTING_BYTES: usize = 6;

/// Role of this end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Opens streams; has sent the preface.
    Client,
    /// Responds.
    Server,
}

/// Our SETTINGS, the window of the connection, and a limit on resets. Values outside the range of the RFC are clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// Concurrent streams that the peer may open; further ones are refused. RFC 9113 6.5.2 advises at least 100.
    pub concurrent_streams_max: u32,
    /// Maximum number of bytes that may be received on a stream before they are released.
    pub stream_window: u32,
    /// Maximum number of bytes that may be received on all streams before they are released; at least 65,535, the
    /// initial window.
    pub connection_window: u32,
    /// Maximum payload of a frame in bytes.
    pub frame_bytes_max: u32,
    /// Size of a decoded field section according to RFC 9113 6.5.2: names, values, and 32 for each field.
    pub list_bytes_max: u32,
    /// Whether clients may send extended CONNECT (RFC 8441); sent by servers only.
    pub extended_connect: ExtendedConnect,
    /// Maximum number of streams per second that a client may reset before they are served, beyond a burst; not part of
    /// the frame.
    pub resets_per_second: u32,
}

impl LocalSettings {
    /// Defaults: the windows of the RFC, as many streams as it advises and common servers allow, and heads as large as
    /// in HTTP/1 (`Limits::DEFAULT`) plus the overhead of 40 fields.
    pub const DEFAULT: LocalSettings = LocalSettings {
        concurrent_streams_max: 128,
        stream_window: WINDOW_DEFAULT,
        connection_window: WINDOW_DEFAULT,
        frame_bytes_max: PAYLOAD_BYTES_DEFAULT,
        list_bytes_max: 16 * 1024,
        extended_connect: ExtendedConnect::Unknown,
        resets_per_second: RESETS_PER_SECOND,
    };

    /// Defaults of a client. It does not limit concurrent streams, since servers open them only to push, which is
    /// disabled.
    pub const CLIENT: LocalSettings = LocalSettings {
        concurrent_streams_max: u32::MAX,
        ..LocalSettings::DEFAULT
    };

    /// Clamps the values to the range of the RFC.
    pub(crate) fn within_bounds(self) -> LocalSettings {
        LocalSettings {
            stream_window: self.stream_window.min(NUMBER_MAX),
            connection_window: self.connection_window.clamp(WINDOW_DEFAULT, NUMBER_MAX),
            frame_bytes_max: self
                .frame_bytes_max
                .clamp(PAYLOAD_BYTES_DEFAULT, PAYLOAD_BYTES_MAX),
            ..self
        }
    }

    /// Writes the frame, with only the settings that differ from the protocol's defaults.
    pub(crate) fn put(&self, role: Role, out: &mut Vec<u8>) {
        let own = match role {
            // A proxy or load generator cannot use pushed responses.
            Role::Client => (ENABLE_PUSH, 0, 1),
            // Urgency and incremental flag of RFC 9218 are supported, the priority tree of RFC 7540 is not.
            Role::Server => (NO_RFC7540_PRIORITIES, 1, 0),
        };
        let connect = match (role, self.extended_connect) {
            (Role::Server, ExtendedConnect::Allowed) => 1,
            (Role::Server | Role::Client, ExtendedConnect::Unknown) => 0,
            (Role::Client, ExtendedConnect::Allowed) => 0,
        };
        let settings = [
            own,
            (ENABLE_CONNECT_PROTOCOL, connect, 0),
            (
                MAX_CONCURRENT_STREAMS,
                self.concurrent_streams_max,
                u32::MAX,
            ),
            (INITIAL_WINDOW_SIZE, self.stream_window, WINDOW_DEFAULT),
            (MAX_FRAME_SIZE, self.frame_bytes_max, PAYLOAD_BYTES_DEFAULT),
            (MAX_HEADER_LIST_SIZE, self.list_bytes_max, u32::MAX),
        ];
        let said = settings
            .iter()
            .filter(|(_, value, assumed)| value != assumed);
        let head = Head {
            length: (said.clone().count() * SETTING_BYTES) as u32,
            kind: Kind::Settings,
            flags: Flags::default(),
            stream: 0,
        };
        put_head(head, out);
        for (name, value, _) in said {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

impl Default for LocalSettings {
    fn default() -> Self {
        LocalSettings::DEFAULT
    }
}

/// SETTINGS of the peer, or their initial values (RFC 9113 6.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerSettings {
    /// Maximum number of bytes of the dynamic table that our encoder may use.
    pub table_bytes_max: u32,
    /// Maximum number of streams that we may have open concurrently.
    pub concurrent_streams_max: u32,
    /// Initial send window of streams.
    pub stream_window: u32,
    /// Maximum payload of a frame that we send, in bytes.
    pub frame_bytes_max: u32,
    /// Size of a field section that the peer accepts; advisory.
    pub list_bytes_max: u32,
    /// Whether the server accepts extended CONNECT (RFC 8441).
    pub extended_connect: ExtendedConnect,
}

impl PeerSettings {
    /// Initial values, before the peer's SETTINGS.
    pub const ASSUMED: PeerSettings = PeerSettings {
        table_bytes_max: TABLE_BYTES_DEFAULT,
        concurrent_streams_max: u32::MAX,
        stream_window: WINDOW_DEFAULT,
        frame_bytes_max: PAYLOAD_BYTES_DEFAULT,
        list_bytes_max: u32::MAX,
        extended_connect: ExtendedConnect::Unknown,
    };

    /// Applies the settings of one frame in order; `role` is ours. Calls `table` for each table size, because the
    /// smallest of several matters too (RFC 7541 4.2).
    ///
    /// # Errors
    /// A connection error: an invalid value (RFC 9113 6.5.2).
    pub(crate) fn take(
        &mut self,
        payload: &[u8],
        role: Role,
        mut table: impl FnMut(u32),
    ) -> Result<(), ConnectionError> {
        for setting in payload.chunks_exact(SETTING_BYTES) {
            let name = u16::from_be_bytes([setting[0], setting[1]]);
            let value = number_at(setting, 2);
            self.take_one(name, value, role)?;
            if name == HEADER_TABLE_SIZE {
                table(value);
            }
        }
        Ok(())
    }

    fn take_one(&mut self, name: u16, value: u32, role: Role) -> Result<(), ConnectionError> {
        match name {
            HEADER_TABLE_SIZE => self.table_bytes_max = value,
            ENABLE_PUSH if value > 1 => {
                return Err(ConnectionError::protocol(
                    "SETTINGS_ENABLE_PUSH is neither 0 nor 1",
                ));
            }
            ENABLE_PUSH if value == 1 && role == Role::Client => {
                return Err(ConnectionError::protocol(
                    "SETTINGS_ENABLE_PUSH of a server is not 0",
                ));
            }
            MAX_CONCURRENT_STREAMS => self.concurrent_streams_max = value,
            INITIAL_WINDOW_SIZE if value > NUMBER_MAX => {
                return Err(ConnectionError::new(
                    Code::FLOW_CONTROL_ERROR,
                    "SETTINGS_INITIAL_WINDOW_SIZE beyond 2^31-1",
                ));
            }
            INITIAL_WINDOW_SIZE => self.stream_window = value,
            MAX_FRAME_SIZE if !(PAYLOAD_BYTES_DEFAULT..=PAYLOAD_BYTES_MAX).contains(&value) => {
                return Err(ConnectionError::protocol(
                    "SETTINGS_MAX_FRAME_SIZE outside of 2^14 to 2^24-1",
                ));
            }
            MAX_FRAME_SIZE => self.frame_bytes_max = value,
            MAX_HEADER_LIST_SIZE => self.list_bytes_max = value,
            ENABLE_CONNECT_PROTOCOL => match (value, self.extended_connect) {
                (0, ExtendedConnect::Unknown) => {}
                (1, _) => self.extended_connect = ExtendedConnect::Allowed,
                _ => {
                    return Err(ConnectionError::protocol(
                        "SETTINGS_ENABLE_CONNECT_PROTOCOL is neither 0 nor 1, or changed from 1 to 0",
                    ));
                }
            },
            NO_RFC7540_PRIORITIES if value > 1 => {
                return Err(ConnectionError::protocol(
                    "SETTINGS_NO_RFC7540_PRIORITIES is neither 0 nor 1",
                ));
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(settings: &[(u16, u32)], role: Role) -> Result<PeerSettings, Code> {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        let mut peer = PeerSettings::ASSUMED;
        let taken = peer.take(&payload, role, |_| {});
        taken.map(|()| peer).map_err(|error| error.code)
    }

    #[test]
    fn settings_values_are_validated() {
        let cases = [
            (ENABLE_PUSH, 2, Role::Server, Some(Code::PROTOCOL_ERROR)),
            (ENABLE_PUSH, 1, Role::Server, None),
            (ENABLE_PUSH, 1, Role::Client, Some(Code::PROTOCOL_ERROR)),
            (ENABLE_PUSH, 0, Role::Client, None),
            (
                INITIAL_WINDOW_SIZE,
                1 << 31,
                Role::Server,
                Some(Code::FLOW_CONTROL_ERROR),
            ),
            (INITIAL_WINDOW_SIZE, NUMBER_MAX, Role::Server, None),
            (
                MAX_FRAME_SIZE,
                16383,
                Role::Server,
                Some(Code::PROTOCOL_ERROR),
            ),
            (
                MAX_FRAME_SIZE,
                1 << 24,
                Role::Server,
                Some(Code::PROTOCOL_ERROR),
            ),
            (MAX_FRAME_SIZE, 16384, Role::Server, None),
            (
                NO_RFC7540_PRIORITIES,
                2,
                Role::Server,
                Some(Code::PROTOCOL_ERROR),
            ),
            (0x99, u32::MAX, Role::Server, None),
        ];
        for (name, value, role, wanted) in cases {
            assert_eq!(
                taken(&[(name, value)], role).err(),
                wanted,
                "{name} {value}"
            );
        }
    }

    #[test]
    fn extended_connect_cannot_be_disabled() {
        let taken = |values: &[u32]| {
            let settings: Vec<_> = values
                .iter()
                .map(|&it| (ENABLE_CONNECT_PROTOCOL, it))
                .collect();
            taken(&settings, Role::Client).map(|peer| peer.extended_connect)
        };
        assert_eq!(taken(&[0]), Ok(ExtendedConnect::Unknown));
        assert_eq!(taken(&[0, 1, 1]), Ok(ExtendedConnect::Allowed));
        assert_eq!(taken(&[1, 0]), Err(Code::PROTOCOL_ERROR));
        assert_eq!(taken(&[2]), Err(Code::PROTOCOL_ERROR));
        let mut out = Vec::new();
        let local = LocalSettings {
            extended_connect: ExtendedConnect::Allowed,
            ..LocalSettings::DEFAULT
        };
        local.put(Role::Server, &mut out);
        let mut read = PeerSettings::ASSUMED;
        assert_eq!(read.take(&out[9..], Role::Client, |_| {}), Ok(()));
        assert_eq!(read.extended_connect, ExtendedConnect::Allowed);
    }

    #[test]
    fn last_value_of_repeated_setting_applies() {
        let settings = [(INITIAL_WINDOW_SIZE, 100), (INITIAL_WINDOW_SIZE, 1)];
        let window = taken(&settings, Role::Server).map(|peer| peer.stream_window);
        assert_eq!(window, Ok(1));
    }

    #[test]
    fn settings_round_trip() {
        let settings = LocalSettings {
            stream_window: u32::MAX,
            frame_bytes_max: 1,
            connection_window: 1,
            ..LocalSettings::DEFAULT
        }
        .within_bounds();
        assert_eq!(settings.connection_window, WINDOW_DEFAULT);
        for (role, peer) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
            let mut out = Vec::new();
            settings.put(role, &mut out);
            let head = Head::read(&out).expect("it is whole");
            assert_eq!(head.length as usize, out.len() - 9);
            let mut read = PeerSettings::ASSUMED;
            assert_eq!(read.take(&out[9..], peer, |_| {}), Ok(()));
            assert_eq!(read.stream_window, NUMBER_MAX);
            assert_eq!(read.frame_bytes_max, PAYLOAD_BYTES_DEFAULT);
            assert_eq!(read.concurrent_streams_max, 128);
            assert_eq!(read.list_bytes_max, 16 * 1024);
        }
    }
}
