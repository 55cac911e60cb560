//! Route matching, and redirects.

use std::num::NonZeroU32;

use onrush_config::plan::{
    Action, Network, Networks, OneLiner, PathMatch, Piece, Plan, Route, Scheme, Template, Variable,
};
use onrush_config::value::parse_template;

use crate::testing::harness::{Step, exchange_text, forward_with, on_every_driver, send};

fn respond(status: u16) -> Action {
    Action::Respond {
        status,
        body: Vec::new(),
        headers: Vec::new(),
    }
}

fn plan(routes: Vec<Route>) -> Plan {
    let mut plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
    plan.routes = routes;
    plan
}

fn status(plan: &Plan, request: &str) -> String {
    let response = exchange_text(plan, &request.replace('\n', "\r\n"));
    response.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn repeated_slashes_do_not_bypass_route() {
    let mut admin = Route::to(respond(403));
    admin.when.path = PathMatch::Prefix("/admin".into());
    let plan = plan(vec![admin, Route::to(respond(200))]);
    for (path, wanted) in [
        ("/admin", "403"),
        ("//admin", "403"),
        ("/x/..//admin/", "403"),
        ("/%61dmin", "403"),
        ("/x//admin", "200"),
    ] {
        let request = format!("GET {path} HTTP/1.1\nHost: h\n\n");
        assert_eq!(status(&plan, &request), wanted, "{path}");
    }
}

#[test]
fn negated_condition_selects_route() {
    let plan = crate::testing::harness::configured(
        r#"
        [[route]]
        not = [{ path = "/public/" }, { from = "127.0.0.0/8", method = "GET" }]
        respond = { status = 403 }
        [[route]]
        respond = { status = 200 }
        "#,
    );
    for (request, wanted) in [
        ("GET / HTTP/1.1\nHost: h\n\n", "200"),
        ("DELETE / HTTP/1.1\nHost: h\n\n", "403"),
        ("DELETE /public/x HTTP/1.1\nHost: h\n\n", "200"),
        ("DELETE /public/../x HTTP/1.1\nHost: h\n\n", "403"),
    ] {
        assert_eq!(status(&plan, request), wanted, "{request}");
    }
}

#[test]
fn scheme_condition_selects_route() {
    let mut plain = Route::to(respond(301));
    plain.when.scheme = Some(Scheme::Http);
    let mut plan = plan(vec![plain, Route::to(respond(200))]);
    let request = |said: &str| format!("GET / HTTP/1.1\nHost: h\nX-Forwarded-Proto: {said}\n\n");
    assert_eq!(status(&plan, &request("https")), "301");
    // A trusted proxy that terminates TLS may report the scheme.
    plan.forwarded.trust = Networks(vec![
        Network::new([127, 0, 0, 1].into(), 32).expect("a prefix"),
    ]);
    assert_eq!(status(&plan, &request("https")), "200");
    assert_eq!(status(&plan, &request("http")), "301");
}

#[test]
fn client_network_selects_route() {
    let mut near = Route::to(respond(200));
    near.when.from = Some(Networks(vec![
        Network::new([192, 0, 2, 0].into(), 24).expect("a prefix"),
    ]));
    let mut plan = plan(vec![near, Route::to(respond(403))]);
    let request = "GET / HTTP/1.1\nHost: h\nX-Forwarded-For: 192.0.2.1\n\n";
    assert_eq!(status(&plan, request), "403");
    plan.forwarded.trust = Networks(vec![
        Network::new([127, 0, 0, 1].into(), 32).expect("a prefix"),
    ]);
    assert_eq!(status(&plan, request), "200");
}

fn redirected(request: &str, template: &str) -> String {
    let mut route = Route::to(Action::Redirect {
        status: 308,
        location: parse_template(template).expect(template),
    });
    route.when.path = PathMatch::Prefix("/old".into());
    exchange_text(&plan(vec![route, Route::to(respond(404))]), request)
}

fn location(target: &str, template: &str) -> String {
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: h.example:80\r\nX-A: a b\u{e9}\tc\r\n\r\n");
    let response = redirected(&request, template);
    let line = response
        .split("\r\n")
        .find_map(|line| line.strip_prefix("Location: "));
    assert!(
        response.starts_with("HTTP/1.1 308 Permanent Redirect\r\n"),
        "{template}: {response}"
    );
    line.unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[test]
fn redirect_expands_template() {
    for (target, template, wanted) in [
        (
            "/old/a%20b?c",
            "https://{host.name}{uri}",
            "https://h.example/old/a%20b?c",
        ),
        (
            "/old/a%0d%0aX:%20y",
            "/new{path.rest}",
            "/new/a%0d%0aX:%20y",
        ),
        ("/old", "/{header:X-A}", "/a%20b%C3%A9%09c"),
        (
            "/old?x",
            "{scheme}://{host}/new?{query}",
            "http://h.example:80/new?x",
        ),
        ("/old/b", "//cdn.example{path.rest}", "//cdn.example/b"),
        ("/old", "app+x://{host.name}", "app+x://h.example"),
        ("/old", "https://a.example", "https://a.example"),
        ("/old", "https://a.example{path.rest}", "https://a.example"),
    ] {
        assert_eq!(location(target, template), wanted, "{target} by {template}");
    }
}

#[test]
fn redirect_variables_cannot_change_host() {
    for (target, template, wanted) in [
        ("/old//evil.example", "{path.rest}", "/evil.example"),
        ("//old/evil.example", "{path}", "/old/evil.example"),
        ("//old/evil.example?x", "{uri}", "/old/evil.example?x"),
        ("/old/evil.example", "/{path.rest}", "/evil.example"),
        ("/old//evil.example", "/{path.rest}", "/evil.example"),
        ("/old/\\evil.example", "/{path.rest}", "/evil.example"),
        ("/old?/evil.example", "/{query}", "/evil.example"),
        ("/old?\\evil.example", "/{query}", "/evil.example"),
        ("/old?\\/evil.example", "{query}", "/evil.example"),
        (
            "/old?https://evil.example",
            "{query}",
            "/https://evil.example",
        ),
        (
            "/old?javascript:alert(1)",
            "{query}",
            "/javascript:alert(1)",
        ),
        ("/old", "{query}", "/"),
        (
            "/old?.evil.example",
            "https://a.example{query}",
            "https://a.example/.evil.example",
        ),
        (
            "/old?@evil.example",
            "https://a.example{query}",
            "https://a.example/@evil.example",
        ),
        (
            "/old?:80@evil.example",
            "https://{host}{query}",
            "https://h.example:80/:80@evil.example",
        ),
        (
            "/old?\\@evil.example",
            "https://a.example{query}",
            "https://a.example/\\@evil.example",
        ),
        (
            "/old",
            "https://a.example{header:X-A}",
            "https://a.example/a%20b%C3%A9%09c",
        ),
        (
            "/old?.evil.example",
            "//a.example{query}",
            "//a.example/.evil.example",
        ),
    ] {
        assert_eq!(location(target, template), wanted, "{target} by {template}");
    }
}

#[test]
fn redirect_to_invalid_host_is_refused() {
    for (template, fields) in [
        ("https://{host}{uri}", "Host:\n"),
        ("https://{host.name}:8443/", "Host:\n"),
        ("//{host}{uri}", "Host:\n"),
        ("https://{header:X-A}{uri}", "Host: h\n"),
        ("https://{header:X-A}{uri}", "Host: h\nX-A: a@b\n"),
        (
            "https://{header:X-A}.example/",
            "Host: h\nX-A: evil.example/\n",
        ),
        (
            "https://{header:X-A}.example/",
            "Host: h\nX-A: evil.example\\\n",
        ),
        (
            "https://a.example:{header:X-A}/",
            "Host: h\nX-A: @evil.example\n",
        ),
        ("{header:X-A}://{host}/", "Host: h\nX-A: javascript\n"),
        ("{header:X-A}://{host}/", "Host: h\n"),
        ("https://{path.rest}", "Host: h\n"),
    ] {
        let request = format!("GET /old/x HTTP/1.1\n{fields}\n").replace('\n', "\r\n");
        let response = redirected(&request, template);
        assert!(
            response.starts_with("HTTP/1.1 400 "),
            "{template}: {response}"
        );
        assert!(!response.contains("Location"), "{template}: {response}");
    }
    let request = "GET /old/x HTTP/1.0\r\n\r\n";
    let response = redirected(request, "https://{host}{uri}");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    // A proxy in front reports scheme and host.
    let request = "GET /old/x HTTP/1.1\r\nHost: h\r\nX-A: https\r\nX-B: b.example:8\r\n\r\n";
    let response = redirected(request, "{header:X-A}://{header:X-B}{uri}");
    assert!(
        response.contains("\r\nLocation: https://b.example:8/old/x\r\n"),
        "{response}"
    );
}

#[test]
fn location_edit_variables_cannot_change_host() {
    for (template, target, wanted) in [
        ("/{query}", "/?/evil.example", Some("/evil.example")),
        ("{path}", "//evil.example", Some("/evil.example")),
        (
            "https://a.example{query}",
            "/?.b",
            Some("https://a.example/.b"),
        ),
        ("https://{host}{uri}", "/x", Some("https://h/x")),
        (
            "http://{server}{path}?{query}",
            "/x?y",
            Some("http://SERVER/x?y"),
        ),
        ("https://{header:X-A}/", "/", None),
    ] {
        let change = |plan: &mut Plan| {
            let place = parse_template(template).expect(template);
            plan.routes[0].edits.response.set = vec![("location".into(), place)];
        };
        let response = "HTTP/1.1 201 Created\r\nLocation: /own\r\nContent-Length: 0\r\n\r\n";
        let request = format!("GET {target} HTTP/1.1\r\nHost: h\r\nX-A: b@c\r\n\r\n");
        let got = forward_with(&change, &[&[Step::Read, send(response)]], &request).response;
        let lines = got
            .lines()
            .filter_map(|line| line.strip_prefix("Location: "));
        assert_eq!(
            lines.collect::<Vec<_>>(),
            Vec::from_iter(wanted),
            "{template}: {got}"
        );
    }
}

#[test]
fn overlong_location_is_refused() {
    let mut route = Route::to(Action::Redirect {
        status: 301,
        location: Template(vec![Piece::Variable(Variable::Path); 3]),
    });
    route.when.path = PathMatch::Prefix("/".into());
    let request = format!("GET /{} HTTP/1.1\nHost: h\n\n", "p".repeat(5 * 1024));
    assert_eq!(status(&plan(vec![route]), &request), "414");
}

#[test]
fn traffic_split_is_random_per_request() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    on_every_driver(|site| async move {
        let script = [Step::Read, send(OK), Step::Again];
        let upstreams = [site.upstream(&[&script]), site.upstream(&[&script])];
        let mut plan = upstreams[0].plan();
        plan.upstreams.extend(upstreams[1].plan().upstreams);
        let weight = |weight| NonZeroU32::new(weight).expect("a weight");
        plan.routes[0].action = Action::Forward {
            split: vec![(0, weight(3)), (1, weight(1))],
            mirror: None,
        };
        let address = site.serve(&plan);
        let mut client = site.connect(&address).await;
        let requests = 200;
        for _ in 0..requests {
            client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
            client.receive_text().await;
        }
        let taken = upstreams.map(|upstream| upstream.requests().concat().len());
        assert_eq!(taken[0] + taken[1], requests);
        // Six standard deviations of a binomial distribution with n = 200 and p = 1/4 are 37.
        assert!((50 - 37..=50 + 37).contains(&taken[1]), "{taken:?}");
    });
}

const TWO_LISTENERS: &str = r#"
[[listen]]
address = "127.0.0.1:1"
name = "public"
[[listen]]
address = "127.0.0.1:2"
[[route]]
listener = "public"
respond = { status = 201 }
[[route]]
not = { listener = "public" }
respond = { status = 202 }
"#;

#[test]
fn listener_condition_selects_route() {
    let plan = crate::testing::harness::configured(TWO_LISTENERS);
    on_every_driver(|site| {
        let plan = plan.clone();
        async move {
            let addresses = site.serve_all(&plan);
            for (address, wanted) in addresses.iter().zip(["201", "202"]) {
                let mut client = site.connect(address).await;
                let response = client.exchange(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
                let response = String::from_utf8_lossy(&response).into_owned();
                assert_eq!(response.split(' ').nth(1), Some(wanted), "{response}");
            }
        }
    });
}

#[test]
fn renamed_listener_keeps_connections() {
    let before = crate::testing::harness::configured(TWO_LISTENERS);
    let after = TWO_LISTENERS.replace("public", "front");
    let after = crate::testing::harness::configured(&format!(
        "{after}[[listen]]\naddress = \"127.0.0.1:3\"\nname = \"public\"\n"
    ));
    on_every_driver(|site| {
        let (before, after) = (before.clone(), after.clone());
        async move {
            let (address, service, resources) = site.serve_to_change(&before);
            let mut client = site.connect(&address).await;
            let request = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n";
            client.send(request).await;
            let first = client.receive_message().await;
            let _resources = site.apply(&service, &resources, &after);
            client.send(request).await;
            let second = client.receive_message().await;
            for response in [first, second] {
                assert_eq!(response.split(' ').nth(1), Some("201"), "{response}");
            }
        }
    });
}
