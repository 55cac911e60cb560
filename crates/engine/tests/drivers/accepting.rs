//! Accepting: the bound on connections, stopping a core, and refusing handshakes.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onrush_engine::{
    Address, Allowance, Claim, Core, Handshakes, Input, Io, Kind, Listener, Stream,
};

use crate::ground::on_every_driver;

#[test]
fn stopping_core_accepts_queued_connections() {
    on_every_driver(|core, listener, address| async move {
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(Stream::connect(&core, &address, None).await.unwrap());
        }
        core.stop(Duration::from_secs(60));
        core.stopped().await;
        let mut servers = Vec::new();
        let error = loop {
            match listener.accept().await {
                Ok(server) => servers.push(server),
                Err(error) => break error,
            }
        };
        assert_eq!((servers.len(), error.kind), (5, Kind::Stopping));
        drop(listener);
        for (client, server) in clients.iter().zip(&servers) {
            client.queue(&b"x"[..]);
            client.flush().await.unwrap();
            server.recv(&mut Input::default()).await.unwrap();
        }
    });
}

#[test]
fn unaccepted_connections_are_reset() {
    on_every_driver(|core, listener, address| async move {
        if matches!(address, Address::Unix(_)) {
            // The claim of a Unix socket is a listener, too, and still exists.
            return;
        }
        let client = Stream::connect(&core, &address, None).await.unwrap();
        drop(listener);
        let end = client.recv(&mut Input::default()).await;
        assert!(matches!(end, Err(error) if error.is_reset()), "{end:?}");
    });
}

#[test]
fn recv_arrived_does_not_wait() {
    on_every_driver(|core, listener, address| async move {
        let client = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let mut input = Input::default();
        server.set_deadline(Some(core.now()));
        let kind = server.recv(&mut input).await.unwrap_err().kind;
        assert_eq!(kind, Kind::TimedOut);
        let kind = server.recv_arrived(&mut input).await.unwrap_err().kind;
        assert_eq!(kind, Kind::TimedOut, "nothing has arrived");
        client.queue(&b"late"[..]);
        client.flush().await.unwrap();
        // The driver does not report the bytes before `recv_arrived` receives them.
        let mut looks = 0;
        while input.bytes().len() < 4 {
            looks += 1;
            match server.recv_arrived(&mut input).await {
                Ok(bytes) => assert!(bytes > 0),
                Err(error) => {
                    assert_eq!(error.kind, Kind::TimedOut);
                    core.yield_now().await;
                }
            }
        }
        assert_eq!(input.bytes(), b"late", "after {looks} looks");
        drop(client);
        let end = loop {
            match server.recv_arrived(&mut input).await {
                Err(error) if error.kind == Kind::TimedOut => core.yield_now().await,
                end => break end,
            }
        };
        assert_eq!(end, Ok(0));
    });
}

#[test]
fn closed_connection_frees_accept_slot() {
    on_every_driver(|core, listener, address| async move {
        let allowance = Allowance::new(3);
        core.bound_accepted(Arc::clone(&allowance));
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(Stream::connect(&core, &address, None).await.unwrap());
        }
        let mut servers = Vec::new();
        while servers.len() < 3 {
            servers.push(listener.accept().await.unwrap());
        }
        for _ in 0..2 {
            let error = listener.accept().await.err().expect("no room");
            assert_eq!((error.kind, allowance.held()), (Kind::Full, 3));
            drop(servers.pop());
            servers.push(listener.accept().await.unwrap());
        }
        // At the bound an accept waits until the core stops or another connection arrives.
        let (late, connecting) = (Rc::new(Cell::new(false)), core.clone());
        let seen = Rc::clone(&late);
        core.spawn(async move {
            connecting.sleep(Duration::from_millis(1)).await;
            seen.set(true);
            let client = Stream::connect(&connecting, &address, None).await.unwrap();
            connecting.stopped().await;
            drop(client);
        });
        let error = listener.accept().await.err().expect("no room");
        assert_eq!((error.kind, late.get()), (Kind::Full, true));
        drop(servers);
        listener.accept().await.unwrap();
        core.stop(Duration::from_secs(60));
        let error = listener.accept().await.err().expect("nobody waits");
        assert_eq!(error.kind, Kind::Stopping);
    });
}

#[test]
fn end_idle_closes_longest_idle_connections() {
    on_every_driver(|core, listener, address| async move {
        let ended: Rc<RefCell<Vec<u64>>> = Rc::default();
        let mut clients = Vec::new();
        for index in 0..6 {
            clients.push(Stream::connect(&core, &address, None).await.unwrap());
            let server = listener.accept().await.unwrap();
            let (core, ended) = (core.clone(), Rc::clone(&ended));
            core.clone().spawn(async move {
                // Later connections have earlier deadlines.
                server.set_deadline(Some(core.now() + Duration::from_secs(100 - index)));
                let received = server.recv_unless_stopping(&mut Input::default()).await;
                assert_eq!(received.unwrap_err().kind, Kind::Stopping);
                ended.borrow_mut().push(index);
            });
        }
        core.sleep(Duration::from_millis(1)).await;
        assert_eq!((core.end_idle(2), core.end_idle(1)), (2, 1));
        while ended.borrow().len() < 3 {
            core.yield_now().await;
        }
        ended.borrow_mut().sort_unstable();
        assert_eq!(*ended.borrow(), [3, 4, 5]);
        assert_eq!(core.end_idle(10), 3);
    });
}

#[test]
fn refused_handshakes_keep_accepted_connections() {
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_err() {
            continue;
        }
        for (listening, address, whence) in [
            ("127.0.0.1:0", "127.0.0.1", Handshakes::Local),
            ("0.0.0.0:0", "127.0.0.1", Handshakes::Remote),
            ("[::]:0", "::1", Handshakes::Remote),
        ] {
            let claim = Claim::new(&Address::Tcp(listening.parse().unwrap())).unwrap();
            let Address::Tcp(bound) = *claim.address() else {
                unreachable!("it is one")
            };
            let to = Address::Tcp(SocketAddr::new(address.parse().unwrap(), bound.port()));
            let core = Core::new(0, io).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let running = core.clone();
            core.spawn(async move {
                let client = Stream::connect(&running, &to, None).await.unwrap();
                assert_eq!(listener.refuse_handshakes(), whence);
                let soon = running.now_exact() + Duration::from_millis(20);
                let late = Stream::connect(&running, &to, Some(soon)).await;
                assert_eq!(late.err().expect("no handshake").kind, Kind::TimedOut);
                // A connection from before is not affected.
                let server = listener.accept().await.unwrap();
                client.queue(&b"x"[..]);
                client.flush().await.unwrap();
                assert_eq!(server.recv(&mut Input::default()).await, Ok(1));
            });
            assert_eq!(core.run(), 0);
        }
    }
}

#[test]
fn withdrawn_claim_keeps_new_socket_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let address = Address::Unix(path.clone());
    let first = Claim::new(&address).unwrap();
    first.withdraw();
    assert!(!path.exists());
    let second = Claim::new(&address).unwrap();
    drop(first);
    assert!(path.exists(), "it is the second's");
    drop(second);
    assert!(!path.exists());
}
