//! Parts of a message that are not forwarded: fields of interim responses, hop-by-hop trailers, and the Host that a
//! route sets.

use onrush_config::plan::{Action, Compress, Mirror, Plan, ResponseFilter};
use onrush_config::value::parse_template;

use super::edits::{edits, text};
use crate::testing::harness::{
    Step, forward, forward_undisturbed, forward_with, on_every_driver, on_kernel_cores, send,
};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[test]
fn interim_response_fields_are_edited() {
    let interim = "HTTP/1.1 103 Early Hints\nX-Gone: 1\nX_GONE: 2\nLink: </a>\nX-Set: old\nX-Added: 1\nConnection: x-hop\nX-Hop: 1\nKeep-Alive: 5\nProxy-Connection: x\n\n";
    let response = format!("{interim}{OK}")
        .replace("\r\n", "\n")
        .replace('\n', "\r\n");
    for on in [
        ResponseFilter::RouteOnly,
        ResponseFilter::Always,
        // The final status is not known yet.
        ResponseFilter::Statuses(vec![(200, 200)]),
    ] {
        let change = |plan: &mut Plan| {
            plan.routes[0].edits.response_on = on.clone();
            let (set, added) = (("X-Set", text("new")), ("X-Added", text("2")));
            plan.routes[0].edits.response = edits(&["x-gone"], &[set], &[added]);
        };
        let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
        let got = forward_with(&change, &[&[Step::Read, send(&response)]], request).response;
        assert_eq!(
            got,
            "HTTP/1.1 103 Early Hints\nLink: </a>\nX-Added: 1\n\n\
             HTTP/1.1 200 OK\nContent-Length: 0\nDate: -----------------------------\nX-Set: new\nX-Added: 2\n\n"
        );
    }
}

/// A chunked message whose Connection names one of its trailers, with LF line ends.
const CHUNKED: &str = "Connection: close, X-Sum, TE\nTransfer-Encoding: chunked\n\n3\nabc\n0\nX-Sum: 1\nX-Kept: 2\nProxy-Connection: x\nx-sum: 3\n\n";

/// The forwarded part after the head.
const PASSED: &str = "\n\n3\nabc\n0\nX-Kept: 2\n\n";

fn lines(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[test]
fn trailers_listed_in_connection_are_dropped() {
    let request = lines(&format!("POST / HTTP/1.1\nHost: h\n{CHUNKED}"));
    let response = send(&lines(&format!("HTTP/1.1 200 OK\n{CHUNKED}")));
    // All at once, and in two pieces: then the head is forwarded before its trailers arrive.
    let scripts: [&[Step]; 1] = [&[Step::Read, response]];
    for outcome in [
        forward(&scripts, &request),
        forward_undisturbed(&scripts, &request),
    ] {
        let (at_server, at_client) = (outcome.requests.concat().concat(), outcome.response);
        assert!(at_server.ends_with(PASSED), "{at_server}");
        assert!(at_client.ends_with(PASSED), "{at_client}");
    }
}

#[test]
fn connection_options_do_not_affect_next_request() {
    let first = lines(&format!("POST / HTTP/1.1\nHost: h\n{CHUNKED}")).replace("close, ", "");
    let second = lines("POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\n\n0\nX-Sum: 1\n\n");
    let script = [Step::Read, send(OK), Step::Again];
    let outcome = forward(&[&script], &format!("{first}{second}"));
    let requests = outcome.requests.concat();
    assert!(requests[0].ends_with(PASSED), "{requests:?}");
    assert!(requests[1].ends_with("\n\n0\nX-Sum: 1\n\n"), "{requests:?}");
}

#[test]
fn compressed_response_drops_hop_by_hop_trailers() {
    let head = "HTTP/1.1 200 OK\nContent-Type: text/plain\n";
    let response = send(&lines(&format!("{head}{CHUNKED}")));
    // Chunk boundaries depend on how the response arrives.
    on_every_driver(|site| {
        let upstream = site.upstream(&[&[Step::Read, response.clone()]]);
        let mut plan = upstream.plan();
        plan.routes[0].compress = Some(Compress::default());
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n";
            let got = client.exchange(request).await;
            let got = String::from_utf8_lossy(&got);
            assert!(got.contains("\r\nContent-Encoding: gzip\r\n"), "{got}");
            assert!(got.ends_with("\r\n0\r\nX-Kept: 2\r\n\r\n"), "{got}");
        }
    });
}

#[test]
fn mirrored_request_drops_hop_by_hop_trailers() {
    let request = lines(&format!("POST / HTTP/1.1\nHost: h\n{CHUNKED}"));
    on_kernel_cores(|site| {
        let request = request.clone();
        async move {
            let main = site.upstream(&[&[Step::Read, send(OK)]]);
            let other = site.upstream(&[&[Step::Read, send(OK)]]);
            let mut plan = main.plan();
            plan.upstreams.extend(other.plan().upstreams);
            let Action::Forward { mirror, .. } = &mut plan.routes[0].action else {
                unreachable!("it forwards");
            };
            *mirror = Some(Mirror {
                upstream: 1,
                share: 10_000,
            });
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            client.send(request.as_bytes()).await;
            client.receive_text().await;
            site.until("a copy", || !other.requests().concat().is_empty())
                .await;
            for requests in [main.requests().concat(), other.requests().concat()] {
                assert!(requests[0].ends_with(PASSED), "{requests:?}");
            }
        }
    });
}

#[test]
fn edited_trailers_are_dropped() {
    let change = |plan: &mut Plan| {
        let both = edits(&["x_kept"], &[("X-Sum", text("s"))], &[]);
        plan.routes[0].edits.request = both.clone();
        plan.routes[0].edits.response = both;
    };
    let message = "Transfer-Encoding: chunked\n\n0\nX-Sum: 1\nX-Kept: 2\nX-Other: 3\n\n";
    let request = lines(&format!("POST / HTTP/1.1\nHost: h\n{message}"));
    let response = send(&lines(&format!("HTTP/1.1 200 OK\n{message}")));
    let outcome = forward_with(&change, &[&[Step::Read, response]], &request);
    for got in [outcome.requests.concat().concat(), outcome.response] {
        assert!(got.ends_with("X-Sum: s\n\n0\nX-Other: 3\n\n"), "{got}");
    }
}

#[test]
fn edited_host_must_be_valid() {
    for (template, fields, host) in [
        (
            "{header:X-A}",
            "Host: h\nX-A: a.example:80\n",
            Some("a.example:80"),
        ),
        ("{header:X-A}.in", "Host: h\nX-A: a\n", Some("a.in")),
        ("{host.name}", "Host: h:80\n", Some("h")),
        ("{header:X-A}", "Host: h\n", None),
        ("{header:X-A}", "Host: h\nX-A: a b\n", None),
        ("{header:X-A}", "Host: h\nX-A: a@b\n", None),
        ("{header:X-A}", "Host: h\nX-A: a/b\n", None),
        ("{header:X-A}", "Host: h\nX-A: :80\n", None),
        ("{header:X-A}:1", "Host: h\nX-A: a:1\n", None),
        ("{host}", "Host:\n", None),
        ("{tls.server_name}", "Host: h\n", None),
        ("{path}", "Host: h\n", None),
    ] {
        let change = |plan: &mut Plan| {
            let template = parse_template(template).expect(template);
            plan.routes[0].edits.request = edits(&[], &[("Host", template)], &[]);
        };
        let request = lines(&format!("GET / HTTP/1.1\n{fields}\n"));
        let outcome = forward_with(&change, &[&[Step::Read, send(OK)]], &request);
        let seen = outcome.requests.concat().concat();
        match host {
            Some(host) => {
                let start = format!("GET / HTTP/1.1\nHost: {host}\n");
                assert!(seen.starts_with(&start), "{template}: {seen}");
            }
            None => {
                let response = outcome.response;
                assert!(
                    response.starts_with("HTTP/1.1 400 "),
                    "{template}: {response}"
                );
                assert!(response.contains("is not a host"), "{template}: {response}");
                assert_eq!(seen, "", "{template} by {fields}");
            }
        }
    }
}

#[test]
fn edited_content_encoding_disables_compression() {
    let body = "text ".repeat(1000);
    let response = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for template in ["{header:X-Coding}", "identity", "gzip"] {
        for is_fixed in [false, true] {
            let change = |plan: &mut Plan| {
                plan.routes[0].compress = Some(Compress::default());
                let coding = parse_template(template).expect(template);
                plan.routes[0].edits.response = edits(&[], &[("content-encoding", coding)], &[]);
                if is_fixed {
                    plan.routes[0].action = Action::Respond {
                        status: 200,
                        body: body.clone().into_bytes(),
                        headers: Vec::new(),
                    };
                }
            };
            let request =
                "GET / HTTP/1.1\r\nHost: h\r\nX-Coding: gzip\r\nAccept-Encoding: gzip, br\r\n\r\n";
            let got = forward_with(&change, &[&[Step::Read, send(&response)]], request).response;
            let lines = got.lines().map(str::to_ascii_lowercase);
            let said = lines.filter(|line| line.starts_with("content-encoding: "));
            assert_eq!(said.count(), 1, "{template}: {got}");
            assert!(got.ends_with(&body), "{template}: {got}");
        }
    }
}

#[test]
fn identity_coding_is_replaced() {
    let change = |plan: &mut Plan| plan.routes[0].compress = Some(Compress::default());
    let response = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: identity\r\nContent-Length: 5000\r\n\r\n";
    let request = "HEAD / HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip\r\n\r\n";
    let got = forward_with(&change, &[&[Step::Read, send(response)]], request).response;
    let lines = got
        .lines()
        .filter(|line| line.starts_with("Content-Encoding: "));
    assert_eq!(lines.collect::<Vec<_>>(), ["Content-Encoding: gzip"]);
}
