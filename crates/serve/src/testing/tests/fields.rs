//! Forwarded heads: hop-by-hop fields, added fields, and forwarded fields.

use crate::testing::harness::{Step, forward, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The request as received by the server, with LF line ends; the server responds with 200.
fn at_server(request: &str) -> String {
    let outcome = forward(&[&[Step::Read, send(OK)]], &request.replace('\n', "\r\n"));
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 OK\n"),
        "{outcome:?}"
    );
    outcome.requests.concat().concat()
}

fn at_client(response: &str) -> String {
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let response = send(&response.replace('\n', "\r\n"));
    forward(&[&[Step::Read, response]], request).response
}

#[test]
fn only_via_is_added_to_request() {
    assert_eq!(
        at_server(
            "GET /a//b%20c%2fd?d=e&f HTTP/1.1\nHost: example.com:8080\nX-One:  a, b \nx-two:\nX-One: c\n\n"
        ),
        "GET /a//b%20c%2fd?d=e&f HTTP/1.1\nHost: example.com:8080\nX-One: a, b\nx-two: \nX-One: c\nVia: 1.1 onrush\n\n"
    );
}

#[test]
fn client_hop_by_hop_fields_are_dropped() {
    assert_eq!(
        at_server(
            "GET / HTTP/1.1\nHost: h\nConnection: keep-alive, X-Mine,x-yours\nKeep-Alive: timeout=5\nX-Mine: 1\nTE: trailers\nUpgrade: websocket\nProxy-Connection: keep-alive\nX-YOURS: 2\nX-Stays: 3\n\n"
        ),
        "GET / HTTP/1.1\nHost: h\nX-Stays: 3\nVia: 1.1 onrush\n\n"
    );
}

#[test]
fn te_trailers_field_is_forwarded() {
    let head = |fields: &str| format!("GET / HTTP/1.1\nHost: h\n{fields}\n");
    let via = "Via: 1.1 onrush\n";
    for (fields, wanted) in [
        (
            "Connection: TE\nTE: trailers\n",
            "Connection: TE\nTE: trailers\n",
        ),
        (
            "Connection: close, te\nTE: gzip;q=0.5, Trailers\n",
            "Connection: TE\nTE: trailers\n",
        ),
        (
            "Connection: TE, upgrade\nUpgrade: websocket\nTE: trailers\n",
            "Connection: upgrade, TE\nUpgrade: websocket\nTE: trailers\n",
        ),
        ("Connection: TE\nTE: gzip\n", ""),
        // Not listed in Connection (RFC 9110 10.1.4).
        ("TE: trailers\n", ""),
    ] {
        assert_eq!(
            at_server(&head(fields)),
            head(&format!("{wanted}{via}")),
            "{fields}"
        );
    }
}

#[test]
fn trailers_are_forwarded_both_ways() {
    let head =
        "Connection: TE\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n";
    let body = "3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n";
    let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{head}{body}");
    let head = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n";
    let response = send(&format!("{head}{body}"));
    let outcome = forward(&[&[Step::Read, response]], &request);
    let (at_server, at_client) = (outcome.requests.concat().concat(), outcome.response);
    let body = format!("\n\n{}", body.replace("\r\n", "\n"));
    assert!(
        at_server.contains("\nTrailer: X-Sum\n") && at_server.ends_with(&body),
        "{at_server}"
    );
    assert!(
        at_client.contains("\nTrailer: X-Sum\n") && at_client.ends_with(&body),
        "{at_client}"
    );
}

#[test]
fn forwarding_loop_is_stopped() {
    let request = |hops: usize| {
        let via = "Via: 1.1 onrush, 1.0 fred\n".repeat(hops);
        format!("GET / HTTP/1.1\nHost: h\n{via}\n")
    };
    assert_eq!(
        at_server(&request(8)),
        request(8).replace("\n\n", "\nVia: 1.1 onrush\n\n")
    );
    let outcome = forward(
        &[&[Step::Read, send(OK)]],
        &request(9).replace('\n', "\r\n"),
    );
    assert!(
        outcome.response.starts_with("HTTP/1.1 508 Loop Detected\n"),
        "{outcome:?}"
    );
    assert!(outcome.requests.is_empty(), "{outcome:?}");
}

#[test]
fn connection_header_cannot_remove_host_or_length() {
    assert_eq!(
        at_server(
            "POST / HTTP/1.1\nHost: h\nConnection: host, content-length, via\nContent-Length: 3\n\nabc"
        ),
        "POST / HTTP/1.1\nHost: h\nContent-Length: 3\nVia: 1.1 onrush\n\nabc"
    );
}

#[test]
fn connection_header_cannot_remove_transfer_encoding() {
    assert_eq!(
        at_server(
            "POST / HTTP/1.1\nHost: h\nConnection: transfer-encoding\nTransfer-Encoding: chunked\n\n3\nabc\n0\n\n"
        ),
        "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nVia: 1.1 onrush\n\n3\nabc\n0\n\n"
    );
}

#[test]
fn existing_via_is_kept() {
    assert_eq!(
        at_server("GET / HTTP/1.1\nHost: h\nVia: 1.0 fred\n\n"),
        "GET / HTTP/1.1\nHost: h\nVia: 1.0 fred\nVia: 1.1 onrush\n\n"
    );
}

#[test]
fn absolute_target_overrides_host() {
    for (target, line, host) in [
        ("http://a.example/p?q", "/p?q", "a.example"),
        ("http://a.example:8080", "/", "a.example:8080"),
        ("HTTPS://A.example?q=/", "/?q=/", "A.example"),
    ] {
        assert_eq!(
            at_server(&format!("GET {target} HTTP/1.1\nHost: other\n\n")),
            format!("GET {line} HTTP/1.1\nHost: {host}\nVia: 1.1 onrush\n\n")
        );
    }
    assert_eq!(
        at_server("OPTIONS * HTTP/1.1\nHost: h\n\n"),
        "OPTIONS * HTTP/1.1\nHost: h\nVia: 1.1 onrush\n\n"
    );
}

#[test]
fn unknown_methods_except_connect_are_forwarded() {
    assert_eq!(
        at_server("PURGE /x HTTP/1.1\nHost: h\n\n"),
        "PURGE /x HTTP/1.1\nHost: h\nVia: 1.1 onrush\n\n"
    );
    let refused = forward(&[&[]], "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n");
    assert!(refused.response.starts_with("HTTP/1.1 501 "), "{refused:?}");
    assert_eq!(refused.requests.len(), 0);
}

#[test]
fn only_date_is_added_to_response() {
    let dated = "HTTP/1.1 404 Nothing here\nServer: x\nDate: -----------------------------\nETag: a\nContent-Length: 2\nSet-Cookie: a\nSet-Cookie: b\n\nno";
    assert_eq!(at_client(dated), dated);
    assert_eq!(
        at_client("HTTP/1.1 299\nContent-Length: 0\n\n"),
        "HTTP/1.1 299 \nContent-Length: 0\nDate: -----------------------------\n\n"
    );
}

#[test]
fn server_hop_by_hop_fields_are_dropped() {
    assert_eq!(
        at_client(
            "HTTP/1.1 200 OK\nConnection: close, X-Mine, Content-Length\nKeep-Alive: timeout=5\nX-Mine: 1\nUpgrade: h2c\nContent-Length: 2\nDate: -----------------------------\nX-Stays: 1\n\nok"
        ),
        "HTTP/1.1 200 OK\nContent-Length: 2\nDate: -----------------------------\nX-Stays: 1\n\nok"
    );
}

#[test]
fn largest_head_is_forwarded() {
    // Every field grows by a space, and the head by Via.
    let room = 15 * 1024 - "GET / HTTP/1.1\r\nHost:h\r\n\r\n".len();
    let fields = 98;
    let mut request = String::from("GET / HTTP/1.1\r\nHost:h\r\n");
    for number in 0..fields {
        let bytes = room / fields + usize::from(number < room % fields);
        request += &format!("A{number:02}:{}\r\n", "v".repeat(bytes - "A00:\r\n".len()));
    }
    request += "\r\n";
    assert_eq!(request.len(), 15 * 1024);
    let outcome = forward(&[&[Step::Read, send(OK)]], &request);
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 OK"),
        "{}",
        outcome.response
    );
    let response = request.replace(
        "GET / HTTP/1.1\r\nHost:h\r\n",
        "HTTP/1.1 200\r\nContent-Length:0\r\n",
    );
    let cut = response.replacen(&"v".repeat(20), "", 1);
    let outcome = forward(
        &[&[Step::Read, send(&cut)]],
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 "),
        "{}",
        outcome.response
    );
    assert!(outcome.response.contains("A97: "), "{}", outcome.response);
}
