//! Streams as the capacity of a server: waiting is reported as queueing, and no request waits while another server has
//! capacity.

use onrush_http::http2::End;
use onrush_http::http2::code::Code;

use super::server::{Reaction, Response, serve};
use super::{echo_path, plan};
use crate::observe::in_flight::Stage;
use crate::testing::harness::{configured, on_every_driver};
use crate::testing::tests::http2::Http2Client;

const WINDOW: u32 = 65_535;

#[test]
fn free_server_is_used_before_queueing() {
    on_every_driver(|site| async move {
        let (full, seen) = serve(&site, 100, |_| Reaction::Hold);
        let (idle, idle_seen) = serve(&site, 100, echo_path);
        for balance in [
            "round_robin",
            "random",
            "least_connections",
            "first",
            "power_of_two",
        ] {
            let plan = configured(&format!(
                "[[route]]\npath = \"/\"\nforward = \"up\"\n[upstream.up]\nservers = [\"{full}\", \"{idle}\"]\n\
                 protocol = \"h2\"\nbalance = \"{balance}\"\nstreams_max = 1\nconnections_shared_max = 1\n"
            ));
            let address = site.serve(&plan);
            let mut client = Http2Client::connect(&site, &address, WINDOW).await;
            seen.asked.borrow_mut().clear();
            let served = idle_seen.asked.borrow().len();
            let mut held = client.open(("GET", "/held"), &[], End::Stream);
            for other in 1.. {
                client.flush().await;
                let is_served = || idle_seen.asked.borrow().len() == served + other;
                let is_held = || !seen.asked.borrow().is_empty();
                site.until("a server has it", || is_served() || is_held())
                    .await;
                if is_held() {
                    break;
                }
                assert_eq!(client.response(held).await.body, b"/held");
                held = client.open(("GET", "/held"), &[], End::Stream);
            }
            for _ in 0..6 {
                assert_eq!(client.get("/other").await.body, b"/other", "{balance}");
            }
            client.http.reset(held, Code::CANCEL, &mut client.out);
            client.flush().await;
        }
    });
}

#[test]
fn request_waiting_for_stream_is_reported_as_queued() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 1, |asked| match asked.path() {
            "/held" => Reaction::Hold,
            _ => echo_path(asked),
        });
        let more = "streams_max = 1\nconnections_shared_max = 1";
        let (address, service) = site.serve_worker(&plan(server, more));
        let mut client = Http2Client::connect(&site, &address, WINDOW).await;
        assert_eq!(client.get("/first").await.status, 200);
        let held = client.open(("GET", "/held"), &[], End::Stream);
        client.flush().await;
        site.until("it is held", || seen.asked.borrow().len() == 2)
            .await;
        let whole = client.open(("GET", "/whole"), &[], End::Stream);
        let follows = client.open(("POST", "/follows"), &[], End::Open);
        client.flush().await;
        let stage = |stage: Stage| service.worker.live.stages()[stage as usize];
        site.until("both wait", || stage(Stage::Queued) == 2).await;
        assert_eq!(stage(Stage::Waiting), 1);
        let site_in_force = service.site();
        let group = &site_in_force.groups[0];
        assert_eq!(group.view().queued, 2);
        client.http.reset(held, Code::CANCEL, &mut client.out);
        client.send_body(follows, b"the end").await;
        for (stream, body) in [(whole, "/whole"), (follows, "/follows")] {
            assert_eq!(client.response(stream).await.body, body.as_bytes());
        }
        assert_eq!((stage(Stage::Queued), group.view().queued), (0, 0));
        let traffic = service
            .worker
            .registry
            .views(crate::observe::registry::SeriesKind::Group);
        assert_eq!(traffic[0].effort.queued.count(), 2);
    });
}

#[test]
fn requests_waiting_for_stream_survive_goaway() {
    on_every_driver(|site| async move {
        // One stream at a time, and one request per connection.
        let (server, seen) = serve(&site, 1, |asked| {
            Reaction::RespondLast(Response::ok(asked.path()).with("content-length", "2"))
        });
        let more = "connections_shared_max = 1\neject = false\nretries = { count = 0 }";
        let address = site.serve(&plan(server, more));
        let mut clients = Vec::new();
        for number in 0..6 {
            let client = site.connect(&address).await;
            let request =
                format!("POST /{number} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
            client.send(request.as_bytes()).await;
            clients.push(client);
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let response = client.receive_text().await;
            assert!(
                response.ends_with(&format!("\r\n\r\n/{number}")),
                "{response}"
            );
        }
        assert_eq!(seen.asked.borrow().len(), 6);
    });
}
