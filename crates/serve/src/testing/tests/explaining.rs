//! Compares explanations with the server's behaviour for random configurations and requests, on simulated networks,
//! with servers that echo the head they received.

mod making;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

use onrush_config::plan::Scheme;
use onrush_engine::Listener;

use crate::server::explain::{
    Choice, ExplainRequest, Explainer, Explanation, GroupForward, Outcome,
};
use crate::testing::harness::{Peer, TestCore, on_simulated_core};
use making::Maker;

/// Number of requests per configuration.
const REQUESTS: u64 = 40;
/// Default number of configurations; `ONRUSH_EXPLAIN_CONFIGURATIONS` in the environment overrides it.
const CONFIGURATIONS: u64 = 250;
const SERVERS: usize = 4;

#[test]
fn explain_matches_server_response() {
    let wanted = std::env::var("ONRUSH_EXPLAIN_CONFIGURATIONS");
    let wanted = wanted.ok().and_then(|text| text.parse().ok());
    let files = tempfile::tempdir().expect("a directory");
    for (name, text) in [("a.txt", "a"), ("index.html", "i"), ("style.css", "c")] {
        std::fs::write(files.path().join(name), text).expect("room on the disk");
    }
    let files: Rc<str> = files.path().display().to_string().into();
    let findings: Rc<RefCell<Findings>> = Rc::default();
    for seed in 0..wanted.unwrap_or(CONFIGURATIONS) {
        let (files, findings) = (Rc::clone(&files), Rc::clone(&findings));
        on_simulated_core(seed, move |site| {
            compare(seed, site, Rc::clone(&files), Rc::clone(&findings))
        });
    }
    let Findings { wrong, kinds } = &*findings.borrow();
    eprintln!("{kinds:?}");
    let shown = wrong.iter().take(WRONG_SHOWN).cloned().collect::<Vec<_>>();
    assert!(
        wrong.is_empty(),
        "{} requests are explained wrongly:\n{}",
        wrong.len(),
        shown.join("\n\n")
    );
    for kind in KINDS {
        assert!(
            kinds.contains_key(kind),
            "no request was {kind:?}: {kinds:?}"
        );
    }
}

/// Kinds of outcomes that must occur for the test to be meaningful.
const KINDS: [&str; 20] = [
    "forwarded",
    "forwarded to one server",
    "passed by 5",
    "no route",
    "200",
    "204",
    "301",
    "302",
    "308",
    "400",
    "401",
    "403",
    "404",
    "405",
    "413",
    "414",
    "417",
    "501",
    "503",
    "505",
];

#[derive(Default)]
struct Findings {
    wrong: Vec<String>,
    /// Number of requests of each kind.
    kinds: BTreeMap<String, u32>,
}

impl Findings {
    fn count(&mut self, said: &Explanation) {
        let mut kinds = vec![format!("passed by {}", said.passed.len())];
        match &said.outcome {
            Outcome::Generated { status, .. } => {
                kinds.extend(status.map(|status| status.to_string()));
            }
            Outcome::Forward(forward) => {
                kinds.push("forwarded".to_owned());
                if matches!(forward.groups[0].choice, Choice::Exactly { .. }) {
                    kinds.push("forwarded to one server".to_owned());
                }
            }
        }
        if said.route.is_none() {
            kinds.push("no route".to_owned());
        }
        for kind in kinds {
            *self.kinds.entry(kind).or_default() += 1;
        }
    }
}

/// Number of differences shown.
const WRONG_SHOWN: usize = 10;

/// Compares one server and one explainer for the same requests.
async fn compare(seed: u64, site: TestCore, files: Rc<str>, findings: Rc<RefCell<Findings>>) {
    let listeners: Vec<_> = (0..SERVERS).map(|_| site.listen()).collect();
    let servers: Vec<SocketAddr> = listeners.iter().map(|(_, address)| *address).collect();
    for (listener, address) in listeners {
        site.core.spawn(echo(listener, address));
    }
    let maker = Maker::new(seed, servers, files.to_string());
    let text = maker.configuration();
    let plan = match onrush_config::parse(&text, Path::new("onrush.toml")) {
        Ok(parsed) => parsed.plan,
        Err(errors) => panic!("seed {seed}: {text}\nis refused:\n{errors}"),
    };
    let checked = crate::site::check::check(plan.clone()).expect("its files are there");
    let explainer = Explainer::new(checked).expect("it can be served");
    let addresses = site.serve_all(&plan);
    for number in 0..REQUESTS {
        let (listener, client, scheme) = maker.coming();
        let bytes = maker.request();
        let question = ExplainRequest {
            listener,
            client: Some(client),
            scheme,
            bytes: bytes.clone(),
        };
        let said = explainer.explain(&question).expect("there is memory");
        let sent = [introduction(client, scheme), bytes].concat();
        let mut peer = site.connect(&addresses[listener]).await;
        let response = peer.exchange(&sent).await;
        findings.borrow_mut().count(&said);
        if let Err(why) = check(&said, &Response(&String::from_utf8_lossy(&response))) {
            findings.borrow_mut().wrong.push(format!(
                "seed {seed}, request {number}, by listener {listener} from {client} by {scheme:?}: {why}\n{}\nof\n{text}\nsaid is {said:#?}\ndone is\n{}",
                question.bytes.escape_ascii(),
                response.escape_ascii()
            ));
        }
    }
}

/// A server that responds with the received head, in a field.
async fn echo(listener: Listener, address: SocketAddr) {
    while let Ok(stream) = listener.accept().await {
        let core = stream.core().clone();
        core.spawn(async move {
            let mut peer = Peer::new(stream);
            while !peer.is_over().await {
                let head = peer.receive_until(b"\r\n\r\n").await;
                let head = String::from_utf8_lossy(&head).into_owned();
                let length = head
                    .split("\r\n")
                    .find_map(|line| line.strip_prefix("Content-Length: "));
                let length = length.and_then(|length| length.parse().ok());
                peer.receive_exactly(length.unwrap_or(0)).await;
                let head = hexadecimal(head.as_bytes());
                let response = format!(
                    "HTTP/1.1 200 OK\r\nX-Server: {address}\r\nX-Head: {head}\r\nContent-Length: 0\r\n\r\n"
                );
                peer.send(response.as_bytes()).await;
            }
        });
    }
}

/// A PROXY protocol header, version 2.
fn introduction(client: SocketAddr, scheme: Scheme) -> Vec<u8> {
    let mut body = Vec::new();
    let family = match client {
        SocketAddr::V4(client) => {
            body.extend(client.ip().octets());
            body.extend([198, 51, 100, 1]);
            0x11
        }
        SocketAddr::V6(client) => {
            body.extend(client.ip().octets());
            body.extend([0; 16]);
            0x21
        }
    };
    body.extend(client.port().to_be_bytes());
    body.extend(443_u16.to_be_bytes());
    if scheme == Scheme::Https {
        // PP2_TYPE_SSL: the client used TLS without a client certificate.
        body.extend([0x20, 0, 5, 1, 0, 0, 0, 0]);
    }
    let length = (body.len() as u16).to_be_bytes();
    [b"\r\n\r\n\0\r\nQUIT\n\x21", &[family][..], &length, &body].concat()
}

struct Response<'a>(&'a str);

impl Response<'_> {
    fn status(&self) -> Option<u16> {
        self.0.split(' ').nth(1)?.parse().ok()
    }

    fn field(&self, name: &str) -> Option<&str> {
        let head = self.0.split("\r\n\r\n").next()?;
        let mut lines = head.split("\r\n");
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

fn check(said: &Explanation, done: &Response<'_>) -> Result<(), String> {
    let equal = |what: &str, said: String, done: String| match said == done {
        true => Ok(()),
        false => Err(format!("{what}: said is {said}, done is {done}")),
    };
    let route = said.route.map(|route| route.to_string());
    let of_route = done.field("X-Route").map(str::to_owned);
    equal("route", format!("{route:?}"), format!("{of_route:?}"))?;
    match &said.outcome {
        Outcome::Generated {
            status, location, ..
        } => {
            // The status may depend on later input, such as the body that a synthetic response waits for.
            if status.is_some() {
                equal(
                    "status",
                    format!("{status:?}"),
                    format!("{:?}", done.status()),
                )?;
            }
            equal(
                "a server",
                "None".to_owned(),
                format!("{:?}", done.field("X-Server")),
            )?;
            let sent_to = done.field("Location").filter(|_| location.is_some());
            let location = location.as_deref();
            equal("location", format!("{location:?}"), format!("{sent_to:?}"))
        }
        Outcome::Forward(forward) => {
            equal(
                "status",
                "Some(200)".to_owned(),
                format!("{:?}", done.status()),
            )?;
            let server = done.field("X-Server").ok_or("no server has responded")?;
            let head = done
                .field("X-Head")
                .ok_or("no server has said what it was sent")?;
            let is_sent = |to: &GroupForward| hexadecimal(to.head.as_bytes()) == head;
            if !forward.groups.iter().any(is_sent) {
                return Err(format!("the server was sent {:?}", unhexed(head)));
            }
            let has_it = |to: &GroupForward| match &to.choice {
                Choice::Exactly { server: said, .. } => said == server,
                Choice::OneOf { servers, .. } => servers.iter().any(|it| it == server),
            };
            match forward.groups.iter().any(|to| is_sent(to) && has_it(to)) {
                true => Ok(()),
                false => Err(format!("{server} has responded")),
            }
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhexed(text: &str) -> String {
    let digits: Vec<char> = text.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16);
    let bytes = digits.chunks(2).map(|pair| byte(pair).unwrap_or(b'?'));
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
