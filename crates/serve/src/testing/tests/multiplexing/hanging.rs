//! HTTP/2 servers that do not respond: a request fails at its own timeout, and others on the same connection continue.

use std::time::Duration;

use onrush_config::Plan;

use super::server::{Asked, Done, Response, serve};
use super::{ask_all, get, plan};
use crate::testing::harness::{configured, on_every_driver, on_simulated_cores};

const LATE: &str = "504 504 Gateway Timeout: the server did not respond in time\n";

fn ok(asked: &Asked) -> Done {
    let length = asked.path().len().to_string();
    Done::Respond(Response::ok(asked.path()).with("content-length", &length))
}

#[test]
fn a_request_without_a_response_is_a_504_and_others_on_its_connection_get_theirs() {
    let changes: [fn(&mut Plan); 2] = [
        |plan| plan.timeouts.upstream_first_byte = Duration::from_secs(1),
        |plan| plan.timeouts.request = Some(Duration::from_secs(1)),
    ];
    for change in changes {
        on_every_driver(move |site| async move {
            let (server, seen) = serve(&site, 100, |asked| match asked.path() {
                "/0" => Done::Hold,
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
fn requests_of_a_connection_that_ends_are_sent_again() {
    on_every_driver(|site| async move {
        let (server, seen) = serve(&site, 100, |asked| match asked.connection {
            0 => Done::Close,
            _ => ok(asked),
        });
        let bodies = ask_all(&site, &plan(server, ""), 5).await;
        let expected: Vec<String> = (0..5).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
        assert_eq!(seen.connections.get(), 2);
    });
}

#[test]
fn a_server_that_hangs_is_taken_out_after_five_requests() {
    // Simulated cores only: kernel cores may stall, and timeouts during a stall do not count against the server.
    on_simulated_cores(|site| async move {
        let (hung, seen) = serve(&site, 100, |_| Done::Hold);
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
