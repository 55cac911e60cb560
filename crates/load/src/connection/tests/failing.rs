//! Tests of failures and their classification.

use std::cell::Cell;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Address, Claim, Core, Listener, Simulation};

use super::{OK, Outcome, SEEDS, Script, Then, listen, load, play, play_simulated, reply, seeds};
use crate::pace::Pace;
use crate::plan::Options;
use crate::protocol::failure::Failure;

/// Checks that each of ten requests fails as `failure` if its response is `bytes`, followed by `then`.
#[track_caller]
fn fails_as(failure: Failure, bytes: &'static [u8], then: Then) {
    play(
        |options| {
            options.stop.count = Some(10);
            options.connections = 2;
            options.timeout = Duration::from_millis(20);
        },
        move |_, _, _| reply(bytes, then),
        |outcome| {
            assert_eq!(outcome.failures(), [(failure, 10)]);
            let Outcome { record, .. } = outcome;
            assert_eq!((record.responses(), record.tally.requests), (0, 10));
        },
    );
}

#[test]
fn invalid_response_is_a_protocol_error() {
    fails_as(Failure::Protocol, b"SSH-2.0-OpenSSH_9.2\r\n", Then::Stay);
    fails_as(Failure::Protocol, b"\x16\x03\x01\x02\x00", Then::Close);
    fails_as(
        Failure::Protocol,
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        Then::Stay,
    );
    fails_as(
        Failure::Protocol,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        Then::Stay,
    );
    fails_as(
        Failure::Protocol,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n",
        Then::Stay,
    );
}

#[test]
fn truncated_response_is_an_early_close() {
    for bytes in [
        b"HTTP/1.1 200".as_slice(),
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    ] {
        fails_as(Failure::EarlyClose, bytes, Then::Close);
    }
    fails_as(Failure::ClosedBeforeResponse, b"", Then::Close);
}

#[test]
fn stalled_response_times_out() {
    let for_ever = Then::Stall(Duration::from_secs(3600));
    for bytes in [
        b"".as_slice(),
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na",
    ] {
        fails_as(Failure::Timeout, bytes, for_ever);
    }
}

#[test]
fn slow_response_does_not_time_out() {
    play(
        |options| {
            options.timeout = Duration::from_secs(60);
            options.stop.count = Some(2);
        },
        |_, number, _| match number {
            0 => reply(OK, Then::Stall(Duration::from_millis(5))),
            _ => reply(OK, Then::Stay),
        },
        |outcome| outcome.has_responses(2),
    );
}

#[test]
fn unexpected_bytes_are_an_error() {
    play(
        |options| options.stop.count = Some(4),
        |_, _, _| reply(b"HTTP/1.1 204 No Content\r\n\r\nwhat is this", Then::Stay),
        |outcome| {
            // A response may be taken before the bytes after it arrive; then they spoil the next one.
            let record = &outcome.record;
            assert_eq!((record.tally.requests, record.sent), (4, 4));
            let failed = record.tally.requests - record.responses();
            let unasked = record.failures_of(Failure::UnexpectedBytes);
            assert_eq!(record.failures_of(Failure::Protocol), failed);
            assert_eq!(record.tally.errors, failed + unasked);
            assert_eq!(record.tally.unexpected, unasked);
            assert!(record.tally.errors > 0 && unasked <= record.responses());
        },
    );
}

#[test]
fn connection_with_unexpected_bytes_is_not_reused() {
    play(
        |options| {
            options.stop.count = Some(5);
            options.pace = Pace::rate(NonZeroU64::new(50).unwrap());
        },
        |_, _, on_connection| {
            assert_eq!(on_connection, 0, "the connection is used again");
            let twice = [OK, OK].concat();
            reply(&twice, Then::Stay)
        },
        |outcome| {
            let record = &outcome.record;
            assert_eq!((record.responses(), record.sent, outcome.seen), (5, 5, 5));
            let unasked = record.failures_of(Failure::UnexpectedBytes);
            assert!(unasked >= 4, "{unasked}");
            assert_eq!(record.tally.errors, unasked);
            assert_eq!(record.tally.connections, 5);
        },
    );
}

#[test]
fn every_request_is_accounted_for_despite_resets() {
    let script: Script = Rc::new(|_, _, _| reply(OK, Then::Stay));
    let resets = Cell::new(0);
    for seed in seeds(SEEDS) {
        let mut simulation = Simulation::with_seed(seed);
        simulation.reset = 30;
        play_simulated(
            simulation,
            &|options: &mut Options| {
                options.stop.count = Some(200);
                options.connections = 4;
                options.pipeline = 3;
            },
            &script,
            &|outcome| {
                let record = &outcome.record;
                let kinds = [
                    Failure::ResetBeforeResponse,
                    Failure::ClosedBeforeResponse,
                    Failure::Reset,
                    Failure::EarlyClose,
                ];
                let failed: u64 = kinds
                    .map(|failure| record.failures_of(failure))
                    .iter()
                    .sum();
                assert_eq!(record.responses() + failed, 200);
                let unanswered = record.failures_of(Failure::ResetBeforeResponse);
                resets.set(resets.get() + unanswered + record.failures_of(Failure::Reset));
            },
        );
    }
    assert!(resets.get() > 0, "resets happened");
}

#[test]
fn late_listener_is_reached() {
    for seed in seeds(SEEDS) {
        eprintln!("simulated, seed {seed}");
        let core = Core::simulated(Simulation::with_seed(seed));
        let claim = Claim::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let address = claim.address().clone();
        let late = core.clone();
        core.spawn(async move {
            late.sleep(Duration::from_millis(100)).await;
            let listener = Listener::new(&late, &claim).unwrap();
            let script: Script = Rc::new(|_, _, _| reply(OK, Then::Stay));
            listen(late.clone(), listener, script, Rc::default()).await;
        });
        let record = load(&core, &|options| options.stop.count = Some(5), address);
        assert_eq!(record.responses(), 5);
        let refused = record.failures_of(Failure::ConnectRefused);
        assert!((2..10).contains(&refused), "{refused} attempts");
        assert_eq!(record.tally.connections, refused + 1);
    }
}
