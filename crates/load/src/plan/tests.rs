//! Tests of plans: accepted and refused options.

use super::*;
use crate::requests::header::parse_header;
use crate::requests::request::LastRequest;
use std::num::NonZeroU64;

/// One connection that requests `url` once; tests change what they need.
pub(crate) fn options(url: &str) -> Options {
    Options {
        stop: Stop {
            after: None,
            count: Some(1),
        },
        ..Options::new(Target::parse(url).unwrap())
    }
}

fn request(change: impl FnOnce(&mut Options)) -> String {
    let mut options = options("http://a:81/b?c");
    change(&mut options);
    Plan::new(options.clone()).unwrap();
    String::from_utf8(mix(&options).unwrap().request(LastRequest::No)).unwrap()
}

#[track_caller]
fn refused(expected: &str, change: impl FnOnce(&mut Options)) {
    let mut options = options("http://a/");
    change(&mut options);
    let sentence = Plan::new(options).unwrap_err().to_string();
    assert!(sentence.contains(expected), "{sentence}");
}

#[test]
fn request_has_default_and_user_headers() {
    assert_eq!(request(|_| ()), "GET /b?c HTTP/1.1\r\nHost: a:81\r\n\r\n");
    assert_eq!(
        request(|options| options.headers = vec![parse_header("Accept:\t*/* ").unwrap()]),
        "GET /b?c HTTP/1.1\r\nHost: a:81\r\nAccept: */*\r\n\r\n"
    );
    assert_eq!(
        request(|options| options.headers = vec![parse_header("host: b").unwrap()]),
        "GET /b?c HTTP/1.1\r\nhost: b\r\n\r\n"
    );
    assert_eq!(
        request(|options| options.method = "POST".to_owned()),
        "POST /b?c HTTP/1.1\r\nHost: a:81\r\nContent-Length: 0\r\n\r\n"
    );
}

#[test]
fn last_request_sends_connection_close() {
    let mix = mix(&options("http://a/")).unwrap();
    assert_eq!(
        mix.request(LastRequest::Yes),
        b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    );
}

#[test]
fn invalid_headers_are_refused() {
    for bad in ["Accept", ": x", "a b: c", "A: b\r\nC: d", "A\0: b"] {
        assert!(parse_header(bad).is_err(), "{bad:?}");
    }
    assert_eq!(
        parse_header("A:"),
        Ok(("A".to_owned(), String::new())),
        "an empty value is one"
    );
}

#[test]
fn invalid_option_combinations_are_refused() {
    refused("use -c 2 or more", |options| options.threads = 2);
    refused("use -c 3 or more", |options| {
        options.shard = Shard { index: 2, count: 3 };
    });
    refused("part 3 of 3 is out of range", |options| {
        options.shard = Shard { index: 3, count: 3 };
    });
    refused("out of range", |options| options.connections = 0);
    refused("out of range", |options| options.threads = 0);
    refused("at least one request", |options| options.pipeline = 0);
    refused("at least one request", |options| {
        options.requests_per_connection = Some(0);
    });
    refused("a run of 0 requests", |options| {
        options.stop.count = Some(0)
    });
    refused("more than 0 s", |options| {
        options.stop.after = Some(Duration::ZERO)
    });
    refused("leaves no time", |options| options.timeout = Duration::ZERO);
    refused("use 2427 at most", |options| options.pipeline = 5000);
    refused("out of range", |options| {
        options.pace = Pace::rate(NonZeroU64::MAX);
    });
}

#[test]
fn shards_divide_connections_count_and_rate_exactly() {
    let part = |index, change: fn(&mut Options)| {
        let mut options = options("http://a/");
        options.shard = Shard { index, count: 3 };
        (options.connections, options.threads) = (11, 2);
        options.stop.count = Some(100);
        options.pace = Pace::rate(NonZeroU64::new(1000).unwrap());
        change(&mut options);
        Plan::new(options).unwrap()
    };
    let plans = [0, 1, 2].map(|index| part(index, |_| ()));
    let mut numbers: Vec<u64> = plans
        .iter()
        .flat_map(|plan| (0..2).flat_map(|core| plan.connections_of(core)))
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..11).collect::<Vec<_>>());
    assert_eq!(plans.each_ref().map(Plan::connections), [4, 4, 3]);
    assert_eq!(plans.each_ref().map(Plan::count), [34, 33, 33].map(Some));
    let rates = plans.each_ref().map(Plan::target_rate);
    assert_eq!(rates, [334, 333, 333].map(Some));
    let due = plans[0].due_within(Duration::from_secs(3));
    assert_eq!(due, Some(1000.0));
    let each = [0, 1, 2].map(|index| {
        let five = |options: &mut Options| {
            options.pace = Pace::EachConnection(NonZeroU64::new(5).unwrap());
        };
        part(index, five).target_rate()
    });
    assert_eq!(each, [20, 20, 15].map(Some));
}

#[test]
fn connections_and_cpus_are_divided_among_cores() {
    let mut options = options("http://a/");
    (options.connections, options.threads, options.cpus) = (7, 3, vec![4, 6]);
    let plan = Plan::new(options).unwrap();
    let mut all: Vec<u64> = (0..3).flat_map(|core| plan.connections_of(core)).collect();
    assert_eq!(plan.connections_of(0).count(), 3);
    assert_eq!(plan.connections_of(2).count(), 2);
    all.sort_unstable();
    assert_eq!(all, (0..7).collect::<Vec<_>>());
    assert_eq!([0, 1, 2].map(|core| plan.cpu_of(core)), [4, 6, 4].map(Some));
}
