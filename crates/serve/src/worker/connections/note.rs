//! What the engine keeps of a connection on our behalf, so that who lists connections need not ask their tasks: its listener, what
//! it is busy with, and how many requests it has had.

use onrush_engine::Note;

/// What a connection is busy with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// Its PROXY header is to come.
    Introduction,
    /// TLS.
    Handshake,
    /// It may send a request.
    Idle,
    /// A head has begun to arrive.
    Head,
    /// The rest of a body is read that nobody wants.
    Body,
    /// A request is under way.
    Request,
    /// A response waits until the client has read what it was sent before.
    Sending,
    /// It has become a tunnel.
    Tunnel,
    /// It came by a listener that speaks something else than HTTP.
    Open,
    /// Our side has ended, the client's not yet.
    Closing,
}

impl ConnectionState {
    /// All of them, in the order in which they come.
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

    /// What is spoken then, as far as it is known, where it is not HTTP/2.
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

    /// A word for it.
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

/// What is noted of a connection that has come by the listener with this number.
pub(crate) fn begun(listener: u16, state: ConnectionState) -> Note {
    Note {
        count: 0,
        kind: listener,
        state: state as u8,
    }
}

/// The same in another state.
#[inline]
pub(crate) fn at(note: Note, state: ConnectionState) -> Note {
    Note {
        state: state as u8 | note.state & HTTP2,
        ..note
    }
}

/// Stands beside a state whose connection speaks HTTP/2.
const HTTP2: u8 = 1 << 7;

/// The same of a connection that speaks HTTP/2.
pub(crate) fn in_http2(note: Note) -> Note {
    Note {
        state: note.state | HTTP2,
        ..note
    }
}

/// What is spoken on it, as far as it is known.
pub(crate) fn protocol(note: Note) -> Option<&'static str> {
    match note.state & HTTP2 {
        0 => state(note).protocol(),
        _ => Some("HTTP/2"),
    }
}

/// The same with a request more, which is under way.
#[inline]
pub(crate) fn with_request(note: Note) -> Note {
    Note {
        count: note.count.saturating_add(1),
        ..at(note, ConnectionState::Request)
    }
}

/// What it is busy with.
pub(crate) fn state(note: Note) -> ConnectionState {
    let mut all = ConnectionState::ALL.into_iter();
    let state = all.find(|&state| state as u8 == note.state & !HTTP2);
    state.expect("only states are noted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_keeps_what_does_not_change() {
        for (number, known) in (0_u16..).zip(ConnectionState::ALL) {
            let note = begun(u16::MAX - number, ConnectionState::Closing);
            let note = at(with_request(with_request(note)), known);
            assert_eq!((note.kind, note.count), (u16::MAX - number, 2));
            assert_eq!(state(note), known);
            assert_eq!(protocol(note), known.protocol());
            let note = at(in_http2(note), known);
            assert_eq!((state(note), protocol(note)), (known, Some("HTTP/2")));
        }
        let many = Note {
            count: u32::MAX,
            ..Note::default()
        };
        assert_eq!(with_request(many).count, u32::MAX);
    }
}
