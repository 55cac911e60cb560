//! Requests of `onrush load`: mixes, files of requests, recordings, logs, data, cookies and credentials, against a
//! server that records them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Finished, Serve, run_onrush};

fn load(words: &[&str]) -> Finished {
    run_onrush(&[&["load"], words].concat()).on_any_machine()
}

/// A received request: its first line, its fields with names in lower case, its body.
#[derive(Debug)]
struct ReceivedRequest {
    line: String,
    fields: BTreeMap<String, String>,
    body: Vec<u8>,
}

/// A server that responds to every request with 200 and a cookie, and records the request.
struct Recorder {
    url: String,
    got: Receiver<ReceivedRequest>,
}

impl Recorder {
    fn start() -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let (sender, got) = channel();
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let sender = sender.clone();
                thread::spawn(move || record(stream, &sender));
            }
        });
        Recorder { url, got }
    }

    fn all(&self) -> Vec<ReceivedRequest> {
        self.got.try_iter().collect()
    }

    /// Request lines, without the version, in order of arrival.
    fn lines(&self) -> Vec<String> {
        let line = |got: ReceivedRequest| got.line.trim_end_matches(" HTTP/1.1").to_owned();
        self.all().into_iter().map(line).collect()
    }
}

fn record(stream: TcpStream, got: &Sender<ReceivedRequest>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let fields: BTreeMap<String, String> = lines[1..]
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = fields
            .get("content-length")
            .map_or(0, |length| length.parse().expect("a length"));
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        got.send(ReceivedRequest {
            line: lines.swap_remove(0),
            fields,
            body,
        })
        .ok()?;
        (&stream)
            .write_all(b"HTTP/1.1 200 OK\r\nSet-Cookie: id=7\r\nContent-Length: 2\r\n\r\nok")
            .ok()?;
    }
}

fn file(name: &str, content: &str) -> (TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name);
    fs::write(&path, content).expect("it is ours");
    let text = path.display().to_string();
    (directory, path, text)
}

#[test]
fn urls_are_selected_by_weight_or_round_robin() {
    let recorder = Recorder::start();
    let [one, two] = ["/a", "/b?{{counter}}"].map(|path| recorder.url.clone() + path);
    let finished = load(&[&one, &two, "--in-turn", "-n", "4"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(
        recorder.lines(),
        ["GET /a", "GET /b?1", "GET /a", "GET /b?3"]
    );
    assert!(
        finished.out.contains("GET /b?{{counter}}"),
        "each kind has its line: {finished:?}"
    );

    let finished = load(&[
        &one,
        &two,
        "--weights",
        "9,1",
        "-n",
        "200",
        "-c",
        "4",
        "-t",
        "2",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = recorder.lines();
    let first = lines.iter().filter(|line| *line == "GET /a").count();
    // More than five standard deviations of a binomial distribution with n = 200 and p = 0.9.
    assert!(
        (150..=199).contains(&first) && lines.len() == 200,
        "{first} of {}",
        lines.len()
    );
}

#[test]
fn bodies_credentials_and_cookies_are_sent() {
    let recorder = Recorder::start();
    let (_directory, _, body) = file("body", "{{counter}}");
    for (words, body) in [
        (&["--body", "n={{counter}}"][..], "n=0"),
        (&["--body-file", &body], "{{counter}}"),
    ] {
        let finished = load(&[&[&*recorder.url, "-n", "1"], words].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let [got] = &recorder.all()[..] else {
            panic!("one request was asked for");
        };
        assert_eq!(
            (&*got.line, &got.body[..]),
            ("POST / HTTP/1.1", body.as_bytes())
        );
    }
    let finished = load(&[
        &recorder.url,
        "-n",
        "2",
        "--cookies",
        "-u",
        "Aladdin:open sesame",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let got = recorder.all();
    assert_eq!(got[0].fields.get("cookie"), None);
    assert_eq!(got[1].fields["cookie"], "id=7");
    // The example of RFC 7617 section 2.
    assert_eq!(
        got[0].fields["authorization"],
        "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="
    );
    load(&[&recorder.url, "-n", "1", "--bearer", "mF_9.B5f"]);
    assert_eq!(recorder.all()[0].fields["authorization"], "Bearer mF_9.B5f");
}

#[test]
fn requests_file_with_data_is_sent() {
    let recorder = Recorder::start();
    let text = r#"{"url": "/u/{{data:user}}", "headers": {"X": "{{data:word}}"}}
{"method": "PUT", "url": "/p", "body_file": "beside"}
"#;
    let (directory, path, requests) = file("requests.jsonl", text);
    fs::write(directory.path().join("beside"), "content").expect("it is ours");
    let data = path.with_file_name("data.csv");
    fs::write(&data, "user,word\nann,one\nbob,two\ncid,three\n").expect("it is ours");
    let data = data.display().to_string();
    let words = [
        &*recorder.url,
        "--requests-file",
        &requests,
        "--data",
        &data,
        "--in-turn",
        "-n",
        "4",
    ];
    let finished = load(&words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let got = recorder.all();
    let lines: Vec<&str> = got.iter().map(|got| &*got.line).collect();
    assert_eq!(
        lines,
        [
            "GET /u/ann HTTP/1.1",
            "PUT /p HTTP/1.1",
            "GET /u/cid HTTP/1.1",
            "PUT /p HTTP/1.1"
        ]
    );
    assert_eq!(got[2].fields["x"], "three");
    assert_eq!(got[3].body, b"content");
}

#[test]
fn har_and_access_log_replay_keeps_order() {
    let recorder = Recorder::start();
    let entry = |method: &str, url: &str| {
        format!(r#"{{"request": {{"method": "{method}", "url": "{url}", "headers": []}}}}"#)
    };
    let entries = [
        entry("GET", &(recorder.url.clone() + "/one")),
        entry("GET", "https://elsewhere.invalid/x"),
        entry("DELETE", &(recorder.url.clone() + "/two")),
    ];
    let har = format!(r#"{{"log": {{"entries": [{}]}}}}"#, entries.join(","));
    let (_directory, _, har) = file("recorded.har", &har);
    let finished = load(&[&recorder.url, "--har", &har, "-n", "3"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.err.contains("1 request of the recording"),
        "{finished:?}"
    );
    assert_eq!(recorder.lines(), ["GET /one", "DELETE /two", "GET /one"]);

    let log = "\
1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"agent\"
1.2.3.4 - - [10/Oct/2026:13:55:36 +0000] \"POST /b HTTP/1.1\" 200 5 \"-\" \"agent\"
1.2.3.4 - - [10/Oct/2026:13:55:37 +0000] \"GET /c HTTP/1.1\" 200 5 \"-\" \"agent\"
1.2.3.4 - - [10/Oct/2026:13:55:37 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"agent\"
";
    let (_directory, _, log) = file("access.log", log);
    let finished = load(&[&recorder.url, "--replay", &log, "--replay-speed", "20"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished
            .err
            .contains("skipped 1 request of the log: unsafe method"),
        "{finished:?}"
    );
    let got = recorder.all();
    let lines: Vec<&str> = got.iter().map(|got| &*got.line).collect();
    assert_eq!(
        lines,
        ["GET /a HTTP/1.1", "GET /c HTTP/1.1", "GET /a HTTP/1.1"]
    );
    assert_eq!(got[0].fields["user-agent"], "agent");
}

#[test]
fn unexpected_responses_are_errors() {
    let serve = Serve::start(&["--respond", "200:hello world"]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("result.json");
    let json = path.display().to_string();
    for (words, code, kind) in [
        (["--expect-status", "2xx"], 0, ""),
        (["--expect-status", "204,404"], 3, "unexpected_status"),
        (["--expect-body", "o w"], 0, ""),
        (["--expect-body", "bye"], 3, "unexpected_body"),
    ] {
        let url = serve.url("/");
        let finished =
            load(&[&[&*url, "-n", "50", "-c", "3", "--json", &json], &words[..]].concat());
        assert_eq!(finished.code, Some(code), "{words:?}: {finished:?}");
        let text = fs::read_to_string(&path).expect("it was written");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(result["requests"], 50, "each is a response");
        if code == 3 {
            assert_eq!(result["errors_by_kind"][kind], 50, "{result}");
            assert!(
                finished.out.contains("50 responses were not as expected"),
                "{finished:?}"
            );
        }
    }
}

#[test]
fn large_body_is_sent_completely() {
    let serve = Serve::start(&["--synthetic"]);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("body");
    fs::write(&path, vec![b'x'; 3_000_000]).expect("it is ours");
    let body = path.display().to_string();
    let finished = load(&[
        &serve.url("/"),
        "--body-file",
        &body,
        "-n",
        "20",
        "-c",
        "3",
        "--expect-status",
        "2xx",
    ]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
}

#[test]
fn invalid_requests_are_refused_with_position() {
    let (_directory, _, lines) = file("r.jsonl", "{\"url\": \"/\"}\n{\"uri\": \"/\"}\n");
    let (_directory, _, data) = file("d.csv", "a\nb c\n");
    let url = "http://127.0.0.1:1/";
    for (words, part) in [
        (&["--requests-file", &*lines][..], "r.jsonl:2:"),
        (&["--requests-file", "/nowhere"], "/nowhere: No such file"),
        (&["--har", &lines], "r.jsonl: not a HAR file"),
        (&["--replay", &lines], "no GET, HEAD or OPTIONS request"),
        (&["--replay", &lines, "-R", "5"], "cannot be used with"),
        (&["--weights", "1,2"], "2 numbers for 1 URLs"),
        (&["http://127.0.0.2:1/"], "different servers"),
        (&["--body", "{{data:a}}"], "give a CSV file with --data"),
        (&["-H", "A: {{count}}"], "expected {{counter}}"),
        (
            &["http://127.0.0.1:1/{{data:a}}", "--data", &data],
            "percent-encode it",
        ),
        (&["--user", "name"], "expected NAME:PASSWORD"),
        (&["--expect-status", "20"], "expected one such as 204"),
        (&["--replay-speed", "2"], "--replay <FILE>"),
        (&["-H", "Content-Length: 3"], "--body or --body-file"),
    ] {
        let finished = load(&[&[url], words].concat());
        assert!(
            matches!(finished.code, Some(1 | 2)),
            "{words:?}: {finished:?}"
        );
        assert!(finished.err.contains(part), "{words:?}: {finished:?}");
    }
}
