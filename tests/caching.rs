//! `onrush load` and memcached: our counts equal the server's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::encryption::{ECDSA, write_certificate};
use crate::generating::run_together;
use crate::peer::peer;
use crate::program::{Finished, Program, drivers, onrush, run_onrush, until};
use crate::schema;

/// Debian's memcached on a Unix socket, which cannot collide with other tests.
struct Memcached {
    _program: Program,
    socket: PathBuf,
    _directory: TempDir,
}

impl Memcached {
    fn start(more: &[&str]) -> Memcached {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let path = socket.display().to_string();
        let words = [&["-u", "root", "-t", "1", "-s", &path], more].concat();
        let mut program = Program::start(&mut peer("memcached", &words));
        until("memcached", || {
            assert!(program.is_running(), "it has ended");
            UnixStream::connect(&socket).ok()
        });
        Memcached {
            _program: program,
            socket,
            _directory: directory,
        }
    }

    fn url(&self) -> String {
        format!("memcached://unix:{}", self.socket.display())
    }

    /// Counters of the server by name. Reading them takes a connection and a command of seven bytes.
    fn stats(&self) -> BTreeMap<String, u64> {
        let mut stream = UnixStream::connect(&self.socket).expect("it listens");
        stream.write_all(b"stats\r\n").expect("it reads");
        stats_of(BufReader::new(stream).lines())
    }

    fn items(&self) -> u64 {
        self.stats()["curr_items"]
    }
}

/// Numeric values in a response to `stats`, by name.
pub(crate) fn stats_of(lines: impl Iterator<Item = io::Result<String>>) -> BTreeMap<String, u64> {
    let lines = lines.map(|line| line.expect("text"));
    let lines = lines.take_while(|line| line != "END");
    let stats = lines.filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let name = words.next()?.to_owned();
        Some((name, words.next()?.parse().ok()?))
    });
    stats.collect()
}

/// Runs the load; returns its output and its JSON result.
pub(crate) fn load(url: &str, words: &[&str]) -> (Finished, Value) {
    let directory = tempfile::tempdir().expect("a directory");
    let json = directory.path().join("result.json").display().to_string();
    let words = [&["load", url, "--json", &json], words].concat();
    let finished = run_onrush(&words).on_any_machine();
    let text = fs::read_to_string(&json).unwrap_or_else(|error| panic!("{error}: {finished:?}"));
    let value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    schema::conforms(&value, "load-result.schema.json");
    (finished, value)
}

pub(crate) fn number(value: &Value, key: &str) -> u64 {
    let number = value[key].as_u64();
    number.unwrap_or_else(|| panic!("no {key} in {value}"))
}

#[test]
fn populate_aborts_on_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("memcached://{}", silent.local_addr().expect("an address"));
    // One timeout after another would take half an hour.
    let words = ["--populate", "--keys", "100k", "-c", "4", "--timeout", "1s"];
    let words = [&["load", &url, "-d", "1s"], &words[..]].concat();
    let finished = run_onrush(&words);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.err.contains("timeout"), "{finished:?}");
}

/// Runs `words` against a new server, and compares every count with the server's.
#[track_caller]
fn agree(words: &[&str]) -> Value {
    let memcached = Memcached::start(&[]);
    let (finished, result) = load(&memcached.url(), words);
    assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
    let (row, stats) = (&result["memcached"], memcached.stats());
    let populated = &row["populated"];
    let filled = populated["stored"].as_u64().unwrap_or(0);
    let pairs = [
        ("get_hits", number(row, "hits")),
        ("get_misses", number(row, "misses")),
        ("cmd_get", number(row, "keys_asked")),
        ("cmd_set", number(row, "sets") + filled),
        ("incr_hits", number(row, "incremented")),
        (
            "incr_misses",
            number(row, "increments") - number(row, "incremented"),
        ),
    ];
    for (name, counted) in pairs {
        assert_eq!(stats[name], counted, "{words:?}: {name}; {result}");
    }
    let deletes = stats["delete_hits"] + stats["delete_misses"];
    assert_eq!(deletes, number(row, "deletes"), "{words:?}");
    if !words.contains(&"meta-quiet") {
        assert_eq!(stats["delete_hits"], number(row, "deleted"), "{words:?}");
    }
    if filled == 0 {
        // Plus the command that reads the counters.
        let bytes = number(row, "bytes_sent") + "stats\r\n".len() as u64;
        assert_eq!(stats["bytes_read"], bytes, "{words:?}");
        // Responses after the end do not belong to the run.
        if number(&result, "unfinished") == 0 {
            let bytes = number(&result, "bytes");
            assert_eq!(stats["bytes_written"], bytes, "{words:?}");
        }
    }
    assert_eq!(row["errors"], serde_json::json!({}), "{words:?}");
    assert_eq!(number(row, "wrong_values"), 0, "{words:?}");
    result
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn counts_match_memcached() {
    for io in drivers() {
        for words in [
            &["-n", "2000", "-c", "7"][..],
            &[
                "-n", "2000", "-c", "7", "--ratio", "5:3:1:1", "--keys", "100",
            ],
            &[
                "-n",
                "2000",
                "-c",
                "3",
                "--pipeline",
                "16",
                "--ratio",
                "3:1",
                "--keys",
                "100",
            ],
            &[
                "-n",
                "500",
                "-c",
                "4",
                "-t",
                "2",
                "--multiget",
                "16",
                "--gets",
                "--ratio",
                "1:1",
            ],
            &["-n", "200", "-c", "3", "-r", "7", "--ratio", "1:1"],
            &[
                "-n",
                "500",
                "--ratio",
                "0:1",
                "--value-size",
                "facebook",
                "--key-size",
                "facebook",
                "--expiry",
                "1h",
            ],
        ] {
            agree(&[words, &["--io", io]].concat());
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn meta_command_counts_match_memcached() {
    for io in drivers() {
        for protocol in ["meta", "meta-quiet"] {
            for words in [
                &["-n", "2000", "-c", "7"][..],
                &[
                    "-n",
                    "2000",
                    "-c",
                    "3",
                    "--pipeline",
                    "16",
                    "--ratio",
                    "5:3:1",
                    "--keys",
                    "100",
                ],
                &[
                    "-n",
                    "2000",
                    "-c",
                    "3",
                    "--pipeline",
                    "16",
                    "--populate",
                    "--gets",
                    "--verify",
                ],
                &[
                    "-n",
                    "500",
                    "-c",
                    "3",
                    "--pipeline",
                    "3",
                    "--multiget",
                    "5",
                    "--ratio",
                    "3:1",
                    "--populate",
                    "--hit-ratio",
                    "0.6",
                    "--verify",
                ],
                &[
                    "-n",
                    "500",
                    "-c",
                    "3",
                    "--pipeline",
                    "5",
                    "--populate",
                    "--ratio",
                    "1:0:0:1",
                ],
            ] {
                agree(&[words, &["--io", io, "--protocol", protocol]].concat());
            }
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn timed_run_counts_match_memcached() {
    let result = agree(&[
        "-d",
        "300ms",
        "-c",
        "5",
        "--pipeline",
        "4",
        "--ratio",
        "9:1",
    ]);
    assert!(number(&result, "requests") > 0, "{result}");
    let result = agree(&["-R", "2000", "-d", "500ms", "-c", "5", "--populate"]);
    let row = &result["memcached"];
    assert_eq!(number(row, "gets"), number(row, "hits"), "{result}");
    assert!(result["latency_us"]["mean"].is_number(), "{result}");
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn populated_keys_are_hits() {
    let result = agree(&[
        "-n",
        "3000",
        "-c",
        "4",
        "--populate",
        "--keys",
        "1000",
        "--verify",
    ]);
    let row = &result["memcached"];
    assert_eq!((number(row, "hits"), number(row, "misses")), (3000, 0));
    assert_eq!(number(row, "value_bytes_read"), 300_000);
    let populated = &row["populated"];
    assert_eq!(
        (number(populated, "keys"), number(populated, "stored")),
        (1000, 1000)
    );
    assert_eq!(number(populated, "value_bytes"), 100_000);
    let hits = |words: &[&str]| {
        let common = ["--populate", "--keys", "500", "-c", "4"];
        let result = agree(&[words, &common].concat());
        number(&result["memcached"], "hits") as f64
            / number(&result["memcached"], "keys_asked") as f64
    };
    let share = hits(&["-n", "4000", "--hit-ratio", "75%"]);
    assert!((share - 0.75).abs() < 0.04, "{share}");
    let share = hits(&["-n", "400", "--hit-ratio", "0.3", "--multiget", "10"]);
    assert!((share - 0.3).abs() < 0.04, "{share}");
    assert_eq!(hits(&["-n", "1000", "--hit-ratio", "0"]), 0.0);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn commands_have_separate_latencies() {
    let memcached = Memcached::start(&[]);
    let words = ["-n", "2000", "-c", "4", "--ratio", "3:1:1", "--keys", "50"];
    let (finished, result) = load(&memcached.url(), &words);
    let kinds = result["by_request"].as_array().expect("kinds").iter();
    let kinds: Vec<&str> = kinds.filter_map(|kind| kind["name"].as_str()).collect();
    assert_eq!(kinds, ["get", "set", "delete"], "{result}");
    let counted: u64 = result["statuses"]
        .as_object()
        .expect("outcomes")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(counted, 2000, "{result}");
    for line in ["\ngets  ", "\nsets  ", "\ndeletes  ", "\nvalues  "] {
        assert!(finished.out.contains(line), "{line}: {finished:?}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn tls_counts_match_memcached() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "memcached", ECDSA);
    let ports = directory.path().join("ports");
    let files = format!("ssl_chain_cert={certificate},ssl_key={key}");
    // Port -1 selects a free port, which the server writes to a file.
    let words = ["-u", "root", "-t", "1", "-l", "127.0.0.1", "-p", "-1", "-Z"];
    let words = [&words[..], &["-o", &files]].concat();
    let mut command = peer("memcached", &words);
    let mut program = Program::start(command.env("MEMCACHED_PORT_FILENAME", &ports));
    let port: u16 = until("the port of memcached", || {
        assert!(program.is_running(), "it has ended");
        let text = fs::read_to_string(&ports).ok()?;
        text.strip_prefix("TCP INET: ")?
            .strip_suffix('\n')?
            .parse()
            .ok()
    });
    let url = format!("memcacheds://localhost:{port}");
    let words = ["--cacert", &certificate, "--connect-to"];
    let address = format!("127.0.0.1:{port}");
    let words = [
        &words[..],
        &[&address, "-n", "1000", "-c", "3", "--pipeline", "4"],
    ]
    .concat();
    for more in [
        &["--populate", "--verify"][..],
        &["--protocol", "meta-quiet"],
    ] {
        let (finished, result) = load(&url, &[&words[..], more].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(number(&result["memcached"], "hits"), 1000, "{result}");
        assert_eq!(number(&result["tls"], "handshakes"), 3, "{result}");
    }
    let (finished, result) = load(&format!("memcached://{address}"), &["-n", "2"]);
    assert_eq!(finished.code, Some(5), "{finished:?}");
    assert_eq!(number(&result, "requests"), 0, "{result}");
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn shards_populate_and_request_all_keys() {
    let memcached = Memcached::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let url = memcached.url();
    let words = ["load", &url, "-n", "999", "-c", "6", "-R", "1000"];
    let words = [&words[..], &["--populate", "--keys", "500"]].concat();
    let parts = (0..3).map(|_| onrush(&words)).collect();
    let (finished, merged) = run_together(parts, directory.path());
    assert_eq!(memcached.items(), 500, "{finished:?}");
    let row = &merged["memcached"];
    let stored = number(&row["populated"], "stored");
    assert_eq!((number(row, "hits"), stored), (999, 500), "{merged}");
    assert_eq!(memcached.stats()["cmd_get"], 999);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn full_memory_is_reported() {
    // -M: return an error instead of evicting items.
    let memcached = Memcached::start(&["-m", "4", "-M"]);
    let words = [
        "-n",
        "10",
        "--populate",
        "--keys",
        "20k",
        "--value-size",
        "1000",
    ];
    let (finished, result) = load(&memcached.url(), &words);
    let said = "SERVER_ERROR out of memory storing object";
    let populated = &result["memcached"]["populated"];
    let stored = number(populated, "stored");
    assert!(stored > 0 && stored < 20_000, "{result}");
    assert_eq!(
        number(&populated["errors"], said),
        20_000 - stored,
        "{result}"
    );
    assert!(
        finished
            .err
            .contains("were not stored: SERVER_ERROR out of memory"),
        "{finished:?}"
    );
    // During the run it counts as an error, which the verdict names.
    let words = [
        "-n",
        "1000",
        "--ratio",
        "0:1",
        "--keys",
        "1m",
        "--value-size",
        "1000",
    ];
    let (finished, result) = load(&memcached.url(), &words);
    let errors = number(&result["memcached"]["errors"], said);
    assert!(errors > 0, "{result}");
    assert_eq!(
        number(&result["statuses"], "server_error"),
        errors,
        "{result}"
    );
    assert_eq!(number(&result, "errors"), errors, "{result}");
    assert!(
        finished.out.contains("responses that are server errors"),
        "{finished:?}"
    );
    assert!(matches!(finished.code, Some(3 | 5)), "{finished:?}");
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn unexpected_values_are_reported() {
    let memcached = Memcached::start(&[]);
    let url = memcached.url();
    let (finished, _) = load(&url, &["-n", "10", "--populate", "--keys", "100"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let mut stream = UnixStream::connect(&memcached.socket).expect("it listens");
    let value = "x".repeat(100);
    write!(stream, "set k000000000000005 0 0 100\r\n{value}\r\n").expect("it reads");
    let mut answer = [0; 8];
    stream.read_exact(&mut answer).expect("it answers");
    assert_eq!(&answer, b"STORED\r\n");
    let words = [
        "-n",
        "200",
        "--keys",
        "100",
        "--key-distribution",
        "sequential",
        "--verify",
    ];
    let (finished, result) = load(&url, &words);
    assert_eq!(number(&result["memcached"], "wrong_values"), 2, "{result}");
    assert_eq!(number(&result["statuses"], "wrong_value"), 2, "{result}");
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(
        finished
            .out
            .contains("responses that do not match their requests: 2"),
        "{finished:?}"
    );
}

/// A server that sends `text` after the first bytes of each connection, and nothing more.
fn server_of(text: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it has one");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || serve(&mut stream, text));
        }
    });
    format!("memcached://{address}")
}

fn serve(stream: &mut TcpStream, text: &[u8]) {
    let mut request = [0; 4096];
    if let Ok(1..) = stream.read(&mut request) {
        // Ignore the error: the client may have left.
        let _ = stream.write_all(text);
        while let Ok(1..) = stream.read(&mut request) {}
    }
}

#[test]
fn non_memcached_server_is_reported() {
    for (text, kind, part) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
            "protocol",
            "an HTTP response",
        ),
        (
            b"\x15\x03\x03\x00\x02\x02\x28",
            "protocol",
            "use memcacheds:// for this server",
        ),
        (b"VALUE k0", "timeout", "timed out"),
        (b"", "timeout", "timed out"),
        (
            b"VALUE k000000000000000 0 100\r\nabc\r\nEND\r\n",
            "timeout",
            "timed out",
        ),
        (
            b"VALUE k000000000000000 0 1\r\nabc\r\nEND\r\n",
            "protocol",
            "longer than announced",
        ),
    ] {
        let words = [
            "-d",
            "500ms",
            "--timeout",
            "200ms",
            "--keys",
            "1",
            "-c",
            "2",
        ];
        let (finished, result) = load(&server_of(text), &words);
        assert!(
            number(&result["errors_by_kind"], kind) > 0,
            "{part}: {result}"
        );
        assert!(finished.out.contains(part), "{part}: {finished:?}");
        assert!(matches!(finished.code, Some(3 | 5)), "{finished:?}");
    }
    let finished = run_onrush(&[
        "load",
        &server_of(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "--populate",
        "--keys",
        "5",
        "-n",
        "5",
    ]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished
            .err
            .contains("5 of 5 keys were not stored: protocol 5"),
        "{finished:?}"
    );
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn mcblaster_report_is_printed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it has one").port();
    let memcached = Memcached::start(&[]);
    // mcblaster does not support Unix sockets: forward the port to the socket.
    let socket = memcached.socket.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let server = UnixStream::connect(&socket).expect("it listens");
            let (mut from, mut to) = (
                stream.try_clone().expect("a copy"),
                server.try_clone().expect("a copy"),
            );
            thread::spawn(move || std::io::copy(&mut from, &mut to));
            let (mut from, mut to) = (server, stream);
            thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    });
    let port = port.to_string();
    let words = [
        "load",
        "--as",
        "mcblaster",
        "-p",
        &port,
        "-t",
        "1",
        "-c",
        "4",
        "-d",
        "1",
        "-k",
        "50",
        "-r",
        "900",
        "-w",
        "100",
        "127.0.0.1",
    ];
    let finished = run_onrush(&words);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for line in [
        "Request type   : get\n",
        "Request type   : set\n",
        "\nRTT distribution for 'get' requests:\n",
        "Over  10000 usec: ",
    ] {
        assert!(finished.out.contains(line), "{line}: {finished:?}");
    }
    let sent = finished
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("Requests sent  : "));
    let sent: u64 = sent.filter_map(|count| count.parse::<u64>().ok()).sum();
    let stats = memcached.stats();
    assert_eq!(
        stats["cmd_get"] + stats["cmd_set"],
        sent + 50,
        "{finished:?}"
    );
}
