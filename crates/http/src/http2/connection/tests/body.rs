//! Bodies sent from memory (RFC 9113 6.9.1) and the ends of messages (RFC 9113 8.1).

use super::*;
use crate::http2::Closed;

/// A server that has sent the head of its response on a stream with a window of 5 bytes.
fn answering() -> (TestConnection, Stream) {
    let mut side = TestConnection::server();
    side.receive_bytes(&[setting(4, 5), get(1)].concat());
    let stream = side.stream(1);
    let head = side
        .connection
        .head(stream, End::Open, &mut side.out, |encoder, out| {
            encoder.status(200, out);
        });
    assert_eq!(head, Ok(()));
    side.forget();
    (side, stream)
}

fn written(side: &mut TestConnection) -> Vec<(Kind, u8, Vec<u8>)> {
    let frames = side.frames();
    let parts = frames
        .iter()
        .map(|(head, payload)| (head.kind, head.flags.0, payload.to_vec()));
    parts.collect()
}

#[test]
fn body_is_limited_by_flow_control_window() {
    let (mut side, stream) = answering();
    let body = b"0123456";
    let sent = side
        .connection
        .send_body(stream, body, End::Stream, &mut side.out);
    assert_eq!(sent, Ok(5));
    side.receive_bytes(&window_update(1, 9));
    let sent = side
        .connection
        .send_body(stream, &body[5..], End::Stream, &mut side.out);
    assert_eq!(sent, Ok(2));
    let wanted = [
        (Kind::Data, 0, b"01234".to_vec()),
        (Kind::Data, END_STREAM, b"56".to_vec()),
    ];
    assert_eq!(written(&mut side), wanted);
    let again = side
        .connection
        .send_body(stream, body, End::Open, &mut side.out);
    assert_eq!(again, Err(Closed));
}

#[test]
fn body_ends_with_empty_data_or_trailers() {
    let empty: &[(Kind, u8, &[u8])] = &[(Kind::Data, END_STREAM, b"")];
    // A literal field with a new name (RFC 7541 6.2.1).
    let block = [b"\x40\x01", &b"a"[..], b"\x01", b"1"].concat();
    let trailers: &[(Kind, u8, &[u8])] = &[(Kind::Headers, END_STREAM | END_HEADERS, &block)];
    for (lines, wanted) in [
        (&b""[..], empty),
        (b"\r\n", empty),
        (b"A: 1\r\n\r\n", trailers),
    ] {
        let (mut side, stream) = answering();
        let ended = side.connection.end_with(stream, lines, &mut side.out);
        assert_eq!(ended, Ok(()));
        let frames = written(&mut side);
        let frames = frames
            .iter()
            .map(|(kind, flags, payload)| (*kind, *flags, &payload[..]));
        assert!(frames.eq(wanted.iter().copied()), "{lines:?}");
        assert!(!side.connection.is_open(stream));
        let again = side.connection.end_with(stream, lines, &mut side.out);
        assert_eq!(again, Err(Closed));
    }
}
