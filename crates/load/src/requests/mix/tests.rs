//! Tests of rendered and refused requests.

use super::*;
use crate::pace::target::Target;
use crate::requests::cookies::Cookie;
use std::num::NonZeroU32;

fn request(path: &str) -> Request {
    let target = Target::parse("http://a:81/").unwrap();
    Request {
        path: path.to_owned(),
        ..Request::of(&target)
    }
}

fn asks(requests: Vec<Request>) -> RequestOptions {
    RequestOptions {
        requests,
        ..RequestOptions::default()
    }
}

fn written(asks: &RequestOptions, number: u64, last: LastRequest) -> String {
    let mix = Mix::new(asks, &[], 1).unwrap();
    let mut out = Vec::new();
    let large = mix.write(number, last, None, &mut out).cloned();
    out.extend_from_slice(large.as_deref().unwrap_or_default());
    assert!(out.len() <= mix.bytes_max());
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn refused(expected: &str, change: impl FnOnce(&mut Request, &mut RequestOptions)) {
    let (mut request, mut asks) = (request("/"), asks(Vec::new()));
    change(&mut request, &mut asks);
    asks.requests = vec![request];
    let sentence = Mix::new(&asks, &[], 0).unwrap_err();
    assert!(sentence.contains(expected), "{sentence}");
}

#[test]
fn body_has_content_length() {
    let mut request = request("/{{counter}}");
    request.method = "POST".to_owned();
    request.body = Body::Text("n={{counter}}".to_owned());
    assert_eq!(
        written(&asks(vec![request]), 10, LastRequest::Yes),
        "POST /10 HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\nContent-Length: 4\r\n\r\nn=10"
    );
}

#[test]
fn body_bytes_are_sent_unchanged() {
    for bytes in [3, BODY_COPIED_MAX, BODY_COPIED_MAX + 1] {
        let mut request = request("/");
        let body = "{{counter}}".repeat(bytes)[..bytes].to_owned();
        request.body = Body::Bytes(body.clone().into_bytes().into());
        let text = written(&asks(vec![request]), 0, LastRequest::No);
        assert!(text.ends_with(&format!("Content-Length: {bytes}\r\n\r\n{body}")));
    }
}

#[test]
fn request_headers_override_common_headers() {
    let mut request = request("/");
    request.headers = vec![("accept".to_owned(), "b".to_owned())];
    let common =
        [("Accept", "a"), ("X", "y")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mix = Mix::new(&asks(vec![request]), &common, 0).unwrap();
    let mut out = Vec::new();
    mix.write(0, LastRequest::No, None, &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "GET / HTTP/1.1\r\nHost: a:81\r\naccept: b\r\nX: y\r\n\r\n"
    );
}

#[test]
fn cookies_are_sent_in_head() {
    let mut jar = CookieJar::default();
    jar.store(&Cookie::parse(b"a=1").unwrap());
    let mut asks = asks(vec![request("/")]);
    asks.cookies = true;
    let mix = Mix::new(&asks, &[], 0).unwrap();
    assert!(!mix.is_constant());
    let mut out = Vec::new();
    mix.write(0, LastRequest::No, Some(&jar), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "GET / HTTP/1.1\r\nHost: a:81\r\nCookie: a=1\r\n\r\n"
    );
}

#[test]
fn requests_follow_weights() {
    let weighted = [("/a", 1), ("/b", 2), ("/c", 1)].map(|(path, weight)| Request {
        weight: NonZeroU32::new(weight).unwrap(),
        ..request(path)
    });
    let mix = Mix::new(&asks(weighted.to_vec()), &[], 3).unwrap();
    let mut counts = [0_u32; 3];
    for number in 0..40_000 {
        counts[mix.choose(number)] += 1;
    }
    // Five standard deviations of a binomial with n = 40,000 and p = 1/2 are 500.
    for (count, expected) in counts.into_iter().zip([10_000, 20_000, 10_000]) {
        assert!(count.abs_diff(expected) <= 500, "{counts:?}");
    }
}

#[test]
fn round_robin_and_listed_order_are_followed() {
    let requests = vec![request("/a"), request("/b"), request("/c")];
    let choices = |order: Order| {
        let asks = RequestOptions {
            order,
            ..asks(requests.clone())
        };
        let mix = Mix::new(&asks, &[], 0).unwrap();
        [0, 1, 2, 3, 4].map(|number| mix.choose(number))
    };
    assert_eq!(choices(Order::RoundRobin), [0, 1, 2, 0, 1]);
    assert_eq!(choices(Order::Listed([2, 2, 0, 1].into())), [2, 2, 0, 1, 2]);
}

#[test]
fn invalid_requests_are_refused() {
    refused("CONNECT opens a tunnel through a proxy", |request, _| {
        request.method = "CONNECT".to_owned();
    });
    refused("is not a method", |request, _| {
        request.method = "G T".to_owned()
    });
    refused("too long", |request, _| {
        request.headers = vec![("A".to_owned(), "b".repeat(REQUEST_BYTES_MAX))];
    });
    refused("announces a chunked body", |request, _| {
        request.headers = vec![("Transfer-Encoding".to_owned(), "chunked".to_owned())];
    });
    refused("announces a body", |request, _| {
        request.headers = vec![("content-length".to_owned(), "5".to_owned())];
    });
    refused("leave the header Content-Length out", |request, _| {
        request.headers = vec![("content-length".to_owned(), "0".to_owned())];
        request.body = Body::Text("a".to_owned());
    });
    refused("leave one of them out", |request, asks| {
        request.headers = vec![("cookie".to_owned(), "a=b".to_owned())];
        asks.cookies = true;
    });
    refused("percent-encode it", |request, asks| {
        request.path = "/{{data:a}}".to_owned();
        asks.data = Some(Data::parse("a\nb c\n", "d").unwrap());
    });
    refused("the value of a field", |request, asks| {
        request.headers = vec![("A".to_owned(), "{{data:a}}".to_owned())];
        asks.data = Some(Data::parse("a\n\"b\nc\"\n", "d").unwrap());
    });
    refused("is not a variable", |request, _| {
        request.path = "/{{x}}".to_owned()
    });
    refused("too large", |request, _| {
        request.body = Body::Bytes(vec![0; BODY_BYTES_MAX + 1].into());
    });
}
