//! Runs of test packets over real sockets on the loopback: against an echo, a sink, and faulty peers.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use onrush_load::Io;
use onrush_load::error::Error;
use onrush_load::pace::Pace;
use onrush_load::packets::departure::Departure;
use onrush_load::packets::report::Report;
use onrush_load::packets::size::Sizes;
use onrush_load::packets::{Options, Plan, Way, run};
use onrush_load::stop::Stop;
use onrush_load::target::Target;
use onrush_load::threshold::{Fate, Threshold};
use onrush_load::verdict::reason::State;
use onrush_packet::header::{HEADER_BYTES, Header};
use onrush_packet::report::{Report as FarReport, Role, read_question};
use onrush_packet::tally::Counter;

/// Peer of a run; it stops when dropped.
struct FarEnd {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FarEnd {
    /// Starts a socket that calls `take` with each datagram and its number.
    fn start(take: impl Fn(u64, &UdpSocket, &[u8], SocketAddr) + Send + 'static) -> FarEnd {
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
        FarEnd {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    /// Starts a sink that counts the datagrams of each flow and reports the counts on request.
    fn sink() -> FarEnd {
        let counter = std::sync::Mutex::new(std::collections::BTreeMap::<_, Counter>::new());
        FarEnd::start(move |_, socket, datagram, from| {
            let mut flows = counter.lock().unwrap();
            if let Some((flow, question)) = read_question(datagram) {
                let tally = flows.get(&flow).map(Counter::tally).unwrap_or_default();
                let report = FarReport {
                    flow,
                    question,
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
                    .arrive(&header, datagram.len(), 0);
            }
        })
    }

    /// Starts an echo that returns all datagrams except those for whose number `loses` is true.
    fn echo(loses: impl Fn(u64) -> bool + Send + 'static) -> FarEnd {
        FarEnd::start(move |number, socket, datagram, from| {
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

impl Drop for FarEnd {
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
fn steadily(options: Options) -> Options {
    Options {
        pace: Pace::rate(std::num::NonZeroU64::new(10_000).unwrap()),
        ..options
    }
}

#[test]
fn an_echo_returns_each_datagram_once() {
    for io in drivers() {
        let echo = FarEnd::echo(|_| false);
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
        assert_eq!(report.way, "round_trip");
        assert_eq!(report.round_trips().count(), 1000);
        assert_eq!(report.losses.as_ref().unwrap().lost, 0);
        assert_eq!(
            (report.late, report.wrong_length, report.foreign),
            (0, 0, 0)
        );
    }
}

#[test]
fn a_sink_says_what_it_received_of_all_sockets() {
    for io in drivers() {
        let sink = FarEnd::sink();
        let options = Options {
            io,
            flows: 3,
            threads: 2,
            ..steadily(sink.options())
        };
        let report = ran(options).unwrap();
        assert_eq!(report.way, "one_way");
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
fn every_way_to_leave_sends_what_was_asked_for() {
    for departure in Departure::OF_SOCKETS {
        let sink = FarEnd::sink();
        let options = Options {
            departure,
            sizes: Sizes::one(100),
            ..steadily(sink.options())
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
fn what_is_lost_is_counted_and_does_not_hold_the_others_up() {
    // Number 0 is the inquiry before the run.
    let echo = FarEnd::echo(|number| number > 0 && number % 10 == 0);
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
fn duplicates_cut_and_foreign_datagrams_are_told_apart() {
    let echo = FarEnd::start(|number, socket, datagram, from| {
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
fn an_echo_that_cuts_is_seen() {
    let echo = FarEnd::start(|number, socket, datagram, from| {
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
fn sizes_of_a_range_come_back_as_they_were() {
    let echo = FarEnd::echo(|_| false);
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
fn nobody_there_is_unreachable() {
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
fn somebody_who_says_nothing_must_be_described() {
    let silent = FarEnd::start(|_, _, _, _| ());
    let error = ran(silent.options()).unwrap_err();
    assert!(
        error.to_string().contains("pass --one-way or --round-trip"),
        "{error}"
    );
    let one_way = Options {
        way: Some(Way::OneWay),
        ..silent.options()
    };
    let report = ran(one_way).unwrap();
    assert_eq!((report.sent, report.received), (1000, None));
    assert_eq!(report.verdict.state, State::Suspect, "{report}");
    for (condition, fate) in [
        ("loss > 0", Fate::Undecided),
        ("errors > 1%", Fate::Undecided),
        ("rps < 1", Fate::Undecided),
        ("p50 > 1s", Fate::Undecided),
        ("missed > 0", Fate::Passed),
    ] {
        let threshold = Threshold::parse(condition).unwrap();
        assert_eq!(report.judge(&threshold).fate, fate, "{condition}");
    }
}

#[test]
fn the_wrong_kind_of_far_end_is_named() {
    let sink = FarEnd::sink();
    let error = ran(Options {
        way: Some(Way::RoundTrip),
        ..sink.options()
    })
    .unwrap_err();
    assert!(error.to_string().contains("is a sink"), "{error}");
    let echo = FarEnd::echo(|_| false);
    let error = ran(Options {
        way: Some(Way::OneWay),
        ..echo.options()
    })
    .unwrap_err();
    assert!(error.to_string().contains("is an echo"), "{error}");
}

#[test]
fn a_far_end_that_falls_silent_does_not_hold_the_run_up() {
    let echo = FarEnd::echo(|number| number > 500);
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
fn a_rate_nobody_can_send_is_said() {
    let sink = FarEnd::sink();
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
