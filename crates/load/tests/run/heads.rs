//! Heads and bodies that servers send and proxies reject: large heads, folded fields, transfer codings.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use onrush_load::journey;
use onrush_load::plan::Options;

use crate::options;
use crate::run;

/// Starts a server that sends `response` to each request, and with `Ends::Yes` closes the connection after it.
fn server(response: Vec<u8>, ends: Ends) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let response = response.clone();
            thread::spawn(move || {
                let mut request = [0; 4096];
                while let Ok(1..) = stream.read(&mut request) {
                    if stream.write_all(&response).is_err() || ends == Ends::Yes {
                        return;
                    }
                }
            });
        }
    });
    url
}

#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Yes,
    No,
}

/// `count` fields, of `bytes` bytes in total.
fn fields(count: usize, bytes: usize) -> String {
    let line = |number: usize| format!("X-{number:03}: {}\r\n", "v".repeat(bytes / count - 9));
    (0..count).map(line).collect()
}

/// Options of a run of journeys whose step extracts the field `X-Taken`.
fn journeys(mut options: Options) -> Options {
    let text = r#"
[[journey]]
name = "a"
[[journey.step]]
name = "b"
url = "/"
take.value = { header = "X-Taken" }
"#;
    let found = journey::parse(text, Path::new("users.toml"), &options.target).unwrap();
    options.requests.taken = found.journeys.value_names();
    options.requests.requests = found.requests;
    options.journeys = Some(Arc::new(found.journeys));
    options
}

#[test]
fn unusual_valid_responses_are_accepted() {
    let head = "HTTP/1.1 200 OK\r\nX-Taken: a\r\n";
    let interim = format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", fields(200, 40_000));
    let ok = "HTTP/1.1 200 OK\r\nX-Taken: a\r\nContent-Length: 2\r\n\r\nok";
    for (name, response, ends) in [
        (
            "folded fields",
            "HTTP/1.1 200 OK\r\nX-Taken: a,\r\n b\r\nContent-Length:\r\n\t 2\r\n\r\nok".to_owned(),
            Ends::No,
        ),
        (
            "a coding to the end of the connection",
            format!("{head}Transfer-Encoding: gzip\r\n\r\nnot looked into"),
            Ends::Yes,
        ),
        (
            "a coding in chunks",
            format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
            Ends::No,
        ),
        (
            "a head of 60 KiB with 250 fields",
            format!(
                "{head}Content-Length: 2\r\n{}\r\nok",
                fields(250, 60 * 1024)
            ),
            Ends::No,
        ),
        ("a large interim response", interim + ok, Ends::No),
        (
            "200 trailers",
            format!(
                "{head}Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{}\r\n",
                fields(200, 12_000)
            ),
            Ends::No,
        ),
    ] {
        let url = server(response.into_bytes(), ends);
        for options in [options(&url, 20), journeys(options(&url, 20))] {
            let report = run(options);
            assert_eq!(
                (report.requests, report.errors),
                (20, 0),
                "{name}: {report}"
            );
        }
    }
}

#[test]
fn oversized_heads_are_refused() {
    let ok = |fields: String| format!("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n{fields}\r\n");
    for (fields, reason) in [
        (fields(10, 70_000), "response head too large"),
        (fields(300, 9_000), "too many header fields"),
    ] {
        let url = server(ok(fields).into_bytes(), Ends::No);
        let report = run(options(&url, 20));
        assert_eq!(report.errors_by_kind["protocol"], 20, "{report}");
        assert!(report.to_string().contains(reason), "{report}");
    }
}
