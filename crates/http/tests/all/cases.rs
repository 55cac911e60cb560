//! Runs the cases of `cases/*.txt`: whole, split at every byte, byte by byte, and with other bytes after them.

use std::collections::BTreeMap;
use std::fmt::Debug;

use onrush_http::{Framing, Limits, Method, Parsed, Version};

use crate::support::check;
use crate::support::drive::{self, End, Event, Head, Sender};
use crate::support::proxy_protocol::{self, Owned, Told};

#[test]
fn requests_match_cases() {
    for text in [
        include_str!("cases/requests.txt"),
        include_str!("cases/requests_framing.txt"),
    ] {
        for case in &cases(text) {
            let limits = case.limits();
            run_head(case, |input| drive::request_head(input, &limits));
        }
    }
}

#[test]
fn responses_match_cases() {
    for case in &cases(include_str!("cases/responses.txt")) {
        let limits = case.limits();
        let method = Method::of(case.outcome().get("for").unwrap_or("GET"));
        run_head(case, |input| drive::response_head(input, method, &limits));
    }
}

#[test]
fn bodies_match_cases() {
    for case in &cases(include_str!("cases/bodies.txt")) {
        case.run(run_body);
    }
}

#[test]
fn pipelines_match_cases() {
    for case in &cases(include_str!("cases/pipelines.txt")) {
        case.run(run_pipeline);
    }
}

#[test]
fn proxy_headers_match_cases() {
    for case in &cases(include_str!("cases/proxy_protocol.txt")) {
        case.run(run_proxy_protocol);
    }
}

#[test]
fn case_names_are_unique() {
    let files = [
        include_str!("cases/requests.txt"),
        include_str!("cases/requests_framing.txt"),
        include_str!("cases/responses.txt"),
        include_str!("cases/bodies.txt"),
        include_str!("cases/pipelines.txt"),
        include_str!("cases/proxy_protocol.txt"),
    ];
    let mut count = 0;
    for text in files {
        let mut names: Vec<_> = cases(text).into_iter().map(|case| case.name).collect();
        count += names.len();
        names.sort();
        let unique = names.len();
        names.dedup();
        assert_eq!(names.len(), unique, "a name is used twice");
    }
    assert!(count >= 300, "only {count} cases");
}

fn run_head(case: &Case, read: impl Fn(&[u8]) -> Parsed<Head>) {
    case.run(|case| {
        let outcome = check::prefixes_agree(&case.input, &read);
        case.outcome().check_head(&outcome, case.input.len());
        if outcome != Parsed::Partial {
            let behind = [
                &case.input[..],
                b"\r\nGET / HTTP/1.1\r\nHost: z\r\n\r\n\0\n",
            ]
            .concat();
            assert_eq!(read(&behind), outcome, "with other bytes behind");
        }
    });
}

fn run_body(case: &Case) {
    let outcome = case.outcome();
    let limits = case.limits();
    let sender = match outcome.get("from").unwrap_or("client") {
        "client" => Sender::Client,
        "server" => Sender::Server,
        other => panic!("nobody sends as {other}"),
    };
    let framing = framing(outcome.get("with").unwrap_or("chunked"));
    let body = check::pieces_agree(sender, framing, &case.input, &limits);
    match (&*outcome.words[0], body.end) {
        ("ok", End::Complete) | ("more", End::More) | ("open", End::Open) => {}
        ("refuse", End::Refused(status)) => {
            return assert_eq!(outcome.words[1], status.to_string());
        }
        _ => panic!("came to {body:?}"),
    }
    outcome.check_keys(&["payload", "passed", "trailers", "rest"]);
    let passed = drive::forwarded_bytes(sender, framing, [&case.input[..]], &limits);
    outcome.check("passed", &passed);
    outcome.check("payload", &body.payload);
    outcome.check("trailers", &body.trailers);
    let rest = outcome.get("rest").unwrap_or("0");
    assert_eq!(rest, (case.input.len() - body.consumed).to_string(), "rest");
}

fn run_pipeline(case: &Case) {
    let events = check::pipeline(&case.input);
    assert_eq!(events.len(), case.outcomes.len(), "came to {events:#?}");
    for (event, outcome) in events.iter().zip(&case.outcomes) {
        let words: Vec<_> = outcome.words.iter().map(String::as_str).collect();
        match (&words[..], event) {
            (["ok", method, target], Event::Message { head, payload }) => {
                assert_eq!((*method, *target), (&*head.method, &*head.target));
                outcome.check_keys(&["body"]);
                outcome.check("body", payload);
            }
            (["partial"], Event::Partial) => {}
            (["refuse", status], Event::Refused(refused)) => {
                assert_eq!(*status, refused.to_string())
            }
            _ => panic!("came to {event:?}"),
        }
    }
}

fn run_proxy_protocol(case: &Case) {
    let outcome = case.outcome();
    let whole = proxy_protocol::check(&case.input);
    let words: Vec<_> = outcome.words.iter().map(String::as_str).collect();
    let (kind, told) = match (&words[..], &whole) {
        (["partial"], Parsed::Partial) => return,
        (["refuse", status], Parsed::Refused(refusal)) => {
            assert_eq!(*status, refusal.status.to_string());
            return;
        }
        (["ok", kind], Parsed::Complete(told)) => (*kind, told),
        _ => panic!("came to {whole:?}"),
    };
    let (found, source, destination) = ends(told);
    same("kind", kind, found);
    outcome.check_keys(&["source", "destination", "authority", "alpn", "tls", "rest"]);
    outcome.check("source", &source);
    outcome.check("destination", &destination);
    let or_none = |text: Option<&[u8]>| text.unwrap_or(b"none").to_vec();
    let told_of = [
        (
            "authority",
            or_none(told.authority.as_deref().map(str::as_bytes)),
        ),
        ("alpn", or_none(told.alpn.as_deref())),
        ("tls", tls(told).into()),
    ];
    for (key, found) in told_of {
        let wanted = outcome.get(key).unwrap_or("none");
        assert_eq!(unescape(wanted), found, "{key}");
    }
    let rest = outcome.get("rest").unwrap_or("0");
    same("rest", rest, &*(case.input.len() - told.bytes).to_string());
    let behind = [&case.input[..], b"GET / HTTP/1.1\r\n"].concat();
    assert_eq!(
        proxy_protocol::read(&behind),
        whole,
        "with other bytes behind"
    );
}

/// Kind of an origin, its source and destination.
fn ends(told: &Told) -> (&'static str, Vec<u8>, Vec<u8>) {
    match &told.origin {
        Owned::Local => ("local", Vec::new(), Vec::new()),
        Owned::Unknown => ("unknown", Vec::new(), Vec::new()),
        Owned::Ip(source, destination) => (
            "ip",
            source.to_string().into(),
            destination.to_string().into(),
        ),
        Owned::Unix(source, destination) => ("unix", source.clone(), destination.clone()),
    }
}

fn tls(told: &Told) -> &'static str {
    match told.tls {
        None => "none",
        Some(tls) if !tls.over_tls => "no",
        Some(tls) if tls.verified => "verified",
        Some(tls) if tls.certificate => "certificate",
        Some(_) => "yes",
    }
}

struct Case {
    name: String,
    input: Vec<u8>,
    outcomes: Vec<Outcome>,
}

/// Line with an expected result.
struct Outcome {
    words: Vec<String>,
    keys: BTreeMap<String, String>,
}

/// Keys that set a limit or the context and are not compared with the head.
const SITUATION: [&str; 10] = [
    "for",
    "from",
    "with",
    "head_max",
    "headers_max",
    "target_max",
    "line_max",
    "excess_max",
    "trailer_max",
    "trailers_max",
];

impl Case {
    fn outcome(&self) -> &Outcome {
        let [outcome] = &self.outcomes[..] else {
            panic!("{}: one outcome is needed", self.name);
        };
        outcome
    }

    fn limits(&self) -> Limits {
        let outcome = self.outcome();
        let bound = |key: &str, default: usize| {
            outcome.get(key).map_or(default, |text| {
                text.parse().unwrap_or_else(|_| panic!("{key}={text}"))
            })
        };
        let default = Limits::DEFAULT;
        Limits {
            head_bytes_max: bound("head_max", default.head_bytes_max),
            headers_max: bound("headers_max", default.headers_max),
            target_bytes_max: bound("target_max", default.target_bytes_max),
            chunk_line_bytes_max: bound("line_max", default.chunk_line_bytes_max),
            chunk_excess_bytes_max: bound("excess_max", default.chunk_excess_bytes_max as usize)
                as u16,
            trailer_bytes_max: bound("trailer_max", default.trailer_bytes_max),
            trailers_max: bound("trailers_max", usize::from(default.trailers_max)) as u16,
            codings: default.codings,
        }
    }

    /// Prints the name of a failing case.
    fn run(&self, check: impl Fn(&Case)) {
        let named = Named(&self.name);
        check(self);
        std::mem::forget(named);
    }
}

struct Named<'n>(&'n str);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        eprintln!("in the case: {}", self.0);
    }
}

impl Outcome {
    fn get(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }

    fn check_keys(&self, known: &[&str]) {
        for key in self.keys.keys().map(String::as_str) {
            assert!(
                known.contains(&key) || SITUATION.contains(&key),
                "no such key: {key}"
            );
        }
    }

    /// Compares a value if the case contains the key.
    fn check(&self, key: &str, found: &[u8]) {
        if let Some(wanted) = self.get(key) {
            assert_eq!(
                unescape(wanted).escape_ascii().to_string(),
                found.escape_ascii().to_string(),
                "{key}"
            );
        }
    }

    fn check_head(&self, outcome: &Parsed<Head>, input_bytes: usize) {
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        match (&words[..], outcome) {
            (["partial"], Parsed::Partial) => {}
            (["refuse", status], Parsed::Refused(refusal)) => {
                assert_eq!(*status, refusal.status.to_string())
            }
            (["ok"], Parsed::Complete(head)) => self.check_fields(head, input_bytes),
            _ => panic!("came to {outcome:?}"),
        }
    }

    fn check_fields(&self, head: &Head, input_bytes: usize) {
        same(
            "framing",
            framing(self.get("framing").unwrap_or("none")),
            head.framing,
        );
        same(
            "keep",
            self.get("keep").unwrap_or("yes"),
            yes_or_no(head.keep_alive),
        );
        same(
            "expect",
            self.get("expect").unwrap_or("no"),
            yes_or_no(head.expect_continue),
        );
        same(
            "rest",
            self.get("rest").unwrap_or("0"),
            &*(input_bytes - head.bytes).to_string(),
        );
        for key in self
            .keys
            .keys()
            .map(String::as_str)
            .filter(|key| !SITUATION.contains(key))
        {
            match key {
                "framing" | "keep" | "expect" | "rest" => {}
                "method" => self.check(key, head.method.as_bytes()),
                "target" => self.check(key, head.target.as_bytes()),
                "path" => self.check(key, head.path.as_bytes()),
                "query" => self.check(key, head.query.as_deref().unwrap_or("none").as_bytes()),
                "authority" => {
                    self.check(key, head.authority.as_deref().unwrap_or("none").as_bytes())
                }
                "status" => self.check(key, head.status.to_string().as_bytes()),
                "reason" => self.check(key, head.reason.as_bytes()),
                "headers" => self.check(key, head.headers.len().to_string().as_bytes()),
                "version" => self.check(
                    key,
                    if head.version == Version::Http10 {
                        b"1.0"
                    } else {
                        b"1.1"
                    },
                ),
                name => {
                    let found = head.headers.iter().find(|header| header.0 == name);
                    self.check(name, &found.unwrap_or_else(|| panic!("no header {name}")).1);
                }
            }
        }
    }
}

fn same<T: PartialEq + Debug>(what: &str, wanted: T, found: T) {
    assert_eq!(wanted, found, "{what}");
}

fn yes_or_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

fn framing(text: &str) -> Framing {
    match text.split_once(':') {
        Some(("length", length)) => Framing::Length(length.parse().expect("a number")),
        None if text == "none" => Framing::None,
        None if text == "chunked" => Framing::Chunked,
        None if text == "close" => Framing::UntilClose,
        _ => panic!("no framing: {text}"),
    }
}

/// Parses the format described in `tests/cases/README.md`.
fn cases(text: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines() {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        if mark == "---" {
            cases.push(Case {
                name: rest.into(),
                input: Vec::new(),
                outcomes: Vec::new(),
            });
            continue;
        }
        match (mark, cases.last_mut()) {
            ("" | "#", _) => {}
            (">", Some(case)) => case.input.extend(unescape(rest)),
            ("=", Some(case)) => case.outcomes.push(outcome(rest)),
            _ => panic!("not a line of a case: {line}"),
        }
    }
    cases
}

fn outcome(text: &str) -> Outcome {
    let (keys, words): (Vec<&str>, Vec<&str>) =
        text.split(' ').partition(|word| word.contains('='));
    let keys = keys.iter().filter_map(|word| word.split_once('='));
    Outcome {
        words: words.into_iter().map(String::from).collect(),
        keys: keys
            .map(|(key, value)| (key.into(), value.into()))
            .collect(),
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        let escape = &rest[at + 1..];
        let used = match escape.as_bytes().first() {
            Some(b'x') => {
                bytes.push(u8::from_str_radix(&escape[1..3], 16).expect("two digits behind \\x"));
                3
            }
            Some(b'{') => {
                let end = escape.find('}').expect("a closing brace");
                let (times, repeated) = escape[1..end].split_once(':').expect("a colon");
                bytes.extend(unescape(repeated).repeat(times.parse().expect("a number")));
                end + 1
            }
            Some(letter) => {
                bytes.push(match letter {
                    b'r' => b'\r',
                    b'n' => b'\n',
                    b't' => b'\t',
                    b's' => b' ',
                    b'0' => 0,
                    b'\\' => b'\\',
                    _ => panic!("no escape: {escape}"),
                });
                1
            }
            None => panic!("a lone backslash: {text}"),
        };
        rest = &escape[used..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}
