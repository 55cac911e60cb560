//! The note that the engine stores with each connection: listener, state and number of requests. Listing connections
//! reads it without asking their tasks.

use onrush_engine::Note;

/// State of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Waiting for the PROXY header.
    Introduction,
    /// TLS handshake.
    Handshake,
    /// Waiting for a request.
    Idle,
    /// A request head is arriving.
    Head,
    /// The rest of an unwanted body is being discarded.
    Body,
    /// A request is in flight.
    Request,
    /// A response waits for the client to read.
    Sending,
    /// A tunnel.
    Tunnel,
    /// A connection of a protocol other than HTTP.
    Open,
    /// Closed by the server, not yet by the client.
    Closing,
}

impl ConnectionState {
    /// All states, in order.
    pub const ALL: [ConnectionState; 10] = [
        ConnectionState::Introduction,
        ConnectionState::Handshake,
        ConnectionState::Idle,
        ConnectionState::Head,
        ConnectionState::Body,
        ConnectionState::Request,
        ConnectionState::Sending,
        ConnectionState::Tunnel,
        ConnectionState::Open,
        ConnectionState::Closing,
    ];

    /// The protocol in this state if the connection does not use HTTP/2, as far as known.
    fn protocol(self) -> Option<&'static str> {
        match self {
            ConnectionState::Introduction
            | ConnectionState::Handshake
            | ConnectionState::Tunnel
            | ConnectionState::Open => None,
            ConnectionState::Idle
            | ConnectionState::Head
            | ConnectionState::Body
            | ConnectionState::Request
            | ConnectionState::Sending
            | ConnectionState::Closing => Some("HTTP/1"),
        }
    }

    /// Label in the admin interface.
    pub fn name(self) -> &'static str {
        match self {
            ConnectionState::Introduction => "introduction",
            ConnectionState::Handshake => "handshake",
            ConnectionState::Idle => "idle",
            ConnectionState::Head => "head",
            ConnectionState::Body => "body",
            ConnectionState::Request => "request",
            ConnectionState::Sending => "sending",
            ConnectionState::Tunnel => "tunnel",
            ConnectionState::Open => "open",
            ConnectionState::Closing => "closing",
        }
    }
}

pub(crate) fn new_note(listener: u16, state: ConnectionState) -> Note {
    Note {
        count: 0,
        kind: listener,
        state: state as u8,
    }
}

#[inline]
pub(crate) fn with_state(note: Note, state: ConnectionState) -> Note {
    Note {
        state: state as u8 | note.state & HTTP2,
        ..note
    }
}

/// Bit in `state`: the connection uses HTTP/2.
const HTTP2: u8 = 1 << 7;

pub(crate) fn in_http2(note: Note) -> Note {
    Note {
        state: note.state | HTTP2,
        ..note
    }
}

/// The protocol of the connection, as far as known.
pub(crate) fn protocol(note: Note) -> Option<&'static str> {
    match note.state & HTTP2 {
        0 => state(note).protocol(),
        _ => Some("HTTP/2"),
    }
}

/// The note with one more request, which is in flight.
#[inline]
pub(crate) fn with_request(note: Note) -> Note {
    Note {
        count: note.count.saturating_add(1),
        ..with_state(note, ConnectionState::Request)
    }
}

pub(crate) fn state(note: Note) -> ConnectionState {
    let mut all = ConnectionState::ALL.into_iter();
    let state = all.find(|&state| state as u8 == note.state & !HTTP2);
    state.expect("only states are noted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_state_change_keeps_other_fields() {
        for (number, known) in (0_u16..).zip(ConnectionState::ALL) {
            let note = new_note(u16::MAX - number, ConnectionState::Closing);
            let note = with_state(with_request(with_request(note)), known);
            assert_eq!((note.kind, note.count), (u16::MAX - number, 2));
            assert_eq!(state(note), known);
            assert_eq!(protocol(note), known.protocol());
            let note = with_state(in_http2(note), known);
            assert_eq!((state(note), protocol(note)), (known, Some("HTTP/2")));
        }
        let many = Note {
            count: u32::MAX,
            ..Note::default()
        };
        assert_eq!(with_request(many).count, u32::MAX);
    }
}
