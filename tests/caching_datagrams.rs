//! `onrush load` and memcached over UDP: our counts equal the server's.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use tempfile::TempDir;

use crate::caching::{load, number, stats_of};
use crate::peer::peer;
use crate::program::{Program, Serve, drivers, onrush, run_onrush, until};

/// Debian's memcached on free TCP and UDP ports.
struct Memcached {
    _program: Program,
    tcp: u16,
    udp: u16,
    _directory: TempDir,
}

impl Memcached {
    fn start() -> Memcached {
        let directory = tempfile::tempdir().expect("a directory");
        let ports = directory.path().join("ports");
        // Port -1 selects a free port, which the server writes to a file.
        let words = [
            "-u",
            "root",
            "-t",
            "1",
            "-l",
            "127.0.0.1",
            "-p",
            "-1",
            "-U",
            "-1",
        ];
        let mut command = peer("memcached", &words);
        let mut program = Program::start(command.env("MEMCACHED_PORT_FILENAME", &ports));
        let [tcp, udp] = until("the ports of memcached", || {
            assert!(program.is_running(), "it has ended");
            let text = fs::read_to_string(&ports).ok()?;
            let port = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name))?;
                line.parse::<u16>().ok()
            };
            Some([port("TCP INET: ")?, port("UDP INET: ")?])
        });
        Memcached {
            _program: program,
            tcp,
            udp,
            _directory: directory,
        }
    }

    fn url(&self) -> String {
        format!("memcached://127.0.0.1:{}", self.udp)
    }

    fn stats(&self) -> BTreeMap<String, u64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.tcp)).expect("it listens");
        stream.write_all(b"stats\r\n").expect("it reads");
        stats_of(BufReader::new(stream).lines())
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn udp_counts_match_memcached() {
    for io in drivers() {
        for words in [
            &[
                "-n",
                "2000",
                "-c",
                "3",
                "--pipeline",
                "4",
                "--ratio",
                "5:3:1",
                "--keys",
                "100",
            ][..],
            &["-n", "1000", "-c", "2", "--populate", "--verify", "--gets"],
            &[
                "-n",
                "300",
                "--multiget",
                "7",
                "--populate",
                "--verify",
                "--hit-ratio",
                "0.5",
            ],
            &[
                "-n",
                "300",
                "--value-size",
                "5000",
                "--populate",
                "--verify",
                "--keys",
                "500",
            ],
            &[
                "-n",
                "1000",
                "--protocol",
                "meta",
                "--pipeline",
                "3",
                "--ratio",
                "3:1",
            ],
            &[
                "-n",
                "300",
                "--protocol",
                "meta",
                "--multiget",
                "7",
                "--populate",
                "--verify",
            ],
            &[
                "-R",
                "2000",
                "-d",
                "500ms",
                "-c",
                "2",
                "--pipeline",
                "16",
                "--ratio",
                "0:1",
            ],
        ] {
            let memcached = Memcached::start();
            let (finished, result) =
                load(&memcached.url(), &[words, &["--udp", "--io", io]].concat());
            assert_eq!(finished.code, Some(0), "{words:?}: {finished:?}");
            let (row, stats) = (&result["memcached"], memcached.stats());
            let filled = row["populated"]["stored"].as_u64().unwrap_or(0);
            for (name, counted) in [
                ("get_hits", number(row, "hits")),
                ("get_misses", number(row, "misses")),
                ("cmd_get", number(row, "keys_asked")),
                ("cmd_set", number(row, "sets") + filled),
            ] {
                assert_eq!(stats[name], counted, "{words:?}: {name}; {result}");
            }
            assert_eq!(number(&result["errors_by_kind"], "lost"), 0, "{result}");
            let datagrams = &row["datagrams"];
            assert!(number(datagrams, "received") > 0, "{result}");
            for name in ["late", "duplicated", "foreign", "truncated", "wrong_frame"] {
                assert_eq!(number(datagrams, name), 0, "{words:?}: {name}; {result}");
            }
            if filled == 0 {
                // Plus the commands that read the version and the counters.
                let others = "12345678version\r\nstats\r\n".len() as u64;
                let bytes = number(row, "bytes_sent") + others;
                assert_eq!(stats["bytes_read"], bytes, "{words:?}");
            }
        }
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn port_without_udp_is_reported() {
    let memcached = Memcached::start();
    let url = format!("memcached://127.0.0.1:{}", memcached.tcp);
    let finished = run_onrush(&["load", &url, "--udp", "-n", "5"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished
            .err
            .contains("refused the UDP datagram (port unreachable)"),
        "{finished:?}"
    );
    assert!(finished.err.contains("-U PORT"), "{finished:?}");
}

#[test]
fn memcached_listener_serves_udp_and_tcp() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("onrush.toml");
    let text = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nprotocol = \"memcached\"\ntransport = \"both\"";
    fs::write(&file, text).expect("it is ours");
    let file = file.to_str().expect("UTF-8");
    for io in drivers() {
        let words = ["serve", "--config", file, "--io", io];
        let serve = Serve::wait_until_listening(Program::start(&mut onrush(&words)));
        assert!(
            serve
                .start_up_lines
                .contains(" (memcached over TCP and UDP, 67108864 bytes on each core)"),
            "{}",
            serve.start_up_lines
        );
        let url = format!("memcached://{}", serve.address);
        let common = ["--keys", "300", "--value-size", "4000", "--verify"];
        let words = ["-n", "500", "-c", "2", "--populate"];
        let (finished, over_tcp) = load(&url, &[&words[..], &common].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        // Values stored over TCP are available over UDP.
        let words = [
            "-n",
            "500",
            "-c",
            "2",
            "--pipeline",
            "4",
            "--multiget",
            "3",
            "--udp",
        ];
        let (finished, over_udp) = load(&url, &[&words[..], &common].concat());
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(number(&over_tcp["memcached"], "hits"), 500, "{over_tcp}");
        let row = &over_udp["memcached"];
        assert_eq!(
            (number(row, "hits"), number(row, "misses")),
            (1500, 0),
            "{over_udp}"
        );
        // Nine datagrams of 1,400 bytes for three values.
        assert_eq!(number(&row["datagrams"], "received"), 4500, "{over_udp}");
        assert_eq!(number(&row["datagrams"], "duplicated"), 0, "{over_udp}");
        serve.stop();
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn mcblaster_sends_gets_over_udp() {
    let memcached = Memcached::start();
    let port = memcached.udp.to_string();
    let words = [
        "load",
        "--as",
        "mcblaster",
        "-u",
        &port,
        "-t",
        "1",
        "-d",
        "1",
        "-k",
        "50",
    ];
    let finished = run_onrush(&[&words[..], &["-r", "900", "127.0.0.1"]].concat());
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.out.contains("Request type   : get\n"),
        "{finished:?}"
    );
    let stats = memcached.stats();
    assert!(
        stats["cmd_get"] > 0 && stats["cmd_get"] == stats["get_hits"],
        "{stats:?}"
    );
    let sent = format!("Requests sent  : {}\n", stats["cmd_get"]);
    assert!(finished.out.contains(&sent), "{sent}: {finished:?}");
}
