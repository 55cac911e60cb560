//! Traces: the spans that a collector receives, and that a failing collector does not affect requests.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::Signal;

use crate::administering::{Administered, responding, whole};
use crate::application::Application;
use crate::program::{drivers, until};

const GET: &[u8] = b"GET /x?secret=1 HTTP/1.1\r\nHost: shop.example:81\r\nUser-Agent: t\r\n\r\n";

/// A collector under the test's control.
struct Collector {
    address: String,
    messages: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// Behaviour of a collector.
#[derive(Clone, Copy, Debug)]
enum CollectorBehaviour {
    /// Reads the message, sends this response, and keeps the connection.
    Says(&'static str),
    /// Reads the message, sends this response, and closes the connection.
    SaysLast(&'static str),
    /// Reads the message and sends nothing.
    IsSilent,
    NeverReads,
    /// Sends this response, and then endless zeros.
    SaysTooMuch(&'static str),
}

const TAKES: CollectorBehaviour =
    CollectorBehaviour::Says("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");

impl Collector {
    /// Starts a collector that runs until the tests end.
    fn start(manner: CollectorBehaviour) -> Collector {
        Self::listening(
            TcpListener::bind("127.0.0.1:0").expect("a free port"),
            manner,
        )
    }

    fn listening(listener: TcpListener, manner: CollectorBehaviour) -> Collector {
        let address = listener.local_addr().expect("bound").to_string();
        let messages: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let kept = Arc::clone(&messages);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&kept);
                // Ignore errors: the peer decides how a connection ends.
                thread::spawn(move || converse(stream, manner, &kept));
            }
        });
        Collector { address, messages }
    }

    fn spans(&self) -> Vec<Span> {
        let messages = self.messages.lock().expect("nobody panics there");
        messages.iter().flat_map(|message| spans(message)).collect()
    }

    fn spans_of(&self, count: usize) -> Vec<Span> {
        until("spans", || {
            let spans = self.spans();
            (spans.len() >= count).then_some(spans)
        })
    }
}

fn converse(
    mut stream: TcpStream,
    manner: CollectorBehaviour,
    kept: &Mutex<Vec<Vec<u8>>>,
) -> Option<()> {
    let mut received = Vec::new();
    loop {
        if let CollectorBehaviour::NeverReads = manner {
            thread::park();
        }
        let message = receive(&mut stream, &mut received)?;
        kept.lock().ok()?.push(message);
        let (CollectorBehaviour::Says(words)
        | CollectorBehaviour::SaysLast(words)
        | CollectorBehaviour::SaysTooMuch(words)) = manner
        else {
            continue;
        };
        stream.write_all(words.as_bytes()).ok()?;
        match manner {
            CollectorBehaviour::SaysTooMuch(_) => loop {
                stream.write_all(&[0; 65536]).ok()?;
            },
            CollectorBehaviour::SaysLast(_) => return None,
            CollectorBehaviour::Says(_)
            | CollectorBehaviour::IsSilent
            | CollectorBehaviour::NeverReads => {}
        }
    }
}

fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Option<Vec<u8>> {
    let mut piece = [0; 65536];
    loop {
        let end = received.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
            assert!(
                head.contains("content-type: application/x-protobuf"),
                "{head}"
            );
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.expect("a length").parse().expect("a number");
            if received.len() >= end + 4 + length {
                let message = received[end + 4..end + 4 + length].to_vec();
                received.drain(..end + 4 + length);
                return Some(message);
            }
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            count => received.extend_from_slice(&piece[..count]),
        }
    }
}

/// A span, reduced to the fields that tests use.
#[derive(Clone, Debug, Default)]
struct Span {
    trace: Vec<u8>,
    id: Vec<u8>,
    parent: Vec<u8>,
    name: String,
    kind: u64,
    times: [u64; 2],
    attributes: BTreeMap<String, String>,
    resource: BTreeMap<String, String>,
    is_error: bool,
}

/// Fields of a protocol buffer message: numbers, and bytes.
fn fields(mut rest: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut all = Vec::new();
    let varint = |rest: &mut &[u8]| {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = rest[0];
            *rest = &rest[1..];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    };
    while !rest.is_empty() {
        let tag = varint(&mut rest);
        let (number, bytes) = match tag & 7 {
            0 => (varint(&mut rest), &[][..]),
            1 => {
                let (fixed, left) = rest.split_at(8);
                rest = left;
                (
                    u64::from_le_bytes(fixed.try_into().expect("eight")),
                    &[][..],
                )
            }
            2 => {
                let length = varint(&mut rest) as usize;
                let (bytes, left) = rest.split_at(length);
                rest = left;
                (0, bytes)
            }
            5 => {
                rest = &rest[4..];
                (0, &[][..])
            }
            wire => panic!("no kind of field: {wire}"),
        };
        all.push((tag >> 3, number, bytes));
    }
    all
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn attribute(pair: &[u8]) -> (String, String) {
    let pair = fields(pair);
    let value = fields(pair[1].2);
    let value = match value[0] {
        (1, _, bytes) => text(bytes),
        (_, number, _) => number.to_string(),
    };
    (text(pair[0].2), value)
}

fn spans(message: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    for (_, _, of_resource) in fields(message) {
        let mut resource = BTreeMap::new();
        for (field, _, bytes) in fields(of_resource) {
            match field {
                1 => resource.extend(fields(bytes).iter().map(|it| attribute(it.2))),
                _ => {
                    let all = fields(bytes).into_iter().filter(|it| it.0 == 2);
                    spans.extend(all.map(|it| Span {
                        resource: resource.clone(),
                        ..span(it.2)
                    }));
                }
            }
        }
    }
    spans
}

fn span(bytes: &[u8]) -> Span {
    let mut span = Span::default();
    for (field, number, bytes) in fields(bytes) {
        match field {
            1 => span.trace = bytes.to_vec(),
            2 => span.id = bytes.to_vec(),
            4 => span.parent = bytes.to_vec(),
            5 => span.name = text(bytes),
            6 => span.kind = number,
            7 | 8 => span.times[field as usize - 7] = number,
            9 => span.attributes.extend([attribute(bytes)]),
            15 => span.is_error = fields(bytes).contains(&(3, 2, &[][..])),
            _ => {}
        }
    }
    span
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `[tracing]` with these keys, and a short interval.
fn tracing(collector: &str, keys: &str) -> String {
    format!(
        "[tracing]\nendpoint = \"http://{collector}\"\ninterval = \"20ms\"\nservice_name = \"shop\"\n{keys}\n"
    )
}

/// Spans that the server reports as sent and as lost.
fn counts(server: &Administered) -> (u64, u64) {
    let spans = &server.said("status")["spans"];
    let lost = spans["lost"].as_object().expect("an object");
    let lost = lost.values().filter_map(serde_json::Value::as_u64);
    (spans["exported"].as_u64().expect("a number"), lost.sum())
}

#[test]
fn request_and_attempts_are_spans_of_same_trace() {
    for io in drivers() {
        let (application, collector) = (Application::start("app"), Collector::start(TAKES));
        let text = format!(
            "{}resource = {{ \"deployment.environment.name\" = \"test\" }}\n[[route]]\nforward = \"app\"\n[upstream.app]\nbalance = \"first\"\nservers = [\"127.0.0.1:1\", \"{}\"]\n",
            tracing(&collector.address, ""),
            application.address
        );
        let server = Administered::start(io, &text);
        let mut client = server.serve.connect();
        client.send(GET);
        let told = client.receive().expect("a response");
        let spans = collector.spans_of(3);
        assert_eq!(spans.len(), 3, "{spans:#?}");
        let (own, lost, good) = (&spans[0], &spans[1], &spans[2]);
        assert!(
            spans
                .iter()
                .all(|span| span.trace == own.trace && span.trace.len() == 16)
        );
        assert_eq!((own.kind, lost.kind, good.kind), (2, 3, 3));
        assert_eq!((&lost.parent, &good.parent), (&own.id, &own.id));
        assert!(own.parent.is_empty() && lost.id != good.id);
        assert!(spans.iter().all(|span| own.times[0] <= span.times[0]
            && span.times[0] <= span.times[1]
            && span.times[1] <= own.times[1]));
        let traceparent = format!(
            "traceparent: 00-{}-{}-01",
            hexadecimal(&good.trace),
            hexadecimal(&good.id)
        );
        assert!(told.contains(&traceparent), "{told}");
        assert_eq!((&*own.name, &*good.name), ("GET /*", "GET"));
        for (name, value) in [
            ("http.request.method", "GET"),
            ("url.path", "/x"),
            ("url.scheme", "http"),
            ("server.address", "shop.example"),
            ("server.port", "81"),
            ("client.address", "127.0.0.1"),
            ("http.route", "/*"),
            ("http.response.status_code", "200"),
            ("user_agent.original", "t"),
            ("network.protocol.version", "1.1"),
        ] {
            assert_eq!(own.attributes[name], value, "{own:#?}");
        }
        assert!(!format!("{spans:?}").contains("secret"), "{spans:#?}");
        assert_eq!(lost.attributes["error.type"], "connect");
        assert_eq!(good.attributes["http.request.resend_count"], "1");
        assert_eq!(
            (own.is_error, lost.is_error, good.is_error),
            (false, true, false)
        );
        assert_eq!(own.resource["service.name"], "shop");
        assert_eq!(own.resource["deployment.environment.name"], "test");
        until("the count", || (counts(&server) == (3, 0)).then_some(()));
        server.serve.stop();
    }
}

/// Every kind of misbehaviour of a collector.
const MISBEHAVIOURS: [CollectorBehaviour; 10] = [
    CollectorBehaviour::IsSilent,
    CollectorBehaviour::NeverReads,
    CollectorBehaviour::SaysLast(""),
    CollectorBehaviour::SaysLast("HTTP/1.1 200 OK\r\nContent-Le"),
    CollectorBehaviour::SaysLast("\0\u{1}nonsense\r\n\r\n"),
    CollectorBehaviour::Says("HTTP/1.1 400 Bad Request\r\nContent-Length: 5\r\n\r\nnever"),
    CollectorBehaviour::Says(
        "HTTP/1.1 301 Moved\r\nLocation: http://h/\r\nContent-Length: 0\r\n\r\n",
    ),
    CollectorBehaviour::Says(
        "HTTP/1.1 429 Busy\r\nRetry-After: 100000\r\nContent-Length: 0\r\n\r\n",
    ),
    CollectorBehaviour::Says("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
    CollectorBehaviour::SaysTooMuch("HTTP/1.1 500 No\r\nContent-Length: 1000000000\r\n\r\n"),
];

#[test]
fn failing_collector_does_not_affect_requests() {
    const REQUESTS: u64 = 1_000;
    let dead = "127.0.0.1:1".to_owned();
    let nowhere = "no-such-host.invalid:4318".to_owned();
    let strange = MISBEHAVIOURS.map(|manner| Collector::start(manner).address);
    let io = drivers().last().expect("there is one");
    for collector in [dead, nowhere].into_iter().chain(strange) {
        let keys = "timeout = \"200ms\"\nqueue = 100";
        let text = format!("{}{}", tracing(&collector, keys), responding("hello"));
        let server = Administered::start(io, &text);
        let mut client = server.serve.connect();
        for _ in 0..REQUESTS {
            client.send(GET);
            let response = client.receive().expect("a response");
            assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        }
        server.serve.program.err.wait_for("does not accept spans");
        let said = server.serve.program.err.so_far();
        assert_eq!(said.matches("does not accept spans").count(), 1, "{said}");
        until("spans that are lost", || {
            (counts(&server).1 > 0).then_some(())
        });
        assert_eq!(counts(&server).0, 0, "{collector}");
        assert_eq!(server.serve.stop().requests(), REQUESTS);
    }
}

#[test]
fn accepted_and_refused_spans_are_counted() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let endless = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
    // partial_success { rejected_spans: 1, error_message: "old" }
    let partial = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\n\n\u{7}\u{8}\u{1}\u{12}\u{3}old";
    for (manner, counted, told) in [
        (CollectorBehaviour::SaysLast(half), (1, 0), None),
        (CollectorBehaviour::SaysTooMuch(endless), (1, 0), None),
        (
            CollectorBehaviour::Says(partial),
            (0, 1),
            Some("refused 1 of 1 span, which are lost: old"),
        ),
    ] {
        let collector = Collector::start(manner);
        let text = format!("{}{}", tracing(&collector.address, ""), responding("hello"));
        let server = Administered::start("epoll", &text);
        let mut client = server.serve.connect();
        client.send(GET);
        client.receive().expect("a response");
        until("the count", || (counts(&server) == counted).then_some(()));
        if let Some(told) = told {
            let log = server.serve.program.err.wait_for(told);
            assert!(!log.contains("does not accept spans"), "{log}");
            let events = server.said("events");
            assert_eq!(events["events"][0]["event"], "traces_refused", "{events}");
        }
        server.serve.stop();
    }
}

#[test]
fn recovered_collector_gets_buffered_spans() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let text = format!(
        "{}{}",
        tracing(&address.to_string(), ""),
        responding("hello")
    );
    let server = Administered::start("epoll", &text);
    let mut client = server.serve.connect();
    for _ in 0..10 {
        client.send(GET);
        client.receive().expect("a response");
    }
    server.serve.program.err.wait_for("does not accept spans");
    let listener = until("its address", || TcpListener::bind(address).ok());
    let collector = Collector::listening(listener, TAKES);
    assert_eq!(collector.spans_of(10).len(), 10);
    until("the count", || (counts(&server) == (10, 0)).then_some(()));
    server.serve.stop();
}

#[test]
fn reload_and_stop_flush_traces() {
    let collector = Collector::start(TAKES);
    let server = Administered::start("epoll", &responding("one"));
    let mut client = server.serve.connect();
    let mut ask = || {
        client.send(GET);
        client.receive().expect("a response");
    };
    ask();
    let secret = "headers = { Authorization = \"Bearer nobody-sees-this\" }\ninterval = \"60s\"\n";
    let with = tracing(&collector.address, "").replace("interval = \"20ms\"\n", secret);
    for (generation, tracing) in [(2, &*with), (3, ""), (4, &*with)] {
        let text = whole(&server.socket, &format!("{tracing}{}", responding("two")));
        fs::write(&server.path, text).expect("it is ours");
        server.serve.program.signal(Signal::HUP);
        server
            .serve
            .program
            .err
            .wait_for(&format!("as generation {generation}"));
        ask();
        // Spans from before the reload are sent, although the interval has not passed.
        collector.spans_of(usize::from(generation > 2));
    }
    let config = server.ctl(&["config"]);
    assert!(
        config.out.contains("(hidden)") && !config.out.contains("nobody-sees"),
        "{config:?}"
    );
    server.serve.stop();
    assert_eq!(collector.spans_of(2).len(), 2);
}
