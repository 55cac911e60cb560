//! Pooled connections, from which no task receives.

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{BUFFER_BYTES, Input, Stream};

use crate::ground::{bytes, on_every_driver, send};

/// Receives `count` bytes; the last receive has room for more.
async fn receive(stream: &Stream, count: usize) {
    let mut input = Input::default();
    let mut received = 0;
    while received < count {
        received += stream.recv(&mut input).await.unwrap();
        let bytes = input.bytes().len();
        input.consume(bytes);
    }
    assert_eq!(received, count);
}

/// Whether the connection becomes spent within 200 turns of the core.
async fn is_spent_soon(stream: &Stream) -> bool {
    for _ in 0..200 {
        stream.watch_arrivals();
        if stream.is_spent() {
            return true;
        }
        stream.core().sleep(Duration::from_millis(1)).await;
    }
    false
}

#[test]
fn unexpected_bytes_or_close_retire_idle_connection() {
    // A small message; bulk data in pieces and at once; small messages after bulk data.
    for sizes in [
        &[10][..],
        &[BUFFER_BYTES],
        &[5 * BUFFER_BYTES + 10],
        &[3 * BUFFER_BYTES, 10, 10],
    ] {
        for unasked in [&b"x"[..], b""] {
            on_every_driver(move |core, listener, address| async move {
                let server = Stream::connect(&core, &address, None).await.unwrap();
                let client = listener.accept().await.unwrap();
                let client = Rc::new(client);
                for &size in sizes {
                    let sending = Rc::clone(&client);
                    core.spawn(async move { send(&sending, &bytes(size)).await.unwrap() });
                    receive(&server, size).await;
                    server.watch_arrivals();
                    core.sleep(Duration::from_millis(1)).await;
                    assert!(!server.is_spent(), "nothing came behind {size} bytes");
                }
                match unasked {
                    b"" => client.shutdown().await.unwrap(),
                    bytes => send(&client, bytes).await.unwrap(),
                }
                assert!(is_spent_soon(&server).await, "{unasked:?} behind {sizes:?}");
            });
        }
    }
}

#[test]
fn watched_idle_connection_still_receives() {
    on_every_driver(|core, listener, address| async move {
        let server = Stream::connect(&core, &address, None).await.unwrap();
        let client = Rc::new(listener.accept().await.unwrap());
        for round in 0..20 {
            let size = match round % 3 {
                0 => 10,
                1 => 2 * BUFFER_BYTES,
                _ => 6 * BUFFER_BYTES + 1,
            };
            server.watch_arrivals();
            assert!(!server.is_spent(), "before round {round}");
            let sending = Rc::clone(&client);
            core.spawn(async move { send(&sending, &bytes(size)).await.unwrap() });
            receive(&server, size).await;
        }
    });
}
