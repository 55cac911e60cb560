//! `onrush load` and gRPC: our counts equal the log of a foreign server, which can read what we send.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::encryption::{RSA, write_certificate};
use crate::loading::{load, number};
use crate::peer::{Peer, python};
use crate::program::{Program, drivers, run_onrush, until};

/// A server of Python's grpcio, with the descriptor set of its service `shop.Shop`.
struct Shop {
    program: Program,
    scheme: &'static str,
    address: String,
    descriptors: String,
    directory: TempDir,
}

impl Shop {
    /// Starts it; `None`, with a message, if Python has no grpcio.
    fn start(tls: &[&str]) -> Option<Shop> {
        let python = python(("grpc, google.protobuf", "python3-grpcio python3-protobuf"))?;
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (file, descriptors) = (path("shop.py"), path("shop.protoset"));
        fs::write(&file, include_str!("calling/shop.py")).expect("it is ours");
        let mut command = Command::new(python);
        let program = Program::start(command.args([&file, &descriptors]).args(tls));
        program.out.wait_for("listening on ");
        let said = program.out.wait_for("\n");
        let address = said.lines().next().and_then(|line| line.rsplit(' ').next());
        Some(Shop {
            address: address.expect("it says one").to_owned(),
            scheme: if tls.is_empty() { "grpc" } else { "grpcs" },
            program,
            descriptors,
            directory,
        })
    }

    fn url(&self, method: &str) -> String {
        format!("{}://{}/shop.Shop/{method}", self.scheme, self.address)
    }

    /// Calls `method`, and returns the exit code and the result.
    fn call(&self, method: &str, arguments: &[&str]) -> (Option<i32>, Value) {
        let own = ["--descriptors", &self.descriptors];
        load(&self.url(method), &[&own, arguments].concat())
    }

    /// Message about a call that cannot be made.
    fn refusal(&self, method: &str, arguments: &[&str]) -> String {
        let finished = run_onrush(&[&["load", &self.url(method), "-n", "1"], arguments].concat());
        assert_eq!(finished.code, Some(1), "{finished:?}");
        finished.err
    }

    /// Waits until the log has exactly `count` such lines.
    fn has_logged(&self, line: &str, count: usize) {
        until("the log of all calls", || {
            let log = self.program.out.so_far();
            let lines = log.lines().filter(|said| *said == line);
            (lines.count() >= count).then_some(())
        });
        let log = self.program.out.so_far();
        assert_eq!(log.lines().filter(|said| *said == line).count(), count);
    }

    fn write(&self, name: &str, content: &[u8]) -> String {
        let path = self.directory.path().join(name);
        fs::write(&path, content).expect("it is ours");
        path.display().to_string()
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn call_counts_match_grpcio_log() {
    for io in drivers() {
        let Some(shop) = Shop::start(&[]) else { return };
        let body = r#"{"name": "tea", "itemCount": 3}"#;
        let mut calls = 0;
        for arguments in [
            &["-n", "200", "-c", "3", "-m", "7"][..],
            &["-n", "100", "-c", "2", "-m", "4", "-t", "2", "-r", "9"],
            &["-n", "100", "-c", "2", "-m", "4", "-R", "1000"],
            &["-n", "50"],
        ] {
            let own = ["--body", body, "--io", io, "-H", "X-User: ann"];
            let (code, result) = shop.call("Buy", &[arguments, &own].concat());
            assert_eq!(code, Some(0), "{arguments:?}: {result}");
            let count: u64 = arguments[1].parse().unwrap();
            calls += count as usize;
            assert_eq!(number(&result["statuses"], "OK"), count, "{result}");
            assert_eq!(number(&result, "errors"), 0, "{result}");
        }
        shop.has_logged("tea 3 0 ann none", calls);
        let (code, result) = shop.call("Buy", &["-n", "5", "--timeout", "50s", "--io", io]);
        assert_eq!(code, Some(0), "{result}");
        shop.has_logged(" 0 0 - deadline", 5);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn grpc_status_codes_are_counted_by_name() {
    for io in drivers() {
        let Some(shop) = Shop::start(&[]) else { return };
        let lines = r#"{"url": "/shop.Shop/Buy", "message": {"name": "a"}}
{"url": "/shop.Shop/Buy", "message": {"code": 14}}
{"url": "/shop.Shop/Buy", "body": "{\"code\": 8}"}
{"url": "/shop.Shop/Buy", "message": {"code": 5}, "expect": {"status": "OK"}}"#;
        let file = shop.write("calls.jsonl", lines.as_bytes());
        let arguments = ["--requests-file", &file, "--in-turn", "-n", "40", "-m", "4"];
        let conditions = ["--fail-if", "status.UNAVAILABLE > 10", "--io", io];
        let (code, result) = shop.call("Buy", &[&arguments[..], &conditions].concat());
        assert_eq!(code, Some(3), "{result}");
        let statuses = &result["statuses"];
        for name in ["OK", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "NOT_FOUND"] {
            assert_eq!(number(statuses, name), 10, "{result}");
        }
        assert_eq!(number(&result["errors_by_kind"], "unexpected_status"), 10);
        let (code, result) = shop.call(
            "Buy",
            &[
                "--body",
                r#"{"code": 14}"#,
                "-n",
                "9",
                "--fail-if",
                "status.5xx >= 9",
                "--io",
                io,
            ],
        );
        assert_eq!(code, Some(4), "{result}");
        // A method that the server does not have, and a call that exceeds its deadline.
        let (_, result) = load(&shop.url("Sell"), &["-n", "7", "--io", io]);
        assert_eq!(number(&result["statuses"], "UNIMPLEMENTED"), 7, "{result}");
        let slow = ["--body", r#"{"sleepMs": 60000}"#, "-n", "1", "--io", io];
        let deadline = ["-H", "grpc-timeout: 100m", "--timeout", "40s"];
        let (_, result) = shop.call("Buy", &[&slow[..], &deadline].concat());
        assert_eq!(
            number(&result["statuses"], "DEADLINE_EXCEEDED"),
            1,
            "{result}"
        );
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn messages_can_exceed_flow_control_window() {
    for io in drivers() {
        let Some(shop) = Shop::start(&[]) else { return };
        // Field 5 is the padding: its tag, its length as a varint of three bytes, and its bytes; it is sent back.
        let message = [&[0x2a, 0x80, 0xb5, 0x18][..], &vec![b'x'; 400_000]].concat();
        let file = shop.write("order.bin", &message);
        let arguments = [
            "--body-file",
            &file,
            "-n",
            "30",
            "-c",
            "2",
            "-m",
            "5",
            "--io",
            io,
        ];
        let (code, result) = load(&shop.url("Buy"), &arguments);
        assert_eq!(code, Some(0), "{result}");
        assert_eq!(number(&result["statuses"], "OK"), 30, "{result}");
        assert!(number(&result, "bytes") > 30 * 400_000, "{result}");
        shop.has_logged(" 0 400000 - none", 30);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn calls_work_over_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "shop", RSA);
    for io in drivers() {
        let Some(shop) = Shop::start(&[&certificate, &key]) else {
            return;
        };
        let arguments = ["-k", "-n", "60", "-c", "2", "-m", "4", "--io", io];
        let (code, result) = shop.call("Buy", &arguments);
        assert_eq!(code, Some(0), "{result}");
        assert_eq!(number(&result["statuses"], "OK"), 60, "{result}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn invalid_calls_are_refused_before_sending() {
    let Some(shop) = Shop::start(&[]) else { return };
    let known = ["--descriptors", &shop.descriptors];
    let with = |more: &[&'static str]| [&known[..], more].concat();
    for (method, arguments, part) in [
        ("Watch", with(&[]), "a server-streaming method"),
        ("Sell", with(&[]), "expected Buy, Watch"),
        ("Buy", with(&["--body", "{\"nmae\": 1}"]), "nmae"),
        (
            "Buy",
            with(&["--body", "{\"name\": \"{{counter}}\"}"]),
            "has a variable",
        ),
        ("Buy", vec!["--body", "{}"], "(reflection)"),
        ("Buy", vec!["--descriptors", "/nowhere"], "/nowhere"),
        ("Buy", vec!["-X", "GET"], "--method"),
        ("Buy", vec!["--http2"], "remove it"),
        ("Buy", vec!["--pipeline", "2"], "--streams"),
        ("Buy", vec!["--expect-status", "200"], "codes"),
        (
            "Buy",
            vec!["-H", "content-type: text/plain"],
            "application/grpc",
        ),
        ("Buy", vec!["-H", "grpc-encoding: gzip"], "leave it out"),
        ("", vec![], "is not a method"),
    ] {
        let said = shop.refusal(method, &arguments);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
    let finished = run_onrush(&["load", "http://127.0.0.1:1/", "-n", "1", "-m", "4"]);
    assert!(finished.err.contains("add --http2"), "{finished:?}");
    assert_eq!(shop.program.out.so_far().lines().count(), 1);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn unknown_streaming_method_fails_at_second_message() {
    let Some(shop) = Shop::start(&[]) else { return };
    // Field 2 is the number of receipts requested.
    let file = shop.write("order.bin", b"\x10\x05");
    let (code, result) = load(&shop.url("Watch"), &["--body-file", &file, "-n", "5"]);
    assert_eq!(code, Some(5), "{result}");
    assert_eq!(number(&result["errors_by_kind"], "protocol"), 5, "{result}");
    assert!(
        result["warnings"].to_string().contains("the call is unary"),
        "{result}"
    );
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn http_server_is_not_a_grpc_server() {
    for io in drivers() {
        let nginx = Peer::nginx_with_http2(1_000_000, "");
        let url = |path: &str| format!("grpc://{}", nginx.url(path));
        let (code, result) = load(&url("/shop.Shop/Buy"), &["-n", "20", "--io", io]);
        assert_eq!(code, Some(5), "{result}");
        assert_eq!(number(&result["errors_by_kind"], "protocol"), 20);
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("content-type"), "{result}");
        let (code, result) = load(&url("/files/none"), &["-n", "20", "--io", io]);
        assert_eq!(code, Some(5), "{result}");
        assert_eq!(number(&result["statuses"], "HTTP 404"), 20, "{result}");
    }
}
