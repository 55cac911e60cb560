//! `onrush explain`: its text, and its agreement with the server itself.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Finished, Serve, run_onrush};

const CONFIGURATION: &str = r#"
[[listen]]
address = "127.0.0.1:0"

[[listen]]
address = "127.0.0.1:8443"
name = "secure"
tls = "self-signed"

[[route]]
listener = "secure"
path = "=/secret"
respond = { status = 204 }

[[route]]
host = "a.example"
path = "/api/"
method = "GET"
headers = { X-Beta = "!" }
strip_prefix = "/api"
basic_auth = { realm = "staff", users = { ali = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8" } }
rate_limit = "100/s"
forward = "app"

[[route]]
path = "/old/"
redirect = "https://{host.name}/new"

[upstream.app]
servers = ["10.0.0.1:80", "10.0.0.2:80", { address = "10.0.0.3:80", backup = true }]
"#;

struct Written {
    _directory: TempDir,
    path: String,
}

fn written(text: &str) -> Written {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    fs::write(&path, text).expect("it is ours");
    Written {
        path: path.display().to_string(),
        _directory: directory,
    }
}

impl Written {
    fn explain(&self, words: &[&str]) -> Finished {
        run_onrush(&[&["explain", &self.path], words].concat())
    }

    fn explained(&self, words: &[&str]) -> String {
        let finished = self.explain(words);
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished.out
    }
}

#[test]
fn forwarded_request_is_explained() {
    let file = written(CONFIGURATION);
    // ali:open sesame
    let login = "Authorization: Basic YWxpOm9wZW4gc2VzYW1l";
    let said = file.explained(&[
        "GET http://a.example/api/users?x=1",
        "-H",
        login,
        "--client",
        "192.0.2.7",
    ]);
    for line in [
        "request   GET /api/users?x=1 of a.example, by http from 192.0.2.7\n",
        "listener  127.0.0.1:0\n",
        "passed    [[route]] 1 in line 10 (/secret on secure): path is \"/api/users\", expected \"=/secret\"\n",
        "route     [[route]] 2 in line 15 (GET a.example/api/* [header X-Beta: 7947ab])\n",
        "forward   to group app\n",
        "server    one of 10.0.0.1:80, 10.0.0.2:80, by round_robin\n",
        "backups   10.0.0.3:80\n",
        "sent      GET /users?x=1 HTTP/1.1\n",
        "          X-Forwarded-For: 192.0.2.7\n",
        "limits    rate_limit = 100 in 1s and 100 more at once, of each client address\n",
        "          basic_auth = realm \"staff\"\n",
    ] {
        assert!(said.contains(line), "{line:?} is missing in\n{said}");
    }
}

#[test]
fn json_is_complete_for_long_requests() {
    let file = written(CONFIGURATION);
    let path = format!("/{}", "a".repeat(5000));
    let said = file.explained(&[&path, "--json"]);
    let said: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(said["path"], path);
}

#[test]
fn local_responses_are_explained_with_status() {
    let file = written(CONFIGURATION);
    for (words, lines) in [
        (
            &["https://a.example/secret"][..],
            &["listener  secure\n", "answer    204: a fixed response\n"][..],
        ),
        (
            &["http://a.example/secret"],
            &[
                "listener is \"127.0.0.1:0\", expected \"secure\"\n",
                "route     none\nanswer    404: no route matches\n",
            ],
        ),
        (
            &["http://a.example/api/x"],
            &["answer    401: access refused: a name and a password are needed\n"],
        ),
        (
            &["POST http://b.example/api/x"],
            &[
                "(GET a.example/api/* [header X-Beta: 7947ab]): host is \"b.example\", expected \"a.example\"\n",
            ],
        ),
        (
            &["POST http://a.example/api/x"],
            &[
                "(GET a.example/api/* [header X-Beta: 7947ab]): method is \"POST\", expected \"GET\"\n",
            ],
        ),
        (
            &["http://a.example/api/x", "-H", "X-Beta: 1"],
            &["headers is \"1\", expected X-Beta = \"!\"\n"],
        ),
        (
            &["/old/x"],
            &[
                "note      it could also arrive at \"secure\": choose with --listener\n",
                "answer    302: a redirect\nlocation  https://localhost/new\n",
            ],
        ),
        (
            &["http://a.example/%zz"],
            &[
                "answer    400: refused before routing: a % in the path is not followed by two hexadecimal digits\n",
            ],
        ),
        (
            &["http://a.example/", "-H", "Bad Name: x"],
            &["answer    400: refused before routing: white space within or after a field name\n"],
        ),
    ] {
        let said = file.explained(words);
        for line in lines {
            assert!(
                said.contains(line),
                "{words:?}: {line:?} is missing in\n{said}"
            );
        }
    }
}

#[test]
fn explanation_uses_file_modification_times() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("a.txt"), "hello").expect("it is ours");
    let root = directory.path().display();
    let file = written(&format!(
        "[[route]]\npath = \"/\"\nfiles = {{ root = \"{root}\" }}\n"
    ));
    for (field, status) in [
        ("If-Modified-Since: Fri, 01 Jan 2010 00:00:00 GMT", 200),
        ("If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT", 304),
        ("If-Unmodified-Since: Fri, 01 Jan 2010 00:00:00 GMT", 412),
    ] {
        let said = file.explained(&["/a.txt", "-H", field]);
        let line = format!("answer    {status}: ");
        assert!(
            said.contains(&line),
            "{field}: {line:?} is missing in\n{said}"
        );
    }
}

#[test]
fn malformed_requests_are_refused_with_advice() {
    let file = written(CONFIGURATION);
    for (words, why) in [
        (
            &["GET /a b"][..],
            "onrush explain: \"GET /a b\" is not a request: expected [METHOD] URL or path, such as \"GET https://host/path\" or \"/path\"\n",
        ),
        (
            &["/", "--listener", "third"],
            "onrush explain: --listener \"third\": unknown listener: expected one of 127.0.0.1:0, secure\n",
        ),
        (
            &["/", "--client", "somebody"],
            "onrush explain: --client \"somebody\": expected an address such as 192.0.2.1: invalid IP address syntax\n",
        ),
    ] {
        let finished = file.explain(words);
        assert_eq!((finished.code, &*finished.err), (Some(1), why), "{words:?}");
    }
    let wrong = written("[[route]]\nlistener = \"x\"\nsynthetic = true");
    let finished = wrong.explain(&["/"]);
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished.err.contains("2:12: unknown listener \"x\""),
        "{finished:?}"
    );
}

#[test]
fn running_server_explanation_matches_response() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("admin.sock").display().to_string();
    let text = CONFIGURATION.replace("127.0.0.1:8443", "127.0.0.1:0");
    let text = format!("{text}[admin]\naddress = \"unix:{socket}\"\n");
    let file = written(&text);
    let serve = Serve::start(&["--config", &file.path, "--threads", "1"]);
    let address = format!("unix:{socket}");
    let ctl = |words: &[&str]| run_onrush(&[&["ctl", "--address", &address], words].concat());
    let request = "http://h.example/old/x";
    let by_ctl = ctl(&["explain", request]);
    assert_eq!(by_ctl.code, Some(0), "{by_ctl:?}");
    assert_eq!(by_ctl.out, file.explained(&[request]));
    let json = ctl(&["--json", "explain", request, "-H", "X-A: 1"]);
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["generation"], 1, "{json}");
    let status = json["answer"]["status"].to_string();
    let location = json["answer"]["location"].as_str().unwrap_or_default();
    let mut stream = TcpStream::connect(&serve.address).expect("it listens");
    stream
        .write_all(b"GET /old/x HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it responds");
    assert!(
        response.starts_with(&format!("HTTP/1.1 {status} ")),
        "{response}"
    );
    assert!(
        response.contains(&format!("\r\nLocation: {location}\r\n")),
        "{response}"
    );
    let wrong = ctl(&["explain", "/", "--listener", "x"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("unknown listener"), "{wrong:?}");
}

#[test]
fn running_server_explains_without_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a name");
    let files = [
        ("certificate.pem", made.cert.pem()),
        ("key.pem", made.signing_key.serialize_pem()),
        (
            "users",
            "ali:$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8\n"
                .to_owned(),
        ),
        ("404.html", "<p>none</p>".to_owned()),
        ("fields", "X-Key: secret\n".to_owned()),
    ];
    for (name, text) in &files {
        fs::write(directory.path().join(name), text).expect("it is ours");
    }
    let path = directory.path().join("onrush.toml");
    let socket = directory.path().join("admin.sock").display().to_string();
    let text = format!(
        r#"admin = {{ address = "unix:{socket}" }}
error_pages = {{ 404 = "404.html" }}
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "127.0.0.1:0"
name = "secure"
tls = {{ certificate = "certificate.pem", key = "key.pem" }}
[[route]]
path = "/staff"
basic_auth = {{ realm = "staff", file = "users" }}
respond = {{ status = 200, body = "hello" }}
[tracing]
endpoint = "http://127.0.0.1:9"
headers_file = "fields"
"#
    );
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string(), "--threads", "1"]);
    for (name, _) in &files {
        fs::remove_file(directory.path().join(name)).expect("it is there");
    }
    let address = format!("unix:{socket}");
    let explain = |request: &[&str]| {
        let words = ["ctl", "--address", &address, "explain"];
        let explained = run_onrush(&[&words, request].concat());
        assert_eq!(explained.code, Some(0), "{explained:?}");
        explained.out
    };
    for (request, part) in [
        (&["https://localhost/staff"][..], "401"),
        (
            &["/staff", "-H", "Authorization: Basic YWxpOm9wZW4gc2VzYW1l"],
            "200",
        ),
        (&["/else"], "404"),
    ] {
        let said = explain(request);
        let mut lines = said.lines();
        let answer = lines.find(|line| line.starts_with("answer "));
        let answer = answer.unwrap_or_else(|| panic!("no answer in {said}"));
        assert!(answer.contains(part), "{said}");
    }
    serve.stop();
}
