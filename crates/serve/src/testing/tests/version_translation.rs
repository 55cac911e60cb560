//! Translation between HTTP/1 servers and HTTP/2 clients, and vice versa.

use onrush_http::http2::End;
use onrush_http::http2::hpack::{Encoder, Indexing};

use super::http2::Http2Client;
use crate::testing::harness::{Peer, Step, configured, on_every_driver, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

const WINDOW: u32 = 65_535;

#[test]
fn head_is_translated_to_http_1() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let address = site.serve(&server.plan());
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let more = [
            ("cookie", "a=1"),
            ("te", "trailers"),
            ("cookie", "b=2"),
            ("host", "example.org"),
        ];
        let stream = client.open(("GET", "/path?q"), &more, End::Stream);
        assert_eq!(client.response(stream).await.status, 200);
        let request = String::from_utf8(server.request(0, 0)).expect("text");
        let start = "GET /path?q HTTP/1.1\r\nHost: example.org\r\ncookie: a=1; b=2\r\nConnection: TE\r\nTE: trailers\r\n";
        assert!(request.starts_with(start), "{request}");
        let stream = client.open(("GET", "/"), &[("host", "other.org")], End::Stream);
        assert_eq!(client.response(stream).await.status, 400);
    });
}

#[test]
fn request_trailers_follow_chunks() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let address = site.serve(&server.plan());
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = client.open(("POST", "/"), &[], End::Open);
        let written = client.http.data(stream, 5, End::Open, &mut client.out);
        written.expect("it is open");
        client.out.extend_from_slice(b"hello");
        let written = client
            .http
            .trailers(stream, &mut client.out, |encoder, out| {
                encoder.field(b"x-sum", b"7", Indexing::Without, out);
            });
        written.expect("it is open");
        assert_eq!(client.response(stream).await.status, 200);
        let request = String::from_utf8(server.request(0, 0)).expect("text");
        assert!(
            request.ends_with("\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 7\r\n\r\n"),
            "{request}"
        );
    });
}

#[test]
fn dropped_trailers_of_sized_body_are_counted() {
    on_every_driver(|site| async move {
        let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let (address, service) = site.serve_worker(&server.plan());
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let stream = client.open(("POST", "/"), &[("content-length", "5")], End::Open);
        client.flush().await;
        let written = client.http.data(stream, 5, End::Open, &mut client.out);
        written.expect("it is open");
        client.out.extend_from_slice(b"hello");
        let put = |encoder: &mut Encoder, out: &mut Vec<u8>| {
            encoder.field(b"x-sum", b"7", Indexing::Without, out);
        };
        let written = client.http.trailers(stream, &mut client.out, put);
        written.expect("it is open");
        assert_eq!(client.response(stream).await.status, 200);
        let totals = service.worker.meter.totals();
        assert_eq!(totals.trailers_dropped, [1, 0]);
    });
}

#[test]
fn stream_keeps_configuration_across_reload() {
    on_every_driver(|site| async move {
        let (listener, server) = site.listen();
        let version = |number: u32| {
            configured(&format!(
                "[[route]]\nforward = \"http://{server}\"\nresponse_headers = {{ add = {{ X-Version = \"{number}\" }} }}\n"
            ))
        };
        let (address, service, before) = site.serve_to_change(&version(1));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let first = client.open(("GET", "/"), &[], End::Stream);
        client.flush().await;
        let mut server = Peer::new(listener.accept().await.expect("a connection"));
        server.receive_until(b"\r\n\r\n").await;
        let _after = site.apply(&service, &before, &version(2));
        let second = client.open(("GET", "/"), &[], End::Stream);
        client.flush().await;
        let mut other = Peer::new(listener.accept().await.expect("a connection"));
        other.receive_until(b"\r\n\r\n").await;
        other.send(OK.as_bytes()).await;
        assert_eq!(client.response(second).await.fields["x-version"], "2");
        server.send(OK.as_bytes()).await;
        assert_eq!(client.response(first).await.fields["x-version"], "1");
        assert_eq!(client.goaway_code, None);
    });
}
