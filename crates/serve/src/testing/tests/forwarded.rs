//! Forwarding fields: what servers get, and which fields of clients are trusted.

use onrush_config::plan::{FieldEdits, Network, Networks, Piece, Plan, Template, Variable};

use crate::testing::harness::{Step, forward_with, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The forwarding fields that the server gets for a request to host `h` with these fields.
fn told(fields: &str, change: &dyn Fn(&mut Plan)) -> String {
    let request = format!("GET / HTTP/1.1\nHost: h\n{fields}\n").replace('\n', "\r\n");
    let outcome = forward_with(change, &[&[Step::Read, send(OK)]], &request);
    let request = outcome.requests.concat().concat();
    let told = request
        .strip_prefix("GET / HTTP/1.1\nHost: h\n")
        .and_then(|rest| rest.strip_suffix("Via: 1.1 onrush\n\n"));
    told.unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

fn x_forwarded(plan: &mut Plan) {
    plan.forwarded.x_forwarded = true;
}

fn forwarded(plan: &mut Plan) {
    plan.forwarded.forwarded = true;
}

fn trusting(plan: &mut Plan) {
    let loopback = Network::new([127, 0, 0, 0].into(), 8).expect("a prefix");
    plan.forwarded.trust = Networks(vec![loopback]);
}

#[test]
fn servers_receive_client_address_scheme_and_host() {
    assert_eq!(
        told("", &x_forwarded),
        "X-Forwarded-For: 127.0.0.1\nX-Forwarded-Proto: http\nX-Forwarded-Host: h\n"
    );
    assert_eq!(
        told("", &forwarded),
        "Forwarded: for=127.0.0.1;host=h;proto=http\n"
    );
    assert_eq!(told("", &|_| {}), "");
}

#[test]
fn untrusted_forwarding_fields_are_dropped() {
    let claims = "x-forwarded-for: 192.0.2.1\nX-Forwarded-Proto: https\nX_Forwarded_For: 192.0.2.1\n\
                  X-Forwarded-Port: 1\nFORWARDED: for=192.0.2.1\nX-Forwarder: stays\nX-Forwarded: 192.0.2.1\n\
                  X-Original-URL: /admin\nX_Rewrite_URL: /admin\nX-Rewrite-URL: /admin\n";
    assert_eq!(told(claims, &|_| {}), "X-Forwarder: stays\n");
    assert_eq!(
        told(claims, &x_forwarded),
        "X-Forwarder: stays\n\
         X-Forwarded-For: 127.0.0.1\nX-Forwarded-Proto: http\nX-Forwarded-Host: h\n"
    );
}

#[test]
fn forwarding_fields_require_trusted_proxy() {
    let claims = "X-Real-IP: 192.0.2.1\nx-client-ip: 192.0.2.1\nTrue-Client-IP: 192.0.2.1\n\
                  CF-Connecting-IP: 192.0.2.1\nX-Original-Forwarded-For: 192.0.2.1\n\
                  X-Forwarded: 192.0.2.1\nX-Original-URL: /a\nX-Rewrite-URL: /a\n";
    let disguised = "X_Real_IP: 192.0.2.1\nX-Client_IP: 192.0.2.1\n";
    let both = format!("{claims}{disguised}");
    assert_eq!(told(&both, &|_| {}), "");
    assert_eq!(told(&both, &trusting), claims);
    let sets_its_own = |plan: &mut Plan| {
        plan.routes[0].edits.request.set = vec![(
            "X-Real-IP".into(),
            Template(vec![Piece::Variable(Variable::ClientAddress)]),
        )];
    };
    let request = format!("GET / HTTP/1.1\nHost: h\n{claims}\n").replace('\n', "\r\n");
    let outcome = forward_with(&sets_its_own, &[&[Step::Read, send(OK)]], &request);
    assert_eq!(
        outcome.requests.concat().concat(),
        "GET / HTTP/1.1\nHost: h\nVia: 1.1 onrush\nX-Real-IP: 127.0.0.1\n\n"
    );
}

#[test]
fn trusted_forwarding_fields_are_forwarded() {
    let trusting_x = |plan: &mut Plan| {
        trusting(plan);
        x_forwarded(plan);
    };
    assert_eq!(
        told(
            "X-Forwarded-For: 192.0.2.1\nX-Forwarded-Proto: https\nX-A: 1\nX-Forwarded-For: 10.0.0.1\n\
             X-Forwarded-Host: a:1\nX-Forwarded-Port: 443\nForwarded: for=_x\n",
            &trusting_x
        ),
        "X-A: 1\nX-Forwarded-Port: 443\nForwarded: for=_x\n\
         X-Forwarded-For: 192.0.2.1, 10.0.0.1, 127.0.0.1\nX-Forwarded-Proto: https\nX-Forwarded-Host: a:1\n"
    );
    let silent = "X-Forwarded-For: 192.0.2.1\nForwarded: for=192.0.2.1\n";
    assert_eq!(told(silent, &trusting), silent);
}

#[test]
fn route_may_edit_forwarding_fields() {
    let edited = |plan: &mut Plan| {
        x_forwarded(plan);
        plan.routes[0].edits.request = FieldEdits {
            remove: vec!["X-Forwarded-Host".into()],
            set: vec![(
                "X-Forwarded-Proto".into(),
                Template(vec![Piece::Text("https".into())]),
            )],
            add: Vec::new(),
        };
    };
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let outcome = forward_with(&edited, &[&[Step::Read, send(OK)]], request);
    assert_eq!(
        outcome.requests.concat().concat(),
        "GET / HTTP/1.1\nHost: h\nX-Forwarded-For: 127.0.0.1\nVia: 1.1 onrush\nX-Forwarded-Proto: https\n\n"
    );
}
