//! Tests of failures over HTTP/2: each has a classification and affects only its requests.

use std::time::Duration;

use onrush_http::http2::LocalSettings;
use onrush_http::http2::code::Code;

use super::server::{Answer, Early, Server, play, upload};
use crate::limits::http2::GOAWAY_RETRIES_MAX;
use crate::pace::Pace;
use crate::pace::arrivals::ArrivalPlan;
use crate::protocol::failure::Failure;

#[test]
fn reset_stream_fails_its_request() {
    play(
        |options| {
            options.stop.count = Some(30);
            options.streams = Some(4);
        },
        Server::new(|asked| match asked.number % 3 {
            0 => Answer::Reset(Code::INTERNAL_ERROR),
            _ => Answer::Body(b"ok"),
        }),
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::StreamReset, 10)]);
            assert_eq!(outcome.record.responses(), 20);
            assert_eq!(outcome.record.cancelled, Some(Code::INTERNAL_ERROR));
            assert_eq!(outcome.record.established, 1);
        },
    );
}

#[test]
fn requests_excluded_by_goaway_are_retried() {
    for method in ["GET", "POST"] {
        play(
            |options| {
                options.stop.count = Some(40);
                options.streams = Some(6);
                options.method = method.to_owned();
            },
            Server::new(|asked| match asked.on_connection {
                9 => Answer::LastOne(Code::NO_ERROR),
                _ => Answer::Body(b"ok"),
            }),
            |outcome, _| {
                outcome.has_responses(40);
                assert!(outcome.record.established >= 4);
                // They are sent over other connections, unlike refused streams.
                assert!(outcome.record.resent > 0 && outcome.record.refused == 0);
            },
        );
    }
}

#[test]
fn goaway_error_code_is_reported() {
    play(
        |options| options.stop.count = Some(3),
        Server::new(|_| Answer::Gone(Code::ENHANCE_YOUR_CALM)),
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::GoAway, 3)]);
            assert_eq!(outcome.record.cancelled, Some(Code::ENHANCE_YOUR_CALM));
        },
    );
}

/// SETTINGS, and GOAWAY with this code and last stream 0 (RFC 9113 section 6.8).
const fn goes_away_at_once(code: u8) -> [u8; 26] {
    [
        0, 0, 0, 4, 0, 0, 0, 0, 0, //
        0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, code,
    ]
}

const GOES_AWAY: [u8; 26] = goes_away_at_once(0x0);
const IS_NOT_CALM: [u8; 26] = goes_away_at_once(0xb);

#[test]
fn repeated_goaway_fails_requests() {
    // As many lanes as may open a stream before the settings are known, and more, which wait for a stream.
    for (bytes, code, streams) in [
        (&GOES_AWAY, Code::NO_ERROR, 5),
        (&IS_NOT_CALM, Code::ENHANCE_YOUR_CALM, 5),
        (&GOES_AWAY, Code::NO_ERROR, 300),
        (&IS_NOT_CALM, Code::ENHANCE_YOUR_CALM, 300),
    ] {
        play(
            |options| {
                options.stop.count = Some(2 * streams);
                options.streams = Some(streams);
            },
            Server {
                instead: Some(bytes),
                ..Server::new(|_| Answer::Never)
            },
            |outcome, _| {
                assert_eq!(outcome.failures(), [(Failure::GoAway, 2 * streams)]);
                assert_eq!(outcome.record.cancelled, Some(code));
                let again = u64::from(GOAWAY_RETRIES_MAX - 1);
                assert!(outcome.record.resent <= 2 * streams * again);
                if code != Code::NO_ERROR {
                    assert_eq!(outcome.record.resent, 0);
                }
            },
        );
    }
}

#[test]
fn repeated_goaway_retries_end_at_timeout() {
    play(
        |options| {
            options.stop.count = Some(4);
            options.streams = Some(2);
            // Shorter than the pauses between the connections that a request may be sent over.
            options.timeout = Duration::from_millis(60);
        },
        Server {
            instead: Some(&GOES_AWAY),
            ..Server::new(|_| Answer::Never)
        },
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::Timeout, 4)]);
            assert!(outcome.record.resent > 0);
        },
    );
}

#[test]
fn invalid_response_fails_only_its_request() {
    for (answer, reason) in [
        (Answer::NoStatus, "response without a status"),
        (Answer::LargeHead, "response head too large"),
        (Answer::TooShort, "less data than Content-Length"),
    ] {
        play(
            |options| {
                options.stop.count = Some(20);
                options.streams = Some(4);
            },
            Server::new(move |asked| match asked.number % 4 {
                0 => answer,
                _ => Answer::Body(b"ok"),
            }),
            |outcome, _| {
                assert_eq!(outcome.failures(), [(Failure::Protocol, 5)]);
                assert_eq!(outcome.record.protocol_error, Some(reason));
                assert_eq!(outcome.record.responses(), 15);
                assert_eq!(outcome.record.established, 1);
            },
        );
    }
}

#[test]
fn missing_response_times_out_alone() {
    // With and without other outstanding requests.
    for (size, every) in [(1, 4), (60, 1)] {
        play(
            |options| {
                options.stop.count = Some(60);
                options.streams = Some(5);
                options.timeout = Duration::from_millis(40);
                options.pace = Pace::Open(ArrivalPlan::Bursts {
                    size,
                    every: Duration::from_millis(every),
                });
            },
            Server::new(|asked| match asked.number {
                0 => Answer::Never,
                _ => Answer::Body(b"ok"),
            }),
            |outcome, _| {
                assert_eq!(outcome.failures(), [(Failure::Timeout, 1)]);
                assert_eq!(outcome.record.responses(), 59);
            },
        );
    }
}

#[test]
fn data_after_end_stream_fails_no_other_request() {
    for streams in [1, 4] {
        play(
            |options| {
                options.stop.count = Some(20);
                options.streams = Some(streams);
            },
            Server::new(|asked| match asked.number % 4 {
                0 => Answer::Twice,
                _ => Answer::Body(b"ok"),
            }),
            |outcome, _| {
                let record = &outcome.record;
                assert_eq!(outcome.failures(), [(Failure::UnexpectedBytes, 5)]);
                assert_eq!((record.responses(), record.tally.unexpected), (20, 5));
                assert_eq!(record.established, 1);
            },
        );
    }
}

#[test]
fn data_after_early_response_fails_its_request() {
    play(
        |options| {
            options.stop.count = Some(6);
            options.streams = Some(2);
            upload(options, 200_000);
        },
        Server {
            early: Some(Early::Twice),
            ..Server::new(|_| Answer::Never)
        },
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::Protocol, 6)]);
            assert_eq!(outcome.record.responses(), 0);
            let reason = "frame on a closed stream";
            assert_eq!(outcome.record.protocol_error, Some(reason));
        },
    );
}

#[test]
fn late_response_after_timeout_is_ignored() {
    play(
        |options| {
            options.stop.count = Some(60);
            options.streams = Some(5);
            options.timeout = Duration::from_millis(40);
            options.pace = Pace::Open(ArrivalPlan::Bursts {
                size: 1,
                every: Duration::from_millis(4),
            });
        },
        Server::new(|asked| match asked.number {
            0 => Answer::Late,
            _ => Answer::Body(b"ok"),
        }),
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::Timeout, 1)]);
            assert_eq!(outcome.record.responses(), 59);
            assert_eq!(outcome.record.established, 1);
        },
    );
}

#[test]
fn body_without_window_times_out() {
    play(
        |options| {
            options.timeout = Duration::from_millis(40);
            upload(options, 1000);
        },
        Server {
            settings: LocalSettings {
                stream_window: 0,
                ..LocalSettings::DEFAULT
            },
            ..Server::new(|_| Answer::Never)
        },
        |outcome, _| assert_eq!(outcome.failures(), [(Failure::Timeout, 1)]),
    );
}

#[test]
fn zero_allowed_streams_time_out() {
    play(
        |options| {
            options.stop.count = Some(3);
            options.streams = Some(2);
            options.timeout = Duration::from_millis(40);
        },
        Server {
            settings: LocalSettings {
                concurrent_streams_max: 0,
                ..LocalSettings::DEFAULT
            },
            ..Server::new(|_| Answer::Never)
        },
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::Timeout, 3)]);
            assert_eq!(outcome.seen, 0);
        },
    );
}

#[test]
fn other_protocols_are_reported() {
    let http1 = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    for (bytes, failure, reason) in [
        (
            &http1[..],
            Failure::Protocol,
            Some("the server speaks HTTP/1"),
        ),
        (
            b"+OK ready to talk\r\n",
            Failure::Protocol,
            Some("the first frame is not SETTINGS"),
        ),
        (b"", Failure::ClosedBeforeResponse, None),
    ] {
        play(
            |options| options.stop.count = Some(2),
            Server {
                instead: Some(bytes),
                ..Server::new(|_| Answer::Never)
            },
            |outcome, _| {
                assert_eq!(outcome.failures(), [(failure, 2)]);
                let said = outcome.record.protocol_error.unwrap_or_default();
                assert!(said.starts_with(reason.unwrap_or_default()), "{said}");
            },
        );
    }
}
