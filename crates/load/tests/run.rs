//! Complete runs with real threads and a real server, from options to JSON.

#[path = "run/heads.rs"]
mod heads;
#[path = "run/schema.rs"]
mod schema;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::os::unix::net::UnixListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use onrush_load::Io;
use onrush_load::error::Error;
use onrush_load::pace::Pace;
use onrush_load::plan::{Options, Plan, Shard};
use onrush_load::reach::{ProxyVersion, Sources};
use onrush_load::report::Report;
use onrush_load::run::start;
use onrush_load::stop::Stop;
use onrush_load::target::{Target, TargetAddress};
use onrush_load::verdict::reason::State;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

fn options(url: &str, count: u64) -> Options {
    Options {
        connections: 4,
        threads: 2,
        stop: Stop {
            after: None,
            count: Some(count),
        },
        timeout: Duration::from_secs(60),
        ..Options::new(Target::parse(url).unwrap())
    }
}

fn run(options: Options) -> Report {
    start(Plan::new(options).unwrap())
        .unwrap()
        .finish(|_| ())
        .unwrap()
}

/// Responds to every request on `stream`; requests arrive one at a time and in one piece.
fn respond_to_all(mut stream: impl Read + Write) {
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request) {
        if stream.write_all(RESPONSE).is_err() {
            return;
        }
    }
}

/// Starts a server on a free port that runs until the test process ends. Returns its URL.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || respond_to_all(stream));
        }
    });
    url
}

#[test]
fn report_counts_are_exact() {
    let url = server();
    for (count, percentiles) in [
        (19, &[][..]),
        (101, &["50", "75", "90"]),
        (2001, &["50", "75", "90", "95", "99"]),
    ] {
        let report = run(options(&url, count));
        assert_eq!((report.requests, report.errors), (count, 0));
        assert_eq!(report.statuses, BTreeMap::from([("200".to_owned(), count)]));
        assert_eq!(report.bytes, count * RESPONSE.len() as u64);
        assert_eq!(report.connections, 4);
        let keys: Vec<&str> = report
            .latency_us
            .percentiles
            .iter()
            .map(|(percentile, _)| percentile.as_str())
            .collect();
        assert_eq!(keys, percentiles);
        let in_rows: u64 = report.seconds.iter().map(|row| row.requests).sum();
        assert_eq!(in_rows, count);
    }
}

#[test]
fn rate_and_count_are_kept_across_connections() {
    let mut options = options(&server(), 50);
    options.pace = Pace::rate(NonZeroU64::new(1000).unwrap());
    options.connections = 3;
    let report = run(options);
    assert_eq!((report.requests, report.options.rate), (50, Some(1000)));
}

#[test]
fn missed_rate_is_warning() {
    let mut options = options(&server(), 5000);
    options.pace = Pace::rate(NonZeroU64::new(1_000_000_000).unwrap());
    let report = run(options);
    let missed = "1,000,000,000 requests per second were requested";
    let warned = report.warnings.iter().any(|text| text.starts_with(missed));
    assert!(warned, "{:?}", report.warnings);
}

#[test]
fn unix_socket_target_is_loaded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || respond_to_all(stream));
        }
    });
    let report = run(options(&format!("unix:{}:/path", path.display()), 100));
    assert_eq!((report.requests, report.errors), (100, 0));
}

#[test]
fn refused_target_is_unreachable() {
    // While the port is in use on one address, no other program can bind it on the wildcard address.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let address = format!("127.98.76.54:{port}");
    let running = start(Plan::new(options(&format!("http://{address}/"), 100)).unwrap()).unwrap();
    let Err(Error::Unreachable(sentence)) = running.finish(|_| ()) else {
        panic!("it was reached");
    };
    assert!(sentence.contains(&address), "{sentence}");
    assert!(sentence.contains("Connection refused"), "{sentence}");
}

#[test]
fn stopped_run_awaits_responses_in_flight() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options(&format!("http://{}/", listener.local_addr().unwrap()), 1);
    options.stop.count = None;
    let running = start(Plan::new(options).unwrap()).unwrap();
    let stopper = running.stopper();
    std::thread::spawn(move || {
        // All four connections have one response when their second requests arrive; those are answered after the stop.
        let mut streams: Vec<_> = listener.incoming().take(4).flatten().collect();
        let mut request = [0; 4096];
        for reply in [true, false] {
            for stream in &mut streams {
                assert!(stream.read(&mut request).unwrap() > 0);
                if reply {
                    stream.write_all(RESPONSE).unwrap();
                }
            }
        }
        stopper.stop();
        for mut stream in streams {
            std::thread::spawn(move || {
                stream.write_all(RESPONSE).unwrap();
                respond_to_all(stream);
            });
        }
    });
    let report = running.finish(|_| ()).unwrap();
    // Responses arrive before or after the stop by chance; none is lost.
    let responses = report.requests + report.late;
    assert!(responses >= 8, "{report}");
    assert_eq!(report.unfinished, report.late, "{report}");
}

#[test]
fn run_within_warm_up_measures_nothing() {
    let mut options = options(&server(), 20);
    options.warm_up = Duration::from_secs(3600);
    let report = run(options);
    assert_eq!(
        (report.requests, report.rps, report.measured_s),
        (20, 0.0, 0.0)
    );
    assert_eq!(report.verdict.state, State::Invalid);
    let reason = &report.verdict.reasons[0].what;
    assert_eq!(reason, "nothing was measured");
}

#[test]
fn stopped_run_reports_reason() {
    let mut options = options(&server(), 1);
    options.stop = Stop {
        after: Some(Duration::from_secs(3600)),
        count: None,
    };
    let running = start(Plan::new(options).unwrap()).unwrap();
    running.stopper().stop();
    let report = running.finish(|_| ()).unwrap();
    let ended = |text: &String| text.starts_with("stopped early");
    assert!(report.warnings.iter().any(ended), "{:?}", report.warnings);
}

/// Starts a server that records the peer of each connection and the bytes before its first request; returns its
/// address.
fn noting_server() -> (SocketAddr, Receiver<(SocketAddr, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (notes, noted) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let notes = notes.clone();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                let count = stream.read(&mut bytes).unwrap_or(0);
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                let introduction = text.split("GET ").next().unwrap_or_default();
                let peer = stream.peer_addr().expect("it has sent something");
                let _ = notes.send((peer, introduction.to_owned()));
                if stream.write_all(RESPONSE).is_ok() {
                    respond_to_all(stream);
                }
            });
        }
    });
    (address, noted)
}

#[test]
fn sources_are_used_evenly_across_shards() {
    for io in [Io::Epoll, Io::Auto] {
        let (address, noted) = noting_server();
        for index in 0..2 {
            let mut options = options(&format!("http://{address}/"), 120);
            options.io = io;
            (options.connections, options.shard) = (12, Shard { index, count: 2 });
            options.reach.sources = Sources::parse("127.0.0.2-127.0.0.4,127.1.0.0/30").unwrap();
            options.reach.source_ports = Some(40_000..=50_000);
            let report = run(options);
            assert_eq!((report.requests, report.errors), (60, 0));
        }
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (peer, _) in noted.try_iter() {
            assert!((40_000..=50_000).contains(&peer.port()), "{peer}");
            *counts.entry(peer.ip().to_string()).or_default() += 1;
        }
        let all = [
            "127.0.0.2",
            "127.0.0.3",
            "127.0.0.4",
            "127.1.0.1",
            "127.1.0.2",
        ];
        let each = counts.values().copied();
        assert!(counts.keys().eq(all), "{counts:?}");
        // Twelve connections over five addresses.
        assert!(
            each.clone().all(|count| count == 2 || count == 3),
            "{counts:?}"
        );
        assert_eq!(each.sum::<u64>(), 12);
    }
}

#[test]
fn reconnects_rotate_sources() {
    let (address, noted) = noting_server();
    let mut options = options(&format!("http://{address}/"), 9);
    (options.connections, options.threads) = (1, 1);
    options.requests_per_connection = Some(1);
    options.reach.sources = Sources::parse("127.0.0.2-127.0.0.4").unwrap();
    assert_eq!(run(options).requests, 9);
    let order: Vec<u8> = noted
        .try_iter()
        .map(|(peer, _)| match peer.ip() {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(_) => 0,
        })
        .collect();
    assert_eq!(order, [2, 3, 4, 2, 3, 4, 2, 3, 4]);
}

#[test]
fn missing_sources_and_ports_prevent_run() {
    let (address, _noted) = noting_server();
    let refusal = |change: fn(&mut Options)| {
        let mut options = options(&format!("http://{address}/"), 10);
        change(&mut options);
        match start(Plan::new(options).unwrap()) {
            Err(Error::Invalid(sentence)) => sentence,
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    let strange = refusal(|options| {
        // Reserved for documentation (RFC 5737).
        options.reach.sources = Sources::parse("127.0.0.2,192.0.2.1").unwrap();
    });
    assert!(
        strange.contains("cannot use --source 192.0.2.1"),
        "{strange}"
    );
    assert!(
        strange.contains("ip address add 192.0.2.1 dev lo"),
        "{strange}"
    );
    let family = refusal(|options| options.reach.sources = Sources::parse("::1").unwrap());
    assert!(
        family.contains("no address of the address family"),
        "{family}"
    );
    let few = refusal(|options| {
        options.connections = 200;
        options.reach.source_ports = Some(40_000..=40_099);
    });
    assert!(few.contains("--source with 2 addresses"), "{few}");
}

#[test]
fn connect_to_keeps_host_and_path() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options("http://nobody.invalid:81/path", 1);
    (options.connections, options.threads) = (1, 1);
    options.reach.connect_to =
        Some(TargetAddress::parse(&listener.local_addr().unwrap().to_string()).unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        stream.write_all(RESPONSE).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    });
    assert_eq!(run(options).requests, 1);
    let request = server.join().unwrap();
    assert!(
        request.starts_with("GET /path HTTP/1.1\r\nHost: nobody.invalid:81\r\n"),
        "{request}"
    );
}

#[test]
fn proxy_header_has_connection_addresses() {
    let (address, noted) = noting_server();
    let mut options = options(&format!("http://{address}/"), 40);
    options.requests_per_connection = Some(5);
    options.reach.sources = Sources::parse("127.0.0.2,127.0.0.3").unwrap();
    options.reach.proxy_protocol = Some(ProxyVersion::V1);
    let report = run(options);
    assert_eq!((report.requests, report.errors), (40, 0));
    let noted: Vec<(SocketAddr, String)> = noted.try_iter().collect();
    assert_eq!(noted.len() as u64, report.connections);
    for (peer, introduction) in noted {
        let line = format!(
            "PROXY TCP4 {} 127.0.0.1 {} {}\r\n",
            peer.ip(),
            peer.port(),
            address.port()
        );
        assert_eq!(introduction, line);
    }
}

#[test]
fn snapshot_has_errors_and_verdict() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Closes the connection in order after the request, without a response.
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let mut options = options(&url, 20);
    options.pace = Pace::rate(NonZeroU64::new(1_000_000_000).unwrap());
    let running = start(Plan::new(options).unwrap()).unwrap();
    let mut last = None;
    let report = running
        .finish(|moment| {
            last = Some((moment.errors, moment.errors_by_kind(), moment.verdict()));
        })
        .unwrap();
    let (errors, kinds, verdict) = last.unwrap();
    assert_eq!((errors, report.errors), (20, 20));
    assert_eq!(
        kinds,
        BTreeMap::from([("closed_before_answer".to_owned(), 20)])
    );
    assert_eq!(report.errors_by_kind["closed_before_answer"], 20);
    assert!(verdict.state > State::Valid, "{verdict}");
    assert!(
        !verdict
            .reasons
            .iter()
            .any(|reason| reason.what.contains("add up")),
        "{verdict}"
    );
}
