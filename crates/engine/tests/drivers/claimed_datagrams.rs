//! Datagrams on an address that several cores have claimed.

use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Core, Datagram, DatagramClaim, Io, Kind, ReceiveBatch};

use crate::datagrams::on_every_network;
use crate::ground::run;

const LOCALHOST: &str = "127.0.0.1:0";

fn loopback() -> SocketAddr {
    LOCALHOST.parse().unwrap()
}

#[test]
fn claims_and_sockets_are_exclusive() {
    on_every_network(|core, address| async move {
        let claim = DatagramClaim::new(address, 1, None).unwrap();
        let taken = DatagramClaim::new(claim.address(), 1, None).unwrap_err();
        assert!(taken.is_address_in_use());
        let socket = Datagram::open(&core, &claim).unwrap();
        assert_eq!(socket.local(), claim.address());
        assert!(
            Datagram::open(&core, &claim)
                .unwrap_err()
                .is_address_in_use()
        );
    });
}

/// Number of datagrams received by a core's socket until no more arrive.
fn arrived(core: &Core, claim: &DatagramClaim) -> usize {
    let socket = Datagram::open(core, claim).unwrap();
    let count = Rc::new(RefCell::new(0));
    let seen = Rc::clone(&count);
    run(core, async move {
        let mut batch = ReceiveBatch::new(8, 100);
        socket.set_deadline(Some(socket.core().now_exact() + Duration::from_millis(50)));
        while socket.recv(&mut batch).await.is_ok() {
            *seen.borrow_mut() += batch.iter().count();
        }
    });
    count.take()
}

#[test]
fn flows_are_distributed() {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            continue;
        }
        let claim = DatagramClaim::new(loopback(), 2, None).unwrap();
        // Datagrams that arrive before a core uses its socket wait in it.
        for _ in 0..200 {
            let peer = UdpSocket::bind(LOCALHOST).unwrap();
            peer.send_to(b"datagram", claim.address()).unwrap();
        }
        let cores = [0, 1].map(|id| Core::new(id, io).unwrap());
        let counts = cores.each_ref().map(|core| arrived(core, &claim));
        assert_eq!(counts.iter().sum::<usize>(), 200);
        assert!(counts.iter().all(|&count| count > 20), "{counts:?}");
    }
}

#[test]
fn drops_are_reported() {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            continue;
        }
        let claim = DatagramClaim::new(loopback(), 1, Some(4096)).unwrap();
        assert!(claim.receive_buffer() >= 2048, "{}", claim.receive_buffer());
        let core = Core::new(0, io).unwrap();
        let socket = Datagram::open(&core, &claim).unwrap();
        assert!(socket.enable_drop_count());
        let peer = UdpSocket::bind(LOCALHOST).unwrap();
        let send = move |count: u32| {
            for _ in 0..count {
                peer.send_to(&[7; 1000], claim.address()).unwrap();
            }
        };
        run(&core, async move {
            let mut batch = ReceiveBatch::new(32, 2000);
            send(100);
            let mut came = 0;
            socket.set_deadline(Some(socket.core().now_exact() + Duration::from_millis(50)));
            while socket.recv(&mut batch).await.is_ok() {
                came += batch.iter().count() as u32;
                assert_eq!(batch.dropped(), None, "none was when these came");
            }
            send(1);
            socket.set_deadline(None);
            socket.recv(&mut batch).await.unwrap();
            assert_eq!(batch.dropped(), Some(100 - came));
        });
    }
}

#[test]
fn stop_receiving_ends_pending_receive() {
    on_every_network(|core, address| async move {
        let socket = Rc::new(Datagram::bind(&core, address).unwrap());
        let ending = Rc::clone(&socket);
        core.spawn(async move {
            ending.core().sleep(Duration::from_millis(1)).await;
            ending.stop_receiving();
        });
        let mut batch = ReceiveBatch::new(1, 100);
        let error = socket.recv_unless_stopping(&mut batch).await.unwrap_err();
        assert_eq!(error.kind, Kind::Stopping);
    });
}
