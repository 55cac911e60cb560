//! Urgent bytes (tcp(7), unix(7)): a receive ends before each of them, although more bytes have arrived.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Errno, Input, Io, Listener, Relay, Stream};
use rustix::net::{SendFlags, Shutdown};

use crate::ground::{addresses, bytes, receive_all};

/// Not in [`bytes`]. May be received among them, since a second urgent byte makes the first ordinary (tcp(7)).
const URGENT: u8 = 0xff;

/// A timeout, so that the test fails instead of hanging.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs `test` on every kernel driver, with a listener on each kind of address that supports urgent bytes.
fn on_kernel_drivers<F, T>(test: F)
where
    F: Fn(Core, Listener, Address) -> T,
    T: Future<Output = ()> + 'static,
{
    let directory = tempfile::tempdir().unwrap();
    for io in [Io::Epoll, Io::IoUring] {
        for address in addresses(directory.path()) {
            let Ok(core) = Core::new(0, io) else { continue };
            if matches!(address, Address::Unix(_)) && !unix_has_urgent_bytes() {
                eprintln!("skipped: Unix sockets of this kernel have no urgent bytes");
                continue;
            }
            eprintln!("{io:?} on {address}");
            let claim = Claim::new(&address).unwrap();
            let listener = Listener::new(&core, &claim).unwrap();
            let finished = Rc::new(Cell::new(false));
            let seen = Rc::clone(&finished);
            let body = test(core.clone(), listener, claim.address().clone());
            core.spawn(async move {
                body.await;
                seen.set(true);
            });
            core.run();
            assert!(finished.get(), "the test's task ended");
        }
    }
}

fn unix_has_urgent_bytes() -> bool {
    let (near, _far) = UnixStream::pair().unwrap();
    rustix::net::send(&near, b"!", SendFlags::OOB) != Err(Errno::OPNOTSUPP)
}

/// A client on a thread. After `go` it sends `portions`, each followed by an urgent byte, shuts down and sets `done`.
struct Client {
    go: Arc<AtomicBool>,
    done: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Client {
    fn connect(address: &Address, portions: Vec<Vec<u8>>) -> Self {
        let (go, done): (Arc<AtomicBool>, Arc<AtomicBool>) = Default::default();
        let (told, says) = (Arc::clone(&go), Arc::clone(&done));
        let socket = match address {
            Address::Tcp(address) => OwnedFd::from(TcpStream::connect(address).unwrap()),
            Address::Unix(path) => OwnedFd::from(UnixStream::connect(path).unwrap()),
        };
        // Reads and writes both kinds of socket.
        let mut stream = std::fs::File::from(socket);
        let thread = thread::spawn(move || {
            stream.write_all(b"begin").unwrap();
            while !told.load(Ordering::Acquire) {
                thread::yield_now();
            }
            for portion in portions {
                stream.write_all(&portion).unwrap();
                rustix::net::send(&stream, &[URGENT], SendFlags::OOB).unwrap();
            }
            stream.write_all(b"end").unwrap();
            rustix::net::shutdown(&stream, Shutdown::Write).unwrap();
            says.store(true, Ordering::Release);
            // Kept open until the other side has ended.
            let _ = stream.read(&mut [0]);
        });
        Self { go, done, thread }
    }

    fn go(&self) {
        self.go.store(true, Ordering::Release);
    }
}

fn without_urgent(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.retain(|&byte| byte != URGENT);
    bytes
}

async fn receive_begin(stream: &Stream) {
    let mut input = Input::default();
    while input.bytes().len() < 5 {
        assert!(stream.recv(&mut input).await.unwrap() > 0);
    }
    assert_eq!(input.bytes(), b"begin");
}

#[test]
fn bytes_after_urgent_are_received() {
    on_kernel_drivers(|core, listener, address| async move {
        let client = Client::connect(&address, vec![b"one".to_vec(), b"two".to_vec()]);
        let server = listener.accept().await.unwrap();
        server.set_deadline(Some(core.now_exact() + PATIENCE));
        receive_begin(&server).await;
        // The receive is pending, and all bytes arrive before the core's next look.
        let receiving = core.clone();
        core.spawn(async move {
            let received = receive_all(&server).await.unwrap();
            assert_eq!(without_urgent(received), b"onetwoend");
            receiving.stop(Duration::ZERO);
        });
        core.yield_now().await;
        client.go();
        while !client.done.load(Ordering::Acquire) {
            thread::yield_now();
        }
        core.stopped().await;
        drop(client.thread);
    });
}

#[test]
fn bulk_tunnel_continues_after_urgent() {
    on_kernel_drivers(|core, listener, address| async move {
        let portions = vec![bytes(600_000), bytes(300_000), bytes(5)];
        let sent = [&portions.concat()[..], b"end"].concat();
        let client = Client::connect(&address, portions);
        let front = listener.accept().await.unwrap();
        receive_begin(&front).await;
        let back = Stream::connect(&core, &address, None).await.unwrap();
        let server = listener.accept().await.unwrap();
        let deadline = Some(core.now_exact() + PATIENCE);
        for stream in [&front, &back, &server] {
            stream.set_deadline(deadline);
        }
        client.go();
        core.spawn(async move {
            let mut relay = Relay::default();
            while relay.transfer(&front, &back).await.unwrap() > 0 {}
            back.shutdown().await.unwrap();
        });
        let received = without_urgent(receive_all(&server).await.unwrap());
        assert!(received == sent, "{} bytes", received.len());
        client.thread.join().unwrap();
    });
}
