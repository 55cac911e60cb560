//! Tests of gRPC: outcomes are the codes, and invalid responses have a reason.

use onrush_http::http2::LocalSettings;
use onrush_http::http2::code::Code;

use super::server::{Answer, Server, play};
use crate::pace::target::Target;
use crate::plan::Options;
use crate::protocol::failure::Failure;
use crate::requests::{Body, Expect, Request, Statuses};

const HEAD: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc")];
const MESSAGE: &[u8] = b"\0\0\0\0\x02ok";
const FINE: Answer = Answer::Fields(HEAD, Some((&[MESSAGE], &[("grpc-status", "0")])));

fn call(options: &mut Options) {
    options.target = Target::parse("grpc://a/shop.Shop/Buy").unwrap();
    options.stop.count = Some(12);
    options.streams = Some(3);
}

/// Checks the outcome of twelve calls with this response.
#[track_caller]
fn said(answer: Answer, expected: &str) {
    play(call, Server::new(move |_| answer), |outcome, _| {
        outcome.has_responses(12);
        let said: Vec<(String, u64)> = outcome.record.outcome_counts().collect();
        assert_eq!(said, [(expected.to_owned(), 12)]);
        let refusals = if expected == "OK" { 0 } else { 12 };
        assert_eq!(outcome.record.refusals(), refusals);
    });
}

/// Gives every second call this response: these fail with a reason that contains `part`, the others succeed.
#[track_caller]
fn refused(answer: Answer, part: &str) {
    let script = move |number: u64| {
        if number.is_multiple_of(2) {
            FINE
        } else {
            answer
        }
    };
    play(
        call,
        Server::new(move |asked| script(asked.number)),
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::Protocol, 6)], "{part}");
            assert_eq!(outcome.record.responses(), 6, "{part}");
            let reason = outcome.record.protocol_error.expect("there is a reason");
            assert!(reason.contains(part), "{part}: {reason}");
            assert_eq!(outcome.record.established, 1, "{part}");
        },
    );
}

#[test]
fn grpc_status_is_read_from_trailers_or_head() {
    said(FINE, "OK");
    said(
        Answer::Fields(
            &[
                (":status", "200"),
                ("content-type", "application/grpc+proto"),
                ("grpc-encoding", "identity"),
            ],
            Some((
                &[b"\0\0", b"\0\0", b"", b"\x02o", b"k"],
                &[("grpc-message", ""), ("grpc-status", "0")],
            )),
        ),
        "OK",
    );
    said(
        Answer::Fields(
            &[
                (":status", "200"),
                ("content-type", "application/grpc"),
                ("grpc-status", "14"),
            ],
            None,
        ),
        "UNAVAILABLE",
    );
    // The message before the code does not matter.
    for pieces in [&[][..], &[MESSAGE], &[b"\0\0\0\0\x09"]] {
        said(
            Answer::Fields(HEAD, Some((pieces, &[("grpc-status", "8")]))),
            "RESOURCE_EXHAUSTED",
        );
    }
}

#[test]
fn non_grpc_response_counts_by_http_status() {
    const HTML: &[(&str, &str)] = &[(":status", "503"), ("content-type", "text/html")];
    said(Answer::Fields(HTML, None), "HTTP 503");
    said(Answer::Fields(HTML, Some((&[b"<html>"], &[]))), "HTTP 503");
    const CODED: &[(&str, &str)] = &[
        (":status", "404"),
        ("content-type", "application/grpc"),
        ("grpc-status", "0"),
    ];
    said(Answer::Fields(CODED, None), "HTTP 404");
}

#[test]
fn invalid_grpc_responses_are_refused() {
    const OK: &[(&str, &str)] = &[("grpc-status", "0")];
    const HTML: &[(&str, &str)] = &[(":status", "200"), ("content-type", "text/html")];
    const TWICE: &[(&str, &str)] = &[("grpc-status", "0"), ("grpc-status", "14")];
    const TWICE_TURNED: &[(&str, &str)] = &[("grpc-status", "14"), ("grpc-status", "0")];
    const TWICE_ALIKE: &[(&str, &str)] = &[("grpc-status", "0"), ("grpc-status", "0")];
    const CODES: &[(&str, &str)] = &[
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", "14"),
        ("grpc-status", "0"),
    ];
    const UNTYPED: &[(&str, &str)] = &[(":status", "200")];
    const GZIP: &[(&str, &str)] = &[
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-encoding", "gzip"),
    ];
    const WEB: &[(&str, &str)] = &[(":status", "200"), ("content-type", "application/grpc-web")];
    for (answer, part) in [
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], &[]))),
            "without grpc-status",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], &[("x", "y")]))),
            "without grpc-status",
        ),
        (Answer::Fields(HEAD, None), "without grpc-status"),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], &[("grpc-status", "17")]))),
            "from 0 to 16",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], &[("grpc-status", "OK")]))),
            "from 0 to 16",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], TWICE))),
            "more than one grpc-status",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], TWICE_ALIKE))),
            "more than one grpc-status",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE], TWICE_TURNED))),
            "more than one grpc-status",
        ),
        (Answer::Fields(CODES, None), "more than one grpc-status"),
        (Answer::Fields(HTML, Some((&[MESSAGE], OK))), "content-type"),
        (
            Answer::Fields(UNTYPED, Some((&[MESSAGE], OK))),
            "content-type",
        ),
        (Answer::Fields(WEB, Some((&[MESSAGE], OK))), "content-type"),
        (
            Answer::Fields(GZIP, Some((&[MESSAGE], OK))),
            "grpc-encoding",
        ),
        (
            Answer::Fields(HEAD, Some((&[], OK))),
            "the message is missing",
        ),
        (
            Answer::Fields(HEAD, Some((&[b"\0\0\0"], OK))),
            "within the prefix",
        ),
        (
            Answer::Fields(HEAD, Some((&[b"\0\0\0\0\x03ok"], OK))),
            "shorter than its length",
        ),
        (
            Answer::Fields(HEAD, Some((&[b"\x01\0\0\0\x02ok"], OK))),
            "a compressed message",
        ),
        (
            Answer::Fields(HEAD, Some((&[MESSAGE, MESSAGE], OK))),
            "more than one message",
        ),
        (Answer::Body(b"ok"), "content-type"),
    ] {
        refused(answer, part);
    }
}

#[test]
fn reset_grpc_call_is_a_failure() {
    play(
        call,
        Server::new(|asked| match asked.number % 3 {
            0 => Answer::Reset(Code::CANCEL),
            _ => FINE,
        }),
        |outcome, _| {
            assert_eq!(outcome.failures(), [(Failure::StreamReset, 4)]);
            assert_eq!(outcome.record.cancelled, Some(Code::CANCEL));
        },
    );
}

#[test]
fn calls_excluded_by_goaway_are_retried() {
    play(
        call,
        Server::new(|asked| match asked.on_connection {
            5 => Answer::Gone(Code::NO_ERROR),
            _ => FINE,
        }),
        |outcome, _| {
            assert!(outcome.record.established >= 2);
            assert_eq!(
                outcome.record.outcome_counts().next(),
                Some(("OK".to_owned(), outcome.record.responses()))
            );
        },
    );
}

#[test]
fn large_grpc_message_respects_flow_control() {
    play(
        |options| {
            call(options);
            let request = Request {
                body: Body::Bytes(vec![7; 100_000].into()),
                ..Request::of(&options.target)
            };
            options.requests.requests = vec![request];
        },
        Server {
            settings: LocalSettings {
                stream_window: 20_000,
                ..LocalSettings::DEFAULT
            },
            ..Server::new(|asked| {
                assert_eq!((asked.method, asked.body), ("POST", 100_005));
                FINE
            })
        },
        |outcome, _| outcome.has_responses(12),
    );
}

#[test]
fn unexpected_grpc_status_is_an_error() {
    play(
        |options| {
            call(options);
            let statuses = vec![Statuses::parse("OK").unwrap()];
            let expect = Expect {
                statuses,
                body: Some("ok".to_owned()),
            };
            options.requests.requests = vec![Request {
                expect,
                ..Request::of(&options.target)
            }];
        },
        Server::new(|asked| match asked.number {
            0..3 => Answer::Fields(HEAD, Some((&[], &[("grpc-status", "5")]))),
            3 => Answer::Fields(HEAD, Some((&[b"\0\0\0\0\x01x"], &[("grpc-status", "0")]))),
            _ => FINE,
        }),
        |outcome, _| {
            let failures = [(Failure::UnexpectedStatus, 3), (Failure::UnexpectedBody, 1)];
            assert_eq!(outcome.failures(), failures);
            assert_eq!(outcome.record.responses(), 12);
        },
    );
}
