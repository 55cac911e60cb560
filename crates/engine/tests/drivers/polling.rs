//! Busy polling with a peer on another thread: bytes arrive repeatedly at one socket, which the core then receives from
//! directly, while other sockets are still served.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use onrush_engine::clock::thread_cpu;
use onrush_engine::{
    Address, Core, Datagram, Errno, Input, Io, Kind, Message, ReceiveBatch, SendBatch, Stream, Work,
};

use super::ground::run;

const ROUND_TRIPS: usize = 300;
/// Long enough for thousands of receives.
const SILENCE: Duration = Duration::from_millis(20);
const KIND: Work = Work::task(0);

fn cores() -> impl Iterator<Item = Core> {
    let cores = [Io::Epoll, Io::IoUring].map(|io| Core::new(0, io).ok());
    let cores = cores.into_iter().flatten();
    cores.inspect(Core::busy_poll)
}

/// A TCP echo on a thread of its own, which pauses after `ROUND_TRIPS`.
fn echo() -> (Address, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut bytes = [0; 100];
        for number in 1.. {
            match stream.read(&mut bytes).unwrap() {
                0 => return,
                _ if number == ROUND_TRIPS => thread::sleep(SILENCE),
                _ => {}
            }
            stream.write_all(&bytes[..1]).unwrap();
        }
    });
    (address, peer)
}

async fn round_trips(stream: &Stream, count: usize) {
    let mut input = Input::default();
    for number in 0..count {
        stream.queue(Rc::<[u8]>::from([number as u8]));
        stream.flush().await.unwrap();
        assert_eq!(stream.recv(&mut input).await, Ok(1));
        assert_eq!(input.bytes(), [number as u8]);
        input.consume(1);
    }
}

#[test]
fn empty_polls_count_as_wait() {
    for core in cores() {
        let (address, peer) = echo();
        let asking = core.clone();
        run(&core, async move {
            let stream = Stream::connect(&asking, &address, None).await.unwrap();
            asking.set_work(KIND);
            round_trips(&stream, ROUND_TRIPS).await;
        });
        let (profile, worked) = (core.profile(), core.worked());
        // With io_uring an armed receive keeps the connection open. Dropping the core closes it, so the peer ends.
        drop(core);
        peer.join().unwrap();
        let steps = profile[KIND.index()].calls as usize;
        // One poll per response and one to send, and some for reports of bytes that were already received.
        assert!(
            (ROUND_TRIPS..4 * ROUND_TRIPS).contains(&steps),
            "{steps} steps"
        );
        assert!(profile[Work::WAIT.index()].time >= SILENCE);
        let all: Duration = profile.iter().map(|figures| figures.time).sum();
        assert!(worked > Duration::ZERO && worked + SILENCE <= all);
    }
}

#[test]
fn blocked_time_is_not_work() {
    for core in cores() {
        let before = thread_cpu();
        let waiting = core.clone();
        run(&core, async move {
            // Between two looks at the kernel, like work for events.
            waiting.yield_now().await;
            // Blocks the thread.
            thread::sleep(SILENCE);
            waiting.yield_now().await;
        });
        let worked = core.worked();
        assert!(worked <= thread_cpu() - before, "{worked:?}");
        assert!(core.take_work_time() >= worked);
    }
}

#[test]
fn busy_polling_does_not_starve_other_waits() {
    for core in cores() {
        let (address, peer) = echo();
        let (other_address, other_peer) = echo();
        let asking = core.clone();
        let (posted, post) = (core.promise(), core.handle());
        run(&core, async move {
            let stream = Stream::connect(&asking, &address, None).await.unwrap();
            let other = Stream::connect(&asking, &other_address, None)
                .await
                .unwrap();
            // From here on the core receives directly from this socket, and no bytes arrive.
            round_trips(&stream, ROUND_TRIPS - 1).await;
            stream.set_deadline(Some(asking.now_exact() + 5 * SILENCE));
            asking.spawn(async move {
                let error = stream.recv(&mut Input::default()).await;
                assert_eq!(error.unwrap_err().kind, Kind::TimedOut);
            });
            asking.sleep(Duration::from_millis(1)).await;
            round_trips(&other, 1).await;
            let (keep, kept) = posted;
            let poster = thread::spawn(move || post.post(|_| keep.fulfil(())).unwrap());
            assert_eq!(kept.await, Some(()));
            poster.join().unwrap();
        });
        drop(core);
        peer.join().unwrap();
        other_peer.join().unwrap();
    }
}

#[test]
fn stop_is_seen_while_polling() {
    for core in cores() {
        let (address, peer) = echo();
        let asking = core.clone();
        let handle = core.handle();
        core.spawn(async move {
            let stream = Stream::connect(&asking, &address, None).await.unwrap();
            round_trips(&stream, ROUND_TRIPS - 1).await;
            let stopper = thread::spawn(move || handle.stop(Duration::ZERO));
            let mut input = Input::default();
            let error = stream.recv_unless_stopping(&mut input).await;
            assert_eq!(error.unwrap_err().kind, Kind::Stopping);
            stopper.join().unwrap();
        });
        core.run();
        drop(core);
        peer.join().unwrap();
    }
}

#[test]
fn single_and_bursty_datagrams_arrive() {
    for core in cores() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer_address = peer.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let mut bytes = [0; 100];
            for _ in 0..ROUND_TRIPS {
                let (length, from) = peer.recv_from(&mut bytes).unwrap();
                peer.send_to(&bytes[..length], from).unwrap();
            }
            let (_, from) = peer.recv_from(&mut bytes).unwrap();
            for number in 0..40 {
                peer.send_to(&[number; 3], from).unwrap();
            }
            // The peer's socket is closed here.
        });
        let asking = core.clone();
        run(&core, async move {
            let socket = Datagram::bind(&asking, "127.0.0.1:0".parse().unwrap()).unwrap();
            let mut sent = SendBatch::default();
            let mut received = ReceiveBatch::new(16, 100);
            let message = |bytes: &[u8]| Message {
                to: Some(peer_address),
                ..Message::new(Rc::<[u8]>::from(bytes))
            };
            for number in 0..ROUND_TRIPS {
                let bytes = [number as u8, 1, 2];
                sent.push(message(&bytes)).unwrap();
                assert_eq!(socket.send(&mut sent).await, Ok(1));
                assert_eq!(socket.recv(&mut received).await, Ok(1));
                let all: Vec<_> = received.iter().collect();
                assert_eq!((all.len(), all[0].bytes), (1, &bytes[..]));
                assert_eq!(all[0].from, peer_address);
            }
            sent.push(message(b"many")).unwrap();
            assert_eq!(socket.send(&mut sent).await, Ok(1));
            let mut numbers = Vec::new();
            while numbers.len() < 40 {
                socket.recv(&mut received).await.unwrap();
                numbers.extend(received.iter().map(|one| one.bytes[0]));
            }
            assert!(numbers.into_iter().eq(0..40));
            answering.join().unwrap();
            socket.connect(peer_address).unwrap();
            sent.push(Message::new(&b"nobody"[..])).unwrap();
            socket.send(&mut sent).await.unwrap();
            let refused = socket.recv(&mut received).await.unwrap_err();
            assert_eq!(refused.kind, Kind::Os(Errno::CONNREFUSED));
        });
    }
}

#[test]
fn polled_datagram_reports_truncation() {
    for core in cores() {
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer_address = peer.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let mut bytes = [0; 100];
            for number in 0..ROUND_TRIPS {
                let (_, from) = peer.recv_from(&mut bytes).unwrap();
                // One in thirteen is longer than the receive buffer.
                peer.send_to(&[7; 12][..number % 13], from).unwrap();
            }
        });
        let asking = core.clone();
        run(&core, async move {
            for tells in [false, true] {
                let socket = Datagram::bind(&asking, "127.0.0.1:0".parse().unwrap()).unwrap();
                if tells {
                    socket.enable_control().unwrap();
                }
                socket.connect(peer_address).unwrap();
                let mut sent = SendBatch::default();
                let mut received = ReceiveBatch::new(16, 11);
                for number in
                    (0..ROUND_TRIPS / 2).map(|at| at + usize::from(tells) * ROUND_TRIPS / 2)
                {
                    sent.push(Message::new(&b"?"[..])).unwrap();
                    socket.send(&mut sent).await.unwrap();
                    assert_eq!(socket.recv(&mut received).await, Ok(1));
                    let one = received.iter().next().unwrap();
                    let length = number % 13;
                    assert_eq!(
                        (one.bytes.len(), one.is_truncated),
                        (length.min(11), length > 11)
                    );
                    assert_eq!((one.from, one.to.is_some()), (peer_address, tells));
                }
            }
        });
        answering.join().unwrap();
    }
}
