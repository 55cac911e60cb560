//! Rules of a client: opening streams, and interim responses.

use super::*;
use crate::http2::limits::STREAMS_BEFORE_SETTINGS;
use crate::http2::stream::Content;
use crate::http2::{CannotOpen, Closed};

const OK: &[u8] = &[0x88];
const EARLY_HINTS: &[u8] = &[0x08, 3, b'1', b'0', b'3'];
const NOT_MODIFIED: &[u8] = &[0x8b, 0x0f, 28 - 15, 1, b'7'];
const NO_CONTENT: &[u8] = &[0x89];
const OK_OF_LENGTH_7: &[u8] = &[0x88, 0x0f, 28 - 15, 1, b'7'];

fn request(encoder: &mut Encoder, out: &mut Vec<u8>) {
    use crate::http2::hpack::Indexing::Incremental;
    for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/")] {
        encoder.field(name.as_bytes(), value.as_bytes(), Incremental, out);
    }
    encoder.field(b":authority", b"a", Incremental, out);
}

fn open(side: &mut TestConnection, content: Content) -> Result<Stream, CannotOpen> {
    side.connection
        .open(End::Stream, content, &mut side.out, request)
}

fn response(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(Kind::Headers, flags | END_HEADERS, stream, block)
}

#[test]
fn client_preface_disables_push() {
    let side = TestConnection::new(Role::Client, LocalSettings::DEFAULT);
    let (preface, frames) = side.out.split_at(PREFACE.len());
    assert_eq!(preface, PREFACE);
    let frames = frames_of(frames);
    assert_eq!(frames[0].0.kind, Kind::Settings);
    assert!(
        frames[0]
            .1
            .chunks(6)
            .any(|setting| setting == [0, 2, 0, 0, 0, 0])
    );
}

#[test]
fn peer_settings_limit_open_streams() {
    let mut side = TestConnection::new(Role::Client, LocalSettings::CLIENT);
    assert!(!side.connection.has_peer_settings());
    assert_eq!(side.connection.streams_max(), STREAMS_BEFORE_SETTINGS);
    side.receive_bytes(&setting(3, 1));
    assert!(side.connection.has_peer_settings());
    assert_eq!(side.connection.streams_max(), 1);
    assert!(open(&mut side, Content::Any).is_ok());
    assert_eq!(open(&mut side, Content::Any), Err(CannotOpen::Full));
}

#[test]
fn http1_response_is_detected() {
    let mut side = TestConnection::new(Role::Client, LocalSettings::CLIENT);
    let answer = b"HTTP/1.1 400 Bad Request\r\n";
    assert!(side.connection.is_http1_response(answer));
    assert!(!side.connection.is_http1_response(&settings()));
    side.receive_bytes(&settings());
    assert!(!side.connection.is_http1_response(answer));
}

#[test]
fn interim_responses_precede_final_response() {
    let mut side = TestConnection::client();
    let stream = open(&mut side, Content::Any);
    let stream = stream.expect("there is room");
    assert_eq!(
        side.connection
            .head(stream, End::Open, &mut side.out, request),
        Err(Closed),
        "the request is whole"
    );
    side.receive_bytes(&[response(1, 0, EARLY_HINTS), response(1, 0, EARLY_HINTS)].concat());
    side.receive_bytes(&[response(1, 0, OK), data(1, 0, b"abc")].concat());
    side.receive_bytes(&response(1, END_STREAM, &[0, 1, b'a', 1, b'b']));
    let open = End::Open;
    assert_eq!(
        side.seen,
        [
            TestEvent::Head(1, open),
            TestEvent::Head(1, open),
            TestEvent::Head(1, open),
            TestEvent::Data(1, b"abc".to_vec(), open),
            TestEvent::Trailers(1)
        ]
    );
    assert_eq!(side.connection.open_streams(), 0);
}

#[test]
fn server_errors_are_stream_or_connection_errors() {
    let protocol = Code::PROTOCOL_ERROR;
    let push = frame(Kind::PushPromise, END_HEADERS, 1, &[0, 0, 0, 2]);
    for (name, bytes, is_of_stream) in [
        ("data before the head", data(1, 0, b"x"), true),
        (
            "an interim head that ends",
            response(1, END_STREAM, EARLY_HINTS),
            true,
        ),
        ("no status", response(1, 0, &[0, 1, b'a', 1, b'b']), true),
        (
            "status 101",
            response(1, 0, &[0x08, 3, b'1', b'0', b'1']),
            true,
        ),
        ("status 20", response(1, 0, &[0x08, 2, b'2', b'0']), true),
        ("no content", response(1, END_STREAM, OK_OF_LENGTH_7), true),
        ("a push", push, false),
        ("ENABLE_PUSH", setting(2, 1), false),
        (
            "a head on a stream that was not opened",
            response(3, 0, OK),
            false,
        ),
        (
            "a head on a stream of the server",
            response(2, 0, OK),
            false,
        ),
        ("a reset of a stream that was not opened", reset(3), false),
        (
            "PRIORITY_UPDATE",
            frame(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x01i"),
            false,
        ),
    ] {
        let mut side = TestConnection::client();
        assert!(open(&mut side, Content::Any).is_ok());
        side.receive_bytes(&bytes);
        let failed = side.error.map(|error| error.code);
        match is_of_stream {
            true => {
                assert_eq!(failed, None, "{name}");
                assert_eq!(
                    side.seen.last(),
                    Some(&TestEvent::Failed(1, protocol)),
                    "{name}"
                );
            }
            false => assert_eq!(failed, Some(protocol), "{name}"),
        }
    }
}

#[test]
fn bodyless_responses_may_have_content_length() {
    for (content, block) in [
        (Content::None, OK_OF_LENGTH_7),
        (Content::Any, NOT_MODIFIED),
    ] {
        let mut side = TestConnection::client();
        assert!(open(&mut side, content).is_ok());
        side.receive_bytes(&response(1, END_STREAM, block));
        assert_eq!(side.seen, [TestEvent::Head(1, End::Stream)]);
        // An empty DATA frame may end them, but it must not contain data.
        assert!(open(&mut side, content).is_ok());
        side.receive_bytes(&[response(3, 0, block), data(3, END_STREAM, b"")].concat());
        assert_eq!(
            side.seen.last(),
            Some(&TestEvent::Data(3, Vec::new(), End::Stream))
        );
        assert!(open(&mut side, content).is_ok());
        side.receive_bytes(&[response(5, 0, block), data(5, END_STREAM, b"1234567")].concat());
        assert_eq!(
            side.seen.last(),
            Some(&TestEvent::Failed(5, Code::PROTOCOL_ERROR))
        );
    }
}

#[test]
fn extended_connect_success_opens_tunnel() {
    let end = End::Stream;
    for (block, flags, body) in [
        (OK, END_STREAM, Vec::new()),
        (OK_OF_LENGTH_7, END_STREAM, Vec::new()),
        (OK_OF_LENGTH_7, 0, data(1, END_STREAM, b"eight by")),
        (NO_CONTENT, 0, data(1, END_STREAM, b"eight by")),
    ] {
        let mut side = TestConnection::client();
        assert!(open(&mut side, Content::Tunnel).is_ok());
        side.receive_bytes(&[response(1, flags, block), body.clone()].concat());
        let heard = match body.is_empty() {
            true => TestEvent::Head(1, end),
            false => TestEvent::Data(1, b"eight by".to_vec(), end),
        };
        assert_eq!(side.seen.last(), Some(&heard), "{block:?}");
        assert_eq!(side.connection.open_streams(), 0);
    }
    // A tunnel has no trailers (RFC 9113 8.5); an unsuccessful response is like any other.
    let trailers = response(1, END_STREAM, &[0, 1, b'a', 1, b'b']);
    let forbidden = [&[0x08, 3, b'4', b'0', b'3'][..], &OK_OF_LENGTH_7[1..]].concat();
    let failed = TestEvent::Failed(1, Code::PROTOCOL_ERROR);
    for (bytes, last) in [
        ([response(1, 0, OK), trailers.clone()].concat(), &failed),
        (
            [response(1, 0, &forbidden), data(1, END_STREAM, b"no")].concat(),
            &failed,
        ),
        (
            [response(1, 0, &forbidden[..5]), trailers].concat(),
            &TestEvent::Trailers(1),
        ),
    ] {
        let mut side = TestConnection::client();
        assert!(open(&mut side, Content::Tunnel).is_ok());
        side.receive_bytes(&bytes);
        assert_eq!(side.seen.last(), Some(last));
    }
}

#[test]
fn max_concurrent_streams_of_server_is_respected() {
    let mut side = TestConnection::client();
    side.receive_bytes(&setting(3, 2));
    assert_eq!(open(&mut side, Content::Any).map(Stream::id), Ok(1));
    assert_eq!(open(&mut side, Content::Any).map(Stream::id), Ok(3));
    side.out.clear();
    assert_eq!(open(&mut side, Content::Any), Err(CannotOpen::Full));
    assert_eq!(side.out, [], "nothing is written");
    side.receive_bytes(&response(1, END_STREAM, OK));
    assert_eq!(open(&mut side, Content::Any).map(Stream::id), Ok(5));
}

#[test]
fn hundred_streams_are_allowed_before_settings() {
    let mut side = TestConnection::new(Role::Client, LocalSettings::DEFAULT);
    for _ in 0..100 {
        assert!(open(&mut side, Content::Any).is_ok());
    }
    assert_eq!(open(&mut side, Content::Any), Err(CannotOpen::Full));
    side.receive_bytes(&settings());
    assert!(open(&mut side, Content::Any).is_ok());
}

#[test]
fn goaway_closes_excluded_streams() {
    let mut side = TestConnection::client();
    let streams = [(); 3].map(|()| open(&mut side, Content::Any).expect("there is room"));
    side.receive_bytes(&frame(
        Kind::GoAway,
        0,
        0,
        &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0],
    ));
    assert_eq!(side.connection.open_streams(), 3);
    assert_eq!(open(&mut side, Content::Any), Err(CannotOpen::GoingAway));
    side.receive_bytes(&frame(Kind::GoAway, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 2]));
    let open = streams.map(|stream| side.connection.is_open(stream));
    assert_eq!(open, [true, true, false]);
    side.receive_bytes(&[response(1, END_STREAM, OK), response(3, END_STREAM, OK)].concat());
    assert_eq!(
        side.seen,
        [
            TestEvent::GoAway(0x7fff_ffff, Code::NO_ERROR),
            TestEvent::GoAway(3, Code::INTERNAL_ERROR),
            TestEvent::Head(1, End::Stream),
            TestEvent::Head(3, End::Stream)
        ]
    );
}

#[test]
fn stream_ids_are_exhausted() {
    let mut side = TestConnection::client();
    side.connection.next = 0x7fff_ffff;
    assert_eq!(
        open(&mut side, Content::Any).map(Stream::id),
        Ok(0x7fff_ffff)
    );
    assert_eq!(open(&mut side, Content::Any), Err(CannotOpen::Exhausted));
    side.receive_bytes(&response(0x7fff_ffff, END_STREAM, OK));
    assert_eq!(side.seen, [TestEvent::Head(0x7fff_ffff, End::Stream)]);
}

#[test]
fn data_after_end_is_reported_once() {
    let mut side = TestConnection::client();
    open(&mut side, Content::Any).expect("there is room");
    side.receive_bytes(&[response(1, 0, OK), data(1, END_STREAM, b"a")].concat());
    side.forget();
    side.receive_bytes(&[data(1, 0, b"b"), data(1, END_STREAM, b"c")].concat());
    assert_eq!(side.seen, [TestEvent::DataOfClosed(1)]);
    assert_eq!(side.resets(), [(1, Code::STREAM_CLOSED)]);
    open(&mut side, Content::Any).expect("there is room");
    side.receive_bytes(&response(3, END_STREAM, NO_CONTENT));
    assert_eq!(side.seen.last(), Some(&TestEvent::Head(3, End::Stream)));
}

#[test]
fn data_in_transit_at_reset_is_ignored() {
    // Many more than are remembered.
    const STREAMS: u32 = 300;
    let mut side = TestConnection::client();
    for number in 0..STREAMS {
        let stream = open(&mut side, Content::Any).expect("there is room");
        side.receive_bytes(&response(stream.id(), 0, OK));
        side.connection.reset(stream, Code::CANCEL, &mut side.out);
        // One in three arrives at once, the others after all have been reset.
        if number % 3 == 0 {
            side.receive_bytes(&data(stream.id(), END_STREAM, b"late"));
        }
    }
    side.forget();
    for number in (0..STREAMS).filter(|number| number % 3 > 0) {
        side.receive_bytes(&data(2 * number + 1, END_STREAM, b"late"));
        side.connection.elapsed(std::time::Duration::from_secs(1));
        side.connection.sent();
    }
    assert_eq!((&side.seen[..], side.error), (&[][..], None));
}

/// Opens a request that stays open, and then cancels `count` others.
fn cancel_beside_another(side: &mut TestConnection, count: u32) -> Stream {
    let kept = open(side, Content::Any).expect("there is room");
    for _ in 0..count {
        let stream = open(side, Content::Any).expect("there is room");
        side.connection.reset(stream, Code::CANCEL, &mut side.out);
    }
    side.forget();
    kept
}

#[test]
fn late_responses_of_cancelled_requests_are_ignored() {
    const CANCELLED: u32 = 10_000;
    let mut side = TestConnection::client();
    let kept = cancel_beside_another(&mut side, CANCELLED);
    for number in 1..=CANCELLED {
        let id = kept.id() + 2 * number;
        // Each head adds an entry to the HPACK table.
        let head = [OK, &[0x40, 1, b'x', 1, b'0' + (number % 10) as u8]].concat();
        side.receive_bytes(&[response(id, 0, &head), data(id, 0, b"late")].concat());
        side.receive_bytes(&[response(id, END_STREAM, &[0xbe]), reset(id)].concat());
        assert_eq!((side.error, side.resets()), (None, Vec::new()));
        side.connection.sent();
    }
    // The newest entry of the table.
    side.receive_bytes(&response(kept.id(), END_STREAM, &[0x88, 0xbe]));
    assert_eq!(side.seen, [TestEvent::Head(kept.id(), End::Stream)]);
}

#[test]
fn late_response_after_memory_release_is_ignored() {
    let mut side = TestConnection::client();
    let stream = open(&mut side, Content::Any).expect("there is room");
    side.connection.reset(stream, Code::CANCEL, &mut side.out);
    side.connection.release_memory();
    side.forget();
    side.receive_bytes(&[response(1, 0, OK), data(1, END_STREAM, b"late")].concat());
    assert_eq!((side.error, side.resets()), (None, Vec::new()));
}

#[test]
fn errors_on_closed_streams_are_reported() {
    // A stream that the server may not open, next to streams that were reset and forgotten.
    let mut side = TestConnection::client();
    cancel_beside_another(&mut side, 300);
    side.receive_bytes(&response(2, 0, OK));
    assert_eq!(
        side.error.map(|error| error.code),
        Some(Code::PROTOCOL_ERROR)
    );
    // A field block after the end of a response.
    let mut side = TestConnection::client();
    let kept = cancel_beside_another(&mut side, 300);
    side.receive_bytes(
        &[
            response(kept.id(), END_STREAM, OK),
            response(kept.id(), 0, OK),
        ]
        .concat(),
    );
    assert_eq!(
        side.error.map(|error| error.code),
        Some(Code::STREAM_CLOSED)
    );
}

#[test]
fn frames_on_closed_streams_are_bounded() {
    let mut side = TestConnection::client();
    let kept = cancel_beside_another(&mut side, 1);
    let late = reset(kept.id() + 2);
    let mut frames = 0;
    while side.error.is_none() {
        side.receive_bytes(&late);
        frames += 1;
    }
    let flood = side.error.and_then(|error| error.flood);
    assert_eq!(flood, Some(crate::http2::flood_guard::Flood::Ignored));
    let settings = LocalSettings::DEFAULT;
    let bytes = (settings.stream_window + settings.list_bytes_max) as usize;
    let chatter = crate::http2::limits::UNPRODUCTIVE_FRAMES_BURST_MAX as usize;
    assert!(frames <= bytes / late.len() + chatter + 1, "{frames}");
}
