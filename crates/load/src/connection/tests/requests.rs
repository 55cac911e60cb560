//! Tests of mixes, bodies, variables, cookies and unexpected responses.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{OK, Outcome, Reply, Then, play, reply};
use crate::limits::BATCH_BYTES_MAX;
use crate::pace::Pace;
use crate::pace::arrivals::ArrivalPlan;
use crate::pace::target::Target;
use crate::plan::Options;
use crate::protocol::failure::Failure;
use crate::requests::{Body, Expect, Order, Request, RequestOptions, Statuses};

fn request(method: &str, path: &str) -> Request {
    let target = Target::parse("http://server/").unwrap();
    Request {
        method: method.to_owned(),
        path: path.to_owned(),
        ..Request::of(&target)
    }
}

fn in_turn(requests: Vec<Request>) -> RequestOptions {
    RequestOptions {
        requests,
        order: Order::RoundRobin,
        ..RequestOptions::default()
    }
}

/// Runs with a server that responds as `respond` decides from the request line, and calls `check` with the number of
/// times that it received each line.
#[track_caller]
fn lines(
    change: impl Fn(&mut Options),
    respond: impl Fn(&str, u64) -> Reply + 'static,
    check: impl Fn(&Outcome, &BTreeMap<String, u64>),
) {
    let got: Rc<RefCell<BTreeMap<String, u64>>> = Rc::default();
    let seen = Rc::clone(&got);
    play(
        change,
        move |head, _, on_connection| {
            let line = head.split(" HTTP/").next().unwrap();
            *seen.borrow_mut().entry(line.to_owned()).or_default() += 1;
            respond(line, on_connection)
        },
        |outcome| check(outcome, &std::mem::take(&mut *got.borrow_mut())),
    );
}

#[test]
fn mixed_requests_have_separate_figures() {
    for pipeline in [1, 4] {
        lines(
            |options| {
                options.stop.count = Some(30);
                options.connections = 2;
                options.pipeline = pipeline;
                let posted = Request {
                    body: Body::Text("{{counter}}".to_owned()),
                    ..request("POST", "/b")
                };
                options.requests =
                    in_turn(vec![request("GET", "/a"), request("HEAD", "/a"), posted]);
            },
            |line, _| match line {
                // A response to HEAD has no body (RFC 9110 section 9.3.2).
                "HEAD /a" => reply(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", Then::Stay),
                "POST /b" => reply(
                    b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
                    Then::Stay,
                ),
                _ => reply(OK, Then::Stay),
            },
            |outcome, got| {
                outcome.has_responses(30);
                if pipeline == 1 {
                    assert!(got.values().all(|&count| count == 10), "{got:?}");
                }
                let kinds: Vec<u64> = outcome
                    .record
                    .kinds
                    .iter()
                    .map(|kind| kind.responses)
                    .collect();
                let lines = ["GET /a", "HEAD /a", "POST /b"];
                assert_eq!(kinds, lines.map(|line| got[line]));
                for kind in &outcome.record.kinds {
                    assert_eq!(kind.response.count(), kind.responses);
                }
            },
        );
    }
}

#[test]
fn counter_values_are_unique_across_reconnects() {
    lines(
        |options| {
            options.stop.count = Some(40);
            options.connections = 3;
            options.requests = in_turn(vec![request("GET", "/{{counter}}")]);
        },
        |_, on_connection| {
            reply(
                OK,
                if on_connection == 2 {
                    Then::Close
                } else {
                    Then::Stay
                },
            )
        },
        |outcome, got| {
            // On a simulated network, a request that crosses a close fails, since it is unknown whether it was read.
            let crossed = outcome.record.failures_of(Failure::ClosedBeforeResponse);
            assert_eq!(outcome.record.responses() + crossed, 40);
            assert_eq!(got.len() as u64, outcome.record.responses());
            assert!(got.values().all(|&count| count == 1), "{got:?}");
            let numbers = got
                .keys()
                .map(|line| line.trim_start_matches("GET /").parse::<u64>().unwrap());
            assert!(numbers.into_iter().all(|number| number < 40));
        },
    );
}

#[test]
fn cookies_belong_to_connection() {
    play(
        |options| {
            options.stop.count = Some(20);
            options.connections = 2;
            options.requests.cookies = true;
        },
        |head, number, _| match head.lines().find_map(|line| line.strip_prefix("Cookie: ")) {
            None => {
                let cookie = format!(
                    "HTTP/1.1 200 OK\r\nSet-Cookie: id={number}; Path=/\r\nContent-Length: 0\r\n\r\n"
                );
                reply(cookie.as_bytes(), Then::Stay)
            }
            Some(cookie) => {
                let status = if cookie.starts_with("id=") { 200 } else { 400 };
                let response =
                    format!("HTTP/1.1 {status} X\r\nX: {cookie}\r\nContent-Length: 0\r\n\r\n");
                reply(response.as_bytes(), Then::Stay)
            }
        },
        |outcome| {
            outcome.has_responses(20);
            let statuses: Vec<_> = outcome.record.outcome_counts().collect();
            assert_eq!(statuses, [("200".to_owned(), 20)]);
        },
    );
}

#[test]
fn unexpected_response_is_counted_as_error() {
    let expecting = |path: &str, statuses: &[&str], body: Option<&str>| Request {
        expect: Expect {
            statuses: statuses
                .iter()
                .map(|text| Statuses::parse(text).unwrap())
                .collect(),
            body: body.map(str::to_owned),
        },
        ..request("GET", path)
    };
    lines(
        |options| {
            options.stop.count = Some(40);
            options.connections = 2;
            options.requests = in_turn(vec![
                expecting("/right", &["2xx"], Some("ok")),
                expecting("/status", &["404"], None),
                expecting("/body", &[], Some("ko")),
                request("GET", "/any"),
            ]);
        },
        |_, _| reply(OK, Then::Stay),
        |outcome, _| {
            assert_eq!(outcome.record.responses(), 40);
            assert_eq!(
                outcome.failures(),
                [
                    (Failure::UnexpectedStatus, 10),
                    (Failure::UnexpectedBody, 10)
                ]
            );
            let unexpected: Vec<u64> = outcome
                .record
                .kinds
                .iter()
                .map(|kind| kind.unexpected)
                .collect();
            assert_eq!(unexpected, [0, 10, 10, 0]);
            assert_eq!(outcome.record.unexpected_responses(), 20);
            assert!(outcome.record.unexpected.is_some());
        },
    );
}

#[test]
fn expected_statuses_apply_per_request() {
    let expecting = |path: &str, statuses: Vec<Statuses>| Request {
        expect: Expect {
            statuses,
            body: None,
        },
        ..request("GET", path)
    };
    for (status, unaccepted) in [(200, 0), (302, 10), (404, 10)] {
        lines(
            |options| {
                options.stop.count = Some(20);
                let all = Statuses { from: 200, to: 404 };
                options.requests = in_turn(vec![
                    expecting("/listed", vec![all]),
                    expecting("/any", Vec::new()),
                ]);
            },
            move |_, _| {
                let head = format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n");
                reply(head.as_bytes(), Then::Stay)
            },
            |outcome, _| assert_eq!(outcome.record.unaccepted, unaccepted, "{status}"),
        );
    }
}

/// A request with a body that no socket accepts at once.
fn bulky() -> Request {
    Request {
        body: Body::Bytes(vec![b'x'; 8 * BATCH_BYTES_MAX].into()),
        ..request("POST", "/")
    }
}

#[test]
fn large_bodies_arrive_complete() {
    play(
        |options| {
            options.stop.count = Some(6);
            options.connections = 2;
            options.requests = in_turn(vec![bulky()]);
        },
        |_, _, _| reply(OK, Then::Stay),
        |outcome| {
            outcome.has_responses(6);
            assert!(outcome.record.established <= 2, "connections were kept");
        },
    );
}

#[test]
fn early_413_response_is_a_response() {
    play(
        |options| {
            options.stop.count = Some(6);
            options.requests = in_turn(vec![bulky()]);
        },
        |_, _, _| {
            reply(
                b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
                Then::CloseEarly,
            )
        },
        |outcome| {
            // Closing with unread bytes sends a reset, which may overtake the response (RFC 9112 section 9.6).
            let record = &outcome.record;
            let lost: u64 = outcome.failures().iter().map(|(_, count)| count).sum();
            assert_eq!(record.responses() + lost, 6);
            assert!(record.outcome_counts().all(|(status, _)| status == "413"));
        },
    );
}

#[test]
fn log_replay_keeps_times_and_order() {
    let millisecond = 1_000_000;
    lines(
        |options| {
            options.connections = 2;
            options.stop.count = Some(5);
            let requests = ["/a", "/b"].map(|path| request("GET", path)).to_vec();
            options.requests = RequestOptions {
                requests,
                order: Order::Listed([1, 0, 0, 1, 1].into()),
                ..RequestOptions::default()
            };
            let times = [0, 2, 2, 3, 5].map(|at| at * millisecond);
            options.pace = Pace::Open(ArrivalPlan::Listed(times.into()));
        },
        |_, _| reply(OK, Then::Stay),
        |outcome, got| {
            outcome.has_responses(5);
            assert_eq!((got["GET /a"], got["GET /b"]), (2, 3));
        },
    );
}

#[test]
fn log_replay_ends_after_skipped_last_requests() {
    play(
        |options| {
            options.stop.count = Some(3);
            options.catch_up = Some(Duration::from_millis(10));
            let times = [0, 1_000_000, 2_000_000];
            options.pace = Pace::Open(ArrivalPlan::Listed(times.into()));
        },
        |_, number, _| match number {
            0 => reply(OK, Then::Stall(Duration::from_millis(100))),
            _ => reply(OK, Then::Stay),
        },
        |outcome| {
            assert!((1..=3).contains(&outcome.record.responses()));
            assert_eq!(outcome.failures(), []);
        },
    );
}

#[test]
fn skip_first_excludes_first_response_per_connection() {
    play(
        |options| {
            options.stop.count = Some(12);
            options.requests_per_connection = Some(4);
            options.skip_first = true;
        },
        |_, _, _| reply(OK, Then::Stay),
        |outcome| {
            assert_eq!(outcome.failures(), []);
            assert_eq!(outcome.record.responses(), 12);
            assert_eq!(outcome.record.unmeasured, 3);
            assert_eq!(outcome.record.times.response.count(), 9);
        },
    );
}
