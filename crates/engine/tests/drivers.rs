//! Every operation on every driver: epoll, io_uring where the kernel has it, and simulated cores with many seeds.

use std::cell::Cell;
use std::future::Future;
use std::io::Write;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{
    Address, BUFFER_BYTES, Claim, Core, Errno, Error, Input, Io, Kind, Listener, Op, Relay, Root,
    Simulation, Source, Stream,
};

const SEEDS: std::ops::Range<u64> = 0..40;

/// The addresses a kernel driver is tested on.
fn addresses(directory: &std::path::Path) -> Vec<Address> {
    vec![
        Address::Tcp("127.0.0.1:0".parse().unwrap()),
        Address::Tcp("[::1]:0".parse().unwrap()),
        Address::Unix(directory.join("socket")),
    ]
}

/// Runs `test` on a core of every driver, with a listener on every kind of address.
fn on_every_driver<F, T>(test: F)
where
    F: Fn(Core, Listener, Address) -> T,
    T: Future<Output = ()> + 'static,
{
    let directory = tempfile::tempdir().unwrap();
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        for address in addresses(directory.path()) {
            eprintln!("{io:?} on {address}");
            run_one(Core::new(0, io).unwrap(), &address, &test);
        }
    }
    for seed in SEEDS {
        eprintln!("simulated, seed {seed}");
        let core = Core::simulated(Simulation::with_seed(seed));
        run_one(core, &Address::Tcp("127.0.0.1:0".parse().unwrap()), &test);
    }
}

fn run_one<F, T>(core: Core, address: &Address, test: &F)
where
    F: Fn(Core, Listener, Address) -> T,
    T: Future<Output = ()> + 'static,
{
    let claim = Claim::new(address).unwrap();
    let listener = Listener::new(&core, &claim).unwrap();
    let finished = Rc::new(Cell::new(false));
    let seen = Rc::clone(&finished);
    let body = test(core.clone(), listener, claim.address().clone());
    core.spawn(async move {
        body.await;
        seen.set(true);
    });
    let cut_off = core.run();
    assert!(finished.get(), "the test's task ended");
    assert_eq!(cut_off, 0, "all tasks ended");
    // With io_uring the kernel holds some while the core lives; tasks must have returned theirs.
    drop(claim);
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index * 31 % 251) as u8).collect()
}

async fn send(stream: &Stream, bytes: &[u8]) -> Result<(), Error> {
    for piece in bytes.chunks(BUFFER_BYTES) {
        let mut buffer = stream.core().buffer()?;
        assert!(buffer.put(piece));
        stream.queue(buffer);
        stream.flush().await?;
    }
    Ok(())
}

async fn receive_all(stream: &Stream) -> Result<Vec<u8>, Error> {
    let mut input = Input::default();
    let mut all = Vec::new();
    while stream.recv(&mut input).await? > 0 {
        all.extend_from_slice(input.bytes());
        input.consume(input.bytes().len());
    }
    Ok(all)
}

/// Sends back whatever arrives, buffer by buffer, without a copy.
async fn echo(stream: Stream) {
    let mut input = Input::default();
    while stream.recv(&mut input).await.unwrap() > 0 {
        stream.queue(input.take().unwrap());
        stream.flush().await.unwrap();
    }
    stream.shutdown().await.unwrap();
}

#[test]
fn what_is_sent_comes_back_unchanged() {
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
fn a_core_that_polls_does_the_same_and_says_how_long_it_worked() {
    on_every_driver(|core, listener, address| async move {
        core.poll_busily();
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
        // How much less depends on when the thread had a CPU.
        assert!(core.take_worked() <= core.now_exact().since(begun));
    });
}

#[test]
fn several_parts_arrive_in_order() {
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
fn a_file_is_sent_behind_its_head() {
    on_every_driver(|core, listener, address| async move {
        let directory = tempfile::tempdir().unwrap();
        let content = bytes(3_000_000);
        std::fs::File::create(directory.path().join("file"))
            .unwrap()
            .write_all(&content)
            .unwrap();
        let file = Root::open(directory.path())
            .unwrap()
            .open_beneath(b"file")
            .unwrap();
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        core.spawn(async move {
            let mut head = server.core().buffer().unwrap();
            assert!(head.put(b"head"));
            server.queue(head);
            let mut sent = 0;
            while sent < 2_500_000 {
                let left = 2_500_000 - sent;
                let more = server.send_file(&file, 1000 + sent, left).await.unwrap();
                assert!((1..=left).contains(&more));
                sent += more;
            }
            server.queue(&b"tail"[..]);
            server.shutdown().await.unwrap();
        });
        let expected = [b"head", &content[1000..2_501_000], b"tail"].concat();
        assert!(receive_all(&client).await.unwrap() == expected);
    });
}

#[test]
fn a_file_shorter_than_promised_is_an_error() {
    on_every_driver(|core, listener, address| async move {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), b"short").unwrap();
        let file = Root::open(directory.path())
            .unwrap()
            .open_beneath(b"file")
            .unwrap();
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let mut sent = 0;
        let error = loop {
            match server.send_file(&file, sent, 100 - sent).await {
                Ok(more) => sent += more,
                Err(error) => break error,
            }
        };
        assert_eq!(sent, 5);
        assert_eq!(error.kind, Kind::FileTooShort);
        drop(server);
        receive_all(&client).await.ok();
    });
}

#[test]
fn a_wait_ends_at_its_deadline_and_the_stream_lives_on() {
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
fn a_sender_whose_peer_does_not_read_times_out() {
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
fn what_a_client_does_not_read_is_not_hoarded_by_the_kernel() {
    on_every_driver(|core, listener, address| async move {
        if matches!(address, Address::Unix(_)) {
            return; // unix(7): a buffer of a fixed size.
        }
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_send_patience(Duration::from_millis(50));
        let mut taken = 0;
        while send(&server, &bytes(BUFFER_BYTES)).await.is_ok() {
            taken += BUFFER_BYTES;
        }
        // The client's window, a segment and what the limit grants are less than 0.2 MB; without the limit the kernel
        // takes 2.5 MB or more.
        assert!(taken <= 1 << 20, "{taken} bytes that nobody reads");
        drop(client);
    });
}

#[test]
fn a_stream_that_is_to_reset_when_dropped_never_looks_complete() {
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

#[test]
fn a_receive_that_is_given_up_loses_nothing() {
    on_every_driver(|core, listener, address| async move {
        let client = Rc::new(Stream::connect(&core, &address, None).await.unwrap());
        let server = listener.accept().await.unwrap();
        let mut input = Input::default();
        // Poll a receive once, so that it waits in the kernel, and drop it.
        {
            let mut receive = Box::pin(client.recv(&mut input));
            let polled = std::future::poll_fn(|context| {
                std::task::Poll::Ready(receive.as_mut().poll(context))
            })
            .await;
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
fn of_a_peer_that_sends_endlessly_only_a_handful_of_buffers_is_held() {
    const STREAMS: usize = 20;
    /// What the sender's end has under way, and what has come to the receiver's. Of the latter a multishot receive may
    /// have one more than it was meant to.
    const BUFFERS_PER_STREAM: usize = 2 + 2;
    on_every_driver(|core, listener, address| async move {
        // With io_uring the kernel holds a fixed number.
        let lent = buffers_once_calm(&core).await;
        let mut streams = Vec::new();
        for _ in 0..STREAMS {
            let sender = Stream::connect(&core, &address, None).await.unwrap();
            let receiver = listener.accept().await.unwrap();
            // It looks like a connection of small messages, until it is one no more.
            for _ in 0..3 {
                send(&sender, b"small").await.unwrap();
                receiver.recv(&mut Input::default()).await.unwrap();
            }
            core.spawn(async move { while send(&sender, &bytes(BUFFER_BYTES)).await.is_ok() {} });
            streams.push(receiver);
        }
        for _ in 0..3 {
            let most = buffers_once_calm(&core).await;
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

/// The most buffers that are in use until their number has stood still for a while.
async fn buffers_once_calm(core: &Core) -> usize {
    let (mut most, mut last, mut calm) = (0, 0, 0);
    while calm < 20 {
        core.sleep(Duration::from_millis(1)).await;
        let now = core.pool().in_use();
        calm = if now == last { calm + 1 } else { 0 };
        (most, last) = (most.max(now), now);
    }
    most
}

#[test]
fn of_a_peer_that_sends_byte_by_byte_only_a_handful_of_buffers_is_held() {
    on_every_driver(|core, listener, address| async move {
        let lent = buffers_once_calm(&core).await;
        let sender = Stream::connect(&core, &address, None).await.unwrap();
        let receiver = listener.accept().await.unwrap();
        send(&sender, b"x").await.unwrap();
        receiver.recv(&mut Input::default()).await.unwrap();
        // Once it has waited in vain it is ready to receive whatever comes.
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

#[test]
fn streams_dropped_with_everything_in_flight_return_all_buffers() {
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
            let _ = std::future::poll_fn(|context| {
                std::task::Poll::Ready(flush.as_mut().poll(context))
            })
            .await;
            drop(flush);
            drop(client);
            drop(server);
        }
        // What the kernel still has to give back comes with the next turns.
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

/// Two connections; a tunnel goes from the second end of the first to the first end of the second.
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

/// Relays until the source ends, and ends the other stream then. Returns how many bytes that were.
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

/// A conversation: messages, bulk, and messages again.
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

#[test]
fn a_tunnel_changes_nothing_and_each_direction_ends_on_its_own() {
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
        let (answering, asked) = (Rc::clone(&server), all.clone());
        core.spawn(async move {
            let speaker = Rc::clone(&answering);
            let spoken = Rc::new(Cell::new(false));
            let done = Rc::clone(&spoken);
            answering.core().spawn(async move {
                send_portions(&speaker).await;
                done.set(true);
            });
            assert!(receive_all(&answering).await.unwrap() == asked);
            while !spoken.get() {
                answering.core().sleep(Duration::from_millis(1)).await;
            }
            // The other direction has ended; this one goes on.
            send_portions(&answering).await;
            answering.shutdown().await.unwrap();
        });
        assert!(receive_all(&client).await.unwrap() == all.repeat(2));
    });
}

#[test]
fn what_came_before_a_tunnel_goes_first() {
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
        // A receive that is given up parks what is left over, and may leave one armed in the kernel.
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
fn a_transfer_that_is_given_up_loses_nothing() {
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
                let polled = std::future::poll_fn(|context| {
                    std::task::Poll::Ready(transfer.as_mut().poll(context))
                })
                .await;
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
fn a_tunnel_whose_reader_is_slow_holds_a_handful_of_buffers_and_gives_all_back() {
    on_every_driver(|core, listener, address| async move {
        let lent = buffers_once_calm(&core).await;
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
        let held = buffers_once_calm(&core).await - lent;
        assert!(
            held <= 2 + 2 + 2,
            "{held} buffers at the sender, in the tunnel, at the reader"
        );
        drop(server);
    });
}

#[test]
fn a_tunnel_waits_until_its_deadlines_and_says_whose_passed() {
    on_every_driver(|core, listener, address| async move {
        let path = Path::new(&core, &listener, &address).await;
        let mut relay = Relay::default();
        path.front
            .set_deadline(Some(core.now_exact() + Duration::from_millis(5)));
        let error = relay.transfer(&path.front, &path.back).await.unwrap_err();
        assert_eq!((error.op, error.kind), (Op::Recv, Kind::TimedOut));
        // Nobody reads at the other end.
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
fn connecting_where_nobody_listens_is_refused() {
    on_every_driver(|core, listener, address| async move {
        drop(listener);
        core.sleep(Duration::from_millis(1)).await;
        if matches!(address, Address::Unix(_)) {
            return; // The claim keeps a Unix socket listening.
        }
        let error = Stream::connect(&core, &address, None)
            .await
            .err()
            .expect("nobody listens");
        assert_eq!(error.kind, Kind::Os(Errno::CONNREFUSED));
    });
}

#[test]
fn a_connection_comes_from_where_it_is_told_to() {
    on_every_driver(|core, listener, address| async move {
        let Address::Tcp(target) = address.clone() else {
            return; // Unix sockets come from nowhere.
        };
        // The loopback of IPv4 has 2^24 addresses, that of IPv6 has one.
        let wanted: IpAddr = match target {
            SocketAddr::V4(_) => [127, 0, 0, 2].into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        for ports in [None, Some(40_000..=40_100)] {
            let source = Source {
                address: Some(wanted),
                ports: ports.clone(),
            };
            let near = Stream::connect_from(&core, &source, &address, None)
                .await
                .unwrap();
            let far = listener.accept().await.unwrap();
            let peer = far.peer().unwrap();
            assert_eq!(peer.ip(), wanted);
            // A simulated network has no ports to choose from.
            if near.tcp_info().is_some() {
                assert_eq!(near.local(), Some(peer));
                let range = ports.unwrap_or(1..=u16::MAX);
                assert!(range.contains(&peer.port()), "{peer}");
            }
        }
    });
}

#[test]
fn a_source_that_is_not_of_this_machine_is_told_from_a_lack_of_ports() {
    on_every_driver(|core, listener, address| async move {
        let strange: IpAddr = match address {
            // RFC 5737 and RFC 3849: for documents only.
            Address::Tcp(SocketAddr::V4(_)) => "192.0.2.1".parse().unwrap(),
            Address::Tcp(SocketAddr::V6(_)) => "2001:db8::1".parse().unwrap(),
            Address::Unix(_) => return,
        };
        let source = Source {
            address: Some(strange),
            ports: None,
        };
        match Stream::connect_from(&core, &source, &address, None).await {
            Ok(stream) => assert!(stream.tcp_info().is_none(), "a simulated machine has all"),
            Err(error) => {
                let taken = (Op::Bind, Kind::Os(Errno::ADDRNOTAVAIL));
                assert_eq!((error.op, error.kind), taken);
            }
        }
        drop(listener);
    });
}

#[test]
fn stopping_ends_idle_waits_at_once_and_lets_work_finish() {
    on_every_driver(|core, listener, address| async move {
        let finished = Rc::new(Cell::new(0));
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let count = Rc::clone(&finished);
        core.spawn(async move {
            let error = listener.accept().await.err().expect("interrupted");
            assert_eq!(error.kind, Kind::Stopping);
            count.set(count.get() + 1);
        });
        let count = Rc::clone(&finished);
        core.spawn(async move {
            let error = server
                .recv_unless_stopping(&mut Input::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind, Kind::Stopping);
            count.set(count.get() + 1);
        });
        let (count, sleeper) = (Rc::clone(&finished), core.clone());
        core.spawn(async move {
            sleeper.stopped().await;
            sleeper.sleep(Duration::from_millis(3)).await;
            assert_eq!(count.get(), 2);
            count.set(3);
        });
        core.pause().await;
        core.stop(Duration::from_secs(60));
        while finished.get() < 3 {
            core.sleep(Duration::from_millis(1)).await;
        }
        drop(client);
    });
}

#[test]
fn a_stop_with_more_patience_does_not_prolong_one_with_less() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let waiting = core.clone();
        core.spawn(async move { waiting.sleep(Duration::from_secs(3600)).await });
        core.stop(Duration::ZERO);
        core.stop(Duration::from_secs(3600));
        assert_eq!(core.run(), 1, "the sleeper is cut off");
    }
}

#[test]
fn a_second_stop_with_less_patience_shortens_the_first() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let (waiting, stopper) = (core.clone(), core.clone());
        core.spawn(async move { waiting.sleep(Duration::from_secs(3600)).await });
        core.spawn(async move {
            stopper.stop(Duration::from_secs(3600));
            stopper.stopped().await;
            stopper.stop(Duration::ZERO);
        });
        assert_eq!(core.run(), 1, "the sleeper is cut off");
    }
}

#[test]
fn a_core_that_is_stopped_over_and_over_still_stops() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let (waiting, handle) = (core.clone(), core.handle());
        core.spawn(async move {
            waiting.stopped().await;
            for _ in 0..100 {
                waiting.pause().await;
            }
        });
        let stopper = std::thread::spawn(move || {
            for _ in 0..10_000 {
                handle.stop(Duration::from_secs(60));
            }
        });
        assert_eq!(core.run(), 0);
        stopper.join().unwrap();
    }
}

#[test]
fn a_task_that_is_always_ready_does_not_keep_the_others_from_their_sockets() {
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
            core.pause().await;
        }
    });
}

#[test]
fn a_peer_that_never_lets_us_wait_does_not_hold_the_core() {
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
        // Bounded by what one turn may send, not by what the sender would like to.
        let before = sent.get();
        core.pause().await;
        assert!(sent.get() - before <= 4096, "{} sends in a row", sent.get());
        done.set(true);
    });
}

#[test]
fn a_stream_dropped_after_its_send_timed_out_gives_its_descriptor_back() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        server.set_deadline(Some(core.now_exact() + Duration::from_millis(20)));
        while send(&server, &bytes(BUFFER_BYTES)).await.is_ok() {}
        drop(server);
        // The peer reads what was sent and comes to an end only if the other side was closed.
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

#[test]
fn what_was_sent_last_arrives_although_the_core_ends() {
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

#[test]
fn a_simulated_reset_reaches_both_ends_and_nobody_hangs() {
    for seed in SEEDS {
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

#[test]
fn another_thread_can_stop_pinned_cores() {
    let cpus = onrush_engine::cpu::allowed()
        .into_iter()
        .map(Some)
        .collect();
    let setup = onrush_engine::Setup {
        io: Io::Epoll,
        cpus,
    };
    let cores = onrush_engine::start(&setup, |core| {
        let waiting = core.clone();
        core.spawn(async move { waiting.stopped().await });
        assert_eq!(core.run(), 0);
        core.id()
    })
    .unwrap();
    cores.stop(Duration::from_secs(1));
    let ids = cores.join();
    assert_eq!(ids, (0..ids.len()).collect::<Vec<_>>());
}

#[test]
fn a_taken_address_is_an_error_even_with_port_sharing() {
    let core = Core::new(0, Io::Epoll).unwrap();
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let _listener = Listener::new(&core, &claim).unwrap();
    let error = Claim::new(claim.address()).unwrap_err();
    assert!(error.is_address_in_use(), "{error}");
}

#[test]
fn a_free_port_is_given_to_one_claim_only() {
    let free = Address::Tcp("127.0.0.1:0".parse().unwrap());
    let claims: Vec<Claim> = (0..400).map(|_| Claim::new(&free).unwrap()).collect();
    let mut addresses: Vec<String> = claims
        .iter()
        .map(|claim| claim.address().to_string())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), claims.len());
}

#[test]
fn an_abandoned_unix_socket_is_replaced_and_a_live_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let claim = Claim::new(&Address::Unix(path.clone())).unwrap();
    assert!(
        Claim::new(&Address::Unix(path.clone()))
            .unwrap_err()
            .is_address_in_use()
    );
    drop(claim);
    assert!(!path.exists());
}

#[test]
fn a_file_that_is_no_socket_is_never_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, b"somebody's").unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for taken in [&path, &link] {
        let error = Claim::new(&Address::Unix(taken.clone())).unwrap_err();
        assert!(error.is_address_in_use(), "{error}");
        assert_eq!(std::fs::read(taken).unwrap(), b"somebody's");
    }
}

#[test]
fn a_path_cannot_leave_its_root() {
    let directory = tempfile::tempdir().unwrap();
    let root_path = directory.path().join("root");
    std::fs::create_dir_all(root_path.join("inner")).unwrap();
    std::fs::write(directory.path().join("secret"), b"secret").unwrap();
    std::fs::write(root_path.join("public"), b"public").unwrap();
    std::os::unix::fs::symlink("../secret", root_path.join("out")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", root_path.join("absolute")).unwrap();
    std::os::unix::fs::symlink("../public", root_path.join("inner/within")).unwrap();
    let root = Root::open(&root_path).unwrap();
    for path in [
        "../secret",
        "inner/../../secret",
        "out",
        "absolute",
        "/etc/passwd",
    ] {
        let error = root.open_beneath(path.as_bytes()).unwrap_err();
        assert_eq!(error.kind, Kind::Os(Errno::XDEV), "{path}");
    }
    assert_eq!(
        root.open_beneath(b"inner/within")
            .unwrap()
            .metadata()
            .length,
        6
    );
    assert_eq!(
        root.open_beneath(b"nothing").unwrap_err().kind,
        Kind::Os(Errno::NOENT)
    );
}
