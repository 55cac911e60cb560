//! A reload or an upgrade as seen by HTTP/2 clients: GOAWAY frames where required, and a response to each request.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::process::Signal;
use tempfile::TempDir;

use crate::application::HoldingServer;
use crate::loading::{load, number};
use crate::peer::peer;
use crate::program::{Finished, Program, Serve, Totals, drivers, until};
use crate::upgrading::Successor;

/// nghttp's output for the last stream ID of a first GOAWAY (RFC 9113 section 6.8).
const ANY_STREAM: &str = "(last_stream_id=2147483647, error_code=NO_ERROR(0x00)";
const NO_ERROR: &str = "error_code=NO_ERROR(0x00)";
const RECEIVED_GOAWAY: &str = "recv GOAWAY frame";

struct Site {
    serve: Serve,
    path: PathBuf,
    _directory: TempDir,
}

impl Site {
    fn start(io: &str, text: &str) -> Site {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("onrush.toml");
        write(&path, text);
        let serve = Serve::start(&["--config", &path.display().to_string(), "--io", io]);
        Site {
            serve,
            path,
            _directory: directory,
        }
    }

    /// Starts a server that forwards to `behind`, an upstream server that holds its responses.
    fn forwarding(io: &str, behind: &HoldingServer) -> Site {
        Site::start(io, &forwarding(behind))
    }

    /// Starts nghttp, which prints each frame, with this many requests at once.
    fn asked(&self, count: usize) -> Program {
        let urls: Vec<String> = (0..count)
            .map(|at| self.serve.url(&format!("/{at}")))
            .collect();
        let mut words = vec!["--verbose", "--null-out"];
        words.extend(urls.iter().map(String::as_str));
        Program::start(&mut peer("nghttp", &words))
    }

    /// Starts h2load with this many requests on 8 connections with 16 streams each.
    fn under_load(&self, requests: &str) -> Program {
        let url = self.serve.url("/");
        let words = ["-n", requests, "-c", "8", "-m", "16", &url];
        Program::start(&mut peer("h2load", &words))
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("it is ours");
}

fn forwarding(behind: &HoldingServer) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nforward = \"http://{}\"\n[timeouts]\ndrain = \"60s\"\n",
        behind.address
    )
}

fn responding(body: &str) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ status = 200, body = \"{body}\" }}\n[timeouts]\ndrain = \"60s\"\n"
    )
}

fn respond(held: Vec<TcpStream>) {
    for mut stream in held {
        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate";
        stream.write_all(response).expect("it is waited for");
    }
}

/// Number of responses with 200, and GOAWAY frames, in nghttp's output.
fn seen(finished: &Finished) -> (usize, Vec<&str>) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let statuses = finished.out.matches(":status: 200").count();
    let lines: Vec<&str> = finished.out.lines().collect();
    let went = lines
        .windows(2)
        .filter(|lines| lines[0].contains(RECEIVED_GOAWAY));
    // The next line shows its contents.
    (statuses, went.map(|lines| lines[1].trim()).collect())
}

/// Checks that all requests of h2load got a 2xx response.
#[track_caller]
fn all_succeeded(finished: &Finished, requests: &str) {
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let expected = format!(
        "requests: {requests} total, {requests} started, {requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout"
    );
    assert!(finished.out.contains(&expected), "{finished:?}");
}

#[test]
fn reload_sends_no_goaway() {
    for io in drivers() {
        let behind = HoldingServer::start();
        let site = Site::forwarding(io, &behind);
        let client = site.asked(5);
        let held = (0..5).map(|_| behind.next()).collect();
        write(&site.path, &responding("new"));
        site.serve.program.signal(Signal::HUP);
        site.serve.program.err.wait_for("as generation 2");
        respond(held);
        let finished = client.finish();
        let (statuses, goaways) = seen(&finished);
        assert_eq!(statuses, 5, "{finished:?}");
        assert!(goaways.is_empty(), "{goaways:?}: {finished:?}");
        assert_eq!(site.serve.body(), "new");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn upgrade_sends_two_goaways_and_responds() {
    for io in drivers() {
        let behind = HoldingServer::start();
        let site = Site::forwarding(io, &behind);
        let client = site.asked(5);
        let held = (0..5).map(|_| behind.next()).collect();
        site.serve.program.signal(Signal::USR2);
        let next = Successor::of(&site.serve, 1);
        until("the second GOAWAY", || {
            let said = client.out.so_far();
            (said.matches(RECEIVED_GOAWAY).count() == 2).then_some(())
        });
        respond(held);
        let finished = client.finish();
        let (statuses, goaways) = seen(&finished);
        assert_eq!(statuses, 5, "{finished:?}");
        assert_eq!(goaways.len(), 2, "{goaways:?}: {finished:?}");
        // The first GOAWAY allows any stream, the second none above the last one; the responses follow.
        assert!(goaways[0].starts_with(ANY_STREAM), "{goaways:?}");
        assert!(!goaways[1].starts_with(ANY_STREAM), "{goaways:?}");
        assert!(goaways[1].contains(NO_ERROR), "{goaways:?}");
        drop(next);
        let finished = site.serve.program.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn reload_under_load_loses_no_stream() {
    const REQUESTS: &str = "60000";
    for io in drivers() {
        let site = Site::start(io, &responding("1"));
        let mut client = site.under_load(REQUESTS);
        let mut generation = 1;
        // The load must still be running at the first reload.
        client.out.wait_for("progress: 10% done");
        while client.is_running() {
            generation += 1;
            write(&site.path, &responding(&generation.to_string()));
            site.serve.program.signal(Signal::HUP);
            let words = format!("as generation {generation}:");
            site.serve.program.err.wait_for(&words);
        }
        assert!(generation > 1, "it was over before the first");
        all_succeeded(&client.finish(), REQUESTS);
        let totals = site.serve.stop();
        assert_eq!(totals.requests().to_string(), REQUESTS, "{totals:?}");
        assert_eq!(totals.connections(), 8, "{totals:?}");
    }
}

#[test]
fn upgrade_under_load_loses_no_http2_request() {
    const REQUESTS: u64 = 20_000;
    for io in drivers() {
        let site = Site::start(io, &responding("1"));
        let url = site.serve.url("/");
        let before = site.serve.descriptors();
        let arguments = ["-n", "20000", "-R", "10k", "-c", "8", "-m", "16", "--http2"];
        let (result, next) = thread::scope(|scope| {
            let client = scope.spawn(|| load(&url, &arguments).1);
            until("its connections", || {
                (site.serve.descriptors() >= before + 8).then_some(())
            });
            site.serve.program.signal(Signal::USR2);
            let next = Successor::of(&site.serve, 1);
            (client.join().expect("it measures"), next)
        });
        assert_eq!(number(&result, "errors"), 0, "{result}");
        assert_eq!(number(&result["statuses"], "200"), REQUESTS, "{result}");
        let served = served(site, next);
        assert!(served.iter().all(|count| *count > 0), "{served:?}");
        assert_eq!(served.iter().sum::<u64>(), REQUESTS, "{served:?}");
    }
}

/// h2load opens no new connection after a GOAWAY, and counts unsent requests as failed.
#[test]
#[ignore = "foreign programs: make test-all"]
fn requests_sent_before_upgrade_get_responses() {
    for io in drivers() {
        let site = Site::start(io, &responding("1"));
        let client = site.under_load("200000");
        client.out.wait_for("progress: 10% done");
        site.serve.program.signal(Signal::USR2);
        let next = Successor::of(&site.serve, 1);
        let finished = client.finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let served = served(site, next);
        let succeeded = format!(" {} succeeded, ", served[0]);
        let statuses = format!("status codes: {} 2xx, 0 3xx, 0 4xx, 0 5xx", served[0]);
        assert!(
            finished.out.contains(&succeeded),
            "{served:?}: {finished:?}"
        );
        assert!(finished.out.contains(&statuses), "{served:?}: {finished:?}");
        assert!(finished.out.contains(" 0 timeout"), "{finished:?}");
    }
}

/// Requests served by the replaced process and by its successor. Ends both.
fn served(site: Site, next: Successor) -> [u64; 2] {
    // One after the other, so that their output is in this order.
    site.serve.program.out.wait_for("served ");
    drop(next);
    let finished = site.serve.program.finish();
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let lines = finished.out.lines();
    let lines = lines.filter(|line| line.starts_with("served "));
    let served: Vec<u64> = lines
        .map(|line| {
            Totals {
                line: line.to_owned(),
            }
            .requests()
        })
        .collect();
    served.try_into().unwrap_or_else(|_| panic!("{finished:?}"))
}
