//! Timeouts of requests while the connection to their server is being opened.

use std::rc::Rc;
use std::time::Duration;

use onrush_engine::{Input, Stream};
use onrush_http::http2::End;

use crate::testing::harness::{configured, on_simulated_cores, send_bytes};
use crate::testing::tests::http2::Http2Client;

const WINDOW: u32 = 65_535;

#[test]
fn expired_request_stops_waiting_for_connection() {
    on_simulated_cores(|site| async move {
        // It accepts connections and never answers the TLS handshake.
        let (listener, server) = site.listen();
        let core = site.core.clone();
        site.core.spawn(async move {
            while let Ok(stream) = listener.accept().await {
                core.spawn({
                    let core = core.clone();
                    async move {
                        core.sleep(Duration::from_secs(100)).await;
                        drop(stream);
                    }
                });
            }
        });
        let address = site.serve(&configured(&format!(
            "[timeouts]\ntls_handshake = \"1h\"\n\
             [[route]]\npath = \"/hurried\"\nforward = \"up\"\ntimeouts = {{ request = \"2s\" }}\n\
             [[route]]\npath = \"/\"\nforward = \"up\"\n\
             [upstream.up]\nservers = [\"{server}\"]\nprotocol = \"h2\"\neject = false\ntls = {{ verify = false }}\n"
        )));
        let since = site.core.now_exact();
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        let patient = client.open(("GET", "/patient"), &[], End::Stream);
        // More than the number of streams, so that cancelled requests would be sent at once when the connection opens.
        for _ in 0..4 {
            let hurried: Vec<_> = (0..50)
                .map(|_| client.open(("GET", "/hurried"), &[], End::Stream))
                .collect();
            for stream in hurried {
                let response = client.response(stream).await;
                assert!(matches!(response.status, 503 | 504), "{response:?}");
            }
        }
        let waited = site.core.now_exact().since(since);
        assert!(waited < Duration::from_secs(60), "{waited:?}");
        assert_eq!(client.response(patient).await.status, 502);
        let waited = site.core.now_exact().since(since);
        assert!(waited >= Duration::from_secs(100), "{waited:?}");
    });
}

/// Copies bytes from `from` to `to` until it ends.
async fn pass(from: Rc<Stream>, to: Rc<Stream>) {
    let mut input = Input::default();
    while from.recv(&mut input).await.is_ok_and(|bytes| bytes > 0) {
        if send_bytes(&to, input.bytes()).await.is_err() {
            break;
        }
        input.consume(input.bytes().len());
    }
}

#[test]
fn first_byte_timeout_starts_after_connect() {
    on_simulated_cores(|site| async move {
        let (listener, far) = site.listen();
        let server = site.serve(&configured(
            "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"self-signed\"\n[[route]]\npath = \"/\"\nrespond = { status = 200, body = \"ok\" }\n",
        ));
        // A relay to the server that delays each connection by 8 s, and so the TLS handshake.
        let core = site.core.clone();
        site.core.spawn(async move {
            while let Ok(near) = listener.accept().await {
                core.sleep(Duration::from_secs(8)).await;
                let stream = Stream::connect(&core, &server, None).await;
                let (near, far) = (Rc::new(near), Rc::new(stream.expect("it listens")));
                core.spawn(pass(Rc::clone(&near), Rc::clone(&far)));
                core.spawn(pass(far, near));
            }
        });
        let address = site.serve(&configured(&format!(
            "[timeouts]\ntls_handshake = \"1h\"\nupstream_first_byte = \"5s\"\n[[route]]\npath = \"/\"\nforward = \"up\"\n\
             [upstream.up]\nservers = [\"{far}\"]\nprotocol = \"h2\"\ntls = {{ verify = false }}\n"
        )));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        assert_eq!(client.get("/").await.body, b"ok");
    });
}
