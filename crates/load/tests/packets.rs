//! Runs of test packets over real sockets on the loopback: against an echo, a sink, and faulty peers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush_load::Io;
use onrush_load::error::Error;
use onrush_load::pace::Pace;
use onrush_load::packets::departure::SendMode;
use onrush_load::packets::report::Report;
use onrush_load::packets::size::Sizes;
use onrush_load::packets::{Direction, Options, Plan, run};
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_load::threshold::{Threshold, ThresholdOutcome};
use onrush_load::verdict::reason::State;
use onrush_packet::header::{HEADER_BYTES, Header};
use onrush_packet::report::{Report as FarReport, Role, read_report_request};
use onrush_packet::tally::Counter;

/// Peer of a run; it stops when dropped.
struct TestPeer {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TestPeer {
    /// Starts a socket that calls `take` with each datagram and its number.
    fn start(take: impl Fn(u64, &UdpSocket, &[u8], SocketAddr) + Send + 'static) -> TestPeer {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            let mut number = 0;
            while !theirs.load(Ordering::Relaxed) {
                if let Ok((count, from)) = socket.recv_from(&mut bytes) {
                    take(number, &socket, &bytes[..count], from);
                    number += 1;
                }
            }
        });
        TestPeer {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    /// Starts a sink that counts the datagrams of each flow and reports the counts on request.
    fn sink() -> TestPeer {
        let counter = std::sync::Mutex::new(std::collections::BTreeMap::<_, Counter>::new());
        TestPeer::start(move |_, socket, datagram, from| {
            let mut flows = counter.lock().unwrap();
            if let Some((flow, question)) = read_report_request(datagram) {
                let tally = flows.get(&flow).map(Counter::tally).unwrap_or_default();
                let report = FarReport {
                    flow,
                    report_request: question,
                    tally,
                    dropped: 0,
                    cpu: 0,
                    core: 0,
                    role: Role::Sink,
                };
                socket.send_to(&report.bytes(), from).unwrap();
            } else if let Some(header) = Header::read(datagram) {
                flows
                    .entry(header.flow)
                    .or_default()
                    .record(&header, datagram.len(), 0);
            }
        })
    }

    /// Starts an echo that returns all datagrams except those for whose number `loses` is true.
    fn echo(loses: impl Fn(u64) -> bool + Send + 'static) -> TestPeer {
        TestPeer::start(move |number, socket, datagram, from| {
            if !loses(number) {
                socket.send_to(datagram, from).unwrap();
            }
        })
    }

    fn options(&self) -> Options {
        let target = Target::parse(&format!("udp://{}", self.address)).unwrap();
        let stop = Stop {
            after: None,
            count: Some(1000),
        };
        Options {
            stop,
            timeout: Duration::from_millis(300),
            ..Options::new(target)
        }
    }
}

impl Drop for TestPeer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn ran(options: Options) -> Result<Report, Error> {
    run::start(Plan::new(options)?)?.finish(|_| ())
}

fn drivers() -> Vec<Io> {
    let drivers = [Io::Epoll, Io::IoUring];
    drivers
        .into_iter()
        .filter(|io| onrush_engine::choose(*io).is_ok())
        .collect()
}

/// Sets a rate that the loopback sustains.
fn at_sustainable_rate(options: Options) -> Options {
    Options {
        pace: Pace::rate(std::num::NonZeroU64::new(10_000).unwrap()),
        ..options
    }
}

#[test]
fn echo_returns_each_datagram_once() {
    for io in drivers() {
        let echo = TestPeer::echo(|_| false);
        let report = ran(Options {
            io,
            depth: 4,
            ..echo.options()
        })
        .unwrap();
        assert_eq!(
            (report.sent, report.received),
            (1000, Some(1000)),
            "{report}"
        );
        assert_eq!(report.direction, "round_trip");
        assert_eq!(report.round_trips().count(), 1000);
        assert_eq!(report.losses.as_ref().unwrap().lost, 0);
        assert_eq!(
            (report.late, report.wrong_length, report.foreign),
            (0, 0, 0)
        );
    }
}

#[test]
fn sink_report_covers_all_sockets() {
    for io in drivers() {
        let sink = TestPeer::sink();
        let options = Options {
            io,
            flows: 3,
            threads: 2,
            ..at_sustainable_rate(sink.options())
        };
        let report = ran(options).unwrap();
        assert_eq!(report.direction, "one_way");
        assert_eq!(
            (report.sent, report.received),
            (1000, Some(1000)),
            "{report}"
        );
        let losses = report.losses.as_ref().unwrap();
        assert_eq!((losses.lost, losses.unaccounted), (0, 0), "{report}");
    }
}

#[test]
fn every_send_mode_sends_all_datagrams() {
    for departure in SendMode::SOCKET_MODES {
        let sink = TestPeer::sink();
        let options = Options {
            departure,
            sizes: Sizes::one(100),
            ..at_sustainable_rate(sink.options())
        };
        let report = ran(options).unwrap();
        assert_eq!(
            (report.sent, report.received),
            (1000, Some(1000)),
            "{departure}: {report}"
        );
        assert_eq!(report.sent_bytes, 100_000);
    }
}

#[test]
fn lost_datagrams_are_counted() {
    // Number 0 is the inquiry before the run.
    let echo = TestPeer::echo(|number| number > 0 && number % 10 == 0);
    let report = ran(Options {
        depth: 100,
        ..echo.options()
    })
    .unwrap();
    let losses = report.losses.as_ref().unwrap();
    assert_eq!((report.sent, losses.lost), (1000, 100), "{report}");
    assert_eq!(report.received, Some(900));
    assert_eq!(report.sent, report.received.unwrap() + losses.lost);
}

#[test]
fn duplicate_and_foreign_datagrams_are_counted() {
    let echo = TestPeer::start(|number, socket, datagram, from| {
        socket.send_to(datagram, from).unwrap();
        match number {
            10 => drop(socket.send_to(datagram, from).unwrap()),
            20 => drop(socket.send_to(b"what is this", from).unwrap()),
            30 => {
                let mut other = datagram.to_vec();
                // Part of the run's identifier.
                other[4] ^= 1;
                socket.send_to(&other, from).unwrap();
            }
            _ => {}
        }
    });
    let report = ran(echo.options()).unwrap();
    assert_eq!(report.received, Some(1000), "{report}");
    assert_eq!((report.duplicated, report.foreign), (Some(1), 2));
    assert_eq!(report.verdict.state, State::Suspect);
}

#[test]
fn truncating_echo_is_detected() {
    let echo = TestPeer::start(|number, socket, datagram, from| {
        let cut = if number == 5 {
            HEADER_BYTES
        } else {
            datagram.len()
        };
        socket.send_to(&datagram[..cut], from).unwrap();
    });
    let report = ran(echo.options()).unwrap();
    assert_eq!((report.wrong_length, report.received), (1, Some(1000)));
}

#[test]
fn sizes_of_range_are_echoed() {
    let echo = TestPeer::echo(|_| false);
    for sizes in ["imix", "18-1400"] {
        let sizes = Sizes::parse(sizes).unwrap();
        let report = ran(Options {
            sizes,
            ..echo.options()
        })
        .unwrap();
        assert_eq!(
            (report.received, report.wrong_length),
            (Some(1000), 0),
            "{report}"
        );
    }
}

#[test]
fn closed_udp_port_is_unreachable() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let target = Target::parse(&format!("udp://{address}")).unwrap();
    let error = ran(Options::new(target)).unwrap_err();
    assert!(
        matches!(&error, Error::Unreachable(why) if why.contains("refused the UDP datagrams")),
        "{error}"
    );
}

#[test]
fn unresponsive_peer_needs_option() {
    let silent = TestPeer::start(|_, _, _, _| ());
    let error = ran(silent.options()).unwrap_err();
    assert!(
        error.to_string().contains("pass --one-way or --round-trip"),
        "{error}"
    );
    let one_way = Options {
        direction: Some(Direction::OneWay),
        ..silent.options()
    };
    let report = ran(one_way).unwrap();
    assert_eq!((report.sent, report.received), (1000, None));
    assert_eq!(report.verdict.state, State::Suspect, "{report}");
    for (condition, fate) in [
        ("loss > 0", ThresholdOutcome::Undecided),
        ("errors > 1%", ThresholdOutcome::Undecided),
        ("rps < 1", ThresholdOutcome::Undecided),
        ("p50 > 1s", ThresholdOutcome::Undecided),
        ("missed > 0", ThresholdOutcome::Passed),
    ] {
        let threshold = Threshold::parse(condition).unwrap();
        assert_eq!(report.judge(&threshold).fate, fate, "{condition}");
    }
}

#[test]
fn echo_and_sink_mismatch_is_reported() {
    let sink = TestPeer::sink();
    let error = ran(Options {
        direction: Some(Direction::RoundTrip),
        ..sink.options()
    })
    .unwrap_err();
    assert!(error.to_string().contains("is a sink"), "{error}");
    let echo = TestPeer::echo(|_| false);
    let error = ran(Options {
        direction: Some(Direction::OneWay),
        ..echo.options()
    })
    .unwrap_err();
    assert!(error.to_string().contains("is an echo"), "{error}");
}

#[test]
fn peer_silent_mid_run_does_not_block() {
    let echo = TestPeer::echo(|number| number > 500);
    let after = Some(Duration::from_millis(700));
    let stop = Stop { after, count: None };
    let report = ran(Options {
        stop,
        ..echo.options()
    })
    .unwrap();
    assert_eq!(report.received, Some(500), "{report}");
    assert!(report.losses.unwrap().lost > 0);
}

#[test]
fn impossible_rate_is_invalid() {
    let sink = TestPeer::sink();
    let stop = Stop {
        after: Some(Duration::from_millis(300)),
        count: None,
    };
    let pace = Pace::rate(std::num::NonZeroU64::new(500_000_000).unwrap());
    let report = ran(Options {
        stop,
        pace,
        ..sink.options()
    })
    .unwrap();
    assert_eq!(report.verdict.state, State::Invalid, "{report}");
    // All due datagrams were sent or skipped, except in the last moment.
    let due = report.sent + report.skipped;
    assert!((140_000_000..=150_100_000).contains(&due), "{due}");
}
