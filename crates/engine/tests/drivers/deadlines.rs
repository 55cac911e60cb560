//! Deadlines of waits.

use std::time::Duration;

use onrush_engine::{BUFFER_BYTES, Input, Kind, Stream};

use crate::ground::{bytes, on_every_driver, send};

#[test]
fn expired_deadline_keeps_stream_open() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let mut input = Input::default();
        let deadline = core.now_exact() + Duration::from_millis(5);
        client.set_deadline(Some(deadline));
        let error = client.recv(&mut input).await.unwrap_err();
        assert_eq!(error.kind, Kind::TimedOut);
        assert!(core.now_exact() >= deadline);
        client.set_deadline(Some(core.now() + Duration::from_secs(60)));
        send(&server, b"late").await.unwrap();
        let mut received = Vec::new();
        while received.len() < 4 {
            assert!(client.recv(&mut input).await.unwrap() > 0);
            received.extend_from_slice(input.bytes());
            input.consume(input.bytes().len());
        }
        assert_eq!(received, b"late");
    });
}

#[test]
fn send_to_stalled_peer_times_out() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_deadline(Some(core.now_exact() + Duration::from_millis(50)));
        let error = loop {
            if let Err(error) = send(&server, &bytes(100_000)).await {
                break error;
            }
        };
        assert_eq!(error.kind, Kind::TimedOut);
        drop(client);
    });
}

#[test]
fn dropped_stream_is_closed_after_timeout() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_deadline(Some(core.now_exact() + Duration::from_millis(20)));
        while send(&server, &bytes(BUFFER_BYTES)).await.is_ok() {}
        drop(server);
        // The peer reaches an end only if the other side was closed.
        client.set_deadline(Some(core.now_exact() + Duration::from_secs(30)));
        let mut input = Input::default();
        loop {
            match client.recv(&mut input).await {
                Ok(0) => break,
                Ok(count) => input.consume(count),
                Err(error) => {
                    assert!(error.is_reset(), "{error}");
                    break;
                }
            }
        }
    });
}
