//! Load targets other than HTTP: our memcached protocol compared with memcached, and echoes and sinks with sockets of
//! the standard library.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Signal;

use crate::peer::peer;
use crate::program::{Program, Serve, TIMEOUT, drivers, onrush, run_onrush, until};

/// A connection on which each command is followed by a request for an unknown key, which marks the end of the response.
struct MemcachedClient(UnixStream);

impl MemcachedClient {
    fn to(path: &Path) -> MemcachedClient {
        let connected = until("a listener", || UnixStream::connect(path).ok());
        connected.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        MemcachedClient(connected)
    }

    fn say(&mut self, said: &str) -> String {
        const END: &[u8] = b"EN k(end)\r\n";
        let said_with_end = format!("{said}mg (end) k\r\n");
        let sent = self.0.write_all(said_with_end.as_bytes());
        sent.expect("it is taken");
        let mut answer = Vec::new();
        while !answer.ends_with(END) {
            let mut piece = [0; 4096];
            let count = self.0.read(&mut piece).expect("an answer");
            assert!(
                count > 0,
                "it ended behind {said:?}: {}",
                answer.escape_ascii()
            );
            answer.extend_from_slice(&piece[..count]);
        }
        answer.truncate(answer.len() - END.len());
        String::from_utf8(answer).expect("tests store text")
    }
}

/// Valid, invalid and malformed commands, each sent alone.
fn hand_written() -> Vec<String> {
    let key = "k".repeat(250);
    let too_long = "k".repeat(251);
    let opaque = "o".repeat(40);
    let large = "x".repeat(2_000_000);
    let mut all: Vec<String> = [
        "get",
        "gets",
        "get ",
        "gat",
        "gat 0",
        "gat x a",
        "gats 0 a",
        "GET a",
        "nothing",
        "set",
        "set a",
        "set a 0 0",
        "set a 0 0 1 2 3",
        "set a x 0 1",
        "set a 0 x 1",
        "set a 0 0 x",
        "set a 0 0 -1",
        "set a -1 0 1",
        "set a 0 0 1x",
        "set a 0 0 x noreply",
        "cas a 0 0 1",
        "cas a 0 0 1 x",
        "append",
        "incr",
        "incr a",
        "incr a x",
        "incr a -1",
        "incr none 1",
        "decr none 1",
        "touch",
        "touch a",
        "touch a x",
        "touch none 0",
        "delete",
        "delete none",
        "delete none 0",
        "delete none 5",
        "delete none noreply",
        "delete none 0 noreply",
        "delete a b c d",
        "verbosity",
        "verbosity 1",
        "verbosity x",
        "verbosity 1 2 3",
        "flush_all x",
        "flush_all 0",
        "flush_all",
        "flush_all noreply",
        "mg",
        "mg none",
        "mg none q",
        "mg none k Oabc",
        "mg none k Oabc q",
        "mg a !",
        "mg a k k",
        "mg a Tx",
        "mg a Nx",
        "mg a Rx",
        "mg a bogus",
        "ms",
        "ms a",
        "ms a x",
        "ms a -1",
        "md",
        "md none",
        "md none q",
        "md none k O1",
        "md a !",
        "md a Cx",
        "ma",
        "ma none",
        "ma none q",
        "ma a !",
        "ma a MX",
        "ma a Dx",
        "me",
        "me none",
        "mx a",
        "mn a",
        "m",
        "set a 0 0 1\r\nxy",
        "set a 0 0 2\r\nxyz",
        "set a 0 0 4\r\nx\r\ny",
        "ms a 1\r\nxy",
        "ms a 1 MX\r\nx",
        "ms a 1 !\r\nx",
        "ms a 1 Fx\r\nx",
        "ms a 1 Tx\r\nx",
        "stats nothing",
        "stats reset",
        "\r\n",
        " ",
        "  get   a  ",
    ]
    .map(str::to_owned)
    .into();
    all.extend([
        format!("get {key}"),
        format!("get {too_long}"),
        format!("get a {too_long} a"),
        format!("set {key} 0 0 1\r\nx"),
        format!("get a {key} none {key}"),
        format!("set {too_long} 0 0 1"),
        format!("delete {too_long}"),
        format!("incr {too_long} 1"),
        format!("touch {too_long} 1"),
        format!("mg {too_long}"),
        format!("md {too_long}"),
        format!("ms {too_long} 1"),
        format!("mg a O{opaque}"),
        format!("mg none O{opaque}"),
        format!("md a O{opaque}"),
        format!("ms a 1 O{opaque}\r\nx"),
        format!("mg a {}", "k ".repeat(30)),
        format!("set large 0 0 1\r\nx\r\nset large 0 0 2000000\r\n{large}\r\nget large"),
        format!("ms large 2000000\r\n{large}"),
        format!("get {}", "a ".repeat(200)),
    ]);
    all
}

/// Random commands on a few keys, which pass through all states that way.
fn random_commands(count: usize) -> Vec<String> {
    let mut seed = 12_345_u64;
    let mut chance = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    let mut one = || {
        let key = ["a", "b", "c", "n"][chance(4)];
        let other = ["a", "b", "c", "n", "none"][chance(5)];
        let value = [
            "",
            "x",
            "12",
            "99",
            "text of some length",
            "18446744073709551615",
        ][chance(6)];
        let length = value.len();
        let flags = [0, 1, 4_294_967_295_u32][chance(3)];
        let exptime = [0, 0, 100, -1][chance(4)];
        let cas = 1 + chance(60);
        let noreply = ["", "", " noreply"][chance(3)];
        let store = ["set", "set", "add", "replace", "append", "prepend"][chance(6)];
        let mode = ["", "MS", "ME", "MR", "MA", "MP"][chance(6)];
        let quiet = ["", " q"][chance(2)];
        match chance(16) {
            0..=2 => format!("{store} {key} {flags} {exptime} {length}{noreply}\r\n{value}"),
            3 => format!("cas {key} {flags} 0 {length} {cas}{noreply}\r\n{value}"),
            4 => format!("get {key} {other}"),
            5 => format!("gets {key} {other}"),
            6 => format!("gat {exptime} {key} {other}"),
            7 => format!("incr {key} {}{noreply}", [0, 1, 99, 1_000][chance(4)]),
            8 => format!("decr {key} {}{noreply}", [0, 1, 99, 1_000][chance(4)]),
            9 => format!("delete {key}{noreply}"),
            10 => format!("touch {key} {exptime}{noreply}"),
            11 => format!(
                "mg {key} {} k O7 f s c h v{quiet}",
                ["", "u", "N100", "R30", "T100"][chance(5)]
            ),
            12 => format!("ms {key} {length} F{flags} {mode} k O8 c{quiet}\r\n{value}"),
            13 => format!(
                "ms {key} {length} C{cas} {}k{quiet}\r\n{value}",
                ["", "I "][chance(2)]
            ),
            14 => format!(
                "md {key} {}k O9{quiet}",
                ["", "I ", "I T100 ", "C3 "][chance(4)]
            ),
            _ => format!(
                "ma {key} {} v k c{quiet}",
                ["", "D7", "MD", "N0 J5", "C9"][chance(5)]
            ),
        }
    };
    (0..count).map(|_| one()).collect()
}

/// Starts a server with this configuration on one core.
fn serve_file(directory: &Path, text: &str, driver: &str) -> Serve {
    let file = directory.join("onrush.toml");
    std::fs::write(&file, format!("threads = 1\n{text}")).expect("it is ours");
    let file = file.to_str().expect("UTF-8");
    Serve::wait_until_listening(Program::start(&mut onrush(&[
        "serve", "--config", file, "--io", driver,
    ])))
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn responses_match_memcached() {
    let directory = tempfile::tempdir().expect("a directory");
    let theirs = directory.path().join("theirs");
    let socket = theirs.to_str().expect("UTF-8");
    // Its eviction threads hold items now and then, and a held item changes how it is counted.
    let calm = "no_lru_maintainer,no_lru_crawler";
    let arguments = ["-u", "root", "-t", "1", "-o", calm, "-s", socket];
    let _memcached = Program::start(&mut peer("memcached", &arguments));
    let text = "[[listen]]\naddress = \"unix:ours\"\nprotocol = \"memcached\"";
    let serve = serve_file(directory.path(), text, "auto");
    let mut ours = MemcachedClient::to(&directory.path().join("ours"));
    let mut theirs = MemcachedClient::to(&theirs);
    let mut differences = String::new();
    for command in [hand_written(), random_commands(600)].concat() {
        let said = format!("{command}\r\n");
        let (ours, theirs) = (ours.say(&said), theirs.say(&said));
        if ours != theirs {
            let said = said.chars().take(100).collect::<String>();
            differences += &format!("{said:?}\n  ours:   {ours:?}\n  theirs: {theirs:?}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
    drop(ours);
    serve.stop();
}

#[test]
fn pipelined_commands_are_answered_together() {
    let directory = tempfile::tempdir().expect("a directory");
    for driver in drivers() {
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"memcached\"\nsynthetic = { value_bytes = 3 }";
        let serve = serve_file(directory.path(), text, driver);
        assert!(
            serve
                .start_up_lines
                .contains(" (memcached, every key with 3 bytes)")
        );
        let mut client = serve.connect();
        client.send("mg key v\r\n".repeat(100).as_bytes());
        let expected = "VA 3\r\nxxx\r\n".repeat(100);
        let mut answer = vec![0; expected.len()];
        client.0.read_exact(&mut answer).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&answer), expected);
        assert_eq!(client.exchange(b"quit\r\n"), "");
        serve.stop();
    }
}

/// A test datagram: magic, kind, flow, run, sequence number and time.
fn data(run: u32, sequence: u32) -> [u8; 18] {
    let mut bytes = [0; 18];
    bytes[..2].copy_from_slice(&[0xD7, 0x11]);
    bytes[4..8].copy_from_slice(&run.to_be_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_be_bytes());
    bytes
}

fn udp(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    socket.connect(address).expect("an address");
    socket.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    socket
}

/// Requests the report of a run: datagrams received and dropped.
fn report(socket: &UdpSocket, run: u32) -> (u64, u64) {
    let mut asked = [0; 98];
    asked[..18].copy_from_slice(&data(run, 1));
    asked[1] = 0x12;
    socket.send(&asked).expect("it is taken");
    let mut bytes = [0; 200];
    let length = socket.recv(&mut bytes).expect("a report");
    assert_eq!(
        (length, bytes[1]),
        (98, 0x13),
        "it is as long as the question"
    );
    let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight"));
    (number(18), number(74))
}

#[test]
fn echo_and_sink_need_no_configuration_file() {
    for driver in drivers() {
        let arguments = [
            "--echo",
            "127.0.0.1:0",
            "--sink",
            "127.0.0.1:0",
            "--threads",
            "2",
            "--io",
            driver,
        ];
        let serve = Serve::start(&arguments);
        assert!(
            serve.start_up_lines.starts_with("onrush serves no HTTP\n"),
            "{}",
            serve.start_up_lines
        );
        let sink = serve
            .start_up_lines
            .split(", ")
            .nth(1)
            .expect("a second address");
        let sink = sink.split(" (").next().expect("split gives one");
        let mut client = serve.connect();
        client.send(b"over TCP");
        let mut back = [0; 8];
        client.0.read_exact(&mut back).expect("all of it");
        assert_eq!(&back, b"over TCP");
        let socket = udp(&serve.address);
        let largest = vec![7; 65_507];
        for sent in [&b""[..], b"over UDP", &largest] {
            socket.send(sent).expect("it is taken");
            let mut back = vec![0; 70_000];
            let length = socket.recv(&mut back).expect("an echo");
            assert!(back[..length] == *sent, "{length} bytes");
        }
        // Flows from several ports may belong to several cores; each core reports its own.
        for run in 0..10 {
            let socket = udp(sink);
            for sequence in 0..100 {
                socket.send(&data(run, sequence)).expect("it is taken");
            }
            let (received, dropped) = report(&socket, run);
            assert_eq!(received + dropped, 100, "{dropped} dropped");
        }
        serve.stop();
    }
}

#[test]
fn echo_on_public_address_requires_flag() {
    for (arguments, sentence) in [
        (
            &["serve", "--echo", ":0"][..],
            "onrush serve: --echo: 0.0.0.0:0 may be reachable from the Internet, where it can be abused to send traffic to spoofed addresses: expected a loopback or private address, or --public\n",
        ),
        (
            &["serve", "--sink", "unix:/tmp/x"],
            "onrush serve: --sink: unix:/tmp/x is a Unix socket, which cannot receive UDP: expected an IP address and a port\n",
        ),
        (
            &["serve", "--sink", "127.0.0.1:0", "--listen", ":80"],
            "onrush serve: --listen and --tls apply only to HTTP: --echo and --sink set their own addresses; for a combination use a file (--config)\n",
        ),
        (
            &["serve", "--synthetic", "--public"],
            "onrush serve: --public is only for --echo and --sink\n",
        ),
    ] {
        let finished = run_onrush(arguments);
        assert_eq!((finished.code, &*finished.err), (Some(1), sentence));
    }
    let serve = Serve::start(&["--sink", "0.0.0.0:0", "--public"]);
    let port = serve.address.rsplit(':').next().expect("a port");
    let socket = udp(&format!("127.0.0.1:{port}"));
    socket.send(&data(1, 0)).expect("it is taken");
    // The report must come from the requested address, or the connected socket would drop it.
    assert_eq!(report(&socket, 1).0, 1);
    serve.stop();
}

#[test]
fn udp_address_in_use_is_refused() {
    let taken = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    let finished = run_onrush(&["serve", "--sink", &address]);
    assert_eq!(finished.code, Some(1));
    let sentence = format!("onrush serve: cannot listen on {address}: ");
    assert!(finished.err.starts_with(&sentence), "{finished:?}");
}

#[test]
fn reload_keeps_socket_and_counters() {
    let directory = tempfile::tempdir().expect("a directory");
    for driver in drivers() {
        let text = |name: &str| {
            format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\nname = \"{name}\"\nprotocol = \"sink\"\n"
            )
        };
        let serve = serve_file(directory.path(), &text("one"), driver);
        let socket = udp(&serve.address);
        socket.send(&data(1, 0)).expect("it is taken");
        assert_eq!(report(&socket, 1).0, 1);
        let changed = format!("threads = 1\n{}", text("two"));
        std::fs::write(directory.path().join("onrush.toml"), changed).expect("it is ours");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("generation 2");
        socket.send(&data(1, 1)).expect("it is taken");
        assert_eq!(report(&socket, 1).0, 2);
        // An echo in place of the sink inherits the socket.
        let changed = format!("threads = 1\n{}", text("two").replace("sink", "echo"));
        std::fs::write(directory.path().join("onrush.toml"), changed).expect("it is ours");
        serve.program.signal(Signal::HUP);
        serve.program.err.wait_for("generation 3");
        socket.send(b"ping").expect("it is taken");
        let mut back = [0; 100];
        assert_eq!(socket.recv(&mut back).expect("an echo"), 4);
        serve.stop();
    }
}

#[test]
fn stop_completes_under_udp_flood() {
    for driver in drivers() {
        let serve = Serve::start(&["--echo", "127.0.0.1:0", "--threads", "1", "--io", driver]);
        let address: SocketAddr = serve.address.parse().expect("an address");
        let clients: Vec<_> = (0..10).map(|_| serve.connect()).collect();
        let done = std::sync::atomic::AtomicBool::new(false);
        let totals = std::thread::scope(|scope| {
            scope.spawn(|| {
                let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    // Ignore the error: the port may be closed.
                    let _ = socket.send_to(&[7; 100], address);
                }
            });
            let totals = serve.stop();
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            totals
        });
        assert_eq!(
            (
                totals.connections(),
                totals.number_before(" connections cut off")
            ),
            (10, 0)
        );
        drop(clients);
    }
}

#[test]
fn idle_connections_are_closed_at_descriptor_limit() {
    for driver in drivers() {
        let binary = env!("CARGO_BIN_EXE_onrush");
        let command = format!(
            "ulimit -n 60; exec {binary} serve --echo 127.0.0.1:0 --threads 1 --io {driver}"
        );
        let mut shell = std::process::Command::new("sh");
        let serve = Serve::wait_until_listening(Program::start(shell.args(["-c", &command])));
        let mut clients: Vec<_> = (0..80).map(|_| serve.connect()).collect();
        let last = clients.last_mut().expect("there are some");
        last.send(b"at last");
        let mut back = [0; 7];
        last.0.read_exact(&mut back).expect("all of it");
        assert_eq!(&back, b"at last");
        drop(clients);
        serve.stop();
    }
}
