//! Peers that disconnect while no task receives from them.

use std::future::poll_fn;
use std::time::Duration;

use onrush_engine::{Address, BUFFER_BYTES, Input, Stream};

use crate::ground::{bytes, on_every_driver, poll_once, receive_all, send};

/// Waits until the connection has ended.
async fn hung_up(stream: &Stream) {
    poll_fn(|_| stream.poll_hung_up()).await;
}

/// Whether the connection is still open after some turns of the core.
async fn is_open(stream: &Stream) -> bool {
    for _ in 0..5 {
        let mut over = Box::pin(hung_up(stream));
        if poll_once(&mut over).await.is_ready() {
            return false;
        }
        stream.core().sleep(Duration::from_millis(1)).await;
    }
    true
}

#[test]
fn reset_ends_hangup_wait() {
    // After a small message, and after bulk data when only its first buffer has been read.
    for sent in [10, 3 * BUFFER_BYTES] {
        on_every_driver(move |core, listener, address| async move {
            let client = Stream::connect(&core, &address, None).await.unwrap();
            let server = listener.accept().await.unwrap();
            let sending = core.clone();
            core.spawn(async move {
                send(&client, &bytes(sent)).await.unwrap();
                sending.sleep(Duration::from_millis(5)).await;
                client.reset_when_dropped();
            });
            let mut input = Input::default();
            server.recv(&mut input).await.unwrap();
            hung_up(&server).await;
            assert!(!is_open(&server).await, "it has become whole again");
        });
    }
}

#[test]
fn half_close_is_not_a_hangup() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        send(&client, b"question").await.unwrap();
        client.shutdown().await.unwrap();
        assert!(is_open(&server).await, "while bytes are unread");
        assert_eq!(receive_all(&server).await.unwrap(), b"question");
        assert!(is_open(&server).await, "behind the end of one side");
        send(&server, b"response").await.unwrap();
        let mut input = Input::default();
        client.recv(&mut input).await.unwrap();
        assert!(input.bytes().starts_with(b"r"), "it still reads");
        client.reset_when_dropped();
        drop(client);
        hung_up(&server).await;
    });
}

#[test]
fn closed_unix_peer_is_a_hangup() {
    on_every_driver(|core, listener, address| async move {
        if !matches!(address, Address::Unix(_)) {
            return; // tcp(7): looks like a half-close.
        }
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        send(&client, b"question").await.unwrap();
        let mut input = Input::default();
        server.recv(&mut input).await.unwrap();
        assert!(is_open(&server).await, "it is there");
        drop(client);
        hung_up(&server).await;
    });
}

#[test]
fn bytes_do_not_end_hangup_wait() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        for _ in 0..20 {
            assert!(is_open(&server).await, "it is there");
            send(&client, b"more").await.unwrap();
        }
        client.shutdown().await.unwrap();
        let received = receive_all(&server).await.unwrap();
        assert_eq!(received, b"more".repeat(20));
    });
}
