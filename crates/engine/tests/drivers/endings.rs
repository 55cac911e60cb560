//! Streams that are dropped or reset, with and without unsent bytes.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, BUFFER_BYTES, Claim, Core, Input, Io, Listener, Simulation, Stream};

use crate::ground::{SEEDS, bytes, on_every_driver, poll_once, receive_all, seeds, send};

#[test]
fn reset_when_dropped_sends_reset() {
    on_every_driver(|core, listener, address| async move {
        if matches!(address, Address::Unix(_)) {
            return; // unix(7): no resets.
        }
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        send(&server, b"half of it").await.unwrap();
        server.reset_when_dropped();
        drop(server);
        let error = receive_all(&client).await.unwrap_err();
        assert!(error.is_reset(), "{error}");
    });
}

/// Flushes more bytes than both sockets' buffers hold, without waiting.
async fn send_more_than_fits(stream: &Stream) {
    for _ in 0..400 {
        let mut buffer = stream.core().buffer().unwrap();
        assert!(buffer.put(&bytes(BUFFER_BYTES)));
        stream.queue(buffer);
    }
    let mut flush = Box::pin(stream.flush());
    let _ = poll_once(&mut flush).await;
}

/// Whether sends of `stream`, whose peer reads nothing, fail within a minute, before any other timeout.
async fn sends_fail_within_minute(stream: &Stream) -> bool {
    let core = stream.core();
    let until = core.now_exact() + Duration::from_secs(60);
    while core.now_exact() < until {
        stream.queue(&b"x"[..]);
        if stream.flush().await.is_err() {
            return true;
        }
        core.sleep(Duration::from_millis(1)).await;
    }
    false
}

#[test]
fn reset_does_not_wait_for_peer() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_send_patience(Duration::from_secs(3600));
        send_more_than_fits(&server).await;
        // With io_uring the send is in flight from the next turn on.
        core.sleep(Duration::from_millis(1)).await;
        server.reset_when_dropped();
        drop(server);
        assert!(sends_fail_within_minute(&client).await, "it is still open");
    });
}

#[test]
fn dropped_streams_return_buffers() {
    on_every_driver(|core, listener, address| async move {
        let before = core.pool().in_use();
        for round in 0..50 {
            let client = Stream::connect(&core, &address, None).await.unwrap();
            let server = listener.accept().await.unwrap();
            send(&client, &bytes(1000)).await.unwrap();
            let mut input = Input::default();
            if round % 2 == 0 {
                server.recv(&mut input).await.unwrap();
            }
            // More than the socket buffers hold: the send stays in flight.
            for _ in 0..20 {
                let mut buffer = core.buffer().unwrap();
                assert!(buffer.put(&bytes(BUFFER_BYTES)));
                server.queue(buffer);
            }
            let mut flush = Box::pin(server.flush());
            let _ = poll_once(&mut flush).await;
            drop(flush);
            drop(client);
            drop(server);
        }
        // The kernel returns the remaining buffers in the next turns.
        for _ in 0..200 {
            if core.pool().in_use() <= before + 256 {
                break;
            }
            core.sleep(Duration::from_millis(1)).await;
        }
        assert!(
            core.pool().in_use() <= before + 256,
            "{} buffers leaked",
            core.pool().in_use()
        );
    });
}

#[test]
fn last_bytes_arrive_after_core_stop() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(address) = claim.address().clone() else {
            unreachable!()
        };
        let listener = Listener::new(&core, &claim).unwrap();
        let client = std::thread::spawn(move || {
            use std::io::Read;
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).map(|_| received.len())
        });
        core.spawn(async move {
            let server = listener.accept().await.unwrap();
            let shared: Rc<[u8]> = bytes(20_000_000).into();
            server.queue(shared);
            server.flush().await.unwrap();
        });
        assert_eq!(core.run(), 0);
        assert_eq!(client.join().unwrap().unwrap(), 20_000_000, "{io:?}");
    }
}

/// Checks what a client receives after its server's core has ended, on every kernel driver. Cuts `serve` off.
fn check_after_core_end<F, T>(serve: F, check: impl Fn(std::io::Result<usize>, Io))
where
    F: Fn(Core, Stream) -> T,
    T: Future<Output = ()> + 'static,
{
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let Address::Tcp(address) = claim.address().clone() else {
            unreachable!()
        };
        let listener = Listener::new(&core, &claim).unwrap();
        let mut client = std::net::TcpStream::connect(address).unwrap();
        let accepted: Rc<Cell<Option<Stream>>> = Rc::default();
        let seen = Rc::clone(&accepted);
        core.spawn(async move { seen.set(Some(listener.accept().await.unwrap())) });
        core.run();
        core.spawn(serve(core.clone(), accepted.take().unwrap()));
        core.run();
        drop(core);
        let mut received = Vec::new();
        let end = std::io::Read::read_to_end(&mut client, &mut received);
        check(end, io);
    }
}

#[test]
fn unsent_bytes_at_core_stop_cause_reset() {
    let is_reset = |end: std::io::Result<usize>, io| {
        let error = end.expect_err("it is not whole");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{io:?}");
    };
    check_after_core_end(
        |core, server| async move {
            send_more_than_fits(&server).await;
            core.stop(Duration::ZERO);
            let _ = server.flush().await;
            core.sleep(Duration::from_secs(3600)).await;
        },
        is_reset,
    );
    check_after_core_end(
        |core, server| async move {
            send_more_than_fits(&server).await;
            drop(server);
            core.sleep(Duration::from_millis(1)).await;
            core.stop(Duration::ZERO);
        },
        is_reset,
    );
}

#[test]
fn send_timeout_resets_connection() {
    let serve = |_, server: Stream| async move {
        server.set_send_patience(Duration::from_millis(1));
        send_more_than_fits(&server).await;
        while server.flush().await.is_ok() {}
    };
    check_after_core_end(serve, |end, io| {
        let error = end.expect_err("it is not whole");
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{io:?}");
    });
}

#[test]
fn stopping_core_flushes_to_socket_buffer() {
    let serve = |core: Core, server: Stream| async move {
        core.stop(Duration::ZERO);
        core.stopped().await;
        server.queue(&b"all of it"[..]);
        server.flush().await.unwrap();
        core.sleep(Duration::from_secs(3600)).await;
    };
    check_after_core_end(serve, |end, io| assert_eq!(end.unwrap(), 9, "{io:?}"));
}

#[test]
fn simulated_reset_reaches_both_ends() {
    for seed in seeds(SEEDS) {
        let mut options = Simulation::with_seed(seed);
        options.reset = 100;
        let core = Core::simulated(options);
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::new(&core, &claim).unwrap();
        let address = claim.address().clone();
        let resets = Rc::new(Cell::new(0));
        let (seen, server, client) = (Rc::clone(&resets), core.clone(), core.clone());
        core.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                server.spawn(async move {
                    let mut input = Input::default();
                    while let Ok(1..) = stream.recv(&mut input).await {
                        stream.queue(input.take().unwrap());
                        if stream.flush().await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        core.spawn(async move {
            for _ in 0..30 {
                let stream = Stream::connect(&client, &address, None).await.unwrap();
                let outcome = async {
                    send(&stream, &bytes(5000)).await?;
                    stream.shutdown().await?;
                    receive_all(&stream).await
                };
                match outcome.await {
                    Ok(received) => assert!(bytes(5000).starts_with(&received)),
                    Err(error) => {
                        assert!(error.is_reset(), "{error} (seed {seed})");
                        seen.set(seen.get() + 1);
                    }
                }
            }
            client.stop(Duration::from_secs(1));
        });
        core.run();
        assert!(resets.get() > 0, "resets happened (seed {seed})");
    }
}
