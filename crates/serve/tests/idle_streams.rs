//! Memory of HTTP/2 streams whose server does not respond, and of streams whose client does not read the response: all
//! bytes that the process allocates for them, on both sides of the proxy. A program of its own, because its allocator
//! counts.
//!
//! Tables that double in size are counted whole, so streams are opened from one power of two to the next.

use std::cell::Cell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use onrush_engine::{Address, Core, CountedMemory, Input, Io, Memory, Part, Stream, choose};
use onrush_http::http2::{Connection, Content, End, Event, LocalSettings, Role};
use onrush_serve::{Server, check};

#[global_allocator]
static MEMORY: CountedMemory = CountedMemory;

/// Memory is measured for the whole process, so one test runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Number of connections, and streams on each. Half of the streams use one connection to the upstream server, all of
/// them two.
const CONNECTIONS: usize = 16;
const STREAMS_HALF: usize = 64;
const STREAMS: usize = 128;

/// Limit of bytes per waiting stream: for its client's stream, and its request at the server.
const BYTES_MAX: usize = 1650;

/// Receive window of a stream to a server.
const WINDOW: usize = 56 * 1024;

/// Maximum memory of a stalled stream whose response is longer than a window.
const STALLED_BYTES_MAX: usize = 64 * 1024;

/// Waiting time until a server is at rest.
const LOOKS: u32 = 200;
const LOOK: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);

/// Behaviour of a server for each request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Nothing,
    /// Sends a response head and one window of data.
    FillsWindow,
}

/// A server that reads requests and does not complete a response.
struct Behind {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Behind {
    fn start(does: Does) -> Behind {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let requests = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&requests);
        thread::spawn(move || {
            CountedMemory::exclude_this_thread();
            for stream in listener.incoming().flatten() {
                let count = Arc::clone(&count);
                thread::spawn(move || {
                    CountedMemory::exclude_this_thread();
                    hear(stream, does, &count);
                });
            }
        });
        Behind { address, requests }
    }

    /// Waits until `count` requests have arrived.
    async fn has(&self, count: usize, core: &Core) {
        let deadline = core.now_exact() + PATIENCE;
        loop {
            let requests = self.requests.load(Ordering::Relaxed);
            if requests == count {
                return;
            }
            let now = core.now_exact();
            assert!(now < deadline, "{requests} requests, not {count}");
            core.sleep_until(now + LOOK).await;
        }
    }
}

/// Counts request heads until the connection ends.
fn hear(mut stream: TcpStream, does: Does, requests: &AtomicUsize) {
    const PREFACE_BYTES: usize = 24;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    let mut preface = [0; PREFACE_BYTES];
    if stream.read_exact(&mut preface).is_err() {
        return;
    }
    // Empty settings, and an acknowledgement of the client's settings.
    let frames = [
        [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0],
        [0, 0, 0, SETTINGS, 1, 0, 0, 0, 0],
    ];
    stream
        .write_all(frames.as_flattened())
        .expect("it is taken");
    let mut head = [0; 9];
    while stream.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).expect("a frame is whole");
        if head[3] == HEADERS && does == Does::FillsWindow {
            let id = head[5..].try_into().expect("four bytes");
            stream.write_all(&window_of_data(id)).expect("it is taken");
        }
        requests.fetch_add(usize::from(head[3] == HEADERS), Ordering::Relaxed);
    }
}

/// Frames of a response head with status 200 and one window of data.
fn window_of_data(stream: [u8; 4]) -> Vec<u8> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const END_HEADERS: u8 = 4;
    const STATUS_200: u8 = 0x88;
    let frame = |kind: u8, flags: u8, payload: &[u8]| {
        let length = (payload.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream, payload].concat()
    };
    let data = [b'x'; WINDOW];
    let data = data.chunks(16_384).flat_map(|piece| frame(DATA, 0, piece));
    let head = frame(HEADERS, END_HEADERS, &[STATUS_200]);
    head.into_iter().chain(data).collect()
}

/// A client that opens more and more streams, and its output.
struct Asking {
    http: Connection,
    stream: Stream,
    out: Vec<u8>,
}

impl Asking {
    async fn connect(core: &Core, address: SocketAddr) -> Asking {
        let stream = Stream::connect(core, &Address::Tcp(address), None).await;
        let mut out = Vec::new();
        let settings = LocalSettings {
            stream_window: 0,
            ..LocalSettings::DEFAULT
        };
        let http = Connection::new(Role::Client, settings, &mut out);
        let stream = stream.expect("it listens");
        let mut asking = Asking { http, stream, out };
        asking.send().await;
        asking.hear_settings().await;
        asking
    }

    /// Receives the server's settings, which limit the number of streams.
    async fn hear_settings(&mut self) {
        let mut input = Input::default();
        loop {
            let step = self.http.receive(input.bytes(), &mut self.out);
            let step = step.expect("it breaks no rule");
            let (bytes, is_it) = (step.bytes, matches!(step.event, Event::Settings));
            input.consume(bytes);
            if is_it {
                return;
            }
            if bytes == 0 {
                let received = self.stream.recv(&mut input).await;
                assert!(received.expect("it goes on") > 0);
            }
        }
    }

    async fn send(&mut self) {
        let out = std::mem::take(&mut self.out);
        self.stream.queue(Part::from(Rc::from(out)));
        self.stream.flush().await.expect("it is taken");
    }

    /// Opens `count` more streams, with the fields that curl sends.
    async fn ask(&mut self, count: usize) {
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "www.example.com"),
            (":path", "/some/thing"),
            ("user-agent", "curl/8.14.1"),
            ("accept", "*/*"),
        ];
        for _ in 0..count {
            let opened =
                self.http
                    .open(End::Stream, Content::Any, &mut self.out, |encoder, out| {
                        for (name, value) in fields {
                            encoder.field_with_default_indexing(
                                name.as_bytes(),
                                value.as_bytes(),
                                out,
                            );
                        }
                    });
            opened.expect("there may be as many");
        }
        self.send().await;
    }
}

#[test]
fn waiting_stream_memory_within_limit() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    each_costs_at_most(Does::Nothing, BYTES_MAX);
    each_costs_at_most(Does::FillsWindow, STALLED_BYTES_MAX);
}

/// Number of clients with stalled streams, less than 16 MiB in total.
const RETURNED_CLIENTS: usize = 4;

#[test]
fn memory_of_stalled_streams_is_returned_to_the_system() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    Memory::return_free();
    let streams = RETURNED_CLIENTS * STREAMS_HALF;
    let behind = Behind::start(Does::FillsWindow);
    let server = started(Io::Epoll, behind.address);
    let Some(Address::Tcp(address)) = server.addresses().next() else {
        panic!("it listens on TCP");
    };
    on_a_core(move |core| async move {
        let mut clients = Vec::new();
        for _ in 0..RETURNED_CLIENTS {
            clients.push(Asking::connect(&core, address).await);
        }
        let before = resident();
        for client in &mut clients {
            client.ask(STREAMS_HALF).await;
        }
        behind.has(streams, &core).await;
        let held = streams * WINDOW;
        let deadline = core.now_exact() + PATIENCE;
        while resident() < before + held * 3 / 4 {
            assert!(core.now_exact() < deadline, "{} of {before}", resident());
            core.sleep_until(core.now_exact() + LOOK).await;
        }
        clients.clear();
        while resident() > before + held / 4 {
            assert!(core.now_exact() < deadline, "{} of {before}", resident());
            core.sleep_until(core.now_exact() + LOOK).await;
        }
    });
    server.stop();
}

fn resident() -> usize {
    const PAGE_BYTES: usize = 4096;
    let pages = std::fs::read_to_string("/proc/self/statm").expect("every process has it");
    let resident = pages
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<usize>().ok());
    resident.expect("a number of pages") * PAGE_BYTES
}

fn each_costs_at_most(does: Does, bytes_max: usize) {
    CountedMemory::exclude_this_thread();
    for io in [Io::Epoll, Io::IoUring] {
        if let Err(reason) = choose(io) {
            eprintln!("{io:?} is skipped: {reason}");
            continue;
        }
        let bytes = bytes_each(io, does);
        println!("{io:?}: {bytes} bytes of {bytes_max}");
        assert!(bytes <= bytes_max, "{io:?}: {bytes} bytes, not {bytes_max}");
    }
}

/// Bytes per stream, while streams fill the server's tables from half to full.
fn bytes_each(io: Io, does: Does) -> usize {
    let behind = Behind::start(does);
    let server = started(io, behind.address);
    let Some(Address::Tcp(address)) = server.addresses().next() else {
        panic!("it listens on TCP");
    };
    let bytes = on_a_core(move |core| async move {
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            clients.push(Asking::connect(&core, address).await);
        }
        for client in &mut clients {
            client.ask(STREAMS_HALF).await;
        }
        behind.has(CONNECTIONS * STREAMS_HALF, &core).await;
        let before = at_rest();
        for client in &mut clients {
            client.ask(STREAMS - STREAMS_HALF).await;
        }
        behind.has(CONNECTIONS * STREAMS, &core).await;
        (at_rest() - before) / (CONNECTIONS * (STREAMS - STREAMS_HALF))
    });
    server.stop();
    bytes
}

fn started(io: Io, behind: SocketAddr) -> Server {
    let io = match io {
        Io::IoUring => "io_uring",
        Io::Epoll | Io::Auto => "epoll",
    };
    let text = format!(
        "threads = 1\nio = \"{io}\"\ntimeouts = {{ drain = \"50ms\" }}\n\
         clients = {{ stalled_streams_per_address_max = 10000 }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"behind\"\n\
         [upstream.behind]\nservers = [\"{behind}\"]\nprotocol = \"h2\"\nstreams_max = {}\n",
        CONNECTIONS * STREAMS_HALF
    );
    let parsed = onrush_config::parse(&text, Path::new("onrush.toml"));
    let plan = parsed.unwrap_or_else(|errors| panic!("{errors:?}")).plan;
    // Its threads are counted, although this one starts them.
    Server::start(check(plan).expect("it names no files")).expect("it can be served")
}

fn on_a_core<T: 'static, F: Future<Output = T> + 'static>(client: impl FnOnce(Core) -> F) -> T {
    let core = Core::new(0, Io::Epoll).expect("every kernel has epoll");
    let outcome: Rc<Cell<Option<T>>> = Rc::default();
    let (told, future) = (Rc::clone(&outcome), client(core.clone()));
    core.spawn(async move { told.set(Some(future.await)) });
    core.run();
    outcome.take().expect("it came to its end")
}

/// The allocated bytes, once they no longer change.
fn at_rest() -> usize {
    let mut same = 0;
    let mut allocated = CountedMemory::allocated();
    for _ in 0..LOOKS {
        thread::sleep(LOOK);
        let now = CountedMemory::allocated();
        same = if now == allocated { same + 1 } else { 0 };
        allocated = now;
        if same == 5 {
            break;
        }
    }
    allocated
}
