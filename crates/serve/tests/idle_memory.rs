//! Memory of idle connections: all bytes that a server allocates for them, however many there are. A program of its
//! own, because its allocator counts.
//!
//! Tables that double in size are counted whole, so connections are opened from one power of two to the next, less the
//! few entries that others use.

use std::cell::Cell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use onrush_engine::{Address, Core, CountedMemory, Input, Io, Part, Stream, choose};
use onrush_http::http2::hpack::{Encoder, Indexing};
use onrush_http::http2::{Connection, Content, End, LocalSettings, Role};
use onrush_serve::{Server, check};
use onrush_tls::{ClientSetup, Connector, Transport, Verify};

#[global_allocator]
static MEMORY: CountedMemory = CountedMemory;

/// Table entries of others: listeners, and the tasks of a core.
const OTHERS: usize = 16;

/// Waiting time until a server is at rest: the client has the last response before the server's task waits again.
const LOOKS: u32 = 200;
const LOOK: Duration = Duration::from_millis(5);

struct Kind {
    name: &'static str,
    /// Routes of the configuration; `{behind}` is the address of an upstream server that accepts upgrades.
    routes: &'static str,
    listen: &'static str,
    is_encrypted: bool,
    request: fn() -> Vec<u8>,
    /// Whether these bytes are the complete response.
    is_whole: fn(&[u8]) -> bool,
    /// Idle time after which it frees memory.
    rests_after: Duration,
    /// Sockets of the server per connection.
    sockets: usize,
    bytes_max: usize,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "idle",
        routes: "respond = { status = 200 }",
        listen: "",
        is_encrypted: false,
        request: || b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        is_whole: |bytes| is_head(bytes, b"HTTP/1.1 200 "),
        rests_after: Duration::ZERO,
        sockets: 1,
        bytes_max: 800,
    },
    Kind {
        name: "idle with TLS",
        routes: "respond = { status = 200 }",
        listen: "tls = \"self-signed\"",
        is_encrypted: true,
        request: || b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec(),
        is_whole: |bytes| is_head(bytes, b"HTTP/1.1 200 "),
        rests_after: Duration::ZERO,
        sockets: 1,
        bytes_max: 1500,
    },
    Kind {
        name: "idle in HTTP/2",
        routes: "respond = { status = 200 }",
        listen: "",
        is_encrypted: false,
        request: of_a_browser,
        is_whole: is_stream_ended,
        rests_after: RESTS_AFTER,
        sockets: 1,
        bytes_max: 3000,
    },
    Kind {
        name: "idle in HTTP/2 with TLS",
        routes: "respond = { status = 200 }",
        listen: "tls = \"self-signed\"",
        is_encrypted: true,
        request: of_a_browser,
        is_whole: is_stream_ended,
        rests_after: RESTS_AFTER,
        sockets: 1,
        bytes_max: 3700,
    },
    Kind {
        name: "tunnel",
        routes: "forward = \"http://{behind}\"",
        listen: "",
        is_encrypted: false,
        request: || {
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
                .to_vec()
        },
        is_whole: |bytes| is_head(bytes, b"HTTP/1.1 101 "),
        rests_after: Duration::ZERO,
        sockets: 2,
        bytes_max: 1600,
    },
];

/// The server's own delay, with a margin.
const RESTS_AFTER: Duration = Duration::from_millis(1500);

fn is_head(bytes: &[u8], status: &[u8]) -> bool {
    bytes.ends_with(b"\r\n\r\n") && bytes.starts_with(status)
}

/// The start of a connection by Chromium: 900 bytes of fields, which all enter the dynamic table.
fn of_a_browser() -> Vec<u8> {
    let brands = "\"Chromium\";v=\"142\", \"Google Chrome\";v=\"142\", \"Not_A Brand\";v=\"99\"";
    let agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36";
    let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";
    let cookie = format!("session={}", "0123456789abcdef".repeat(8));
    let fields = [
        (":method", "GET"),
        (":authority", "www.example.com"),
        (":scheme", "http"),
        (":path", "/"),
        ("sec-ch-ua", brands),
        ("sec-ch-ua-mobile", "?0"),
        ("sec-ch-ua-platform", "\"Linux\""),
        ("upgrade-insecure-requests", "1"),
        ("user-agent", agent),
        ("accept", accept),
        ("sec-fetch-site", "none"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-user", "?1"),
        ("sec-fetch-dest", "document"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("accept-language", "en-US,en;q=0.9"),
        ("cookie", &cookie),
        ("priority", "u=0, i"),
    ];
    let mut out = Vec::new();
    let mut client = Connection::new(Role::Client, LocalSettings::DEFAULT, &mut out);
    let write = |encoder: &mut Encoder, out: &mut Vec<u8>| {
        for (name, value) in fields {
            encoder.field(
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Incremental,
                out,
            );
        }
    };
    let opened = client.open(End::Stream, Content::Any, &mut out, write);
    opened.expect("it is the first");
    // Acknowledges the server's settings.
    out.extend_from_slice(&[0, 0, 0, 4, 1, 0, 0, 0, 0]);
    out
}

/// Whether the frames end with the last one of stream 1.
fn is_stream_ended(mut frames: &[u8]) -> bool {
    while let Some((head, rest)) = frames.split_at_checked(9) {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let is_last = head[5..] == [0, 0, 0, 1] && head[4] & 1 == 1 && head[3] <= 1;
        let Some(behind) = rest.get(length..) else {
            return false;
        };
        if is_last {
            return behind.is_empty();
        }
        frames = behind;
    }
    false
}

#[test]
fn idle_connection_memory_within_limit() {
    CountedMemory::exclude_this_thread();
    let behind = agreeing();
    for io in [Io::Epoll, Io::IoUring] {
        if let Err(reason) = choose(io) {
            eprintln!("{io:?} is skipped: {reason}");
            continue;
        }
        for kind in &KINDS {
            let bytes = bytes_each(kind, io, behind);
            println!("{}, {io:?}: {bytes} bytes of {}", kind.name, kind.bytes_max);
            assert!(
                bytes <= kind.bytes_max,
                "{}, {io:?}: {bytes} bytes, not {}",
                kind.name,
                kind.bytes_max
            );
        }
    }
}

/// Bytes per connection, while connections fill the server's tables from half to full.
fn bytes_each(kind: &'static Kind, io: Io, behind: SocketAddr) -> usize {
    let server = started(kind, io, behind);
    let Some(Address::Tcp(address)) = server.addresses().next() else {
        panic!("it listens on TCP");
    };
    let (half, full) = (256 / kind.sockets, 512 / kind.sockets);
    let bytes = on_a_core(move |core| async move {
        let mut connections = Vec::new();
        open(kind, &core, address, half - OTHERS, &mut connections).await;
        thread::sleep(kind.rests_after);
        let before = at_rest();
        open(kind, &core, address, full - OTHERS, &mut connections).await;
        thread::sleep(kind.rests_after);
        (at_rest() - before) / (full - half)
    });
    server.stop();
    bytes
}

fn started(kind: &Kind, io: Io, behind: SocketAddr) -> Server {
    let io = match io {
        Io::IoUring => "io_uring",
        Io::Epoll | Io::Auto => "epoll",
    };
    let routes = kind.routes.replace("{behind}", &behind.to_string());
    let text = format!(
        "threads = 1\nio = \"{io}\"\ntimeouts = {{ drain = \"50ms\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}\n[[route]]\n{routes}\n",
        kind.listen
    );
    let parsed = onrush_config::parse(&text, Path::new("onrush.toml"));
    let plan = parsed.unwrap_or_else(|errors| panic!("{errors:?}")).plan;
    // Its threads are counted, although this one starts them.
    Server::start(check(plan).expect("it names no files")).expect("it can be served")
}

/// A server that accepts every upgrade and sends nothing in the tunnel.
fn agreeing() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        CountedMemory::exclude_this_thread();
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.expect("descriptors are left");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a head");
                head.push(byte[0]);
            }
            let response = b"HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
            stream.write_all(response).expect("it is taken");
            kept.push(stream);
        }
    });
    address
}

fn on_a_core<T: 'static, F: Future<Output = T> + 'static>(client: impl FnOnce(Core) -> F) -> T {
    let core = Core::new(0, Io::Epoll).expect("every kernel has epoll");
    let outcome: Rc<Cell<Option<T>>> = Rc::default();
    let (told, future) = (Rc::clone(&outcome), client(core.clone()));
    core.spawn(async move { told.set(Some(future.await)) });
    core.run();
    outcome.take().expect("it came to its end")
}

/// Opens connections until `count` connections have each received a response.
async fn open(
    kind: &Kind,
    core: &Core,
    address: SocketAddr,
    count: usize,
    connections: &mut Vec<Transport>,
) {
    let setup = ClientSetup {
        verify: Verify::Nothing,
        ..ClientSetup::default()
    };
    let (connector, _) = Connector::new(setup).expect("it needs no files");
    let deadline = core.now_exact() + Duration::from_secs(60);
    while connections.len() < count {
        let stream = Stream::connect(core, &Address::Tcp(address), None).await;
        let stream = stream.expect("it listens");
        let transport = match kind.is_encrypted {
            true => Transport::connect(stream, &connector, "localhost", deadline).await,
            false => Ok(Transport::plain(stream)),
        };
        let transport = transport.expect("hands are shaken");
        transport.queue(Part::from(Rc::from((kind.request)())));
        transport.flush().await.expect("it is taken");
        let mut input = Input::default();
        while !(kind.is_whole)(input.bytes()) {
            let received = transport.recv(&mut input).await.expect("it responds");
            assert!(received > 0, "{}: no whole response", kind.name);
        }
        connections.push(transport);
    }
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
