//! Sending and receiving datagrams.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{
    Core, Datagram, Ecn, Errno, Error, Io, Kind, Message, ReceiveBatch, SendBatch, Simulation,
};

use crate::ground::{SEEDS, bytes, poll_once, run, seeds};

/// Runs `test` on a core of every driver with an address of each protocol, on networks that lose no datagrams.
pub(crate) fn on_every_network<F, T>(test: F)
where
    F: Fn(Core, SocketAddr) -> T,
    T: Future<Output = ()> + 'static,
{
    let addresses = ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().unwrap());
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            eprintln!("skipped: this kernel has no {io:?}");
            continue;
        }
        for address in addresses {
            eprintln!("{io:?} on {address}");
            let core = Core::new(0, io).unwrap();
            run(&core, test(core.clone(), address));
        }
    }
    for seed in seeds(SEEDS) {
        eprintln!("simulated, seed {seed}");
        let core = Core::simulated(Simulation {
            lost: 0,
            duplicated: 0,
            ..Simulation::with_seed(seed)
        });
        let address = addresses[seed as usize % 2];
        run(&core, test(core.clone(), address));
    }
}

/// Two sockets; the first is connected to the second.
pub(crate) fn pair(core: &Core, address: SocketAddr) -> (Datagram, Datagram) {
    let near = Datagram::bind(core, address).unwrap();
    let far = Datagram::bind(core, address).unwrap();
    near.connect(far.local()).unwrap();
    (near, far)
}

pub(crate) async fn send_all(socket: &Datagram, batch: &mut SendBatch) -> usize {
    let mut count = 0;
    while !batch.is_empty() {
        count += socket.send(batch).await.unwrap();
    }
    count
}

async fn send(socket: &Datagram, payload: &[u8]) -> Result<usize, Error> {
    let mut batch = SendBatch::default();
    batch.push(Message::new(Rc::<[u8]>::from(payload))).unwrap();
    socket.send(&mut batch).await
}

/// Receives `count` datagrams, sorted because a simulated network reorders them.
pub(crate) async fn receive(
    socket: &Datagram,
    batch: &mut ReceiveBatch,
    count: usize,
) -> Vec<Vec<u8>> {
    let deadline = socket.core().now_exact() + Duration::from_secs(20);
    socket.set_deadline(Some(deadline));
    let mut all = Vec::new();
    while all.len() < count {
        assert!(socket.recv(batch).await.unwrap() > 0);
        for received in batch.iter() {
            assert!(!received.is_truncated);
            all.push(received.bytes.to_vec());
        }
    }
    all.sort_unstable();
    all
}

/// Checks that nothing more arrives.
async fn expect_silence(socket: &Datagram) {
    socket.set_deadline(Some(socket.core().now_exact() + Duration::from_millis(20)));
    let error = socket.recv(&mut ReceiveBatch::new(1, 1)).await.unwrap_err();
    assert_eq!(error.kind, Kind::TimedOut);
}

#[test]
fn datagrams_arrive_unchanged() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let mut batch = SendBatch::default();
        let mut expected = Vec::new();
        for count in [0, 1, 100, 1472, 1473, 9000, 40_000, 65_507] {
            expected.push(bytes(count));
            batch
                .push(Message::new(Rc::<[u8]>::from(bytes(count))))
                .unwrap();
        }
        assert_eq!(send_all(&near, &mut batch).await, expected.len());
        expected.sort_unstable();
        let mut received = ReceiveBatch::new(5, usize::MAX);
        let all = receive(&far, &mut received, expected.len()).await;
        assert!(all == expected, "a datagram changed");
        expect_silence(&far).await;
    });
}

#[test]
fn send_batch_is_bounded_and_uses_destinations() {
    on_every_network(|core, address| async move {
        let near = Datagram::bind(&core, address).unwrap();
        let far = [(); 3].map(|()| Datagram::bind(&core, address).unwrap());
        let mut batch = SendBatch::default();
        let mut number = 0_u8;
        let refused = loop {
            let mut buffer = core.buffer().unwrap();
            assert!(buffer.put(&[number]));
            let message = Message {
                to: Some(far[usize::from(number) % 3].local()),
                ..Message::new(buffer)
            };
            match batch.push(message) {
                Ok(()) => number += 1,
                Err(message) => break message,
            }
        };
        assert_eq!((refused.payload.bytes(), batch.len()), (&[32][..], 32));
        assert_eq!(send_all(&near, &mut batch).await, 32);
        for (at, socket) in far.iter().enumerate() {
            let expected: Vec<Vec<u8>> = (0..32)
                .filter(|number| number % 3 == at as u8)
                .map(|number| vec![number])
                .collect();
            let mut received = ReceiveBatch::new(32, 10);
            assert_eq!(
                receive(socket, &mut received, expected.len()).await,
                expected
            );
            assert!(received.iter().all(|one| one.from == near.local()));
        }
    });
}

#[test]
fn long_datagram_is_truncated() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let mut received = ReceiveBatch::new(3, 10);
        for (sent, kept, is_truncated) in [(9, 9, false), (10, 10, false), (11, 10, true)] {
            send(&near, &bytes(sent)).await.unwrap();
            assert_eq!(far.recv(&mut received).await, Ok(1));
            let one = received.iter().next().unwrap();
            assert_eq!(
                (one.bytes, one.is_truncated),
                (&bytes(kept)[..], is_truncated)
            );
        }
    });
}

#[test]
fn destination_and_ecn_are_reported() {
    on_every_network(|core, address| async move {
        let unspecified: SocketAddr = match address {
            SocketAddr::V4(_) => "0.0.0.0:0".parse().unwrap(),
            SocketAddr::V6(_) => "[::]:0".parse().unwrap(),
        };
        let far = Datagram::bind(&core, unspecified).unwrap();
        far.enable_control().unwrap();
        let near = Datagram::bind(&core, unspecified).unwrap();
        // All addresses of 127.0.0.0/8 belong to this machine.
        let from = match address {
            SocketAddr::V4(_) => "127.0.0.2".parse().unwrap(),
            SocketAddr::V6(_) => address.ip(),
        };
        let mut received = ReceiveBatch::new(1, 100);
        for ecn in [
            Ecn::NotCapable,
            Ecn::Capable1,
            Ecn::Capable0,
            Ecn::Congested,
        ] {
            let mut batch = SendBatch::default();
            batch
                .push(Message {
                    to: Some(SocketAddr::new(address.ip(), far.local().port())),
                    from: Some(from),
                    ecn,
                    segment: NonZeroU16::new(1),
                    ..Message::new(&b"ab"[..])
                })
                .unwrap();
            assert_eq!(send_all(&near, &mut batch).await, 2);
            for _ in 0..2 {
                assert_eq!(far.recv(&mut received).await, Ok(1));
                let one = received.iter().next().unwrap();
                assert_eq!((one.to, one.ecn), (Some(address.ip()), ecn));
                assert_eq!(one.from, SocketAddr::new(from, near.local().port()));
            }
        }
    });
}

#[test]
fn refusal_is_reported_once() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let there = far.local();
        drop(far);
        for _ in 0..2 {
            send(&near, b"lost").await.unwrap();
            let error = near.recv(&mut ReceiveBatch::new(1, 100)).await.unwrap_err();
            assert_eq!(error.kind, Kind::Os(Errno::CONNREFUSED));
        }
        let far = Datagram::bind(&core, there).unwrap();
        send(&near, b"there").await.unwrap();
        let mut received = ReceiveBatch::new(1, 100);
        assert_eq!(receive(&far, &mut received, 1).await, [b"there"]);
        expect_silence(&near).await;
    });
}

#[test]
fn oversized_datagram_is_an_error() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let mut batch = SendBatch::default();
        for payload in [Rc::from(bytes(65_536)), Rc::<[u8]>::from(bytes(3))] {
            batch.push(Message::new(payload)).unwrap();
        }
        let error = near.send(&mut batch).await.unwrap_err();
        assert_eq!(error.kind, Kind::Os(Errno::MSGSIZE));
        assert_eq!(send_all(&near, &mut batch).await, 1);
        let mut received = ReceiveBatch::new(1, 100);
        assert_eq!(receive(&far, &mut received, 1).await, [bytes(3)]);
    });
}

#[test]
fn connected_socket_filters_peers() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let stranger = Datagram::bind(&core, address).unwrap();
        stranger.connect(near.local()).unwrap();
        send(&stranger, b"stranger").await.unwrap();
        far.connect(near.local()).unwrap();
        send(&far, b"peer").await.unwrap();
        let mut received = ReceiveBatch::new(4, 100);
        assert_eq!(receive(&near, &mut received, 1).await, [b"peer"]);
        expect_silence(&near).await;
    });
}

#[test]
fn bound_address_is_exclusive() {
    on_every_network(|core, address| async move {
        let first = Datagram::bind(&core, address).unwrap();
        assert_ne!(first.local().port(), 0);
        let error = Datagram::bind(&core, first.local()).unwrap_err();
        assert!(error.is_address_in_use(), "{error}");
        let address = first.local();
        // A pending receive, which a ring must cancel before the address is free.
        {
            let mut received = ReceiveBatch::new(1, 100);
            let mut waiting = Box::pin(first.recv(&mut received));
            assert!(poll_once(&mut waiting).await.is_pending());
        }
        drop(first);
        let deadline = core.now_exact() + Duration::from_secs(10);
        while Datagram::bind(&core, address).is_err() {
            assert!(core.now_exact() < deadline, "the address is never free");
            core.sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn cancelled_operations_lose_no_datagrams() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let mut received = ReceiveBatch::new(1, 100);
        for number in 0..20_u8 {
            {
                let mut waiting = Box::pin(far.recv(&mut received));
                assert!(poll_once(&mut waiting).await.is_pending());
            }
            let mut batch = SendBatch::default();
            batch
                .push(Message {
                    segment: NonZeroU16::new(1),
                    ..Message::new(Rc::<[u8]>::from([number, number]))
                })
                .unwrap();
            while !batch.is_empty() {
                // Cancelled whenever it has to wait.
                let mut sending = Box::pin(near.send(&mut batch));
                let is_pending = poll_once(&mut sending).await.is_pending();
                drop(sending);
                if is_pending {
                    core.sleep(Duration::from_millis(1)).await;
                }
            }
            assert_eq!(receive(&far, &mut received, 2).await, [[number], [number]]);
        }
    });
}

#[test]
fn stop_ends_receive() {
    on_every_network(|core, address| async move {
        let (near, far) = pair(&core, address);
        let stopping = core.clone();
        core.spawn(async move {
            stopping.sleep(Duration::from_millis(5)).await;
            stopping.stop(Duration::from_secs(60));
        });
        let mut received = ReceiveBatch::new(1, 100);
        let error = far.recv_unless_stopping(&mut received).await.unwrap_err();
        assert_eq!(error.kind, Kind::Stopping);
        // Datagrams that have arrived can still be received.
        send(&near, b"last").await.unwrap();
        assert_eq!(receive(&far, &mut received, 1).await, [b"last"]);
    });
}

/// The numbers that arrive of 100 datagrams, in order of arrival, on a network that loses, duplicates and delays them.
fn arrivals(seed: u64) -> Vec<u8> {
    let core = Core::simulated(Simulation::with_seed(seed));
    let (near, far) = pair(&core, "127.0.0.1:0".parse().unwrap());
    let arrived: Rc<RefCell<Vec<u8>>> = Rc::default();
    let seen = Rc::clone(&arrived);
    run(&core, async move {
        for number in 0..100 {
            send(&near, &[number; 3]).await.unwrap();
        }
        far.set_deadline(Some(far.core().now_exact() + Duration::from_secs(1)));
        let mut received = ReceiveBatch::new(8, 100);
        while far.recv(&mut received).await.is_ok() {
            for one in received.iter() {
                assert_eq!(one.bytes, [one.bytes[0]; 3]);
                seen.borrow_mut().push(one.bytes[0]);
            }
        }
    });
    arrived.take()
}

#[test]
fn simulated_faults_are_reproducible() {
    let (mut lost, mut doubled, mut overtaken) = (0, 0, 0);
    for seed in 0..SEEDS {
        let arrived = arrivals(seed);
        assert_eq!(arrivals(seed), arrived, "seed {seed}");
        let mut counts = BTreeMap::new();
        for number in &arrived {
            *counts.entry(number).or_insert(0) += 1;
        }
        lost += 100 - counts.len();
        doubled += counts.values().filter(|&&count| count == 2).count();
        overtaken += arrived.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(counts.values().all(|&count| count <= 2));
    }
    // Expected of 4,000: 10 % are lost and 10 % of the rest duplicated, with standard deviations below 20.
    assert!((300..500).contains(&lost), "{lost} were lost");
    assert!((260..460).contains(&doubled), "{doubled} came twice");
    assert!(overtaken > 400, "{overtaken} were overtaken");
}
