//! Which route a request takes, and answers that send it elsewhere.

use std::num::NonZeroU32;

use onrush_config::plan::{
    Action, Network, Networks, OneLiner, PathMatch, Piece, Plan, Route, Scheme, Template, Variable,
};

use crate::harness::{Step, exchange_text, on_every_driver, send};

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
    let answer = exchange_text(plan, &request.replace('\n', "\r\n"));
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn slashes_in_a_row_do_not_slip_past_a_route() {
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
fn a_route_may_be_for_one_scheme_only() {
    let mut plain = Route::to(respond(301));
    plain.when.scheme = Some(Scheme::Http);
    let mut plan = plan(vec![plain, Route::to(respond(200))]);
    let request = |said: &str| format!("GET / HTTP/1.1\nHost: h\nX-Forwarded-Proto: {said}\n\n");
    assert_eq!(status(&plan, &request("https")), "301");
    // Who has taken TLS off before us may say so.
    plan.forwarded.trust = Networks(vec![
        Network::new([127, 0, 0, 1].into(), 32).expect("a prefix"),
    ]);
    assert_eq!(status(&plan, &request("https")), "200");
    assert_eq!(status(&plan, &request("http")), "301");
}

#[test]
fn a_route_may_be_for_some_networks_only() {
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

/// Where a request for `path` is redirected to.
fn location(path: &str, pieces: Vec<Piece>) -> String {
    let mut route = Route::to(Action::Redirect {
        status: 308,
        location: Template(pieces),
    });
    route.when.path = PathMatch::Prefix("/old".into());
    let request = format!("GET {path} HTTP/1.1\r\nHost: h.example:80\r\nX-A: a b\u{e9}\r\n\r\n");
    let answer = exchange_text(&plan(vec![route, Route::to(respond(404))]), &request);
    let line = answer
        .split("\r\n")
        .find_map(|line| line.strip_prefix("Location: "));
    assert!(
        answer.starts_with("HTTP/1.1 308 Permanent Redirect\r\n"),
        "{answer}"
    );
    line.unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_redirect_leads_to_what_its_template_says() {
    let text = |text: &str| Piece::Text(text.to_owned());
    let https = || {
        vec![
            text("https://"),
            Piece::Variable(Variable::HostName),
            Piece::Variable(Variable::Uri),
        ]
    };
    assert_eq!(
        location("/old/a%20b?c", https()),
        "https://h.example/old/a%20b?c"
    );
    let rest = || vec![text("/new"), Piece::Variable(Variable::PathRest)];
    assert_eq!(location("/old/a%0d%0aX:%20y", rest()), "/new/a%0d%0aX:%20y");
    let header = vec![text("/"), Piece::Variable(Variable::Header("X-A".into()))];
    assert_eq!(location("/old", header), "/a%20b%C3%A9");
}

#[test]
fn a_redirect_does_not_lead_to_a_host_that_the_client_chose() {
    for (path, variable, wanted) in [
        ("/old//evil.example", Variable::PathRest, "/evil.example"),
        ("//old/evil.example", Variable::Path, "/old/evil.example"),
        ("//old/evil.example?x", Variable::Uri, "/old/evil.example?x"),
    ] {
        assert_eq!(location(path, vec![Piece::Variable(variable)]), wanted);
    }
}

#[test]
fn a_place_with_too_long_a_name_is_refused() {
    let mut route = Route::to(Action::Redirect {
        status: 301,
        location: Template(vec![Piece::Variable(Variable::Path); 3]),
    });
    route.when.path = PathMatch::Prefix("/".into());
    let request = format!("GET /{} HTTP/1.1\nHost: h\n\n", "p".repeat(5 * 1024));
    assert_eq!(status(&plan(vec![route]), &request), "414");
}

#[test]
fn each_request_is_split_between_groups_anew() {
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
        // Six standard deviations of a binomial with n = 200 and p = 1/4 are 37.
        assert!((50 - 37..=50 + 37).contains(&taken[1]), "{taken:?}");
    });
}
