//! HTTP/2 connections: arbitrary frames in arbitrary pieces, and our client with our server.

use std::time::Duration;

use onrush_http::http2::{LocalSettings, Role};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::check;
use crate::support::http2::EchoPeer;

/// A frame whose parts are likely to fit together.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        4 => Just(0u8),
        4 => Just(1u8),
        1 => 2u8..=8,
        2 => Just(9u8),
        1 => Just(0x10u8),
        1 => any::<u8>(),
    ];
    let flags = prop_oneof![Just(0u8), Just(1), Just(4), Just(5), any::<u8>()];
    let stream = prop_oneof![4 => 0u32..12, 1 => any::<u32>()];
    let block = prop_oneof![
        Just(b"\x82\x86\x84\x41\x01a".to_vec()),
        Just(b"\x88".to_vec()),
        Just(b"\x83\x86\x84\x0f\x0d\x0210".to_vec()),
        Just(b"\x00\x01a\x01b".to_vec()),
        Just(b"\x00\x08priority\x06u=1, i".to_vec()),
    ];
    let payload = prop_oneof![
        4 => block,
        2 => vec(any::<u8>(), 0..20),
        2 => vec(Just(0u8), 0..20),
        1 => Just(vec![0, 0, 0, 8]),
        1 => Just(vec![0, 4, 0, 0, 0, 7]),
        1 => (16_000usize..16_400).prop_map(|length| vec![b'x'; length]),
    ];
    let length = prop_oneof![9 => Just(None), 1 => (0u32..30).prop_map(Some)];
    (kind, flags, stream, payload, length).prop_map(|(kind, flags, stream, payload, length)| {
        let length = length.unwrap_or(payload.len() as u32);
        let mut bytes = length.to_be_bytes()[1..].to_vec();
        bytes.extend([kind, flags]);
        bytes.extend(stream.to_be_bytes());
        bytes.extend(payload);
        bytes
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_independent_of_read_boundaries(input in vec(any::<u8>(), 0..300)) {
        check::http2(&input);
    }

    #[test]
    fn random_frames_are_independent_of_read_boundaries(frames in vec(frame(), 0..40)) {
        check::http2(&frames.concat());
    }

    #[test]
    fn client_and_server_exchange_all_bodies(
        contents in vec(0usize..2_000, 1..60),
        windows in (1u32..3_000, 1u32..3_000),
        streams in 1u32..20,
        pieces in vec(1usize..3_000, 1..8),
        resets in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let local = |stream_window| LocalSettings {
            stream_window,
            concurrent_streams_max: streams,
            ..LocalSettings::DEFAULT
        };
        let mut client = EchoPeer::new(Role::Client, local(windows.0));
        let mut server = EchoPeer::new(Role::Server, local(windows.1));
        let mut waiting: Vec<_> = contents.iter().enumerate().map(|(number, &length)| {
            (0..length).map(|at| (at * 7 + number) as u8).collect::<Vec<u8>>()
        }).collect();
        let sent: Vec<_> = waiting.clone();
        waiting.reverse();
        // The server's SETTINGS limit the streams from the start.
        client.hear(&server.take_output());
        let (mut up, mut down) = (Vec::new(), Vec::new());
        let (mut order, mut resets, mut turns) = (Vec::new(), resets, pieces.iter().cycle());
        loop {
            while let Some(content) = waiting.last()
                && let Ok(id) = client.request(content.clone())
            {
                waiting.pop();
                order.push(id);
            }
            // Restores tokens, since updates of a few bytes would soon exceed the limit.
            client.connection.elapsed(Duration::from_secs(1));
            server.connection.elapsed(Duration::from_secs(1));
            let piece = *turns.next().expect("a cycle has no end");
            client.pump(piece);
            server.pump(piece);
            if piece % 5 == 0 && let Some(index) = resets.pop() {
                client.reset(*index.get(&order));
            }
            up.extend(client.take_output());
            down.extend(server.take_output());
            if up.is_empty() && down.is_empty() {
                break;
            }
            let some: Vec<u8> = up.drain(..piece.min(up.len())).collect();
            server.hear(&some);
            let some: Vec<u8> = down.drain(..piece.min(down.len())).collect();
            client.hear(&some);
            prop_assert_eq!((client.error, server.error), (None, None));
        }
        prop_assert_eq!(order.len(), sent.len());
        prop_assert_eq!(client.connection.open_streams(), 0);
        prop_assert_eq!(server.connection.open_streams(), 0);
        for (id, content) in order.iter().zip(&sent) {
            let exchange = &client.exchanges[id];
            if exchange.reset.is_none() {
                prop_assert!(exchange.is_whole, "{}", id);
                prop_assert_eq!(&exchange.received, content);
                let has_trailers = exchange.fields.iter().any(|(name, _)| name == "checksum");
                prop_assert_eq!(has_trailers, id % 3 == 0 && !content.is_empty());
            }
        }
    }
}
