//! How a server handles frames that a client must not send.

use super::*;
use crate::http2::frame::NUMBER_MAX;
use crate::http2::limits::FRAME_WHOLE_BYTES_MAX;

/// `CONNECT http://a/` with `:protocol` x (RFC 8441 4).
const EXTENDED_CONNECT: &[u8] = &[
    0x02, 7, b'C', b'O', b'N', b'N', b'E', b'C', b'T', 0x00, 9, b':', b'p', b'r', b'o', b't', b'o',
    b'c', b'o', b'l', 1, b'x', 0x86, 0x84, 0x41, 0x01, b'a',
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Fine,
    Stream(u32, Code),
    Connection(Code),
}

use Outcome::{Connection as C, Fine, Stream as S};

fn outcome_of(input: &[u8]) -> Outcome {
    let mut side = TestConnection::server();
    side.receive_bytes(input);
    if let Some(error) = side.error {
        let last = side.frames().pop().expect("GOAWAY is written");
        assert_eq!(last.0.kind, Kind::GoAway);
        assert_eq!(code_of(&last.1[4..]), error.code);
        assert_eq!(&last.1[8..], error.reason.as_bytes());
        return C(error.code);
    }
    match side.resets()[..] {
        [] => Fine,
        [(id, code)] => S(id, code),
        ref more => panic!("{more:?}"),
    }
}

fn headers(flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    frame(Kind::Headers, flags, stream, payload)
}

#[test]
fn protocol_violations_end_stream_or_connection() {
    let whole = END_STREAM | END_HEADERS;
    let self_dependent = [&3u32.to_be_bytes()[..], &[9], GET].concat();
    let dependent = [&1u32.to_be_bytes()[..], &[9], GET].concat();
    let large = vec![0; 16385];
    let upper = [GET, &[0, 1, b'A', 1, b'b']].concat();
    let trailer_pseudo = headers(whole, 1, GET);
    let trailers = headers(whole, 1, &[0, 1, b'a', 1, b'b']);
    let connect = headers(END_HEADERS, 1, EXTENDED_CONNECT);
    let continued = headers(0, 1, GET);
    let continuation = |stream, flags| frame(Kind::Continuation, flags, stream, b"");
    let cases: Vec<(&str, Vec<Vec<u8>>, Outcome)> = vec![
        (
            "4.1/1 unknown type",
            vec![frame(Kind::Unknown, 0xff, 0, b"12345678")],
            Fine,
        ),
        (
            "4.1/2 undefined flags",
            vec![frame(Kind::Ping, 0x16, 0, b"12345678")],
            Fine,
        ),
        (
            "4.1/3 reserved bit",
            vec![frame(Kind::Ping, 0, 1 << 31, b"12345678")],
            Fine,
        ),
        (
            "4.2/1 the largest frame",
            vec![post(1), data(1, 0, &large[1..])],
            Fine,
        ),
        (
            "4.2/2 too large DATA",
            vec![post(1), data(1, 0, &large)],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "4.2/3 too large HEADERS",
            vec![headers(whole, 1, &large)],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "4.3/1 invalid block",
            vec![headers(whole, 1, &[0x40, 0x8f])],
            C(Code::COMPRESSION_ERROR),
        ),
        (
            "4.3/2 PRIORITY in a block",
            vec![continued.clone(), frame(Kind::Priority, 0, 1, &[0; 5])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "4.3/3 HEADERS in a block",
            vec![continued.clone(), get(3)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/1 DATA on idle",
            vec![data(1, END_STREAM, b"x")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/2 RST_STREAM on idle",
            vec![reset(1)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/3 WINDOW_UPDATE on idle",
            vec![window_update(1, 100)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/4 CONTINUATION on idle",
            vec![continuation(1, END_HEADERS)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/5 DATA on half-closed",
            vec![get(1), data(1, END_STREAM, b"x")],
            S(1, Code::STREAM_CLOSED),
        ),
        (
            "5.1/6 HEADERS on half-closed",
            vec![get(1), get(1)],
            S(1, Code::STREAM_CLOSED),
        ),
        (
            "5.1/7 CONTINUATION on half-closed",
            vec![get(1), continuation(1, END_HEADERS)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.1/8 DATA on reset",
            vec![post(1), reset(1), data(1, END_STREAM, b"x")],
            S(1, Code::STREAM_CLOSED),
        ),
        (
            "5.1/9 HEADERS on reset",
            vec![post(1), reset(1), get(1)],
            C(Code::STREAM_CLOSED),
        ),
        ("5.1.1/1 even id", vec![get(2)], C(Code::PROTOCOL_ERROR)),
        (
            "5.1.1/2 smaller id",
            vec![get(5), get(3)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.3.1/1 HEADERS depends on itself",
            vec![headers(whole | PRIORITY, 3, &self_dependent)],
            S(3, Code::PROTOCOL_ERROR),
        ),
        (
            "HEADERS depends on another",
            vec![headers(whole | PRIORITY, 3, &dependent)],
            Fine,
        ),
        (
            "5.3.1/2 PRIORITY depends on itself",
            vec![frame(Kind::Priority, 0, 3, &self_dependent[..5])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "5.5/2 unknown type in a block",
            vec![continued.clone(), frame(Kind::Unknown, 0, 1, b"")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.1/1 DATA on the connection",
            vec![data(0, 0, b"x")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.1/3 DATA with too long padding",
            vec![post(1), data(1, PADDED, &[6, 0, 0, 0, 0, 0])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "DATA of padding alone",
            vec![post(1), data(1, PADDED, &[5, 0, 0, 0, 0, 0])],
            Fine,
        ),
        (
            "6.2/1 HEADERS and PRIORITY of another",
            vec![continued.clone(), frame(Kind::Priority, 0, 3, &[0; 5])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.2/3 HEADERS on the connection",
            vec![headers(whole, 0, GET)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.2/4 HEADERS with too long padding",
            vec![headers(whole | PADDED, 1, &[9, 0x82, 0x86, 0x84])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.3/1 PRIORITY on the connection",
            vec![frame(Kind::Priority, 0, 0, &[0; 5])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.3/2 PRIORITY of 4 bytes",
            vec![get(1), frame(Kind::Priority, 0, 1, &[0; 4])],
            S(1, Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.4/1 RST_STREAM on the connection",
            vec![reset(0)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.4/3 RST_STREAM of 3 bytes",
            vec![post(1), frame(Kind::Reset, 0, 1, &[0; 3])],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.5/1 SETTINGS ACK with a payload",
            vec![frame(Kind::Settings, ACK, 0, b"x")],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.5/2 SETTINGS on a stream",
            vec![frame(Kind::Settings, 0, 1, b"")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.5/3 SETTINGS of 3 bytes",
            vec![frame(Kind::Settings, 0, 0, b"123")],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.5.2/1 ENABLE_PUSH 2",
            vec![setting(2, 2)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.5.2/2 INITIAL_WINDOW_SIZE 2^31",
            vec![setting(4, 1 << 31)],
            C(Code::FLOW_CONTROL_ERROR),
        ),
        (
            "6.5.2/3 MAX_FRAME_SIZE too small",
            vec![setting(5, 16383)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.5.2/4 MAX_FRAME_SIZE too large",
            vec![setting(5, 1 << 24)],
            C(Code::PROTOCOL_ERROR),
        ),
        ("6.5.2/5 unknown setting", vec![setting(0xff, 1)], Fine),
        (
            "6.7/2 PING ACK",
            vec![frame(Kind::Ping, ACK, 0, b"12345678")],
            Fine,
        ),
        (
            "6.7/3 PING on a stream",
            vec![frame(Kind::Ping, 0, 1, b"12345678")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.7/4 PING of 6 bytes",
            vec![frame(Kind::Ping, 0, 0, b"123456")],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.8/1 GOAWAY on a stream",
            vec![frame(Kind::GoAway, 0, 1, &[0; 8])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.9/1 WINDOW_UPDATE by 0",
            vec![window_update(0, 0)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.9/2 WINDOW_UPDATE of a stream by 0",
            vec![post(1), window_update(1, 0)],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "6.9/3 WINDOW_UPDATE of 3 bytes",
            vec![frame(Kind::WindowUpdate, 0, 0, &[0, 0, 1])],
            C(Code::FRAME_SIZE_ERROR),
        ),
        (
            "6.9.1/2 connection above 2^31-1",
            vec![window_update(0, NUMBER_MAX), window_update(0, NUMBER_MAX)],
            C(Code::FLOW_CONTROL_ERROR),
        ),
        (
            "6.9.1/3 stream above 2^31-1",
            vec![post(1), window_update(1, NUMBER_MAX)],
            S(1, Code::FLOW_CONTROL_ERROR),
        ),
        (
            "window above 2^31-1 by a setting",
            vec![post(1), window_update(1, 1), setting(4, NUMBER_MAX)],
            C(Code::FLOW_CONTROL_ERROR),
        ),
        (
            "6.10/2 CONTINUATION behind END_HEADERS",
            vec![get(1), continuation(1, END_HEADERS)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.10/4 CONTINUATION on the connection",
            vec![continued.clone(), continuation(0, END_HEADERS)],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "6.10/5 DATA in a block",
            vec![continued.clone(), data(1, 0, b"x")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "7/1 GOAWAY with an unknown code",
            vec![frame(Kind::GoAway, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 0xff])],
            Fine,
        ),
        (
            "8.1/1 trailers that do not end",
            vec![post(1), headers(END_HEADERS, 1, &[0, 1, b'a', 1, b'b'])],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "trailers",
            vec![post(1), data(1, 0, b"x"), trailers.clone()],
            Fine,
        ),
        (
            "8.1.2/1 upper case",
            vec![headers(whole, 1, &upper)],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "8.5 bytes of a tunnel",
            vec![connect.clone(), data(1, END_STREAM, b"x")],
            Fine,
        ),
        (
            "8.5 fields in a tunnel",
            vec![connect, data(1, 0, b"x"), trailers.clone()],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "8.1.2.1/3 a pseudo-field in trailers",
            vec![post(1), trailer_pseudo],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "8.1.2.6/1 shorter than Content-Length",
            vec![post_of_length(1, "5"), data(1, END_STREAM, b"four")],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "8.1.2.6/2 longer, in two frames",
            vec![
                post_of_length(1, "5"),
                data(1, 0, b"four"),
                data(1, END_STREAM, b"xx"),
            ],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "just Content-Length",
            vec![
                post_of_length(1, "5"),
                data(1, 0, b"four"),
                data(1, END_STREAM, b"x"),
            ],
            Fine,
        ),
        (
            "trailers before Content-Length",
            vec![post_of_length(1, "5"), trailers],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "malformed Content-Length",
            vec![post_of_length(1, "+5")],
            S(1, Code::PROTOCOL_ERROR),
        ),
        (
            "8.2/1 PUSH_PROMISE",
            vec![
                get(1),
                frame(Kind::PushPromise, END_HEADERS, 1, &[0, 0, 0, 2]),
            ],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "PRIORITY_UPDATE on a stream",
            vec![frame(Kind::PriorityUpdate, 0, 1, b"\0\0\0\x01i")],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "PRIORITY_UPDATE of nothing",
            vec![frame(Kind::PriorityUpdate, 0, 0, &[0; 4])],
            C(Code::PROTOCOL_ERROR),
        ),
        (
            "PRIORITY_UPDATE of a push",
            vec![frame(Kind::PriorityUpdate, 0, 0, b"\0\0\0\x02i")],
            C(Code::PROTOCOL_ERROR),
        ),
    ];
    for (name, frames, wanted) in cases {
        assert_eq!(outcome_of(&frames.concat()), wanted, "{name}");
    }
}

#[test]
fn closed_stream_accepts_no_frames() {
    for (bytes, wanted) in [
        (data(1, END_STREAM, b"x"), S(1, Code::STREAM_CLOSED)),
        (get(1), C(Code::STREAM_CLOSED)),
        (
            frame(Kind::Continuation, END_HEADERS, 1, b""),
            C(Code::PROTOCOL_ERROR),
        ),
        (window_update(1, 1), Fine),
        (reset(1), Fine),
        (frame(Kind::Priority, 0, 1, &[0; 5]), Fine),
    ] {
        let mut side = TestConnection::server();
        side.receive_bytes(&get(1));
        side.respond(1);
        assert_eq!(side.connection.open_streams(), 0);
        side.forget();
        side.receive_bytes(&bytes);
        let resets = side.resets();
        let outcome = match (&side.error, resets.first()) {
            (Some(error), _) => C(error.code),
            (None, Some(&(id, code))) => S(id, code),
            (None, None) => Fine,
        };
        assert_eq!(outcome, wanted, "{bytes:?}");
    }
}

#[test]
fn data_in_transit_at_reset_is_released() {
    let mut side = TestConnection::server();
    side.receive_bytes(&post(1));
    let stream = side.stream(1);
    side.connection.reset(stream, Code::CANCEL, &mut side.out);
    side.forget();
    for _ in 0..8 {
        side.receive_bytes(&data(1, 0, &[0; 16_000]));
    }
    side.receive_bytes(&frame(
        Kind::Headers,
        END_STREAM | END_HEADERS,
        1,
        &[0, 1, b'a', 1, b'b'],
    ));
    side.receive_bytes(&window_update(1, 1));
    assert_eq!((&side.error, &side.seen[..]), (&None, &[][..]));
    let frames = side.frames();
    let window = |(head, _): &(Head, Vec<u8>)| (head.kind, head.stream) == (Kind::WindowUpdate, 0);
    assert!(frames.iter().all(window), "{frames:?}");
    assert!(frames.len() >= 2);
}

#[test]
fn reset_within_data_frame_releases_window() {
    let mut side = TestConnection::server();
    side.receive_bytes(&[post(1), data(1, END_STREAM, &[7; 16_384])[..1_009].to_vec()].concat());
    assert_eq!(side.seen[1], TestEvent::Data(1, vec![7; 1_000], End::Open));
    let stream = side.stream(1);
    side.connection.reset(stream, Code::CANCEL, &mut side.out);
    side.forget();
    side.receive_bytes(&[7; 5_000]);
    side.receive_bytes(&[7; 16_384 - 6_000]);
    assert_eq!(side.seen, []);
    // All of it was returned, so the same amount again stays below half of the window, and one byte more does not.
    side.receive_bytes(&[post(3), data(3, 0, &[7; 16_384 - 2])].concat());
    assert_eq!(side.frames(), []);
    side.receive_bytes(&data(3, 0, b"7"));
    let updates = side.frames();
    assert_eq!((updates[0].0.stream, code_of(&updates[0].1).0), (0, 32_767));
    assert_eq!(side.error, None);
}

#[test]
fn incomplete_header_block_is_detected() {
    let mut side = TestConnection::server();
    let head = frame(Kind::Headers, 0, 1, GET);
    for (bytes, wanted) in [
        (head, true),
        (frame(Kind::Continuation, 0, 1, b""), true),
        (frame(Kind::Continuation, END_HEADERS, 1, b""), false),
        (get(3), false),
    ] {
        side.receive_bytes(&bytes);
        assert_eq!(side.connection.is_block_incomplete(), wanted);
    }
}

#[test]
fn preface_and_first_settings_are_required() {
    for bytes in [
        b"GET / HTTP/1.1\r\n".as_slice(),
        b"PRI * HTTP/2.0\r\n\r\nSX",
    ] {
        let mut side = TestConnection::new(Role::Server, LocalSettings::DEFAULT);
        side.receive_bytes(bytes);
        assert_eq!(
            side.error.map(|error| error.code),
            Some(Code::PROTOCOL_ERROR)
        );
    }
    for first in [
        get(1),
        frame(Kind::Settings, ACK, 0, b""),
        window_update(0, 1),
    ] {
        let mut side = TestConnection::new(Role::Server, LocalSettings::DEFAULT);
        side.receive_bytes(PREFACE);
        side.receive_bytes(&first);
        assert_eq!(
            side.error.map(|error| error.code),
            Some(Code::PROTOCOL_ERROR)
        );
    }
}

#[test]
fn settings_and_pings_are_acknowledged() {
    let mut side = TestConnection::server();
    side.receive_bytes(&setting(3, 7));
    side.receive_bytes(&frame(Kind::Ping, 0, 0, b"12345678"));
    assert_eq!(side.connection.peer().concurrent_streams_max, 7);
    let frames = side.frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|(head, _)| (head.kind, head.flags.0))
        .collect();
    assert_eq!(kinds, [(Kind::Settings, ACK), (Kind::Ping, ACK)]);
    assert_eq!(frames[1].1, b"12345678");
    side.receive_bytes(&frame(Kind::Ping, ACK, 0, b"abcdefgh"));
    assert_eq!(
        side.seen,
        [TestEvent::Settings, TestEvent::Pong(*b"abcdefgh")]
    );
}

#[test]
fn streams_beyond_limit_are_refused() {
    let local = LocalSettings {
        concurrent_streams_max: 2,
        ..LocalSettings::DEFAULT
    };
    let mut side = TestConnection::new(Role::Server, local);
    side.receive_bytes(PREFACE);
    side.receive_bytes(&settings());
    side.forget();
    side.receive_bytes(&[get(1), get(3), get(5), get(7)].concat());
    assert_eq!(
        side.resets(),
        [(5, Code::REFUSED_STREAM), (7, Code::REFUSED_STREAM)]
    );
    side.respond(1);
    side.receive_bytes(&get(9));
    assert_eq!(side.connection.open_streams(), 2);
    assert_eq!(side.seen.last(), Some(&TestEvent::Head(9, End::Stream)));
}

#[test]
fn data_beyond_window_is_an_error() {
    let local = LocalSettings {
        stream_window: 10,
        ..LocalSettings::DEFAULT
    };
    // The default applies until our settings are acknowledged.
    let mut side = TestConnection::new(Role::Server, local);
    side.receive_bytes(&[PREFACE, &settings()[..], &post(1), &data(1, 0, &[0; 100])].concat());
    side.receive_bytes(&frame(Kind::Settings, ACK, 0, b""));
    side.forget();
    side.receive_bytes(&[post(3), data(3, 0, &[0; 11])].concat());
    assert_eq!(
        side.seen.last(),
        Some(&TestEvent::Failed(3, Code::FLOW_CONTROL_ERROR))
    );
    assert!(side.resets().contains(&(3, Code::FLOW_CONTROL_ERROR)));
    side.receive_bytes(&[post(5), data(5, 0, &[7; 10])].concat());
    assert_eq!(
        side.seen.last(),
        Some(&TestEvent::Data(5, vec![7; 10], End::Open))
    );
    assert_eq!(side.error, None);
}

#[test]
fn unreleased_data_fills_connection_window() {
    let mut connection = Connection::new(Role::Server, LocalSettings::DEFAULT, &mut Vec::new());
    let mut input = [PREFACE, &settings()[..]].concat();
    for stream in 0..5 {
        input.extend(post(1 + 2 * stream));
        input.extend(data(1 + 2 * stream, 0, &[0; 16_000]));
    }
    let (mut at, mut out) = (0, Vec::new());
    let error = loop {
        match connection.receive(&input[at..], &mut out) {
            Ok(step) => at += step.bytes,
            Err(error) => break error,
        }
        assert!(at < input.len(), "the last frame is one too many");
    };
    assert_eq!(error.code, Code::FLOW_CONTROL_ERROR);
}

#[test]
fn split_header_blocks_parse_identically() {
    let mut block = GET.to_vec();
    for _ in 0..60 {
        block.extend([0, 1, b'a', 100]);
        block.extend([b'b'; 100]);
    }
    let whole = END_STREAM | END_HEADERS;
    let padded = [&[3, 0, 0, 0, 0, 9][..], GET, &[0; 3]].concat();
    let input = [
        &PREFACE[..],
        &settings(),
        &frame(Kind::Headers, whole, 1, &block),
        &frame(Kind::Headers, END_STREAM, 3, &GET[..2]),
        &frame(Kind::Continuation, 0, 3, b""),
        &frame(Kind::Continuation, END_HEADERS, 3, &GET[2..]),
        &frame(Kind::Headers, whole | PADDED | PRIORITY, 5, &padded),
        &frame(Kind::Headers, PADDED | END_STREAM, 7, &[2, 0x82, 0, 0]),
        &frame(Kind::Continuation, END_HEADERS, 7, &GET[1..]),
        &post(9),
        &data(9, PADDED | END_STREAM, &[3, 1, 2, 3, 0, 0, 0]),
        &frame(Kind::GoAway, 0, 0, &[0; 20]),
        &frame(Kind::Unknown, 0, 0, &[0; 20]),
        &frame(Kind::Ping, ACK, 0, &[1; 8]),
    ]
    .concat();
    let mut wanted: Vec<_> = [1, 3, 5, 7]
        .map(|id| TestEvent::Head(id, End::Stream))
        .into();
    wanted.push(TestEvent::Head(9, End::Open));
    wanted.push(TestEvent::Data(9, vec![1, 2, 3], End::Stream));
    wanted.push(TestEvent::GoAway(0, Code::NO_ERROR));
    wanted.push(TestEvent::Pong([1; 8]));
    for piece in [1, 2, 3, 7, 100, 4095, input.len()] {
        let mut side = TestConnection::new(Role::Server, LocalSettings::DEFAULT);
        for piece in input.chunks(piece) {
            side.receive_bytes(piece);
        }
        assert_eq!(side.error, None);
        assert_eq!(side.seen[0], TestEvent::Settings);
        assert_eq!(side.seen[1..], wanted[..], "{piece}");
        assert!(side.needed_max <= FRAME_WHOLE_BYTES_MAX);
        assert!(side.input.is_empty());
    }
}
