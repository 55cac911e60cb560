//! `onrush load udp://` and `tcp://` against `onrush serve --sink` and `--echo`: every datagram is accounted for.

use std::net::{TcpListener, UdpSocket};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::program::{Finished, Program, Serve, drivers, onrush, run_onrush, until};
use crate::schema;

/// Starts a datagram listener with one core, on a free loopback port.
fn far_end(protocol: &str, keys: &str) -> (Serve, tempfile::TempDir, String) {
    let (serve, directory) = listener(protocol, &format!("transport = \"udp\"\n{keys}"));
    let url = format!("udp://{}", serve.address);
    (serve, directory, url)
}

/// Starts a listener with these `keys` in its configuration.
pub(crate) fn listener(protocol: &str, keys: &str) -> (Serve, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("far-end.toml");
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"{protocol}\"\n{keys}\n"
    );
    std::fs::write(&file, text).expect("it is written");
    let file = file.to_str().expect("a path of text").to_owned();
    (Serve::start(&["--config", &file]), directory)
}

fn load(url: &str, words: &[&str]) -> (Finished, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("result.json");
    let json = json.to_str().expect("a path of text");
    let mut all = vec!["load", url, "--json", json];
    all.extend(words);
    let finished = run_onrush(&all);
    let text = std::fs::read_to_string(json).unwrap_or_default();
    let result = serde_json::from_str(&text);
    let result: Value =
        result.unwrap_or_else(|_| panic!("no result: {}{}", finished.out, finished.err));
    let name = match (&result["kind"], &result["trials"]) {
        (Value::String(_), _) => "load-packets.schema.json",
        (_, Value::Array(_)) => "load-search.schema.json",
        _ => "load-result.schema.json",
    };
    schema::conforms(&result, name);
    (finished, result)
}

fn number(result: &Value, key: &str) -> u64 {
    let found = result.pointer(key).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{key} is no number in {result:#}"))
}

/// Checks that sent = received + lost, and that the losses add up.
fn assert_accounted(result: &Value) {
    let [sent, received, lost] =
        ["/sent", "/received", "/losses/lost"].map(|key| number(result, key));
    assert_eq!(sent, received + lost, "{result:#}");
    let found = result["losses"]["found"].as_array().expect("a list");
    let found: u64 = found.iter().map(|place| number(place, "/count")).sum();
    assert_eq!(found + number(result, "/losses/unaccounted"), lost);
}

#[test]
fn sink_accounts_for_every_datagram() {
    for io in drivers() {
        let (serve, _directory, url) = far_end("sink", "receive_buffer = \"4m\"");
        let words = ["-n", "20k", "-R", "20k", "-c", "3", "-t", "2", "--io", io];
        let (finished, result) = load(&url, &words);
        assert_eq!(number(&result, "/sent"), 20_000, "{}", finished.out);
        assert_eq!(result["way"], "one_way");
        assert_accounted(&result);
        serve.stop();
    }
}

#[test]
fn echo_returns_datagrams_in_every_send_mode() {
    let (serve, _directory, url) = far_end("echo", "");
    for words in [
        &["-n", "2000", "--depth", "8"][..],
        &["-n", "2000", "--size", "18-1400"],
        &[
            "-n", "2000", "--size", "imix", "--send", "batch", "--depth", "16",
        ],
        &[
            "-n", "2000", "--size", "100", "--send", "offload", "--depth", "64",
        ],
    ] {
        let (finished, result) = load(&url, words);
        assert_eq!(
            number(&result, "/sent"),
            2000,
            "{words:?}: {}",
            finished.out
        );
        assert_eq!(result["way"], "round_trip");
        assert_eq!(number(&result, "/wrong_length"), 0);
        assert_accounted(&result);
    }
    serve.stop();
}

#[test]
fn losses_are_attributed_to_small_buffer() {
    let (serve, _directory, url) = far_end("sink", "receive_buffer = \"4k\"");
    for departure in ["single", "offload"] {
        let (_, result) = load(&url, &["-n", "200k", "--send", departure]);
        assert_eq!(number(&result, "/sent"), 200_000);
        assert_accounted(&result);
        assert!(number(&result, "/losses/lost") > 0, "{result:#}");
        assert_eq!(number(&result, "/losses/unaccounted"), 0, "{result:#}");
        let place = result["losses"]["found"][0]["place"].as_str();
        assert!(
            place.is_some_and(|place| place.contains("SO_RXQ_OVFL")),
            "{result:#}"
        );
    }
    serve.stop();
}

#[test]
fn fail_conditions_accept_loss() {
    let (serve, _directory, url) = far_end("sink", "receive_buffer = \"4m\"");
    let words = [
        "load",
        &url,
        "-n",
        "1000",
        "-R",
        "5k",
        "-q",
        "--fail-if",
        "loss >= 0",
    ];
    let finished = run_onrush(&words);
    assert_eq!(finished.code, Some(4), "{}", finished.out);
    assert!(
        finished.out.contains("fail if loss >= 0: FAILED"),
        "{}",
        finished.out
    );
    serve.stop();
}

#[test]
fn tcp_echo_returns_all_bytes() {
    let serve = Serve::start(&["--echo", "127.0.0.1:0", "--threads", "2"]);
    let url = format!("tcp://{}", serve.address);
    for words in [
        &["-n", "2000", "--size", "1", "-c", "4"][..],
        &["-n", "100", "--size", "1000000", "-c", "2"],
        &["-n", "2000", "--pipeline", "16"],
        &["-n", "300", "-r", "1", "-c", "3"],
    ] {
        let (finished, result) = load(&url, words);
        let asked: u64 = words[1].parse().expect("a number");
        assert_eq!(
            number(&result, "/requests"),
            asked,
            "{words:?}: {}",
            finished.out
        );
        assert_eq!(number(&result, "/statuses/echo"), asked);
        assert_eq!(number(&result, "/errors"), 0);
    }
    serve.stop();
}

#[test]
fn responder_returns_requested_bytes() {
    let keys = "request_bytes = 100\nresponse_bytes = 20000";
    let (serve, _directory) = listener("responder", keys);
    let url = format!("tcp://{}", serve.address);
    for more in [&["-c", "4"][..], &["--pipeline", "16"], &["-r", "1"]] {
        let sizes = ["-n", "500", "--size", "100", "--response-size", "20000"];
        let (finished, result) = load(&url, &[&sizes, more].concat());
        assert_eq!(number(&result, "/requests"), 500, "{}", finished.out);
        assert_eq!(number(&result, "/errors"), 0, "{}", finished.out);
        let bytes = number(&result, "/bytes");
        assert_eq!(bytes, 500 * 20_000, "{}", finished.out);
    }
    // The response is longer or shorter than requested.
    for (size, what) in [("19999", "unexpected_bytes"), ("20001", "timeout")] {
        let words = [
            "load",
            &url,
            "-n",
            "2",
            "--size",
            "100",
            "--response-size",
            size,
        ];
        let finished = run_onrush(&[&words[..], &["--timeout", "300ms"]].concat());
        assert!(matches!(finished.code, Some(3 | 5)), "{finished:?}");
        assert!(finished.out.contains(what), "{finished:?}");
    }
    serve.stop();
}

#[test]
fn tcp_streams_can_be_one_way() {
    let serve = Serve::start(&["--sink", "127.0.0.1:0", "--threads", "2"]);
    let url = format!("tcp://{}", serve.address);
    for (words, bytes) in [
        (&["-n", "2000", "--size", "1", "-c", "4"][..], 2_000),
        (&["-n", "300", "-c", "2"], 300 * 131_072),
        (
            &["-n", "2000", "--size", "1000", "--pipeline", "16"],
            2_000_000,
        ),
        (&["-n", "300", "--size", "5", "-r", "1", "-c", "3"], 1_500),
    ] {
        let words = [words, &["--one-way"]].concat();
        let (finished, result) = load(&url, &words);
        let asked: u64 = words[1].parse().expect("a number");
        let said = &finished.out;
        assert_eq!(
            number(&result, "/statuses/taken"),
            asked,
            "{words:?}: {said}"
        );
        assert_eq!(number(&result, "/bytes"), bytes, "{words:?}: {said}");
        assert_eq!(number(&result, "/errors"), 0, "{words:?}: {said}");
    }
    serve.stop();
}

#[test]
fn one_way_stream_to_wrong_target_is_reported() {
    let serve = Serve::start(&["--echo", "127.0.0.1:0"]);
    let url = format!("tcp://{}", serve.address);
    let finished = run_onrush(&["load", &url, "--one-way", "-d", "1s", "--timeout", "300ms"]);
    assert!(matches!(finished.code, Some(3 | 5)), "{finished:?}");
    assert!(finished.out.contains("leave --one-way out"), "{finished:?}");
    serve.stop();

    let deaf = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("tcp://{}", deaf.local_addr().expect("an address"));
    let finished = run_onrush(&["load", &url, "--one-way", "-d", "2s", "--timeout", "300ms"]);
    assert!(matches!(finished.code, Some(3 | 5)), "{finished:?}");
    assert!(finished.out.contains("timeout"), "{finished:?}");
}

#[test]
fn datagrams_are_spread_over_source_addresses() {
    let (serve, _directory, url) = far_end("sink", "receive_buffer = \"4m\"");
    let words = [
        "--source",
        "127.0.0.2-127.0.0.3",
        "-c",
        "3",
        "-n",
        "3000",
        "-R",
        "10k",
    ];
    let (finished, result) = load(&url, &words);
    assert_eq!(number(&result, "/sent"), 3000, "{}", finished.out);
    let mut all = 0;
    for (at, source, flows) in [(0, "127.0.0.2", 2), (1, "127.0.0.3", 1)] {
        let origin = &result["origins"][at];
        let sent = number(origin, "/sent");
        all += sent;
        assert_eq!(origin["source"], source, "{result:#}");
        assert_eq!(number(origin, "/flows"), flows);
        let (received, lost) = (number(origin, "/received"), number(origin, "/lost"));
        assert_eq!(received + lost, sent);
        assert!(received > 0, "{result:#}");
    }
    assert_eq!(all, 3000);
    serve.stop();
}

/// An echo that once returns a datagram with the highest sequence number, which was never sent.
fn corrupting_echo() -> String {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut room = [0; 2048];
        for count in 0_u32.. {
            let Ok((bytes, peer)) = socket.recv_from(&mut room) else {
                return;
            };
            if count == 20 {
                let mut wrong = room;
                wrong[8..12].copy_from_slice(&[0x00, 0xf0, 0x00, 0x00]);
                let _ = socket.send_to(&wrong[..bytes], peer);
            }
            let _ = socket.send_to(&room[..bytes], peer);
        }
    });
    format!("udp://{address}")
}

#[test]
fn echo_of_unsent_number_is_counted_as_foreign() {
    for words in [
        &["-d", "700ms", "--timeout", "200ms"][..],
        &["-d", "700ms", "-R", "500"],
    ] {
        let words = [words, &["--round-trip"]].concat();
        let (finished, result) = load(&corrupting_echo(), &words);
        assert_eq!(number(&result, "/foreign"), 1, "{}", finished.out);
        assert_eq!(number(&result, "/too_late"), 0, "{}", finished.out);
        assert!(number(&result, "/received") > 100, "{}", finished.out);
        assert_accounted(&result);
    }
}

#[test]
fn stopped_datagram_generator_is_reported() {
    let serve = Serve::start(&["--echo", "127.0.0.1:0"]);
    let url = format!("udp://{}", serve.address);
    let program = Program::start(&mut onrush(&["load", &url, "-R", "500", "-d", "3s"]));
    program.out.wait_for("\n         1 ");
    program.signal(Signal::STOP);
    let begun = Instant::now();
    until("the fault has lasted", || {
        (begun.elapsed() >= Duration::from_millis(800)).then_some(())
    });
    program.signal(Signal::CONT);
    let finished = program.finish();
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert!(finished.out.contains("was stalled"), "{finished:?}");
    serve.stop();
}

#[test]
fn unreachable_udp_target_error_is_one_line() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    drop(socket);
    let finished = run_onrush(&["load", &format!("udp://{address}")]);
    assert_eq!(finished.code, Some(2), "{}", finished.err);
    assert!(
        finished.err.contains("refused the UDP datagrams"),
        "{}",
        finished.err
    );
}

#[test]
fn flags_of_other_protocols_are_refused() {
    for (words, part) in [
        (
            &["udp://127.0.0.1:9", "-H", "A: b"][..],
            "--header is only for requests",
        ),
        (
            &["udp://127.0.0.1:9", "--csv", "/tmp/x"],
            "--csv is only for requests",
        ),
        (
            &["udp://127.0.0.1:9", "--pipeline", "2"],
            "--pipeline is only for requests",
        ),
        (
            &["http://127.0.0.1:9", "--size", "64"],
            "--size is only for datagrams",
        ),
        (
            &["http://127.0.0.1:9", "--fail-if", "loss > 0"],
            "loss applies only to datagrams",
        ),
        (&["udp://127.0.0.1:9/path"], "only HTTP targets have a path"),
        (&["udp://127.0.0.1:9", "--size", "17"], "use 18 or more"),
        (&["tcp://127.0.0.1:9", "--size", "1,2"], "have one size"),
        (
            &["tcp://127.0.0.1:9", "--size", "65m"],
            "over TCP expected a size",
        ),
        (
            &["http://127.0.0.1:9", "--pipeline", "18446744073709551614"],
            "is more than 65536 bytes at once",
        ),
        (
            &["udp://127.0.0.1:9", "--size", "65508"],
            "exceeds the payload of a datagram",
        ),
        (
            &["udp://127.0.0.1:9", "--response-size", "2"],
            "--response-size is only for bytes over TCP",
        ),
        (
            &["tcp://127.0.0.1:9", "--response-size", "0"],
            "is not a response size",
        ),
        (
            &["tcp://127.0.0.1:9", "--depth", "2"],
            "--depth is only for datagrams",
        ),
        (
            &["tcp://127.0.0.1:9", "-X", "PUT"],
            "--method does not apply to tcp://",
        ),
        (
            &["udp://127.0.0.1:9", "--via", "dpdk"],
            "expected xdp; without --via",
        ),
        (
            &["http://127.0.0.1:9", "--interface", "eth0"],
            "--interface is only for datagrams",
        ),
        (&["udp://127.0.0.1"], "it has no port"),
        (&["udp://unix:/run/x"], "Unix socket"),
        (
            &["udp://127.0.0.1:9", "--size", "64-100", "--send", "offload"],
            "use one size",
        ),
        (
            &["udp://127.0.0.1:9", "--fail-if", "p99 = 1ms"],
            "hardly ever equals",
        ),
    ] {
        let mut all = vec!["load"];
        all.extend(words);
        let finished = run_onrush(&all);
        assert_eq!(finished.code, Some(1), "{words:?}: {}", finished.err);
        assert!(finished.err.contains(part), "{words:?}: {}", finished.err);
    }
}
