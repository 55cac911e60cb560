//! HTTP/2 servers that do not respond: a request fails at its own timeout, and others on the same connection continue.

use std::time::Duration;

use onrush_config::Plan;

use super::server::{Asked, Reaction, Response, serve};
use super::{ask_all, get, plan};
use crate::testing::harness::{configured, on_every_driver, on_simulated_cores};

const LATE: &str = "504 504 Gateway Timeout: the server did not respond in time\n";

fn ok(asked: &Asked) -> Reaction {
    let length = asked.path().len().to_string();
    Reaction::Respond(Response::ok(asked.path()).with("content-length", &length))
}

#[test]
fn unanswered_request_gets_504_and_others_continue() {
    let changes: [fn(&mut Plan); 2] = [
        |plan| plan.timeouts.upstream_first_byte = Duration::from_secs(1),
        |plan| plan.timeouts.request = Some(Duration::from_secs(1)),
    ];
    for change in changes {
        on_every_driver(move |site| async move {
            let (server, seen) = serve(&site, 100, |asked| match asked.path() {
                "/0" => Reaction::Hold,
                _ => ok(asked),
            });
            let mut plan = plan(server, "");
            change(&mut plan);
            let bodies = ask_all(&site, &plan, 4).await;
            assert_eq!(bodies, [LATE, "200 /1", "200 /2", "200 /3"]);
            assert_eq!(seen.connections.get(), 1);
            assert_eq!(seen.asked.borrow().len(), 4);
        });
    }
}

#[test]
fn closed_connection_retries_requests() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.connection {
            0 => Reaction::Close,
            _ => ok(asked),
        });
        let bodies = ask_all(&site, &plan(server, ""), 5).await;
        let expected: Vec<String> = (0..5).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
        assert_eq!(seen.connections.get(), 2);
    });
}

#[test]
fn hanging_server_is_ejected_after_five_requests() {
    // Simulated cores only: kernel cores may stall, and timeouts during a stall do not count against the server.
    on_simulated_cores(|site| async move {
        let (hung, seen) = serve(&site, 100, |_| Reaction::Hold);
        let (good, _) = serve(&site, 100, ok);
        let plan = configured(&format!(
            "[timeouts]\nupstream_first_byte = \"1s\"\n[[route]]\nforward = \"up\"\n\
             [upstream.up]\nservers = [\"{hung}\", \"{good}\"]\nprotocol = \"h2\"\n"
        ));
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            client.send(get("/").as_bytes()).await;
            client.receive_text().await;
        }
        assert!(service.group(0).is_out(0));
        assert_eq!(seen.asked.borrow().len(), 5);
    });
}
