//! A busy-polling server: it serves, reloads and stops as any other, and reports how much of its CPU time was work.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Serve, drivers, run_onrush};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn busy_polling_server_reports_work_time() {
    for io in drivers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        let socket = directory.path().join("admin.sock");
        let text = |busy_poll: &str, body: &str| {
            let socket = socket.display();
            format!(
                "threads = 1\n{busy_poll}\nadmin = {{ address = \"unix:{socket}\" }}\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                 [[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n"
            )
        };
        fs::write(&path, text("busy_poll = true", "one")).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string(), "--io", io]);
        assert!(serve.start_up_lines.contains(", busy polling\n"));
        let mut kept = serve.connect();
        for _ in 0..20 {
            kept.send(GET);
            assert!(kept.receive().expect("a response").ends_with("\r\none"));
        }
        let reload = |text: String, words: &str| {
            fs::write(&path, text).expect("it is ours");
            serve.program.signal(Signal::HUP);
            serve.program.err.wait_for(words)
        };
        reload(
            text("busy_poll = false", "two"),
            "busy_poll cannot change while the server runs",
        );
        reload(text("busy_poll = true", "two"), "as generation 2");
        kept.send(GET);
        assert!(kept.receive().expect("a response").ends_with("\r\ntwo"));

        let ctl = |words: &[&str]| {
            let address = format!("unix:{}", socket.display());
            let finished = run_onrush(&[&["ctl", "--address", &address], words].concat());
            assert_eq!(finished.code, Some(0), "{finished:?}");
            finished.out
        };
        let said: Value = serde_json::from_str(&ctl(&["--json", "profile"])).expect("JSON");
        let (all, core) = (&said["all"], &said["cores"][0]);
        assert_eq!(all["had_work"], core["had_work"]);
        // It was idle at least while the programs of this test started.
        let had_work = seconds(&core["had_work"]);
        assert!(had_work > 0.0 && had_work < seconds(&core["elapsed"]));
        assert!(had_work <= seconds(&core["cpu_time"]), "{core}");
        let shown = ctl(&["profile"]);
        assert!(shown.contains("; busy polling, "), "{shown}");
        let status: Value = serde_json::from_str(&ctl(&["--json", "status"])).expect("JSON");
        assert!(
            seconds(&status["cores"][0]["had_work"]) >= had_work,
            "{status}"
        );
        assert_eq!(serve.stop().requests(), 21);
    }
}

#[test]
fn busy_poll_flag_applies_to_echo_listener() {
    let directory = tempfile::tempdir().expect("a directory");
    for io in drivers() {
        let serve = Serve::start(&[
            "--echo",
            "127.0.0.1:0",
            "--threads",
            "1",
            "--busy-poll",
            "--io",
            io,
        ]);
        assert!(serve.start_up_lines.contains(", busy polling\n"));
        let json = directory.path().join("result.json");
        let json = json.to_str().expect("a path of text");
        for (protocol, counted) in [("tcp", "requests"), ("udp", "received")] {
            let target = format!("{protocol}://{}", serve.address);
            let words = ["--round-trip", "-n", "300", "-c", "1", "-t", "1", "-q"];
            let finished = run_onrush(&[&["load", &target, "--json", json], &words[..]].concat());
            assert_eq!(finished.code, Some(0), "{finished:?}");
            let result = fs::read_to_string(json).expect("a result");
            let result: Value = serde_json::from_str(&result).expect("JSON");
            assert_eq!(result[counted], 300, "{result}");
        }
        serve.stop();
    }
}
