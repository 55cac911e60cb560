//! Tests of exchanges over HTTP/2 with a scripted server, on every driver and on simulated cores.

mod calls;
mod failing;
mod server;

use std::time::Duration;

use onrush_http::http2::LocalSettings;
use onrush_http::http2::code::Code;

use crate::pace::Pace;
use crate::pace::arrivals::ArrivalPlan;
use crate::requests::Request;
use server::{Answer, Early, Server, play, upload};

#[test]
fn request_count_is_exact_across_streams() {
    for (count, connections, streams) in [(1, 1, 1), (100, 1, 10), (100, 3, 7), (5, 2, 8)] {
        play(
            |options| {
                options.stop.count = Some(count);
                options.connections = connections;
                options.streams = Some(streams);
            },
            Server::new(|_| Answer::Body(b"ok")),
            |outcome, most_open| {
                outcome.has_responses(count);
                assert_eq!(outcome.seen, count);
                assert!(outcome.record.established <= connections as u64);
                assert!(u64::from(most_open) <= streams);
                assert_eq!(outcome.record.resent, 0);
            },
        );
    }
}

#[test]
fn concurrent_requests_fill_all_streams() {
    play(
        |options| {
            options.stop.count = Some(40);
            options.streams = Some(8);
        },
        // With fewer concurrent requests it would wait forever.
        Server::new(|_| Answer::Together(8)),
        |outcome, most_open| {
            outcome.has_responses(40);
            assert_eq!(most_open, 8);
        },
    );
}

#[test]
fn requests_wait_for_free_streams() {
    play(
        |options| {
            options.stop.count = Some(60);
            options.streams = Some(9);
        },
        Server {
            settings: LocalSettings {
                concurrent_streams_max: 2,
                ..LocalSettings::DEFAULT
            },
            ..Server::new(|_| Answer::Body(b"ok"))
        },
        |outcome, most_open| {
            outcome.has_responses(60);
            assert!(most_open <= 2, "{most_open}");
            assert_eq!(outcome.record.established, 1);
        },
    );
}

#[test]
fn refused_streams_before_settings_are_retried() {
    play(
        |options| {
            options.stop.count = Some(60);
            options.streams = Some(9);
            // More than one frame, so it is sent after all heads and the streams are open at the same time.
            upload(options, 20_000);
        },
        Server {
            settings: LocalSettings {
                concurrent_streams_max: 2,
                ..LocalSettings::DEFAULT
            },
            settles_late: true,
            ..Server::new(|_| Answer::Body(b"ok"))
        },
        |outcome, most_open| {
            outcome.has_responses(60);
            assert!(most_open <= 2, "{most_open}");
            let record = &outcome.record;
            assert!(record.refused > 0);
            assert_eq!(record.resent, record.refused);
            assert_eq!(record.established, 1);
        },
    );
}

#[test]
fn open_loop_bursts_complete_on_all_streams() {
    for streams in [1, 6] {
        play(
            |options| {
                options.stop.count = Some(30);
                options.streams = Some(streams);
                options.pace = Pace::Open(ArrivalPlan::Bursts {
                    size: 3,
                    every: Duration::from_millis(3),
                });
            },
            Server::new(|_| Answer::Body(b"ok")),
            |outcome, _| outcome.has_responses(30),
        );
    }
}

#[test]
fn requests_per_connection_are_limited() {
    play(
        |options| {
            options.stop.count = Some(20);
            options.streams = Some(4);
            options.requests_per_connection = Some(3);
        },
        Server::new(|_| Answer::Body(b"ok")),
        |outcome, most_open| {
            outcome.has_responses(20);
            assert_eq!(outcome.record.established, 7);
            assert!(most_open <= 3);
        },
    );
}

#[test]
fn all_http2_response_forms_are_read() {
    for (method, answer) in [
        ("GET", Answer::Head),
        ("HEAD", Answer::Length(100)),
        ("GET", Answer::Interim),
        ("GET", Answer::Trailers),
        ("GET", Answer::Large(3_000_000)),
    ] {
        play(
            |options| {
                options.stop.count = Some(12);
                options.streams = Some(5);
                options.method = method.to_owned();
            },
            Server::new(move |_| answer),
            |outcome, _| outcome.has_responses(12),
        );
    }
}

#[test]
fn bodies_are_sent_within_any_window() {
    for (bytes, window) in [(5, 65_535), (200_000, 65_535), (3_000, 700), (3_000, 20)] {
        play(
            |options| {
                options.stop.count = Some(6);
                options.streams = Some(3);
                upload(options, bytes);
            },
            Server {
                settings: LocalSettings {
                    stream_window: window,
                    ..LocalSettings::DEFAULT
                },
                ..Server::new(move |asked| {
                    assert_eq!((asked.method, asked.body), ("POST", bytes));
                    Answer::Body(b"ok")
                })
            },
            |outcome, _| outcome.has_responses(6),
        );
    }
}

#[test]
fn early_response_completes_request() {
    for early in [Early::Response, Early::Reset(Code::NO_ERROR)] {
        play(
            |options| {
                options.stop.count = Some(6);
                options.streams = Some(2);
                upload(options, 200_000);
            },
            Server {
                early: Some(early),
                ..Server::new(|_| Answer::Never)
            },
            |outcome, _| {
                outcome.has_responses(6);
                assert_eq!((outcome.seen, outcome.record.established), (6, 1));
            },
        );
    }
}

#[test]
fn expected_body_is_found_across_frames() {
    for (expected, failures) in [("all of it", 0), ("none of it", 10)] {
        play(
            |options| {
                options.stop.count = Some(10);
                options.streams = Some(4);
                let mut request = Request::of(&options.target);
                request.expect.body = Some(expected.to_owned());
                options.requests.requests = vec![request];
            },
            Server::new(|_| Answer::Pieces(&[b"this is a", b"ll o", b"f it, in pieces"])),
            |outcome, _| {
                assert_eq!(outcome.record.responses(), 10);
                assert_eq!(outcome.record.tally.errors, failures);
            },
        );
    }
}
