//! Backends that a sample names, by a map or by itself.

use super::*;

const BACKENDS: &str = "backend app\n mode http\n server a 10.0.0.1:80\nbackend other\n mode http\n server b 10.0.0.2:80\nbackend closed\n mode http\n http-request deny\n";

/// The routes of a frontend with these lines, each on one line, and what became of the first line.
fn routes(front: &str) -> (Vec<String>, Outcome) {
    let text = format!("frontend f\n mode http\n bind :80\n{front}\n{BACKENDS}");
    let map = |name, text: &str| (name, text.to_owned());
    let conversion = converted_files(vec![
        ("/h.cfg", text),
        map("/etc/haproxy/k.map", "1 other\n"),
        map("/etc/haproxy/p.map", "/x other\n/x/adm closed\n/y none\n"),
        map(
            "/etc/haproxy/ip.map",
            "10.0.0.0/8 other\n10.1.0.0/16 closed\n",
        ),
    ]);
    let conversion = verified(conversion.expect("it is HAProxy's language"));
    let outcome = outcome(&conversion, front.lines().next().unwrap_or_default().trim());
    let all = lines(&conversion);
    let routes = all.split(|line| *line == "[[route]]").skip(1);
    let routes = routes.map(|route| {
        let lines = route.iter();
        let lines = lines.take_while(|line| !line.starts_with("[upstream"));
        lines.copied().collect::<Vec<_>>().join("; ")
    });
    (routes.collect(), outcome.clone())
}

#[track_caller]
fn check_routes(front: &str, expected: &[&str]) -> Outcome {
    let (routes, outcome) = routes(front);
    assert_eq!(routes, expected, "{front}: {outcome:?}");
    outcome
}

const BEHIND: &str = " use_backend closed if { path_beg /adm }\n default_backend other";

#[test]
fn backend_map_keeps_condition() {
    let front = format!(" use_backend %[path,map_beg(p.map,app)] if {{ path_beg /x }}\n{BEHIND}");
    let outcome = check_routes(
        &front,
        &[
            "path = \"/x/adm\"; respond = { status = 403 }",
            "path = \"/x\"; forward = \"other\"",
            "path = \"/adm\"; respond = { status = 403 }",
            "forward = \"other\"",
        ],
    );
    assert_eq!(outcome, Outcome::Carried);
    let front = format!(
        " use_backend %[path,map_beg(p.map,app)] unless {{ src 10.0.0.0/8 }} or METH_POST\n{BEHIND}"
    );
    check_routes(
        &front,
        &[
            "path = \"/adm\"; from = \"10.0.0.0/8\"; respond = { status = 403 }",
            "from = \"10.0.0.0/8\"; forward = \"other\"",
            "path = \"/adm\"; method = \"POST\"; respond = { status = 403 }",
            "method = \"POST\"; forward = \"other\"",
            "path = \"/x/adm\"; respond = { status = 403 }",
            "path = \"/x\"; forward = \"other\"",
            "path = \"/y\"; forward = \"other\"",
            "forward = \"app\"",
        ],
    );
}

#[test]
fn missing_map_key_selects_default_backend() {
    let front = format!(" use_backend %[path,map_beg(p.map)] if {{ path_beg /x }}\n{BEHIND}");
    check_routes(
        &front,
        &[
            "path = \"/x/adm\"; respond = { status = 403 }",
            "path = \"/x\"; forward = \"other\"",
            "path = \"/adm\"; respond = { status = 403 }",
            "forward = \"other\"",
        ],
    );
    let front = " use_backend %[src,map_ip(ip.map)]\n use_backend app if { path_beg /x }\n default_backend closed";
    check_routes(
        front,
        &[
            "from = \"10.1.0.0/16\"; respond = { status = 403 }",
            "from = \"10.0.0.0/8\"; forward = \"other\"",
            "respond = { status = 403 }",
        ],
    );
}

#[test]
fn map_without_the_sample_chooses_the_default_backend() {
    let behind = " use_backend other if { path_beg /q }\n default_backend closed";
    let default = |condition: &str| format!("{condition}; forward = \"app\"");
    for (sample, is_present) in [
        ("hdr(x-a),map_str(k.map,app)", "headers = { x-a = \"*\" }"),
        ("url_param(k),map(k.map,app)", "query = { k = \"*\" }"),
        (
            "req.cook(sid),map(k.map,app)",
            r"headers = { Cookie = '~(?-u)(?:^|[;,])[ \t]*sid[ \t]*=[ \t]*[^ \t]' }",
        ),
        (
            "hdr(host),lower,map(k.map,app)",
            "headers = { Host = \"*\" }",
        ),
    ] {
        let (routes, outcome) = routes(&format!(" use_backend %[{sample}]\n{behind}"));
        assert_eq!(routes[1], default(is_present), "{sample}: {outcome:?}");
        assert_eq!(routes[2..], ["respond = { status = 403 }"], "{sample}");
    }
    // HAProxy finds a value that is not an address as little as a missing one.
    for sample in ["hdr(x-a),map_ip(k.map,app)", "hdr_ip(x-a),map(k.map,app)"] {
        let (routes, outcome) = routes(&format!(" use_backend %[{sample}]\n{behind}"));
        let last = routes.last().map(String::as_str);
        assert_eq!(last, Some("respond = { status = 403 }"), "{sample}");
        assert!(matches!(outcome, Outcome::LeftOut(_)), "{outcome:?}");
    }
}

#[test]
fn unknown_backends_refuse_matching_requests() {
    for name in [
        "%[req.hdr(x-be)]",
        "%[path,map_beg(missing.map,app)]",
        "%[path,map_int(p.map,app)]",
    ] {
        let front = format!(" use_backend {name} if {{ path_beg /x }}\n{BEHIND}");
        let outcome = check_routes(
            &front,
            &[
                "path = \"/x\"; respond = { status = 403 }",
                "path = \"/adm\"; respond = { status = 403 }",
                "forward = \"other\"",
            ],
        );
        assert!(matches!(outcome, Outcome::LeftOut(_)), "{outcome:?}");
    }
    let front = format!(" use_backend %[path,map_beg(p.map,app)] if {{ var(txn.x) 1 }}\n{BEHIND}");
    let outcome = check_routes(
        &front,
        &[
            "path = \"/x/adm\"; respond = { status = 403 }",
            "path = \"/x\"; forward = \"other\"",
            "path = \"/y\"; forward = \"other\"",
            "path = \"/adm\"; respond = { status = 403 }",
            "forward = \"other\"",
        ],
    );
    assert!(matches!(outcome, Outcome::LeftOut(_)), "{outcome:?}");
}

#[test]
fn backends_that_refuse_some_requests_close_unknown_conditions() {
    let sec = |rule: &str| format!("backend sec\n mode http\n {rule}\n server c 10.0.0.3:80\n");
    let closed = |front: &str, rule: &str| {
        let text = format!(
            "frontend f\n mode http\n bind :80\n{front}\n{}{AROUND}",
            sec(rule)
        );
        let map = ("/etc/haproxy/w.map", "adm sec\n".to_owned());
        let conversion = converted_files(vec![("/h.cfg", text), map]);
        let conversion = verified(conversion.expect("it is HAProxy's language"));
        assert!(
            !conversion.is_complete(),
            "{front} {rule}: {:?}",
            conversion.notes
        );
        lines(&conversion).contains(&"respond = { status = 403 }")
    };
    let rules = [
        "http-request auth unless { http_auth(ul) }",
        "http-request deny unless { src 10.0.0.0/8 }",
        "http-request redirect location /login unless { req.cook(sid) -m found }",
        "http-response deny if { res.hdr(x-a) 1 }",
        "tcp-request content reject unless { src 10.0.0.0/8 }",
    ];
    let front = " use_backend sec if { base_beg a.org/adm }\n default_backend app";
    for rule in rules {
        assert!(closed(front, rule), "{rule}");
    }
    for front in [
        " use_backend sec if { path_reg ^/adm } { path_reg x$ }\n default_backend app",
        " use_backend %[path,word(1,/),map(w.map,app)]\n default_backend app",
        " use_backend %[path,word(1,/)]\n default_backend app",
        " use_backend %[path,map(w.map,sec)] if { base_beg a.org/adm }\n default_backend app",
    ] {
        assert!(closed(front, rules[1]), "{front}");
    }
    let open = " use_backend other if { base_beg a.org/adm }\n default_backend app";
    assert!(!closed(open, rules[1]));
}
