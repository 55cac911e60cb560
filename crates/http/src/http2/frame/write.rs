//! Writes frames, except for SETTINGS with values (`settings`).

use super::{Flags, HEAD_BYTES, Head, Kind, NUMBER_MAX};
use crate::http2::code::Code;

/// Connection preface of a client (RFC 9113 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Writes a frame header; the caller appends `head.length` bytes of payload.
#[inline]
pub(crate) fn put_head(head: Head, out: &mut Vec<u8>) {
    let [_, a, b, c] = head.length.to_be_bytes();
    let [s, t, u, v] = head.stream.to_be_bytes();
    out.extend_from_slice(&[a, b, c, head.kind.number(), head.flags.0, s, t, u, v]);
}

#[inline]
pub(crate) fn set_length(out: &mut [u8], at: usize, length: usize) {
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out[at..at + 3].copy_from_slice(&[a, b, c]);
}

#[inline]
pub(crate) fn set_flags(out: &mut [u8], at: usize, flags: Flags) {
    out[at + 4] = flags.0;
}

#[inline]
fn put<const N: usize>(kind: Kind, flags: Flags, stream: u32, payload: [u8; N], out: &mut Vec<u8>) {
    out.reserve(HEAD_BYTES + N);
    let head = Head {
        length: N as u32,
        kind,
        flags,
        stream,
    };
    put_head(head, out);
    out.extend_from_slice(&payload);
}

/// RST_STREAM (RFC 9113 6.4).
pub fn reset(stream: u32, code: Code, out: &mut Vec<u8>) {
    let payload = code.0.to_be_bytes();
    put(Kind::Reset, Flags::default(), stream, payload, out);
}

/// SETTINGS acknowledgement (RFC 9113 6.5).
pub fn settings_ack(out: &mut Vec<u8>) {
    put(Kind::Settings, Flags::ACK, 0, [], out);
}

/// PING (RFC 9113 6.7).
pub fn ping(payload: [u8; 8], out: &mut Vec<u8>) {
    put(Kind::Ping, Flags::default(), 0, payload, out);
}

/// PING acknowledgement.
pub fn ping_ack(payload: [u8; 8], out: &mut Vec<u8>) {
    put(Kind::Ping, Flags::ACK, 0, payload, out);
}

/// GOAWAY (RFC 9113 6.8), with `debug` as debug data.
pub fn go_away(last_stream: u32, code: Code, debug: &str, out: &mut Vec<u8>) {
    let head = Head {
        length: (8 + debug.len()) as u32,
        kind: Kind::GoAway,
        flags: Flags::default(),
        stream: 0,
    };
    put_head(head, out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug.as_bytes());
}

/// WINDOW_UPDATE (RFC 9113 6.9) by 1 to 2^31-1 bytes; stream 0 is the connection.
#[inline]
pub fn window_update(stream: u32, increment: u32, out: &mut Vec<u8>) {
    debug_assert!((1..=NUMBER_MAX).contains(&increment), "{increment}");
    let payload = increment.to_be_bytes();
    put(Kind::WindowUpdate, Flags::default(), stream, payload, out);
}

/// PRIORITY_UPDATE (RFC 9218 7.1) with a Priority field value.
pub fn priority_update(stream: u32, priority: &str, out: &mut Vec<u8>) {
    let head = Head {
        length: (4 + priority.len()) as u32,
        kind: Kind::PriorityUpdate,
        flags: Flags::default(),
        stream: 0,
    };
    put_head(head, out);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(priority.as_bytes());
}
