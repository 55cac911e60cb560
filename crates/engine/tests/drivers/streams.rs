//! Sending and receiving on streams, and fairness between tasks.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use onrush_engine::{BUFFER_BYTES, Input, Stream};

use crate::ground::{bytes, echo, on_every_driver, poll_once, receive_all, send};

#[test]
fn echo_is_unchanged() {
    on_every_driver(|core, listener, address| async move {
        let server = core.clone();
        core.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                server.spawn(echo(stream));
            }
        });
        for count in [1, 100, BUFFER_BYTES, BUFFER_BYTES + 1, 1_000_000] {
            let stream = Rc::new(Stream::connect(&core, &address, None).await.unwrap());
            let sender = Rc::clone(&stream);
            core.spawn(async move {
                send(&sender, &bytes(count)).await.unwrap();
                sender.shutdown().await.unwrap();
            });
            let received = receive_all(&stream).await.unwrap();
            assert!(received == bytes(count), "{count} bytes came back changed");
        }
        core.stop(Duration::from_secs(5));
    });
}

#[test]
fn busy_polling_work_time_is_within_elapsed_time() {
    on_every_driver(|core, listener, address| async move {
        core.busy_poll();
        let begun = core.now_exact();
        let server = core.clone();
        core.spawn(async move {
            let stream = listener.accept().await.unwrap();
            server.sleep(Duration::from_millis(5)).await;
            echo(stream).await;
        });
        let stream = Stream::connect(&core, &address, None).await.unwrap();
        send(&stream, &bytes(1000)).await.unwrap();
        stream.shutdown().await.unwrap();
        assert!(receive_all(&stream).await.unwrap() == bytes(1000));
        // Work is at most the elapsed time; the difference depends on when the thread had a CPU.
        assert!(core.take_work_time() <= core.now_exact().since(begun));
    });
}

#[test]
fn queued_parts_arrive_in_order() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let shared: Rc<[u8]> = bytes(40_000).into();
        for _ in 0..5 {
            let mut buffer = core.buffer().unwrap();
            assert!(buffer.put(b"head"));
            server.queue(buffer);
            server.queue(Rc::clone(&shared));
            server.queue(&b"tail"[..]);
        }
        core.spawn(async move {
            server.flush().await.unwrap();
            server.shutdown().await.unwrap();
        });
        let once = [b"head", &bytes(40_000)[..], b"tail"].concat();
        assert!(receive_all(&client).await.unwrap() == once.repeat(5));
    });
}

#[test]
fn cancelled_receive_loses_no_bytes() {
    on_every_driver(|core, listener, address| async move {
        let client = Rc::new(Stream::connect(&core, &address, None).await.unwrap());
        let server = listener.accept().await.unwrap();
        let mut input = Input::default();
        // Polls a receive once, so that it is pending in the kernel, and drops it.
        {
            let mut receive = Box::pin(client.recv(&mut input));
            let polled = poll_once(&mut receive).await;
            assert!(polled.is_pending());
        }
        send(&server, b"bytes").await.unwrap();
        server.shutdown().await.unwrap();
        let mut received = Vec::new();
        while client.recv(&mut input).await.unwrap() > 0 {
            received.extend_from_slice(input.bytes());
            input.consume(input.bytes().len());
        }
        assert_eq!(received, b"bytes");
    });
}

#[test]
fn ready_task_does_not_starve_sockets() {
    on_every_driver(|core, listener, address| async move {
        let received = Rc::new(Cell::new(false));
        let seen = Rc::clone(&received);
        core.spawn(async move {
            let server = listener.accept().await.unwrap();
            assert_eq!(server.recv(&mut Input::default()).await.unwrap(), 1);
            seen.set(true);
        });
        let client = Stream::connect(&core, &address, None).await.unwrap();
        send(&client, b"x").await.unwrap();
        let mut turns = 0;
        while !received.get() {
            turns += 1;
            assert!(turns < 1_000_000, "the byte never arrives");
            core.yield_now().await;
        }
    });
}

#[test]
fn fast_peer_does_not_monopolize_core() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let (sent, done) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(false)));
        let (count, end) = (Rc::clone(&sent), Rc::clone(&done));
        core.spawn(async move {
            let mut input = Input::default();
            while !end.get() && client.recv(&mut input).await.unwrap() > 0 {
                input.consume(input.bytes().len());
            }
        });
        core.spawn(async move {
            while send(&server, &bytes(BUFFER_BYTES)).await.is_ok() {
                count.set(count.get() + 1);
            }
        });
        // The sending task must yield after a bounded number of sends.
        let before = sent.get();
        core.yield_now().await;
        assert!(sent.get() - before <= 4096, "{} sends in a row", sent.get());
        done.set(true);
    });
}

#[test]
fn part_larger_than_kernel_limit_is_sent() {
    /// Four GiB of untouched pages.
    static LARGE: LazyLock<Vec<u8>> = LazyLock::new(|| vec![0; 1 << 32]);
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.queue(&LARGE[..]);
        core.spawn(async move {
            // Ends when the client disconnects.
            server.flush().await.ok();
        });
        client.set_deadline(Some(core.now_exact() + Duration::from_secs(60)));
        let mut taken = 0;
        while taken < 100_000 {
            taken += client.recv(&mut Input::default()).await.unwrap();
        }
    });
}

#[test]
fn unneeded_bytes_are_discarded_exactly() {
    const BEHIND: usize = 20_000;
    on_every_driver(|core, listener, address| async move {
        for count in [1, BUFFER_BYTES, 2_600_000] {
            let client = Stream::connect(&core, &address, None).await.unwrap();
            let server = listener.accept().await.unwrap();
            let all = bytes(count + BEHIND);
            let sent = all.clone();
            core.spawn(async move {
                send(&server, &sent).await.unwrap();
                server.shutdown().await.unwrap();
            });
            let (mut input, mut left) = (Input::default(), count);
            while left > 0 {
                let received = poll_fn(|_| client.poll_recv_or_drop(&mut input, left as u64)).await;
                let received = received.unwrap();
                assert!(received > 0 && (!input.is_empty() || received <= left));
                input.consume(input.bytes().len().min(left));
                left = left.saturating_sub(received);
            }
            let mut behind = input.bytes().to_vec();
            behind.extend(receive_all(&client).await.unwrap());
            assert!(behind == all[count..], "behind {count} bytes");
        }
    });
}
