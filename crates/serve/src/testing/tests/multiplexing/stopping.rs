//! Stopping a proxy with HTTP/2 servers.

use onrush_http::http2::End;

use super::server::serve;
use super::{echo_path, plan};
use crate::testing::harness::on_every_driver;
use crate::testing::tests::http2::Http2Client;

#[test]
fn connection_opened_during_stop_closes_after_request() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 1, echo_path);
        let more = "streams_max = 1\nconnections_shared_max = 2";
        let (address, service, _) = site.serve_to_change(&plan(server, more));
        let mut client = Http2Client::connect(&site, &address, 65_535).await;
        let held = client.open(("POST", "/held"), &[], End::Open);
        client.flush().await;
        site.until("the first has its connection", || {
            seen.connections.get() == 1
        })
        .await;
        // As on a stop, while requests of clients that have not received GOAWAY yet are still accepted.
        let site_in_force = service.site();
        site_in_force.groups.iter().for_each(|group| group.clear());
        assert_eq!(client.get("/crossed").await.body, b"/crossed");
        assert_eq!(seen.connections.get(), 2);
        site.until("the second has ended", || seen.ended.get() == 1)
            .await;
        client.send_body(held, b"the end").await;
        assert_eq!(client.response(held).await.body, b"/held");
        site.until("so has the first", || seen.ended.get() == 2)
            .await;
    });
}
