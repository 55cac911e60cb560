//! Parts of bodies that are moved between connections by splice.

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, BUFFER_BYTES, Core, Input, Listener, Splice, Stream};

use crate::ground::{bytes, on_every_driver, peak_buffers_in_use, receive_all, send};

/// More than all buffers on the path hold.
const LONG: usize = 2_600_000;

/// A client, both ends of the proxy between them, and a server.
async fn path(
    core: &Core,
    listener: &Listener,
    address: &Address,
) -> (Stream, Stream, Stream, Stream) {
    let client = Stream::connect(core, address, None).await.unwrap();
    let front = listener.accept().await.unwrap();
    let back = Stream::connect(core, address, None).await.unwrap();
    let server = listener.accept().await.unwrap();
    (client, front, back, server)
}

/// Moves exactly `left` bytes, by splice where possible, and returns the bytes received beyond them.
async fn pass(from: &Stream, to: &Stream, mut left: usize) -> Input {
    let (mut input, mut splice) = (Input::default(), Splice::default());
    while left > 0 {
        let taken = splice.take(from, left as u64).await.unwrap();
        assert!(taken <= left as u64, "{taken} of {left} bytes");
        left -= taken as usize;
        splice.give(to).await.unwrap();
        if taken > 0 {
            continue;
        }
        let received = from.recv(&mut input).await.unwrap();
        assert!(received > 0, "{left} bytes are missing");
        let passing = input.bytes().len().min(left);
        send(to, &input.bytes()[..passing]).await.unwrap();
        input.consume(passing);
        left -= passing;
    }
    input
}

#[test]
fn splice_moves_exact_length() {
    const BEHIND: usize = 300;
    on_every_driver(|core, listener, address| async move {
        for count in [1, BUFFER_BYTES, 200_000, LONG] {
            let (client, front, back, server) = path(&core, &listener, &address).await;
            let all = bytes(count + BEHIND);
            let sent = all.clone();
            core.spawn(async move {
                send(&client, &sent).await.unwrap();
                client.shutdown().await.unwrap();
            });
            core.spawn(async move {
                let mut input = pass(&front, &back, count).await;
                while front.recv(&mut input).await.unwrap() > 0 {}
                assert_eq!(input.bytes().len(), BEHIND);
                send(&back, input.bytes()).await.unwrap();
                back.shutdown().await.unwrap();
            });
            assert!(receive_all(&server).await.unwrap() == all, "{count} bytes");
        }
    });
}

#[test]
fn queued_bytes_precede_splice() {
    on_every_driver(|core, listener, address| async move {
        let (client, front, back, server) = path(&core, &listener, &address).await;
        let body = bytes(LONG);
        core.spawn(async move { send(&client, &bytes(LONG)).await.unwrap() });
        core.spawn(async move {
            back.queue(&b"head"[..]);
            pass(&front, &back, LONG).await;
            back.shutdown().await.unwrap();
        });
        let received = receive_all(&server).await.unwrap();
        assert!(received[..4] == *b"head" && received[4..] == body);
    });
}

#[test]
fn stalled_splices_use_no_buffers() {
    const STREAMS: usize = 10;
    on_every_driver(|core, listener, address| async move {
        let lent = peak_buffers_in_use(&core).await;
        let mut kept = Vec::new();
        for _ in 0..STREAMS {
            let (client, front, back, server) = path(&core, &listener, &address).await;
            let client = Rc::new(client);
            let sender = Rc::clone(&client);
            core.spawn(async move { while send(&sender, &bytes(BUFFER_BYTES)).await.is_ok() {} });
            back.set_send_patience(Duration::from_millis(100));
            core.spawn(async move {
                let mut splice = Splice::default();
                let mut input = Input::default();
                loop {
                    let taken = splice.take(&front, u64::MAX).await.unwrap();
                    let given = match taken {
                        0 => {
                            front.recv(&mut input).await.unwrap();
                            let part = input.take().unwrap();
                            back.queue(part);
                            back.flush().await
                        }
                        _ => splice.give(&back).await,
                    };
                    if given.is_err() {
                        return;
                    }
                }
            });
            kept.push((client, server));
        }
        let most = peak_buffers_in_use(&core).await;
        // The senders' buffers, and, without pipes, those in transit.
        assert!(most <= lent + 4 * STREAMS, "{most} buffers of {lent} lent");
    });
}
