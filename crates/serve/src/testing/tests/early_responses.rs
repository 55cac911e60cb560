//! HTTP/2 responses that end before their requests do (RFC 9113 8.1).

use onrush_http::http2::code::Code;
use onrush_http::http2::{Cause, End};

use super::http2::Http2Client;
use crate::testing::harness::{Step, TestCore, configured, on_every_driver, send};

/// Starts `count` uploads one by one, and receives all of their responses.
async fn upload_in_part(
    site: &TestCore,
    (path, fields): (&str, &[(&str, &str)]),
    count: usize,
) -> (Http2Client, Vec<Cause>) {
    let server = site.upstream(&[&[
        Step::ReadHead,
        send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
    ]]);
    let address = site.serve(&configured(&format!(
        "[[route]]\npath = \"/fixed\"\nrespond = {{ status = 200, body = \"hello\" }}\n\
         [[route]]\npath = \"/\"\nforward = \"http://{}\"\n",
        server.address
    )));
    let mut client = Http2Client::connect(site, &address, 65_535).await;
    let mut resets = Vec::new();
    for number in 0..count {
        let stream = client.open(("POST", path), fields, End::Open);
        let written = client.http.data(stream, 100, End::Open, &mut client.out);
        written.expect("it is open");
        client.out.extend([b'x'; 100]);
        let response = client.response(stream).await;
        let found = (response.status, &response.body[..]);
        assert_eq!(found, (200, &b"hello"[..]), "{path} {number}");
        resets.extend(response.reset);
    }
    (client, resets)
}

#[test]
fn early_response_resets_its_stream() {
    for (path, fields) in [
        ("/fixed", &[][..]),
        ("/fixed", &[("content-length", "200")]),
        ("/fixed", &[("content-length", "1000000")]),
        ("/", &[]),
        ("/", &[("content-length", "200")]),
    ] {
        on_every_driver(move |site| async move {
            let (mut client, mut resets) = upload_in_part(&site, (path, fields), 1).await;
            while client.http.open_streams() > 0 {
                client.receive().await;
            }
            // The reset may have arrived with the end of the response.
            resets.extend(client.responses.values().filter_map(|it| it.reset));
            let expected = [Cause::Peer(Code::NO_ERROR)];
            assert_eq!(resets, expected, "{path} {fields:?}");
        });
    }
}

#[test]
fn early_responses_leak_no_streams() {
    // Many more than the limit of concurrent streams.
    on_every_driver(|site| async move {
        let (mut client, _) = upload_in_part(&site, ("/fixed", &[]), 2_000).await;
        assert_eq!(client.get("/fixed").await.status, 200);
        assert_eq!(client.goaway_code, None);
    });
}
