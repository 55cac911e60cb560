//! Sending on a server: windows, frame sizes, and shutdown.

use super::*;
use crate::http2::frame::NUMBER_MAX;
use crate::http2::hpack::Indexing;
use crate::http2::priority::{Delivery, Priority};
use crate::http2::stream::Content;
use crate::http2::{Blocked, Closed};

fn status(encoder: &mut Encoder, out: &mut Vec<u8>) {
    encoder.status(200, out);
}

fn send(side: &mut TestConnection, stream: Stream, bytes: usize, end: End) {
    assert_eq!(
        side.connection.data(stream, bytes, end, &mut side.out),
        Ok(())
    );
    side.out.resize(side.out.len() + bytes, b'x');
}

#[test]
fn response_data_is_limited_by_both_windows() {
    let mut side = TestConnection::server();
    side.receive_bytes(&setting(4, 5));
    side.receive_bytes(&get(1));
    let stream = side.stream(1);
    side.forget();
    assert_eq!(
        side.connection
            .head(stream, End::Open, &mut side.out, status),
        Ok(())
    );
    assert_eq!(side.connection.sendable(stream), 5);
    send(&mut side, stream, 5, End::Open);
    assert_eq!(side.connection.sendable(stream), 0);
    assert_eq!(side.connection.blocked(stream), Some(Blocked::Stream));
    side.receive_bytes(&window_update(1, 1));
    assert_eq!(side.seen, [TestEvent::Window(Some(1))]);
    send(&mut side, stream, 1, End::Stream);
    let frames = side.frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|(head, payload)| (head.kind, head.flags.0, payload.len()))
        .collect();
    assert_eq!(
        kinds,
        [
            (Kind::Headers, END_HEADERS, 1),
            (Kind::Data, 0, 5),
            (Kind::Data, END_STREAM, 1)
        ]
    );
    assert_eq!(side.connection.open_streams(), 0);
    assert_eq!(
        side.connection.data(stream, 0, End::Stream, &mut side.out),
        Err(Closed)
    );
}

#[test]
fn initial_window_change_may_make_windows_negative() {
    let mut side = TestConnection::server();
    side.receive_bytes(&[setting(4, 10), get(1)].concat());
    let stream = side.stream(1);
    send(&mut side, stream, 10, End::Open);
    side.connection.ready(stream);
    side.receive_bytes(&setting(4, 2));
    side.receive_bytes(&window_update(1, 8));
    assert_eq!(side.connection.sendable(stream), 0);
    assert_eq!(side.connection.next_ready(), None);
    side.forget();
    side.receive_bytes(&setting(4, 3));
    assert_eq!(side.connection.sendable(stream), 1);
    assert_eq!(side.connection.next_ready(), Some(stream));
    assert_eq!(side.seen, [TestEvent::Settings]);
}

#[test]
fn connection_window_blocks_all_streams() {
    let mut side = TestConnection::server();
    side.receive_bytes(&[setting(4, 1 << 20), get(1), get(3)].concat());
    let (first, second) = (side.stream(1), side.stream(3));
    side.connection.ready(first);
    side.connection.ready(second);
    while side.connection.sendable(first) > 0 {
        let bytes = side.connection.sendable(first);
        assert!(bytes <= 16384);
        send(&mut side, first, bytes, End::Open);
    }
    assert_eq!(side.connection.blocked(second), Some(Blocked::Connection));
    assert_eq!(side.connection.next_ready(), None);
    side.forget();
    side.receive_bytes(&window_update(0, 3));
    assert_eq!(side.seen, [TestEvent::Window(None)]);
    assert_eq!(side.connection.sendable(second), 3);
    assert_eq!(side.connection.next_ready(), Some(first));
}

#[test]
fn urgent_streams_are_sent_first() {
    let mut side = TestConnection::server();
    let mut block = GET.to_vec();
    block.extend([0, 8]);
    block.extend(b"priority\x06u=1, i");
    side.receive_bytes(&get(1));
    side.receive_bytes(&frame(
        Kind::PriorityUpdate,
        0,
        0,
        b"\x00\x00\x00\x05u=0 , x",
    ));
    side.receive_bytes(&frame(Kind::Headers, END_STREAM | END_HEADERS, 3, &block));
    side.receive_bytes(&get(5));
    let [first, second, third] = [1, 3, 5].map(|id| side.stream(id));
    let wanted = Priority {
        urgency: 1,
        delivery: Delivery::Incremental,
    };
    assert_eq!(side.connection.priority(second), wanted);
    for stream in [first, second, third] {
        side.connection.ready(stream);
    }
    for wanted in [third, second, first] {
        assert_eq!(side.connection.next_ready(), Some(wanted));
        send(&mut side, wanted, 1, End::Stream);
    }
    assert_eq!(side.connection.next_ready(), None);
}

#[test]
fn priority_of_queued_stream_may_change() {
    let mut side = TestConnection::server();
    side.receive_bytes(&[get(1), get(3)].concat());
    let (first, second) = (side.stream(1), side.stream(3));
    side.connection.ready(first);
    side.connection.ready(second);
    side.receive_bytes(&frame(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x03u=0"));
    assert_eq!(side.connection.next_ready(), Some(second));
    side.connection.prioritize(second, Priority::parse(b"u=7"));
    assert_eq!(side.connection.next_ready(), Some(first));
    side.connection.not_ready(first);
    assert_eq!(side.connection.next_ready(), Some(second));
}

#[test]
fn large_header_blocks_are_split_by_frame_size() {
    for (bytes, ends) in [(16384, END_STREAM), (40_000, 0)] {
        let mut side = TestConnection::server();
        side.receive_bytes(&get(1));
        side.forget();
        let stream = side.stream(1);
        let end = match ends {
            0 => End::Open,
            _ => End::Stream,
        };
        let value = vec![0xff; bytes];
        let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            encoder.status(200, out);
            encoder.field(b"a", &value, Indexing::Without, out);
        };
        assert_eq!(
            side.connection.head(stream, end, &mut side.out, write),
            Ok(())
        );
        // A client parses the pieces as one block.
        let written = side.out.clone();
        let mut client = TestConnection::client();
        let opened = client
            .connection
            .open(End::Stream, Content::None, &mut client.out, |_, _| {});
        assert_eq!(opened.map(Stream::id), Ok(1));
        client.receive_bytes(&written);
        assert_eq!(client.seen, [TestEvent::Head(1, end)]);
        let frames = side.frames();
        let (first, rest) = frames.split_first().expect("HEADERS");
        assert_eq!((first.0.kind, first.0.flags.0), (Kind::Headers, ends));
        let (last, between) = rest.split_last().expect("CONTINUATION");
        assert_eq!(last.0.flags.0, END_HEADERS);
        assert!(between.iter().all(|(head, _)| head.flags.0 == 0));
        assert!(frames.iter().all(|(head, _)| head.length <= 16384));
    }
}

#[test]
fn window_update_is_sent_after_half_window() {
    let mut side = TestConnection::server();
    side.receive_bytes(&post(1));
    side.forget();
    for _ in 0..4 {
        side.receive_bytes(&data(1, 0, &[0; 8_000]));
    }
    assert_eq!(side.frames(), []);
    side.receive_bytes(&data(1, PADDED, &[&[0xff][..], &[0; 8_255]].concat()));
    let updates: Vec<_> = side
        .frames()
        .into_iter()
        .map(|(head, payload)| (head.kind, head.stream, code_of(&payload).0))
        .collect();
    // Padding is released at once; with it and the last 8,000 bytes half of 65,535 is exceeded.
    let released = 5 * 8_000 + 256;
    let wanted = [0, 1].map(|stream| (Kind::WindowUpdate, stream, released));
    assert_eq!(updates, wanted);
}

#[test]
fn streams_after_goaway_are_ignored() {
    let mut side = TestConnection::server();
    side.receive_bytes(&get(1));
    side.forget();
    side.connection.announce_shutdown(&mut side.out);
    side.receive_bytes(&get(3));
    side.connection.go_away(Code::NO_ERROR, &mut side.out);
    side.receive_bytes(&[post(5), data(5, END_STREAM, b"x"), window_update(5, 1)].concat());
    assert_eq!(side.error, None);
    assert_eq!(side.seen, [TestEvent::Head(3, End::Stream)]);
    let lasts: Vec<_> = side
        .frames()
        .into_iter()
        .map(|(head, payload)| (head.kind, code_of(&payload).0))
        .collect();
    assert_eq!(lasts, [(Kind::GoAway, NUMBER_MAX), (Kind::GoAway, 3)]);
    side.respond(1);
    side.respond(3);
    assert_eq!(side.connection.open_streams(), 0);
}

#[test]
fn memory_release_keeps_connection_state() {
    let mut side = TestConnection::server();
    side.receive_bytes(&get(1));
    side.connection.release_memory();
    side.respond(1);
    side.connection.release_memory();
    // The HPACK table is kept: :authority is its only entry.
    let known = &[0x82, 0x86, 0x84, 0xbe];
    side.receive_bytes(&frame(Kind::Headers, END_STREAM | END_HEADERS, 3, known));
    side.receive_bytes(&frame(Kind::Headers, 0, 5, known));
    side.connection.release_memory();
    side.receive_bytes(&frame(Kind::Continuation, END_HEADERS, 5, b""));
    let stream = side.stream(3);
    assert_eq!(
        side.connection
            .head(stream, End::Stream, &mut side.out, status),
        Ok(())
    );
    assert_eq!(side.error, None);
    let heads = [
        TestEvent::Head(1, End::Stream),
        TestEvent::Head(3, End::Stream),
        TestEvent::Head(5, End::Open),
    ];
    assert_eq!(side.seen, heads);
    assert_eq!(side.connection.open_streams(), 1);
}
