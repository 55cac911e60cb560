//! `Cache-Control` rules of routes.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::testing::harness::{Step, configured, exchange, forward_with, send};
use onrush_config::Plan;

const RULES: &str = "cache_control = [
  { status = [404, \"5xx\"], value = \"no-store\" },
  { type = \"text/html\", value = \"no-cache\" },
  { type = [\"image/*\", \"font/*\"], value = \"public, max-age=31536000, immutable\" },
  { status = \"3xx\", value = \"max-age=3\" },
  \"max-age=60\",
]";

/// All values of `Cache-Control` in the response.
fn said(response: &str) -> Vec<&str> {
    let head = response.split("\r\n\r\n").next().unwrap_or_default();
    let fields = head.split("\r\n").filter_map(|line| line.split_once(": "));
    let is_it = |(name, _): &(&str, &str)| name.eq_ignore_ascii_case("cache-control");
    fields.filter(is_it).map(|(_, value)| value).collect()
}

fn status(response: &str) -> &str {
    &response[9..12]
}

fn ask(plan: &Plan, line: &str, fields: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    // Bodies may be compressed.
    String::from_utf8_lossy(&exchange(plan, request.as_bytes())).into_owned()
}

fn field<'r>(response: &'r str, name: &str) -> &'r str {
    let lines = response
        .split("\r\n")
        .filter_map(|line| line.split_once(": "));
    let mut found = lines.filter(|(found, _)| *found == name);
    found.next().expect("it is there").1
}

/// A directory with small and large files.
fn site(keys: &str) -> (TempDir, Plan) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str, length: usize| {
        let path = directory.path().join(name);
        fs::write(&path, "x".repeat(length)).expect("it is ours");
        let file = File::options().append(true).open(&path);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let touched = file.and_then(|file| file.set_modified(time));
        touched.expect("it is ours");
    };
    file("index.html", 2000);
    file("a.css", 10);
    file("b.svg", 5000);
    file("large.css", 300_000);
    let root = directory.path().display();
    let text = format!("[[route]]\nfiles = {{ root = \"{root}\" }}\n{RULES}\n{keys}\n");
    (directory, configured(&text))
}

#[test]
fn files_use_first_matching_cache_rule() {
    let (_directory, plan) = site("compress = true");
    for (path, expected) in [
        ("/", "no-cache"),
        ("/index.html", "no-cache"),
        ("/a.css", "max-age=60"),
        ("/large.css", "max-age=60"),
        ("/b.svg", "public, max-age=31536000, immutable"),
    ] {
        for (method, fields) in [
            ("GET", ""),
            ("HEAD", ""),
            ("GET", "Accept-Encoding: gzip\r\n"),
            ("HEAD", "Accept-Encoding: gzip\r\n"),
            ("GET", "Connection: close\r\n"),
        ] {
            // The second response comes from the cache.
            for _ in 0..2 {
                let response = ask(&plan, &format!("{method} {path}"), fields);
                assert_eq!(status(&response), "200", "{response:.400}");
                assert_eq!(said(&response), [expected], "{method} {path} {fields}");
            }
        }
    }
}

#[test]
fn partial_and_304_responses_use_file_cache_rule() {
    let (_directory, plan) = site("compress = true");
    for (path, expected) in [
        ("/index.html", "no-cache"),
        ("/b.svg", "public, max-age=31536000, immutable"),
        ("/large.css", "max-age=60"),
    ] {
        let whole = ask(&plan, &format!("HEAD {path}"), "");
        let packed = ask(&plan, &format!("HEAD {path}"), "Accept-Encoding: gzip\r\n");
        for (fields, code) in [
            ("Range: bytes=1-3\r\n".to_owned(), "206"),
            ("Range: bytes=1-3,5-6\r\n".to_owned(), "206"),
            (
                format!("If-None-Match: {}\r\n", field(&whole, "ETag")),
                "304",
            ),
            (
                format!("If-Modified-Since: {}\r\n", field(&whole, "Last-Modified")),
                "304",
            ),
            (
                format!(
                    "If-None-Match: {}\r\nAccept-Encoding: gzip\r\n",
                    field(&packed, "ETag")
                ),
                "304",
            ),
        ] {
            let response = ask(&plan, &format!("GET {path}"), &fields);
            assert_eq!(status(&response), code, "{fields}{response:.400}");
            assert_eq!(said(&response), [expected], "{path} {fields}");
        }
        let beyond = ask(&plan, &format!("GET {path}"), "Range: bytes=900000-\r\n");
        assert_eq!((status(&beyond), said(&beyond)), ("416", vec![]));
    }
}

#[test]
fn cache_rules_match_statuses() {
    let (_directory, plan) = site("[[route]]\npath = \"/x\"\nsynthetic = true\n");
    let none = ask(&plan, "GET /none", "");
    assert_eq!((status(&none), said(&none)), ("404", vec!["no-store"]));
    let head = ask(&plan, "HEAD /none", "Accept: application/json\r\n");
    assert_eq!((status(&head), said(&head)), ("404", vec!["no-store"]));
    let post = ask(&plan, "POST /a.css", "Content-Length: 0\r\n");
    assert_eq!((status(&post), said(&post)), ("405", vec![]));
    let (_other, with_edits) = site("response_headers = { set = { X-A = \"{path}\" } }");
    let none = ask(&with_edits, "GET /none", "");
    assert_eq!(said(&none), ["no-store"]);
    assert!(!none.contains("X-A"), "{none}");
    let found = ask(&with_edits, "GET /a.css", "");
    assert_eq!(said(&found), ["max-age=60"]);
    assert_eq!(field(&found, "X-A"), "/a.css");
    let cors = "cors = { origins = [\"https://a.example\"] }";
    let (_other, with_cors) = site(cors);
    let none = ask(&with_cors, "GET /none", "Origin: https://a.example\r\n");
    assert_eq!(said(&none), ["no-store"]);
    assert_eq!(
        field(&none, "Access-Control-Allow-Origin"),
        "https://a.example"
    );
    let redirect = configured(&format!("[[route]]\nredirect = \"https://h/\"\n{RULES}\n"));
    assert_eq!(said(&ask(&redirect, "GET /", "")), ["max-age=3"]);
}

#[test]
fn cache_control_of_fixed_response_takes_precedence() {
    let fixed = |respond: &str, keys: &str| {
        configured(&format!(
            "[[route]]\nrespond = {{ {respond} }}\n{RULES}\n{keys}\n"
        ))
    };
    let long = format!("status = 200, body = \"{}\"", "x".repeat(3000));
    for (respond, keys, expected) in [
        ("status = 200, body = \"x\"", "", "max-age=60"),
        (&long, "compress = true", "max-age=60"),
        (
            "status = 200, body = \"x\", headers = { Content-Type = \"text/html\" }",
            "",
            "no-cache",
        ),
        (
            "status = 200, body = \"x\", headers = { Cache-Control = \"private\" }",
            "",
            "private",
        ),
        // The edited content type counts.
        (
            "status = 200, body = \"x\"",
            "response_headers = { set = { Content-Type = \"image/x\" } }",
            "public, max-age=31536000, immutable",
        ),
        // The edits apply to status 201 only.
        (
            "status = 200, body = \"x\"",
            "response_headers = { set = { Content-Type = \"image/x\" }, on = 201 }",
            "max-age=60",
        ),
        ("status = 503", "", "no-store"),
        ("status = 204", "", "max-age=60"),
    ] {
        let plan = fixed(respond, keys);
        for (method, fields) in [
            ("GET", ""),
            ("HEAD", ""),
            ("GET", "Accept-Encoding: br\r\n"),
            ("GET", "Connection: close\r\n"),
        ] {
            let response = ask(&plan, &format!("{method} /"), fields);
            assert_eq!(
                said(&response),
                [expected],
                "{respond:.90} {keys}\n{response:.400}"
            );
        }
    }
    let plain = fixed("status = 403", "");
    assert_eq!(said(&ask(&plain, "GET /", "")), [""; 0]);
}

#[test]
fn no_transform_prevents_compression() {
    let body = "x".repeat(3000);
    let plan = |value: &str| {
        configured(&format!(
            "[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\ncompress = true\ncache_control = \"{value}\"\n"
        ))
    };
    let is_encoded = |value: &str| {
        let response = ask(&plan(value), "GET /", "Accept-Encoding: gzip\r\n");
        response.contains("\r\nContent-Encoding: gzip\r\n")
    };
    assert!(is_encoded("max-age=60"));
    assert!(!is_encoded("max-age=60, No-Transform"));
}

/// The client's response from a server that sends `own`, with these keys in the route.
fn forwarded(keys: &str, own: &str, request: &str) -> String {
    let text = format!("[[route]]\nforward = \"http://10.0.0.1\"\n{keys}\n");
    let with_keys = configured(&text);
    let change = |plan: &mut Plan| {
        plan.routes[0].cache_control = with_keys.routes[0].cache_control.clone();
        plan.routes[0].edits = with_keys.routes[0].edits.clone();
        plan.routes[0].compress = with_keys.routes[0].compress.clone();
    };
    let outcome = forward_with(&change, &[&[Step::Read, send(own)]], request);
    outcome.response.replace("\r\n", "\n").replace('\n', "\r\n")
}

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn of_server(status: &str, fields: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{fields}Content-Length: 2\r\n\r\nok")
}

#[test]
fn server_cache_control_takes_precedence_over_default() {
    for (status, fields, expected) in [
        ("200 OK", "", vec!["max-age=60"]),
        ("200 OK", "Content-Type: text/html\r\n", vec!["no-cache"]),
        ("200 OK", "cache-control: private\r\n", vec!["private"]),
        ("200 OK", "Expires: 0\r\n", vec![]),
        (
            "404 Not Found",
            "Content-Type: text/html\r\n",
            vec!["no-store"],
        ),
        ("401 Unauthorized", "", vec![]),
        (
            "206 Partial Content",
            "Content-Type: image/png\r\nContent-Range: bytes 0-1/9\r\n",
            vec!["public, max-age=31536000, immutable"],
        ),
    ] {
        let response = forwarded(RULES, &of_server(status, fields), GET);
        assert_eq!(said(&response), expected, "{status} {fields}{response}");
        assert!(response.ends_with("\r\n\r\nok"), "{response}");
    }
    let head = forwarded(
        RULES,
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\n",
        &GET.replace("GET", "HEAD"),
    );
    assert_eq!(said(&head), ["no-cache"]);
    // A 304 has no content type.
    let unchanged = forwarded(
        RULES,
        "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
        GET,
    );
    assert_eq!((status(&unchanged), said(&unchanged)), ("304", vec![]));
    let simple = "cache_control = \"max-age=60\"";
    let unchanged = forwarded(
        simple,
        "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n",
        GET,
    );
    assert_eq!(said(&unchanged), ["max-age=60"]);
}

#[test]
fn override_replaces_server_cache_control() {
    let rules = "cache_control = [{ type = \"text/css\", value = \"max-age=1\" }, { value = \"max-age=2\", replace = true }]";
    let own = "Cache-Control: private\r\nExpires: 0\r\nPragma: no-cache\r\nX-A: a\r\n";
    let response = forwarded(rules, &of_server("200 OK", own), GET);
    assert_eq!(said(&response), ["max-age=2"], "{response}");
    assert!(
        !response.contains("Expires") && !response.contains("Pragma"),
        "{response}"
    );
    assert!(response.contains("\r\nX-A: a\r\n"), "{response}");
    let css = format!("{own}Content-Type: text/css\r\n");
    let response = forwarded(rules, &of_server("200 OK", &css), GET);
    assert_eq!(said(&response), ["private"], "{response}");
    let error = forwarded(rules, &of_server("500 No", own), GET);
    assert_eq!(said(&error), ["private"], "{error}");
    assert!(error.contains("Expires: 0\r\n"), "{error}");
}

#[test]
fn compressed_response_has_cache_control_and_trailers() {
    let body = "x".repeat(3000);
    let own = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n{body}\r\n0\r\nX-Trailer: t\r\n\r\n"
    );
    let response = forwarded(RULES, &own, GET);
    assert_eq!(said(&response), ["no-cache"]);
    assert!(response.contains("\r\nX-Trailer: t\r\n"), "{response}");
    let edited = format!(
        "{RULES}\nresponse_headers = {{ set = {{ X-Server = \"{{server}}\" }}, remove = [\"X-B\"] }}"
    );
    let response = forwarded(&edited, &of_server("200 OK", "X-B: b\r\n"), GET);
    assert_eq!(said(&response), ["max-age=60"], "{response}");
    assert!(
        response.contains("\r\nX-Server: SERVER\r\n") && !response.contains("X-B"),
        "{response}"
    );
}

#[test]
fn generated_error_uses_cache_rules() {
    let change = |plan: &mut Plan| {
        let rules = configured(&format!(
            "[[route]]\nforward = \"http://10.0.0.1\"\n{RULES}\n"
        ));
        plan.routes[0].cache_control = rules.routes[0].cache_control.clone();
    };
    let outcome = forward_with(&change, &[&[Step::Read]], GET);
    let response = outcome.response.replace("\r\n", "\n").replace('\n', "\r\n");
    assert_eq!(
        (status(&response), said(&response)),
        ("502", vec!["no-store"])
    );
}

#[test]
fn default_cache_rule_applies_to_local_responses() {
    let plan = configured(
        "cache_control = \"max-age=5\"\n[[route]]\npath = \"/own\"\nrespond = { status = 200 }\ncache_control = \"max-age=6\"\n[[route]]\npath = \"/off\"\nrespond = { status = 200 }\ncache_control = false\n[[route]]\npath = \"/set\"\nrespond = { status = 200 }\nresponse_headers = { set = { Cache-Control = \"private\" } }\n[[route]]\npath = \"/api\"\nforward = \"http://10.0.0.1\"\n[[route]]\nrespond = { status = 200 }\n",
    );
    for (path, expected) in [
        ("/own", vec!["max-age=6"]),
        ("/off", vec![]),
        ("/set", vec!["private"]),
        ("/", vec!["max-age=5"]),
    ] {
        assert_eq!(
            said(&ask(&plan, &format!("GET {path}"), "")),
            expected,
            "{path}"
        );
    }
    assert_eq!(plan.routes[3].cache_control, []);
}
