//! Bounds on the memory that a peer can occupy by not reading or by sending without end.

use std::time::Duration;

use onrush_engine::{Address, BUFFER_BYTES, Input, Kind, Stream};

use crate::ground::{bytes, on_every_driver, peak_buffers_in_use, receive_all, send};

#[test]
fn unread_bytes_in_kernel_are_bounded() {
    on_every_driver(|core, listener, address| async move {
        if matches!(address, Address::Unix(_)) {
            return; // unix(7): the buffer has a fixed size.
        }
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_send_patience(Duration::from_millis(50));
        let mut taken = 0;
        while send(&server, &bytes(BUFFER_BYTES)).await.is_ok() {
            taken += BUFFER_BYTES;
        }
        // With the limit less than 0.2 MB are taken; without it the kernel takes 2.5 MB or more.
        assert!(taken <= 1 << 20, "{taken} bytes that nobody reads");
        drop(client);
    });
}

#[test]
fn endless_sender_uses_few_buffers() {
    const STREAMS: usize = 20;
    /// Number of buffers in flight of the sender and of the receiver, whose multishot receive may take one more than
    /// intended.
    const BUFFERS_PER_STREAM: usize = 2 + 2;
    on_every_driver(|core, listener, address| async move {
        // With io_uring the kernel holds a fixed number.
        let lent = peak_buffers_in_use(&core).await;
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            let sender = Stream::connect(&core, &address, None).await.unwrap();
            let receiver = listener.accept().await.unwrap();
            // Starts as a connection of small messages.
            for _ in 0..3 {
                send(&sender, b"small").await.unwrap();
                receiver.recv(&mut Input::default()).await.unwrap();
            }
            core.spawn(async move { while send(&sender, &bytes(BUFFER_BYTES)).await.is_ok() {} });
            streams.push(receiver);
        }
        for _ in 0..3 {
            let most = peak_buffers_in_use(&core).await;
            let bound = lent + STREAMS * BUFFERS_PER_STREAM;
            assert!(most <= bound, "{most} buffers in use, of {lent} lent");
            for receiver in &streams {
                let mut taken = 0;
                while taken < 300_000 {
                    taken += receiver.recv(&mut Input::default()).await.unwrap();
                }
            }
        }
    });
}

#[test]
fn bytewise_sender_uses_few_buffers() {
    on_every_driver(|core, listener, address| async move {
        let lent = peak_buffers_in_use(&core).await;
        let sender = Stream::connect(&core, &address, None).await.unwrap();
        let receiver = listener.accept().await.unwrap();
        send(&sender, b"x").await.unwrap();
        receiver.recv(&mut Input::default()).await.unwrap();
        // A receive that has timed out leaves the socket armed.
        receiver.set_deadline(Some(core.now_exact()));
        let error = receiver.recv(&mut Input::default()).await.unwrap_err();
        assert_eq!(error.kind, Kind::TimedOut);
        for _ in 0..100 {
            sender.queue(&b"x"[..]);
            sender.flush().await.unwrap();
            core.sleep(Duration::from_micros(100)).await;
        }
        let held = core.pool().in_use() - lent;
        assert!(held <= 5, "{held} buffers for 100 bytes");
        sender.shutdown().await.unwrap();
        receiver.set_deadline(None);
        assert_eq!(receive_all(&receiver).await.unwrap().len(), 100);
    });
}
