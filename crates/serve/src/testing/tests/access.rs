//! Access control: networks, limits and passwords.

use std::num::NonZeroU32;
use std::time::Duration;

use onrush_config::plan::{
    Access, Action, BasicAuth, ForwardingFields, Network, Networks, OneLiner, Piece, Plan, Rate,
    RateKey, RateLimit, ResponseFilter, Template, Variable,
};

use crate::testing::harness::{Step, exchange_text, on_every_driver, on_kernel_cores, send};

const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

fn plan(access: Access) -> Plan {
    let mut plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
    plan.routes[0].access = access;
    plan.routes[0].action = Action::Respond {
        status: 200,
        body: Vec::new(),
        headers: Vec::new(),
    };
    plan
}

/// A rate of `count` requests per hour with an equal burst, so that it does not recover during the test.
fn hourly(key: RateKey, count: u32) -> Access {
    let rate = Rate {
        count: NonZeroU32::new(count).expect("some"),
        per: Duration::from_secs(3600),
        burst: count - 1,
    };
    limited(RateLimit {
        key,
        requests: Some(rate),
        concurrent: None,
    })
}

fn one_at_a_time() -> Access {
    limited(RateLimit {
        key: RateKey::Route,
        requests: None,
        concurrent: Some(NonZeroU32::MIN),
    })
}

fn limited(limit: RateLimit) -> Access {
    Access {
        rate_limit: Some(limit),
        ..Access::default()
    }
}

fn statuses(responses: &str) -> Vec<&str> {
    let responses = responses.split("HTTP/1.1 ").skip(1);
    responses.map(|response| &response[..3]).collect()
}

#[test]
fn denied_network_gets_403_and_keeps_connection() {
    let network = |bits| Network::new([127, 0, 0, 0].into(), bits).expect("a prefix");
    let denied = Access {
        deny: Networks(vec![network(8)]),
        ..Access::default()
    };
    assert_eq!(
        statuses(&exchange_text(&plan(denied), &GET.repeat(2))),
        ["403", "403"]
    );
    let allowed = Access {
        allow: Networks(vec![network(8)]),
        ..Access::default()
    };
    assert_eq!(statuses(&exchange_text(&plan(allowed), GET)), ["200"]);
}

#[test]
fn access_networks_match_forwarded_client_address() {
    let far = Network::new([192, 0, 2, 0].into(), 24).expect("a prefix");
    let mut plan = plan(Access {
        allow: Networks(vec![far]),
        ..Access::default()
    });
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n";
    assert_eq!(statuses(&exchange_text(&plan, request)), ["403"]);
    plan.forwarded.trust = Networks::all();
    assert_eq!(statuses(&exchange_text(&plan, request)), ["200"]);
    // Only fields of the configured kind count, although both kinds are sent to servers.
    let other = "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=192.0.2.1\r\n\r\n";
    for (x_forwarded, forwarded) in [(false, true), (true, true), (true, false), (false, false)] {
        (plan.forwarded.x_forwarded, plan.forwarded.forwarded) = (x_forwarded, forwarded);
        for (read, expected) in [
            (ForwardingFields::XForwarded, ["200", "403"]),
            (ForwardingFields::Forwarded, ["403", "200"]),
        ] {
            plan.forwarded.read = read;
            for (text, status) in [request, other].into_iter().zip(expected) {
                assert_eq!(statuses(&exchange_text(&plan, text)), [status]);
            }
        }
    }
}

#[test]
fn request_above_rate_gets_429_with_retry_after() {
    let responses = exchange_text(&plan(hourly(RateKey::Address, 2)), &GET.repeat(3));
    assert_eq!(statuses(&responses), ["200", "200", "429"]);
    assert!(
        responses.contains("\r\nRetry-After: 1800\r\n"),
        "{responses}"
    );
}

#[test]
fn rate_key_selects_counter() {
    let from = |name: &str| format!("GET / HTTP/1.1\r\nHost: h\r\nX-Key: {name}\r\n\r\n");
    let requests = [from("a"), from("b"), from("a"), GET.into(), GET.into()].concat();
    let by_header = hourly(RateKey::Header("x-key".into()), 1);
    for (access, wanted) in [
        (by_header, ["200", "200", "429", "200", "429"]),
        (
            hourly(RateKey::Route, 1),
            ["200", "429", "429", "429", "429"],
        ),
    ] {
        let responses = exchange_text(&plan(access), &requests);
        assert_eq!(statuses(&responses), wanted);
    }
}

#[test]
fn refusals_get_route_response_fields_if_configured() {
    for (on, edited) in [
        (ResponseFilter::RouteOnly, 1),
        (ResponseFilter::Always, 2),
        (ResponseFilter::Statuses(vec![(429, 429)]), 1),
    ] {
        let mut plan = plan(hourly(RateKey::Route, 1));
        plan.routes[0].edits.response.set = vec![(
            "X-Asked".into(),
            Template(vec![Piece::Variable(Variable::Path)]),
        )];
        plan.routes[0].edits.response_on = on;
        let responses = exchange_text(&plan, &GET.repeat(2));
        assert_eq!(statuses(&responses), ["200", "429"]);
        assert_eq!(responses.matches("\r\nX-Asked: /\r\n").count(), edited);
    }
}

#[test]
fn concurrency_counts_until_response_is_complete() {
    on_every_driver(|site| async move {
        let late = [
            Step::Read,
            Step::WaitForConnections(2),
            send(OK),
            Step::Read,
            send(OK),
        ];
        let upstream = site.upstream(&[&late, &[]]);
        let mut plan = upstream.plan();
        plan.routes[0].access = one_at_a_time();
        let address = site.serve(&plan);
        let mut first = site.connect(&address).await;
        first.send(GET.as_bytes()).await;
        site.until("the first request", || upstream.connections() == 1)
            .await;
        let mut second = site.connect(&address).await;
        second.send(GET.as_bytes()).await;
        let response = second.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 429 "), "{response}");
        assert!(response.contains("\r\nRetry-After: 1\r\n"), "{response}");
        drop(site.connect(&upstream.address.into()).await);
        let response = first.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        second.send(GET.as_bytes()).await;
        let response = second.receive_text().await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
    });
}

#[test]
fn disconnected_client_frees_concurrency_slot() {
    on_every_driver(|site| async move {
        let rest = 1_000_000;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n1", rest + 1);
        let upstream = site.upstream(&[
            &[
                Step::Read,
                send(&head),
                Step::WaitForConnections(2),
                Step::Send(vec![b'1'; rest]),
            ],
            &[],
            &[Step::Read, send(OK)],
        ]);
        let mut plan = upstream.plan();
        plan.routes[0].access = one_at_a_time();
        let address = site.serve(&plan);
        let mut gone = site.connect(&address).await;
        gone.send(GET.as_bytes()).await;
        gone.receive_until(b"\r\n\r\n").await;
        gone.stream.reset_when_dropped();
        drop(gone);
        drop(site.connect(&upstream.address.into()).await);
        let mut next = site.connect(&address).await;
        loop {
            next.send(GET.as_bytes()).await;
            let response = next.receive_text().await;
            if response.starts_with("HTTP/1.1 200 ") {
                break;
            }
            site.core.sleep(Duration::from_millis(1)).await;
        }
    });
}

/// Admits the user ali with the password "open sesame".
fn password() -> Access {
    let hash = "$5$rounds=1000$0123456789abcdef$hMqyugAVjDQo776SPDVVKvzB/HICJXIdagCAitBHeU8";
    Access {
        basic_auth: Some(BasicAuth {
            realm: "the cave".into(),
            users: vec![("ali".into(), hash.into())],
            file: None,
        }),
        ..Access::default()
    }
}

const ALI: &str = "Basic YWxpOm9wZW4gc2VzYW1l";

fn get_as(login: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: h\r\nAuthorization: {login}\r\n\r\n")
}

#[test]
fn missing_credentials_get_401() {
    let response = exchange_text(&plan(password()), &GET.repeat(2));
    assert_eq!(statuses(&response), ["401", "401"]);
    let challenge = "\r\nWWW-Authenticate: Basic realm=\"the cave\", charset=\"UTF-8\"\r\n";
    assert_eq!(response.matches(challenge).count(), 2, "{response}");
}

#[test]
fn rate_is_checked_before_password() {
    let access = Access {
        rate_limit: hourly(RateKey::Route, 1).rate_limit,
        ..password()
    };
    let responses = exchange_text(&plan(access), &GET.repeat(2));
    assert_eq!(statuses(&responses), ["401", "429"]);
}

// A thread checks passwords, and virtual time does not wait for threads, so these tests use kernel drivers only.

#[test]
fn only_correct_password_is_accepted() {
    on_kernel_cores(|site| async move {
        let address = site.serve(&plan(password()));
        let mut client = site.connect(&address).await;
        for (login, status) in [
            ("Basic YWxpOmNsb3NlIHNlc2FtZQ==", "401"),
            ("Basic YmFiYTpvcGVuIHNlc2FtZQ==", "401"),
            (ALI, "200"),
            (ALI, "200"),
            ("Basic YWxpOmNsb3NlIHNlc2FtZQ==", "401"),
            ("Bearer YWxpOm9wZW4gc2VzYW1l", "401"),
            (ALI, "200"),
        ] {
            client.send(get_as(login).as_bytes()).await;
            let response = client.receive_message().await;
            assert_eq!(statuses(&response), [status], "{login}");
        }
        let mut client = site.connect(&address).await;
        let responses = client.exchange(get_as(ALI).repeat(3).as_bytes()).await;
        let responses = String::from_utf8(responses).expect("text");
        assert_eq!(statuses(&responses), ["200"; 3]);
    });
}

#[test]
fn request_waits_once_for_password_check() {
    on_kernel_cores(|site| async move {
        let upstream = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
        let mut plan = upstream.plan();
        // If the second dispatch counted as well, the request would exceed the limit.
        plan.routes[0].access = Access {
            rate_limit: hourly(RateKey::Route, 1).rate_limit,
            ..password()
        };
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        let body = "b".repeat(100_000);
        let request = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nAuthorization: {ALI}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        client.send(request.as_bytes()).await;
        let response = client.receive_text().await;
        assert_eq!(statuses(&response), ["200"]);
        let seen = &upstream.requests()[0][0];
        assert!(
            seen.contains(&format!("\nAuthorization: {ALI}\n")),
            "{seen}"
        );
        assert!(seen.ends_with(&body), "{} bytes", seen.len());
    });
}

#[test]
fn disconnected_client_does_not_block_password_checks() {
    on_kernel_cores(|site| async move {
        let address = site.serve(&plan(password()));
        let gone = site.connect(&address).await;
        gone.send(get_as(ALI).as_bytes()).await;
        gone.stream.reset_when_dropped();
        drop(gone);
        let mut client = site.connect(&address).await;
        client.send(get_as(ALI).as_bytes()).await;
        let response = client.receive_message().await;
        assert_eq!(statuses(&response), ["200"]);
    });
}
