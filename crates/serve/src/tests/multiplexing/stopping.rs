//! The end of a server whose servers speak HTTP/2.

use onrush_http::http2::End;

use super::server::serve;
use super::{echo_path, plan};
use crate::harness::on_every_driver;
use crate::tests::http2::Asking;
use std::time::Duration;

/// How long it may take; a task that would not end is cut off then, which fails the test.
const PATIENT: Duration = Duration::from_secs(5);

#[test]
fn a_connection_that_is_made_while_the_server_stops_ends_with_its_request() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 1, echo_path);
        let more = "streams_max = 1\nconnections_shared_max = 2";
        let address = site.serve(&plan(server, more));
        let mut client = Asking::connect(&site, &address, 65_535).await;
        let held = client.open(("POST", "/held"), &[], End::Open);
        client.flush().await;
        site.until("the first has its connection", || {
            seen.connections.get() == 1
        })
        .await;
        site.core.stop(PATIENT);
        site.until("it stops", || site.core.is_stopping()).await;
        // The client may not have heard of it.
        assert_eq!(client.get("/crossed").await.body, b"/crossed");
        assert_eq!(seen.connections.get(), 2);
        client.send_body(held, b"the end").await;
        assert_eq!(client.response(held).await.body, b"/held");
    });
}
