//! Claims of addresses to listen on.

use std::io::Read;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Io, Kind, Listener};

use crate::ground::{addresses, poll_once, run};

#[test]
fn address_in_use_is_an_error() {
    let core = Core::new(0, Io::Epoll).unwrap();
    let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let _listener = Listener::new(&core, &claim).unwrap();
    let error = Claim::new(claim.address()).unwrap_err();
    assert!(error.is_address_in_use(), "{error}");
}

#[test]
fn free_ports_are_unique() {
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
fn only_abandoned_unix_sockets_are_replaced() {
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
fn regular_file_is_not_replaced() {
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
fn dropped_listener_consumes_no_connection() {
    for io in [Io::Epoll, Io::IoUring] {
        let Ok(core) = Core::new(0, io) else { continue };
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        // All listeners of a Unix socket share one socket in the kernel, which exists as long as the claim.
        let claim = Claim::new(&Address::Unix(path.clone())).unwrap();
        let (dropped, listener) = (
            Listener::new(&core, &claim).unwrap(),
            Listener::new(&core, &claim).unwrap(),
        );
        let (go, going) = std::sync::mpsc::channel();
        let yielding = core.clone();
        core.spawn(async move {
            let mut accept = Box::pin(dropped.accept());
            assert!(poll_once(&mut accept).await.is_pending());
            drop(accept);
            drop(dropped);
            // Until its cancellation a ring may still accept a connection for the dropped listener.
            yielding.yield_now().await;
            go.send(()).unwrap();
            while let Ok(stream) = listener.accept().await {
                stream.queue(&b"x"[..]);
                stream.flush().await.unwrap();
            }
        });
        let handle = core.handle();
        let client = std::thread::spawn(move || {
            going.recv().unwrap();
            let all_received = (0..20).all(|_| {
                let mut stream = UnixStream::connect(&path).unwrap();
                let patience = Duration::from_secs(10);
                stream.set_read_timeout(Some(patience)).unwrap();
                stream.read_exact(&mut [0]).is_ok()
            });
            handle.stop(Duration::ZERO);
            all_received
        });
        core.run();
        assert!(
            client.join().unwrap(),
            "{io:?}: nobody came for a connection"
        );
    }
}

#[test]
fn listener_handover_loses_no_connection() {
    for io in [Io::Epoll, Io::IoUring] {
        let directory = tempfile::tempdir().unwrap();
        for address in addresses(directory.path()) {
            let Ok(core) = Core::new(0, io) else { continue };
            let claim = Claim::new(&address).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let body = {
                let core = core.clone();
                async move {
                    let mut accept = Box::pin(listener.accept());
                    assert!(poll_once(&mut accept).await.is_pending());
                    // Lets the kernel start to wait for connections.
                    core.sleep(Duration::from_millis(1)).await;
                    // The connections wake this core, which sees them only after it has left.
                    let _clients: Vec<OwnedFd> = (0..3).map(|_| connect(claim.address())).collect();
                    claim.release_to_other_process();
                    listener.end();
                    let mut accepted = vec![accept.await.unwrap()];
                    let ended = loop {
                        match listener.accept().await {
                            Ok(stream) => accepted.push(stream),
                            Err(error) => break error,
                        }
                    };
                    assert_eq!((accepted.len(), ended.kind), (3, Kind::Stopping), "{io:?}");
                }
            };
            run(&core, body);
        }
    }
}

fn connect(address: &Address) -> OwnedFd {
    match address {
        Address::Tcp(address) => TcpStream::connect(address).unwrap().into(),
        Address::Unix(path) => UnixStream::connect(path).unwrap().into(),
    }
}
