//! Requests of many clients on pipelined connections: every client gets its own response, whatever the others do.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use onrush_config::Plan;
use onrush_config::plan::{Server, ServerAddress};

use crate::testing::harness::{
    Step, TestCore, Upstream, on_every_driver, on_simulated_cores, send,
};

/// Forwards everything to `upstream`, with `depth` requests at a time on one connection.
fn plan(upstream: &Upstream, depth: u32) -> Plan {
    let mut plan = upstream.plan();
    plan.upstreams[0].pipeline = NonZeroU32::new(depth);
    plan
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
}

fn ok(body: &str) -> Step {
    let length = body.len();
    send(&format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
    ))
}

/// So many clients ask at the same time; returns their responses' bodies.
async fn ask(site: &TestCore, plan: &Plan, clients: usize) -> Vec<String> {
    let address = site.serve(plan);
    let mut connections = Vec::new();
    for number in 0..clients {
        let client = site.connect(&address).await;
        client.send(get(&format!("/{number}")).as_bytes()).await;
        connections.push(client);
    }
    let mut bodies = Vec::new();
    for client in &mut connections {
        let response = client.receive_text().await;
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        bodies.push(format!("{} {body}", &head[9..12]));
    }
    bodies
}

/// How many clients got what `is_other` says; all others have to have got their own path. Which of them was the first on
/// the connection is up to the network.
fn others(bodies: &[String], is_other: impl Fn(&str) -> bool) -> usize {
    let clients = bodies.iter().enumerate();
    let others = clients.filter(|(number, body)| **body != format!("200 /{number}"));
    let others: Vec<_> = others.collect();
    for (number, body) in &others {
        let begin = &body[..body.len().min(80)];
        assert!(is_other(body), "client {number} got {begin}");
    }
    others.len()
}

#[test]
fn many_clients_share_a_connection_and_each_gets_its_response() {
    on_every_driver(|site| async move {
        let echo = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&echo]);
        let bodies = ask(&site, &plan(&upstream, 8), 8).await;
        let expected: Vec<String> = (0..8).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_full_connection_is_joined_by_another() {
    on_every_driver(|site| async move {
        let patient = [
            Step::WaitForConnections(3),
            Step::Read,
            Step::Echo,
            Step::Again,
        ];
        let upstream = site.upstream(&[&patient]);
        let bodies = ask(&site, &plan(&upstream, 2), 6).await;
        let expected: Vec<String> = (0..6).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
        assert_eq!(upstream.connections(), 3);
    });
}

#[test]
fn requests_behind_a_connection_that_ends_are_sent_again() {
    on_every_driver(|site| async move {
        // One response, and then the end for those behind it.
        let dying = [Step::Read, Step::Echo];
        let living = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&dying, &living]);
        let bodies = ask(&site, &plan(&upstream, 8), 5).await;
        let expected: Vec<String> = (0..5).map(|number| format!("200 /{number}")).collect();
        assert_eq!(bodies, expected);
    });
}

#[test]
fn a_long_response_delays_no_other() {
    on_every_driver(|site| async move {
        // The first response is never finished before the others are.
        let long = [
            Step::Read,
            send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"),
            Step::Send(vec![b'x'; 50_000]),
            Step::WaitForConnections(2),
            Step::Send(vec![b'x'; 50_000]),
            // Closing with requests unread would reset the connection.
            Step::WaitForEnd,
        ];
        let echo = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&long, &echo]);
        let bodies = ask(&site, &plan(&upstream, 8), 4).await;
        let long = format!("200 {}", "x".repeat(100_000));
        assert_eq!(others(&bodies, |body| body == long), 1);
    });
}

/// One client after the other, or some at the same time, ask for long responses. Returns how many connections were made to the
/// server, and how many of them are left.
async fn ask_for_long(site: &TestCore, clients: usize) -> (usize, usize) {
    let long = [
        Step::Read,
        send("HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n"),
        Step::Send(vec![b'x'; 40_000]),
        Step::Again,
    ];
    let upstream = site.upstream(&[&long]);
    let address = site.serve(&plan(&upstream, 8));
    let finished = Rc::new(Cell::new(0));
    for _ in 0..clients {
        let (own, address, finished) = (site.clone(), address.clone(), Rc::clone(&finished));
        let asks = async move {
            let mut client = own.connect(&address).await;
            for turn in 0..15 {
                client.send(get("/").as_bytes()).await;
                let response = client.receive_text().await;
                assert!(response.ends_with("xx"), "turn {turn}");
            }
            finished.set(finished.get() + 1);
        };
        site.core.spawn(asks);
    }
    site.until("all have got theirs", || finished.get() == clients)
        .await;
    (upstream.connections(), upstream.open())
}

#[test]
fn long_responses_one_after_the_other_use_one_connection() {
    on_every_driver(|site| async move {
        assert_eq!(ask_for_long(&site, 1).await, (1, 1));
    });
}

#[test]
fn connections_of_requests_behind_long_responses_are_used_again() {
    on_every_driver(|site| async move {
        let (_, open) = ask_for_long(&site, 4).await;
        // Each client has one at most, and one may be about to end.
        assert!(open <= 5, "{open} connections are left");
    });
}

#[test]
fn a_malformed_response_is_a_502_for_one_and_a_retry_for_those_behind() {
    on_every_driver(|site| async move {
        let garbage = [Step::Read, send("SSH-2.0\r\n\r\n"), Step::WaitForEnd];
        let echo = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&garbage, &echo]);
        let bodies = ask(&site, &plan(&upstream, 8), 3).await;
        assert_eq!(others(&bodies, |body| body.starts_with("502 ")), 1);
    });
}

#[test]
fn requests_of_a_connection_that_ends_within_a_response_are_sent_again() {
    for part in [
        "HTTP/1.1 2",
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx",
    ] {
        on_every_driver(|site| async move {
            let echo = [Step::Read, Step::Echo, Step::Again];
            let upstream = site.upstream(&[&[Step::Read, send(part)], &echo]);
            let bodies = ask(&site, &plan(&upstream, 8), 3).await;
            assert_eq!(others(&bodies, |body| body.starts_with("502 ")), 0);
        });
    }
}

#[test]
fn a_body_after_a_response_that_has_none_delays_nobody() {
    on_every_driver(|site| async move {
        let none = send("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
        let first = [
            Step::Read,
            none,
            Step::Read,
            send("<p>late</p>\r\n"),
            Step::WaitForEnd,
        ];
        let echo = [Step::Read, Step::Echo, Step::Again];
        let upstream = site.upstream(&[&first, &echo]);
        let address = site.serve(&plan(&upstream, 8));
        let mut client = site.connect(&address).await;
        for status in ["304", "200"] {
            client.send(get("/").as_bytes()).await;
            assert_eq!(client.receive_text().await[9..12], *status);
        }
    });
}

#[test]
fn what_may_not_be_repeated_has_a_connection_of_its_own() {
    on_every_driver(|site| async move {
        // No response comes before both requests have a connection.
        let patient = [
            Step::Read,
            Step::WaitForConnections(2),
            ok("x"),
            Step::Again,
        ];
        let upstream = site.upstream(&[&patient]);
        let address = site.serve(&plan(&upstream, 8));
        let mut clients = Vec::new();
        for request in [
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx".to_owned(),
            get("/"),
        ] {
            let client = site.connect(&address).await;
            client.send(request.as_bytes()).await;
            clients.push(client);
        }
        for client in &mut clients {
            assert!(client.receive_text().await.ends_with("\r\n\r\nx"));
        }
        assert_eq!(upstream.connections(), 2);
    });
}

#[test]
fn a_client_that_goes_away_leaves_the_others_responses_in_order() {
    on_every_driver(|site| async move {
        let slow = [
            Step::Read,
            Step::Wait(Duration::from_millis(5)),
            Step::Echo,
            Step::Again,
        ];
        let upstream = site.upstream(&[&slow]);
        let (address, service) = site.serve_worker(&plan(&upstream, 8));
        let mut clients = Vec::new();
        for number in 0..4 {
            let client = site.connect(&address).await;
            client.send(get(&format!("/{number}")).as_bytes()).await;
            clients.push(client);
        }
        let meter = Rc::clone(&service);
        site.until("the first response", || {
            meter.worker.meter.totals().requests > 0
        })
        .await;
        drop(clients.remove(2));
        for (client, path) in clients.iter_mut().zip(["/0", "/1", "/3"]) {
            let response = client.receive_text().await;
            assert!(response.ends_with(path), "{response}");
        }
    });
}

/// Longer than a server that is well takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(1);

const LATE: &str = "504 504 Gateway Timeout: the server did not respond in time\n";

/// The first connection follows `hung`, all others respond; of four clients one gets 504, and the others their responses
/// after they have been sent again once.
async fn one_of_four_is_late(site: &TestCore, hung: &[Step], configure: impl Fn(&mut Plan)) {
    let echo = [Step::Read, Step::Echo, Step::Again];
    let upstream = site.upstream(&[hung, &echo]);
    let mut plan = plan(&upstream, 8);
    configure(&mut plan);
    let bodies = ask(site, &plan, 4).await;
    assert_eq!(others(&bodies, |body| body == LATE), 1);
    assert_eq!(upstream.requests()[1..].concat().len(), 3);
}

#[test]
fn a_server_that_hangs_before_its_head_is_a_504_for_the_oldest_and_a_retry_for_those_behind() {
    on_every_driver(|site| async move {
        for hung in [
            vec![Step::WaitForEnd],
            vec![Step::Read, send("HTTP/1.1 200"), Step::WaitForEnd],
        ] {
            let configure = |plan: &mut Plan| plan.timeouts.upstream_first_byte = PATIENCE;
            one_of_four_is_late(&site, &hung, configure).await;
        }
    });
}

#[test]
fn a_server_that_hangs_in_a_short_body_is_a_504_for_the_oldest_and_a_retry_for_those_behind() {
    on_every_driver(|site| async move {
        let begun = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab";
        let hung = [Step::Read, send(begun), Step::WaitForEnd];
        let configure = |plan: &mut Plan| plan.timeouts.upstream_body = PATIENCE;
        one_of_four_is_late(&site, &hung, configure).await;
    });
}

#[test]
fn a_server_that_hangs_behind_a_response_is_late_for_the_next() {
    on_every_driver(|site| async move {
        let hung = [Step::Read, Step::Echo, Step::WaitForEnd];
        let upstream = site.upstream(&[&hung]);
        let mut plan = plan(&upstream, 8);
        plan.timeouts.upstream_first_byte = PATIENCE;
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        client.send(get("/0").as_bytes()).await;
        assert!(client.receive_text().await.ends_with("/0"));
        client.send(get("/1").as_bytes()).await;
        assert!(client.receive_text().await.starts_with("HTTP/1.1 504 "));
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_request_as_a_whole_has_its_time_on_a_pipelined_connection_too() {
    on_every_driver(|site| async move {
        let begun = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab";
        for hung in [
            vec![Step::WaitForEnd],
            vec![Step::Read, send(begun), Step::WaitForEnd],
        ] {
            let upstream = site.upstream(&[&hung]);
            let mut plan = plan(&upstream, 8);
            plan.timeouts.request = Some(Duration::from_millis(200));
            let bodies = ask(&site, &plan, 1).await;
            assert_eq!(bodies, [LATE]);
            assert_eq!(upstream.connections(), 1);
        }
    });
}

#[test]
fn the_time_behind_slower_requests_does_not_count() {
    on_simulated_cores(|site| async move {
        let slow = [
            Step::Read,
            Step::Wait(PATIENCE / 2),
            Step::Echo,
            Step::Again,
        ];
        let upstream = site.upstream(&[&slow]);
        let mut plan = plan(&upstream, 8);
        plan.timeouts.upstream_first_byte = PATIENCE;
        let bodies = ask(&site, &plan, 8).await;
        assert_eq!(others(&bodies, |_| false), 0);
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_body_that_goes_on_is_waited_for() {
    on_simulated_cores(|site| async move {
        let mut slow = vec![Step::Read];
        slow.push(send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"));
        for byte in ["g", "o", "o", "d"] {
            slow.extend([Step::Wait(PATIENCE / 2), send(byte)]);
        }
        slow.push(Step::Again);
        let upstream = site.upstream(&[&slow]);
        let mut plan = plan(&upstream, 8);
        plan.timeouts.upstream_body = PATIENCE;
        assert_eq!(ask(&site, &plan, 2).await, ["200 good", "200 good"]);
        assert_eq!(upstream.connections(), 1);
    });
}

#[test]
fn a_server_that_hangs_on_pipelined_connections_is_taken_out_after_five() {
    // Only there is no core ever held up, which would not be blamed on the server.
    on_simulated_cores(|site| async move {
        let hung = site.upstream(&[&[Step::Read, Step::WaitForEnd]]);
        let good = site.upstream(&[&[Step::Read, Step::Echo, Step::Again]]);
        let mut plan = plan(&hung, 8);
        let servers = [&hung, &good].map(|server| Server::at(ServerAddress::Ip(server.address)));
        plan.upstreams[0].servers = servers.into();
        plan.timeouts.upstream_first_byte = Duration::from_millis(1000);
        let (address, service) = site.serve_worker(&plan);
        let mut client = site.connect(&address).await;
        for _ in 0..20 {
            client.send(get("/").as_bytes()).await;
            client.receive_text().await;
        }
        assert!(service.group(0).is_out(0));
        assert_eq!(hung.requests().concat().len(), 5);
    });
}
