//! Distribution of connections among cores with listeners on the same address: to the core on the CPU that processed
//! the first packet, unless that core has clearly more connections than others.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use onrush_engine::{
    Address, Allowance, Claim, Core, Cores, Handle, Handshakes, Input, Io, Kind, Listener, Setup,
    Stream, cpu,
};

/// Cores that send each client one byte with the number of the core.
struct Served {
    claim: Arc<Claim>,
    cores: Cores<usize>,
    /// By core number.
    handles: Vec<Handle>,
}

impl Served {
    /// Starts a core on each of `cpus`, and passes `told` to the kernel as their CPUs.
    fn start(io: Io, cpus: &[usize], told: &[usize]) -> Self {
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let claim = Arc::new(claim.by_cpu(told));
        let setup = Setup {
            io,
            cpus: cpus.iter().copied().map(Some).collect(),
        };
        let (ready, readiness) = std::sync::mpsc::channel();
        let shared = Arc::clone(&claim);
        let cores = onrush_engine::start(&setup, move |core| {
            let listener = Listener::new(&core, &shared).unwrap();
            ready.send((core.id(), core.handle())).unwrap();
            let accepting = core.clone();
            core.spawn(async move { accept_until_stopped(accepting, listener).await });
            core.run()
        })
        .unwrap();
        let mut handles: Vec<_> = readiness.iter().take(cpus.len()).collect();
        handles.sort_by_key(|&(id, _)| id);
        assert_eq!(claim.by_cpu_refused(), None);
        Self {
            claim,
            cores,
            handles: handles.into_iter().map(|(_, handle)| handle).collect(),
        }
    }

    fn address(&self) -> SocketAddr {
        let Address::Tcp(address) = self.claim.address() else {
            unreachable!("it was claimed so")
        };
        *address
    }

    fn stop(self) {
        self.cores.stop(Duration::from_secs(10));
        assert_eq!(self.cores.join().iter().sum::<usize>(), 0, "all tasks end");
    }
}

async fn accept_until_stopped(core: Core, listener: Listener) {
    loop {
        match listener.accept().await {
            Ok(stream) => core.spawn(tell(core.id() as u8, stream)),
            Err(error) => {
                assert_eq!(error.kind, Kind::Stopping);
                break;
            }
        }
    }
    assert_eq!(listener.refuse_handshakes(), Handshakes::Local);
    core.sleep(Duration::from_millis(10)).await;
    while let Ok(stream) = listener.accept().await {
        core.spawn(tell(core.id() as u8, stream));
    }
}

async fn tell(id: u8, stream: Stream) {
    let mut byte = stream.core().buffer().unwrap();
    assert!(byte.put(&[id]));
    stream.queue(byte);
    // The client may be gone; ignore the error.
    if stream.flush().await.is_ok() {
        let _ = stream.recv_unless_stopping(&mut Input::default()).await;
    }
}

/// Makes `count` connections from a thread on this CPU, and returns them with the numbers of their cores.
fn connect(address: SocketAddr, cpu: usize, count: usize) -> Vec<(TcpStream, u8)> {
    let connect_one = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let mut id = [0];
        stream.read_exact(&mut id).unwrap();
        (stream, id[0])
    };
    let client = thread::spawn(move || {
        cpu::pin(cpu).unwrap();
        (0..count).map(|_| connect_one()).collect()
    });
    client.join().unwrap()
}

fn served_by(clients: &[(TcpStream, u8)], id: u8) -> usize {
    clients.iter().filter(|client| client.1 == id).count()
}

/// Runs `test` with two CPUs on every kernel driver; skipped if only one CPU is allowed.
fn on_two_cpus(test: impl Fn(Io, usize, usize)) {
    let &[one, two, ..] = &cpu::allowed()[..] else {
        return eprintln!("skipped: this process may use one CPU");
    };
    for io in [Io::Epoll, Io::IoUring] {
        if onrush_engine::choose(io).is_ok() {
            test(io, one, two);
        }
    }
}

#[test]
fn connection_is_accepted_on_client_cpu() {
    on_two_cpus(|io, one, two| {
        let served = Served::start(io, &[one, two], &[one, two]);
        // A few from each CPU in turn, so that neither core ever has clearly more.
        let mut clients = Vec::new();
        for _ in 0..10 {
            for (id, cpu) in [(0, one), (1, two)] {
                let few = connect(served.address(), cpu, 3);
                assert_eq!(served_by(&few, id), 3, "{io:?}: CPU {cpu}");
                clients.extend(few);
            }
        }
        drop(clients);
        served.stop();
    });
}

#[test]
fn core_is_selected_by_cpu_not_number() {
    on_two_cpus(|io, one, two| {
        let served = Served::start(io, &[one, two], &[two, one]);
        let clients = connect(served.address(), one, 3);
        assert_eq!(served_by(&clients, 1), 3, "{io:?}");
        let clients = connect(served.address(), two, 3);
        assert_eq!(served_by(&clients, 0), 3, "{io:?}");
        served.stop();
    });
}

#[test]
fn connection_on_unserved_cpu_is_hashed() {
    on_two_cpus(|io, one, two| {
        let served = Served::start(io, &[one, two], &[1022, 1023]);
        let clients = connect(served.address(), one, 40);
        for id in [0, 1] {
            assert!(served_by(&clients, id) >= 10, "{io:?}");
        }
        drop(clients);
        served.stop();
    });
}

#[test]
fn clients_on_one_cpu_use_all_cores() {
    on_two_cpus(|io, one, two| {
        for (count, least) in [(8, 3), (100, 40)] {
            for (id, cpu) in [(1, one), (0, two)] {
                let served = Served::start(io, &[one, two], &[one, two]);
                let clients = connect(served.address(), cpu, count);
                let other = served_by(&clients, id);
                assert!(other >= least, "{io:?}: {other} of {count}");
                assert!(other <= count / 2, "{io:?}: {other} of {count}");
                drop(clients);
                served.stop();
            }
        }
    });
}

/// Accepts the connections that are queued now.
async fn accept_what_waits(listener: &Listener) -> Vec<Stream> {
    let mut streams = Vec::new();
    loop {
        let mut next = pin!(listener.accept());
        match poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await {
            Poll::Ready(Ok(stream)) => streams.push(stream),
            Poll::Ready(Err(_)) | Poll::Pending => return streams,
        }
    }
}

#[test]
fn handed_off_connections_count_towards_limit() {
    const MAX: usize = 20;
    on_two_cpus(|io, one, two| {
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let claim = Arc::new(claim.by_cpu(&[one, two]));
        let setup = Setup {
            io,
            cpus: vec![Some(one), Some(two)],
        };
        let (allowance, is_full) = (Allowance::new(MAX), Arc::new(AtomicBool::new(false)));
        let (ready, readiness) = std::sync::mpsc::channel();
        let (shared, bound) = (Arc::clone(&claim), Arc::clone(&allowance));
        let cores = onrush_engine::start(&setup, move |core| {
            core.bound_accepted(Arc::clone(&bound));
            let listener = Listener::new(&core, &shared).unwrap();
            let open = Rc::new(Cell::new(0));
            let (seen, is_full, accepting) = (Rc::clone(&open), Arc::clone(&is_full), core.clone());
            ready.send(()).unwrap();
            let done = ready.clone();
            core.spawn(async move {
                let mut streams = Vec::new();
                if accepting.id() == 0 {
                    let error = loop {
                        match listener.accept().await {
                            Ok(stream) => streams.push(stream),
                            Err(error) => break error,
                        }
                    };
                    assert_eq!(error.kind, Kind::Full);
                    is_full.store(true, Ordering::Release);
                } else {
                    // Accepts nothing until the other core is at the bound, so that handed connections stay queued.
                    while !is_full.load(Ordering::Acquire) {
                        accepting.sleep(Duration::from_millis(1)).await;
                    }
                    streams = accept_what_waits(&listener).await;
                }
                seen.set(streams.len());
                done.send(()).unwrap();
                accepting.stopped().await;
            });
            core.run();
            open.get()
        })
        .unwrap();
        let wait_for_both = || {
            for _ in 0..2 {
                readiness.recv_timeout(Duration::from_secs(10)).unwrap();
            }
        };
        wait_for_both();
        let Address::Tcp(address) = *claim.address() else {
            unreachable!("it was claimed so")
        };
        let clients = thread::spawn(move || {
            cpu::pin(one).unwrap();
            let connect = |_| TcpStream::connect(address).unwrap();
            (0..100).map(connect).collect::<Vec<_>>()
        });
        let clients = clients.join().unwrap();
        wait_for_both();
        cores.stop(Duration::from_secs(10));
        let open = cores.join();
        // Each listener checks before it accepts, and may exceed the bound by one.
        assert!(open.iter().sum::<usize>() <= MAX + 2, "{io:?}: {open:?}");
        assert!(open.iter().all(|&open| open > 0), "{io:?}: {open:?}");
        assert_eq!(allowance.held(), 0, "{io:?}");
        drop(clients);
    });
}

#[test]
fn stopping_core_loses_no_connection() {
    on_two_cpus(|io, one, two| {
        for first in [0, 1] {
            let served = Served::start(io, &[one, two], &[one, two]);
            let address = served.address();
            // Both clients keep connecting until the remaining core has served them 50 times.
            let clients = [one, two].map(|cpu| {
                thread::spawn(move || {
                    let mut left = 50;
                    while left > 0 {
                        left -= served_by(&connect(address, cpu, 1), 1 - first as u8);
                    }
                })
            });
            served.handles[first].stop(Duration::from_secs(10));
            for client in clients {
                client.join().unwrap();
            }
            served.stop();
        }
    });
}
