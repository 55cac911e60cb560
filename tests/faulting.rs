//! `onrush load` against failing servers: each fault is reported by name, none of these runs is valid, and none exits
//! with 0.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Finished, Program, Serve, drivers, onrush, until};

/// Behaviour of the server for request `number`, from 0.
#[derive(Clone, Copy)]
enum Fault {
    Respond,
    /// Responds 5 ms later.
    Slow,
    /// Reads the request and closes without a response.
    Close,
    /// Never responds.
    Silence,
    /// The whole server ends.
    Die,
}

/// Starts a server with the behaviour `fault`, and returns its URL.
fn server(fault: fn(u64) -> Fault) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", listener.local_addr().expect("bound"));
    let seen = Arc::new(AtomicU64::new(0));
    // Shared by the connections: one with `Die` shuts the listener down.
    let listener = Arc::new(listener);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (seen, listener) = (Arc::clone(&seen), Arc::clone(&listener));
            std::thread::spawn(move || respond(stream, &seen, &listener, fault));
        }
    });
    url
}

fn respond(
    mut stream: TcpStream,
    seen: &AtomicU64,
    listener: &TcpListener,
    fault: fn(u64) -> Fault,
) {
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request) {
        let fault = fault(seen.fetch_add(1, Ordering::Relaxed));
        match fault {
            Fault::Respond | Fault::Slow => {
                if matches!(fault, Fault::Slow) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                if stream.write_all(response).is_err() {
                    return;
                }
            }
            Fault::Close => return,
            Fault::Silence => {
                // Until the client closes.
                while let Ok(1..) = stream.read(&mut request) {}
                return;
            }
            Fault::Die => {
                // shutdown(2) of a listening socket: new connections are refused from now on.
                let _ = rustix::net::shutdown(listener, rustix::net::Shutdown::Both);
                return;
            }
        }
    }
}

/// Runs `onrush load` with these words against `url`; returns its output and its result.
fn load(url: &str, words: &[&str]) -> (Finished, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("result.json");
    let path = file.display().to_string();
    let words = [&["load", url, "--json", &path], words].concat();
    let finished = Program::start(&mut onrush(&words))
        .finish()
        .with_starvation_as(3);
    let text = std::fs::read_to_string(&file).expect("a result");
    (finished, serde_json::from_str(&text).expect("JSON"))
}

/// Checks that the run is not valid, its exit code is `code`, and `what` is one of the reasons.
#[track_caller]
fn assert_invalid(finished: &Finished, result: &Value, code: i32, what: &str) {
    assert_eq!(finished.code, Some(code), "{finished:?}");
    assert_ne!(result["verdict"]["state"], "valid", "{finished:?}");
    let reasons = result["verdict"]["reasons"].as_array().expect("a list");
    let is_it = |reason: &Value| reason["what"].as_str().expect("text").contains(what);
    assert!(reasons.iter().any(is_it), "{what}: {finished:?}");
}

#[test]
fn dropped_requests_have_separate_error_kind() {
    for io in drivers() {
        let url = server(|number| match number % 4 {
            3 => Fault::Close,
            _ => Fault::Respond,
        });
        let words = ["-n", "400", "-c", "4", "--io", io];
        let (finished, result) = load(&url, &words);
        assert_invalid(&finished, &result, 3, "failed");
        assert_eq!(result["errors_by_kind"]["closed_before_answer"], 100);
        assert_eq!(
            (&result["resent"], &result["requests"]),
            (&0.into(), &300.into())
        );
    }
}

#[test]
fn silent_server_makes_run_invalid() {
    for io in drivers() {
        let url = server(|_| Fault::Silence);
        let words = ["-d", "500ms", "-c", "2", "--io", io];
        let (finished, result) = load(&url, &words);
        assert_invalid(&finished, &result, 5, "no response was received");
        let words = [&words[..], &["--fail-if", "errors > 0"]].concat();
        let (finished, _) = load(&url, &words);
        assert_eq!(finished.code, Some(4), "{finished:?}");
    }
}

#[test]
fn unfinished_requests_make_percentiles_lower_bounds() {
    for io in drivers() {
        // 75 of 300 requests hang, each on a connection of its own.
        let url = server(|number| match number % 4 {
            3 => Fault::Silence,
            _ => Fault::Respond,
        });
        let words = [
            "-R",
            "200",
            "-d",
            "1500ms",
            "-c",
            "200",
            "--io",
            io,
            "--fail-if",
            "p90 > 50ms",
        ];
        let (finished, result) = load(&url, &words);
        assert_invalid(&finished, &result, 4, "without a response at the end");
        assert_eq!(result["thresholds"][0]["fate"], "failed", "{finished:?}");
        let at_least = result["latency_us"]["at_least"].as_array().expect("a list");
        // A higher percentile takes more responses than a busy machine may have received.
        assert!(at_least.contains(&"90".into()), "{at_least:?}");
        assert!(finished.out.contains("unfinished   "), "{finished:?}");
        let (finished, result) = load(&url, &words[..words.len() - 2]);
        assert_invalid(&finished, &result, 5, "without a response at the end");
    }
}

#[test]
fn dying_server_makes_run_invalid() {
    for io in drivers() {
        let url = server(|number| match number {
            ..500 => Fault::Respond,
            _ => Fault::Die,
        });
        let (finished, result) = load(&url, &["-d", "3s", "-c", "4", "--io", io]);
        assert_invalid(&finished, &result, 5, "stopped responding");
        let number = |key: &str| result[key].as_f64().expect("a number");
        assert!(
            number("measured_s") < number("duration_s") - 1.0,
            "{finished:?}"
        );
        // Times are in milliseconds, and all responses may have arrived within four of them.
        let time = number("requests") / number("rps");
        let apart = (time - number("measured_s")).abs();
        assert!(apart < 0.001, "{apart}: {finished:?}");
    }
}

#[test]
fn stopped_generator_is_reported() {
    for (io, pace) in drivers().iter().flat_map(|io| [(io, "-R200"), (io, "-T5")]) {
        let serve = Serve::start(&["--respond", "200:hello"]);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("result.json");
        let path = file.display().to_string();
        let url = serve.url("/");
        let words = [
            "load", &url, "-c", "4", "-d", "3s", pace, "--io", io, "--json", &path,
        ];
        let program = Program::start(&mut onrush(&words));
        program.out.wait_for("\n         1 ");
        program.signal(Signal::STOP);
        let begun = Instant::now();
        until("the fault has lasted", || {
            (begun.elapsed() >= Duration::from_millis(800)).then_some(())
        });
        program.signal(Signal::CONT);
        let finished = program.finish();
        let text = std::fs::read_to_string(&file).expect("a result");
        let result = serde_json::from_str(&text).expect("JSON");
        assert_invalid(&finished, &result, 5, "was stalled");
        if pace == "-R200" {
            assert_invalid(&finished, &result, 5, "generator's own part");
        }
    }
}

#[test]
fn repeated_short_generator_stalls_are_reported() {
    let slice = Duration::from_millis(12);
    for io in drivers() {
        let url = server(|_| Fault::Slow);
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("result.json");
        let path = file.display().to_string();
        let words = [
            "load", &url, "-q", "-c", "4", "-d", "2s", "--io", io, "--json", &path,
        ];
        let mut program = Program::start(&mut onrush(&words));
        // The rhythm is the fault; nothing waits for a condition.
        while program.is_running() {
            program.signal(Signal::STOP);
            std::thread::sleep(slice);
            program.signal(Signal::CONT);
            std::thread::sleep(slice);
        }
        let finished = program.finish();
        let text = std::fs::read_to_string(&file).expect("a result");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        let code = match result["verdict"]["state"].as_str() {
            Some("invalid") => 5,
            _ => 0,
        };
        assert_invalid(&finished, &result, code, "generator's own part");
    }
}
