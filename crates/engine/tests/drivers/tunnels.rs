//! Relays from one connection to another.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, BUFFER_BYTES, Core, Error, Input, Kind, Listener, Op, Relay, Stream};

use crate::ground::{bytes, on_every_driver, peak_buffers_in_use, poll_once, receive_all, send};

/// Two connections; a tunnel leads from the server end of the first to the client end of the second.
struct Path {
    client: Stream,
    front: Rc<Stream>,
    back: Rc<Stream>,
    server: Stream,
}

impl Path {
    async fn new(core: &Core, listener: &Listener, address: &Address) -> Self {
        let client = Stream::connect(core, address, None).await.unwrap();
        let front = Rc::new(listener.accept().await.unwrap());
        let back = Rc::new(Stream::connect(core, address, None).await.unwrap());
        let server = listener.accept().await.unwrap();
        Self {
            client,
            front,
            back,
            server,
        }
    }
}

/// Relays until the source ends, then shuts down the other stream. Returns the number of bytes.
async fn relay_to_end(mut relay: Relay, from: &Stream, to: &Stream) -> Result<u64, Error> {
    let mut total = 0;
    loop {
        match relay.transfer(from, to).await? {
            0 => break,
            count => total += count,
        }
    }
    to.shutdown().await?;
    Ok(total)
}

/// Sizes of small messages, bulk data, and small messages again.
const PORTIONS: [usize; 12] = [
    1,
    100,
    BUFFER_BYTES,
    700_000,
    3,
    20,
    BUFFER_BYTES - 1,
    5,
    250_000,
    1,
    40_000,
    9,
];

async fn send_portions(stream: &Stream) {
    let mut sent = 0;
    let all = bytes(PORTIONS.iter().sum());
    for (index, portion) in PORTIONS.into_iter().enumerate() {
        send(stream, &all[sent..sent + portion]).await.unwrap();
        sent += portion;
        if index % 2 == 0 {
            stream.core().sleep(Duration::from_micros(300)).await;
        }
    }
}

/// More than all buffers on the path hold.
const LARGE: usize = 2_600_000;

#[test]
fn tunnel_directions_end_independently() {
    on_every_driver(|core, listener, address| async move {
        let all = bytes(PORTIONS.iter().sum());
        let path = Path::new(&core, &listener, &address).await;
        let (client, server) = (Rc::new(path.client), Rc::new(path.server));
        for (from, to) in [(&path.front, &path.back), (&path.back, &path.front)] {
            let (from, to, total) = (Rc::clone(from), Rc::clone(to), all.len() as u64);
            core.spawn(async move {
                let relayed = relay_to_end(Relay::default(), &from, &to).await;
                assert_eq!(relayed.unwrap() % total, 0, "all of it, once or twice");
            });
        }
        drop((path.front, path.back));
        let asking = Rc::clone(&client);
        core.spawn(async move {
            send_portions(&asking).await;
            asking.shutdown().await.unwrap();
        });
        let (serving, asked) = (Rc::clone(&server), all.clone());
        core.spawn(async move {
            let speaker = Rc::clone(&serving);
            let spoken = Rc::new(Cell::new(false));
            let done = Rc::clone(&spoken);
            serving.core().spawn(async move {
                send_portions(&speaker).await;
                done.set(true);
            });
            assert!(receive_all(&serving).await.unwrap() == asked);
            while !spoken.get() {
                serving.core().sleep(Duration::from_millis(1)).await;
            }
            // The other direction has ended; this one continues.
            send_portions(&serving).await;
            serving.shutdown().await.unwrap();
        });
        assert!(receive_all(&client).await.unwrap() == all.repeat(2));
    });
}

#[test]
fn received_bytes_precede_tunnel() {
    on_every_driver(|core, listener, address| async move {
        let path = Path::new(&core, &listener, &address).await;
        let head = b"GET / HTTP/1.1\r\n\r\n";
        let all = [&head[..], &bytes(400_000)].concat();
        let (client, sent) = (Rc::new(path.client), all.clone());
        let sender = Rc::clone(&client);
        core.spawn(async move {
            send(&sender, &sent).await.unwrap();
            sender.shutdown().await.unwrap();
        });
        let mut input = Input::default();
        while input.bytes().len() < head.len() {
            path.front.recv(&mut input).await.unwrap();
        }
        input.consume(head.len());
        // A cancelled receive parks the remaining bytes, and may leave a receive armed in the kernel.
        path.front.set_deadline(Some(core.now_exact()));
        if input.bytes().len() < BUFFER_BYTES {
            path.front.recv(&mut input).await.ok();
        }
        path.front.set_deadline(None);
        let (front, back) = (path.front, path.back);
        core.spawn(async move {
            let relay = Relay::new(input);
            let relayed = relay_to_end(relay, &front, &back).await.unwrap();
            assert_eq!(relayed, 400_000);
        });
        assert!(receive_all(&path.server).await.unwrap() == all[head.len()..]);
        drop(client);
    });
}

#[test]
fn cancelled_transfer_loses_no_bytes() {
    on_every_driver(|core, listener, address| async move {
        let path = Path::new(&core, &listener, &address).await;
        let (client, server) = (path.client, path.server);
        core.spawn(async move {
            send(&client, &bytes(2_000_000)).await.unwrap();
            client.shutdown().await.unwrap();
        });
        let (front, back) = (path.front, path.back);
        let relaying = core.clone();
        core.spawn(async move {
            let mut relay = Relay::default();
            let mut ended = false;
            while !ended {
                let mut transfer = Box::pin(relay.transfer(&front, &back));
                let polled = poll_once(&mut transfer).await;
                drop(transfer);
                match polled {
                    std::task::Poll::Ready(count) => ended = count.unwrap() == 0,
                    std::task::Poll::Pending => relaying.sleep(Duration::from_micros(50)).await,
                }
            }
            back.shutdown().await.unwrap();
        });
        let received = receive_all(&server).await.unwrap();
        assert!(received == bytes(2_000_000), "{} bytes", received.len());
    });
}

#[test]
fn slow_tunnel_reader_uses_few_buffers() {
    on_every_driver(|core, listener, address| async move {
        let lent = peak_buffers_in_use(&core).await;
        let path = Path::new(&core, &listener, &address).await;
        let (client, server) = (path.client, path.server);
        core.spawn(async move { while send(&client, &bytes(BUFFER_BYTES)).await.is_ok() {} });
        let (front, back) = (path.front, path.back);
        core.spawn(async move {
            let error = relay_to_end(Relay::default(), &front, &back).await;
            assert_eq!(error.unwrap_err().op, Op::Send, "the reader has gone");
        });
        let mut taken = 0;
        while taken < 1_000_000 {
            taken += server.recv(&mut Input::default()).await.unwrap();
        }
        let held = peak_buffers_in_use(&core).await - lent;
        assert!(
            held <= 2 + 2 + 2,
            "{held} buffers at the sender, in the tunnel, at the reader"
        );
        drop(server);
    });
}

#[test]
fn tunnel_reports_side_of_timeout() {
    on_every_driver(|core, listener, address| async move {
        let path = Path::new(&core, &listener, &address).await;
        let mut relay = Relay::default();
        path.front
            .set_deadline(Some(core.now_exact() + Duration::from_millis(5)));
        let error = relay.transfer(&path.front, &path.back).await.unwrap_err();
        assert_eq!((error.op, error.kind), (Op::Recv, Kind::TimedOut));
        // The other end does not read.
        path.front.set_deadline(None);
        path.back
            .set_deadline(Some(core.now_exact() + Duration::from_millis(50)));
        let client = path.client;
        core.spawn(async move { while send(&client, &bytes(BUFFER_BYTES)).await.is_ok() {} });
        let error = loop {
            if let Err(error) = relay.transfer(&path.front, &path.back).await {
                break error;
            }
        };
        assert_eq!((error.op, error.kind), (Op::Send, Kind::TimedOut));
    });
}

#[test]
fn tunnel_closes_after_last_bytes() {
    on_every_driver(|core, listener, address| async move {
        let path = Path::new(&core, &listener, &address).await;
        let sending = Rc::new(path.client);
        let client = Rc::clone(&sending);
        core.spawn(async move { send(&sending, &bytes(LARGE)).await.unwrap() });
        let server = path.server;
        core.spawn(async move {
            let mut taken = 0;
            while taken < LARGE {
                taken += server.recv(&mut Input::default()).await.unwrap();
            }
            // Keeps the connection open.
            server.recv(&mut Input::default()).await.ok();
        });
        for end in [&path.front, &path.back] {
            end.set_send_patience(Duration::from_secs(3600));
        }
        let mut relay = Relay::default();
        let mut relayed = 0;
        while relayed < LARGE as u64 {
            relayed += relay.transfer(&path.front, &path.back).await.unwrap();
        }
        // The flow is bulk by now, and the relay waits for more.
        let mut transfer = Box::pin(relay.transfer(&path.front, &path.back));
        for _ in 0..10 {
            assert!(poll_once(&mut transfer).await.is_pending());
            core.sleep(Duration::from_millis(1)).await;
        }
        drop(transfer);
        path.front.queue(&b"the last"[..]);
        path.front.flush().await.unwrap();
        drop((path.front, path.back));
        client.set_deadline(Some(core.now_exact() + Duration::from_secs(60)));
        assert_eq!(receive_all(&client).await.unwrap(), b"the last");
    });
}
