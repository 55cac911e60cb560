//! Peers that cause unproductive work are disconnected, others are not.

use std::time::Duration;

use super::*;
use crate::http2::flood_guard::Flood;
use crate::http2::hpack::Indexing;
use crate::http2::limits::{
    BLOCK_BYTES_MAX, CHATTER_PER_STREAM, CONTINUATIONS_MAX, EXCESS_PER_BLOCK_MAX, FIELDS_KEPT_MAX,
    RESETS_AHEAD_MAX, RESETS_PER_SECOND, STREAM_ERRORS_AHEAD_MAX, UNPRODUCTIVE_FRAMES_BURST_MAX,
};

/// Sends `bytes` of a counter until the server disconnects, and reads its replies. Returns the count and the reason.
fn until_gone(mut bytes: impl FnMut(u32) -> Vec<u8>) -> (u32, Flood) {
    let mut side = TestConnection::server();
    side.receive_bytes(&post(1));
    for number in 0..200_000 {
        side.receive_bytes(&bytes(number));
        if let Some(error) = side.error {
            assert_eq!(error.code, Code::ENHANCE_YOUR_CALM, "{error}");
            return (number, error.flood.expect("it has a name"));
        }
        side.forget();
    }
    panic!("it never goes away");
}

#[test]
fn each_flood_is_detected_at_its_limit() {
    let chatter = UNPRODUCTIVE_FRAMES_BURST_MAX;
    // A stream error takes a chatter token too, if its frame is chatter.
    let rapid = until_gone(|number| [get(3 + 2 * number), reset(3 + 2 * number)].concat());
    let resets = RESETS_AHEAD_MAX + RESETS_PER_SECOND / 10;
    assert_eq!(rapid, (resets, Flood::RapidReset));
    let errors = until_gone(|number| {
        let id = 3 + 2 * number;
        [get(id), window_update(id, 0)].concat()
    });
    assert_eq!(errors, (STREAM_ERRORS_AHEAD_MAX, Flood::StreamErrors));
    let malformed = until_gone(|number| post_of_length(3 + 2 * number, "x"));
    assert_eq!(malformed, (STREAM_ERRORS_AHEAD_MAX, Flood::StreamErrors));
    for (bytes, flood) in [
        (setting(1, 0), Flood::Settings),
        (frame(Kind::Settings, ACK, 0, b""), Flood::Settings),
        (frame(Kind::Ping, 0, 0, &[0; 8]), Flood::Ping),
        (frame(Kind::Ping, ACK, 0, &[0; 8]), Flood::Ping),
        (frame(Kind::Priority, 0, 9, &[0; 5]), Flood::Priority),
        (
            frame(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x09i"),
            Flood::Priority,
        ),
        (window_update(1, 1), Flood::WindowUpdate),
        (window_update(0, 1), Flood::WindowUpdate),
        (data(1, 0, b""), Flood::EmptyData),
        (data(1, PADDED, &[3, 0, 0, 0]), Flood::EmptyData),
        (frame(Kind::Unknown, 0, 0, b"x"), Flood::Ignored),
        (frame(Kind::GoAway, 0, 0, &[0; 8]), Flood::Ignored),
    ] {
        // SETTINGS and their acknowledgement have taken one token each.
        let (count, found) = until_gone(|_| bytes.clone());
        assert_eq!(found, flood);
        assert!(
            (chatter - 2..=chatter).contains(&count),
            "{flood:?} {count}"
        );
    }
}

#[test]
fn rejected_messages_count_as_stream_errors() {
    let mut side = TestConnection::server();
    for number in 0..STREAM_ERRORS_AHEAD_MAX {
        side.receive_bytes(&get(1 + 2 * number));
        let stream = side.stream(1 + 2 * number);
        let rejected = side.connection.reject(stream, "no path", &mut side.out);
        assert_eq!(rejected, Ok(()));
        assert_eq!(side.resets(), [(stream.id(), Code::PROTOCOL_ERROR)]);
    }
    let id = 1 + 2 * STREAM_ERRORS_AHEAD_MAX;
    side.receive_bytes(&get(id));
    let stream = side.stream(id);
    let rejected = side.connection.reject(stream, "no path", &mut side.out);
    assert_eq!(
        rejected.map_err(|error| error.flood),
        Err(Some(Flood::StreamErrors))
    );
    let last = side.frames().pop().map(|(head, _)| head.kind);
    assert_eq!(last, Some(Kind::GoAway));
}

#[test]
fn unread_replies_are_bounded() {
    let mut side = TestConnection::server();
    while side.error.is_none() {
        side.receive_bytes(&frame(Kind::Ping, 0, 0, &[0; 8]));
        assert!(side.out.len() < 40_000);
    }
    assert_eq!(
        side.error.and_then(|error| error.flood),
        Some(Flood::Unread)
    );
}

#[test]
fn endless_header_blocks_are_bounded() {
    for (piece, continuations) in [
        (0, CONTINUATIONS_MAX.into()),
        (16_384, BLOCK_BYTES_MAX / 16_384),
    ] {
        let mut side = TestConnection::server();
        side.receive_bytes(&frame(Kind::Headers, 0, 1, b""));
        let mut count = 0;
        while side.error.is_none() {
            side.receive_bytes(&frame(Kind::Continuation, 0, 1, &vec![0; piece]));
            count += 1;
        }
        assert_eq!(
            side.error.and_then(|error| error.flood),
            Some(Flood::Continuation)
        );
        assert_eq!(count, continuations + 1);
    }
}

#[test]
fn settings_frame_size_is_bounded() {
    let mut side = TestConnection::server();
    let entry = [0, 1, 0, 0, 0, 0];
    side.receive_bytes(&frame(Kind::Settings, 0, 0, &entry.repeat(64)));
    assert_eq!(side.error, None);
    let large = frame(Kind::Settings, 0, 0, &entry.repeat(65));
    side.receive_bytes(&large[..HEAD_BYTES]);
    assert_eq!(
        side.error.and_then(|error| error.flood),
        Some(Flood::Settings)
    );
}

#[test]
fn served_streams_restore_tokens() {
    let mut side = TestConnection::server();
    for number in 0..3_000 {
        let id = 1 + 4 * number;
        side.receive_bytes(&[get(id), window_update(id, 1), window_update(0, 1)].concat());
        side.receive_bytes(&frame(Kind::Ping, 0, 0, &[0; 8]));
        side.respond(id);
        side.receive_bytes(&[get(id + 2), reset(id + 2)].concat());
        assert_eq!(side.error, None, "{number}");
        side.forget();
    }
}

#[test]
fn resets_are_allowed_over_time_or_after_response() {
    let mut side = TestConnection::server();
    for number in 0..1_000 {
        let id = 1 + 2 * number;
        side.receive_bytes(&[post(id), reset(id)].concat());
        side.connection.elapsed(Duration::from_secs(1));
        assert_eq!(side.error, None, "{number}");
        side.forget();
    }
    let mut side = TestConnection::server();
    for number in 0..1_000 {
        let id = 1 + 2 * number;
        side.receive_bytes(&post(id));
        side.respond(id);
        side.receive_bytes(&reset(id));
        side.connection.elapsed(Duration::from_secs(1));
        assert_eq!(side.error, None, "{number}");
        side.forget();
    }
}

#[test]
fn oversized_header_list_is_truncated() {
    let mut connection = Connection::new(Role::Server, LocalSettings::DEFAULT, &mut Vec::new());
    // A large field is inserted into the table once and referenced many times.
    let (mut encoder, mut block) = (Encoder::new(), GET.to_vec());
    for _ in 0..40 {
        encoder.field(b"a", &[0xff; 800], Indexing::Incremental, &mut block);
    }
    assert!(block.len() < 4_000, "it is small before it is decoded");
    let head = frame(Kind::Headers, END_STREAM | END_HEADERS, 1, &block);
    let input = [PREFACE, &settings()[..], &head].concat();
    let (mut at, mut out) = (0, Vec::new());
    loop {
        let step = connection.receive(&input[at..], &mut out);
        let step = step.expect("it is not an error of the connection");
        at += step.bytes;
        if let Event::Head { fields, .. } = step.event {
            assert!(fields.is_too_large());
            assert!(fields.len() < 24, "what is beyond is not kept");
            break;
        }
    }
    assert_eq!(at, input.len());
}

/// A request with `beyond` fields more than are stored, all of them references to the static table.
fn references(id: u32, beyond: u32) -> Vec<u8> {
    let count = FIELDS_KEPT_MAX + 1 + beyond as usize - 4;
    let block = [GET, &vec![0x90; count]].concat();
    frame(Kind::Headers, END_STREAM | END_HEADERS, id, &block)
}

#[test]
fn oversized_header_lists_cost_tokens() {
    // A client with too many cookies is refused again and again.
    let mut side = TestConnection::server();
    for number in 0..3_000 {
        let id = 1 + 2 * number;
        side.receive_bytes(&references(id, CHATTER_PER_STREAM));
        side.respond(id);
        assert_eq!(side.error, None, "{number}");
        side.forget();
    }
    // A client that sends far more is disconnected soon, though it gets responses.
    let mut side = TestConnection::server();
    let mut count = 0;
    while side.error.is_none() {
        let id = 1 + 2 * count;
        side.receive_bytes(&references(id, EXCESS_PER_BLOCK_MAX / 2));
        if side.error.is_none() {
            side.respond(id);
        }
        side.forget();
        count += 1;
    }
    assert_eq!(
        count,
        1 + 2 * UNPRODUCTIVE_FRAMES_BURST_MAX / EXCESS_PER_BLOCK_MAX
    );
    // At once if a single block exceeds the limit.
    let mut side = TestConnection::server();
    side.receive_bytes(&references(1, EXCESS_PER_BLOCK_MAX));
    assert_eq!(side.error, None);
    side.receive_bytes(&references(3, EXCESS_PER_BLOCK_MAX + 1));
    let error = side.error.expect("it is sent away");
    let told = (error.code, error.flood);
    assert_eq!(told, (Code::ENHANCE_YOUR_CALM, Some(Flood::Fields)));
}

#[test]
fn client_with_expiring_deadlines_is_not_disconnected() {
    // 60 concurrent calls with deadlines of 20 ms, and a PING with each reset.
    let mut side = TestConnection::server();
    for number in 0..30_000 {
        let id = 1 + 2 * number;
        side.receive_bytes(&[get(id), reset(id), frame(Kind::Ping, 0, 0, &[0; 8])].concat());
        if number % 3 == 0 {
            side.connection.elapsed(Duration::from_millis(1));
        }
        assert_eq!(side.error, None, "{number}");
        side.forget();
    }
}

#[test]
fn refused_streams_count_as_resets() {
    let mut side = TestConnection::server();
    for number in 0..LocalSettings::DEFAULT.concurrent_streams_max {
        side.receive_bytes(&get(1 + 2 * number));
    }
    let mut refused = 0;
    while side.error.is_none() {
        side.forget();
        side.receive_bytes(&get(1001 + 2 * refused));
        refused += 1;
    }
    assert_eq!(refused, RESETS_AHEAD_MAX + RESETS_PER_SECOND / 10 + 1);
    let flood = side.error.and_then(|error| error.flood);
    assert_eq!(flood, Some(Flood::RapidReset));
}
