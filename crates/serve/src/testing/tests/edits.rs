//! Header fields that a route removes, sets and adds, on requests and on all kinds of responses.

use std::fs::File;
use std::io::Write;
use std::time::{Duration, SystemTime};

use onrush_config::plan::{
    Action, FieldEdits, Files, OneLiner, PathEdit, PathMatch, Piece, Plan, ResponseFilter,
    Template, UpstreamHeaders, Variable,
};

use crate::testing::harness::{Step, exchange_text, forward_with, on_every_driver, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

pub(super) fn text(text: &str) -> Template {
    Template(vec![Piece::Text(text.to_owned())])
}

fn variable(variable: Variable) -> Template {
    Template(vec![Piece::Variable(variable)])
}

pub(super) fn edits(
    remove: &[&str],
    set: &[(&str, Template)],
    add: &[(&str, Template)],
) -> FieldEdits {
    let owned = |fields: &[(&str, Template)]| {
        let field = |(name, value): &(&str, Template)| ((*name).to_owned(), value.clone());
        fields.iter().map(field).collect()
    };
    FieldEdits {
        remove: remove.iter().map(|name| (*name).to_owned()).collect(),
        set: owned(set),
        add: owned(add),
    }
}

/// The request as received by the server, with LF line ends.
fn at_server(change: &dyn Fn(&mut Plan), request: &str) -> String {
    let request = request.replace('\n', "\r\n");
    let outcome = forward_with(change, &[&[Step::Read, send(OK)]], &request);
    assert!(
        outcome.response.starts_with("HTTP/1.1 200 OK\n"),
        "{outcome:?}"
    );
    outcome.requests.concat().concat()
}

fn at_client(change: &dyn Fn(&mut Plan), response: &str) -> String {
    let request = "GET /p?q HTTP/1.1\r\nHost: h:80\r\nX-A: 1\r\n\r\n";
    let response = send(&response.replace('\n', "\r\n"));
    forward_with(change, &[&[Step::Read, response]], request).response
}

#[test]
fn request_edits_apply_in_order() {
    let change = |plan: &mut Plan| {
        plan.routes[0].edits.request = edits(
            &["x-gone", "x-again"],
            &[("X-Set", text("new"))],
            &[("X-Again", text("1")), ("X-Kept", text("2"))],
        );
    };
    assert_eq!(
        at_server(
            &change,
            "GET / HTTP/1.1\nHost: h\nX-Gone: 1\nX-SET: old\nX-Set: old\nX-Kept: 1\nX-Again: 0\n\n"
        ),
        "GET / HTTP/1.1\nHost: h\nX-Kept: 1\nVia: 1.1 onrush\nX-Set: new\nX-Again: 1\nX-Kept: 2\n\n"
    );
}

#[test]
fn variables_expand_to_request_values() {
    for (name, value) in [
        (Variable::ClientAddress, "127.0.0.1"),
        (Variable::Scheme, "http"),
        (Variable::Method, "GET"),
        (Variable::Host, "H.example:80"),
        (Variable::HostName, "H.example"),
        (Variable::Path, "/p//x%20y"),
        (Variable::PathRest, "/x%20y"),
        (Variable::Query, "a=b"),
        (Variable::Uri, "/p//x%20y?a=b"),
        (Variable::Header("x-a".into()), "one"),
        (Variable::Header("x-none".into()), ""),
        (Variable::Upstream, "SERVER"),
        (Variable::TlsVersion, ""),
    ] {
        let change = |plan: &mut Plan| {
            plan.routes[0].when.path = PathMatch::Prefix("/p".into());
            let template = Template(vec![
                Piece::Text("<".into()),
                Piece::Variable(name.clone()),
                Piece::Text(">".into()),
            ]);
            plan.routes[0].edits.request = edits(&[], &[("X-V", template)], &[]);
        };
        let request = "GET /p//x%20y?a=b HTTP/1.1\nHost: H.example:80\nX-A: one\nX-A: two\n\n";
        let got = at_server(&change, request);
        let line = format!("\nX-V: <{value}>\n\n");
        assert!(got.ends_with(&line), "{name:?}: {got}");
    }
}

#[test]
fn request_id_is_equal_in_all_fields_of_request() {
    let change = |plan: &mut Plan| {
        let id = || variable(Variable::RequestId);
        plan.routes[0].edits.request = edits(&[], &[("X-Id", id())], &[("X-Id-2", id())]);
    };
    let scripts: &[&[Step]] = &[&[Step::Read, send(OK), Step::Read, send(OK)]];
    on_every_driver(|site| {
        let upstream = site.upstream(scripts);
        let mut plan = upstream.plan();
        change(&mut plan);
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let mut seen = Vec::new();
            for turn in 0..2 {
                client.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
                client.receive_text().await;
                let request = String::from_utf8(upstream.request(0, turn)).expect("text");
                let of = |name: &str| {
                    let line = request.lines().find_map(|line| line.strip_prefix(name));
                    line.expect("a number").to_owned()
                };
                let number = of("X-Id: ");
                assert_eq!(number.len(), 32, "{number}");
                assert_eq!(number, of("X-Id-2: "));
                seen.push(number);
            }
            assert_ne!(seen[0], seen[1]);
        }
    });
}

#[test]
fn route_sets_host() {
    for (change, host) in [
        (edits(&[], &[("host", text("internal"))], &[]), "internal"),
        (edits(&["Host"], &[], &[]), "SERVER"),
        (edits(&[], &[("X-A", text("1"))], &[]), "h"),
    ] {
        let change = |plan: &mut Plan| plan.routes[0].edits.request = change.clone();
        let got = at_server(&change, "GET / HTTP/1.1\nHost: h\nX-A: 1\n\n");
        assert!(
            got.starts_with(&format!("GET / HTTP/1.1\nHost: {host}\n")),
            "{got}"
        );
        assert_eq!(got.matches("Host: ").count(), 1, "{got}");
    }
}

#[test]
fn edited_host_coexists_with_forwarding_fields() {
    let upgrade = "GET / HTTP/1.1\nHost: h\nConnection: upgrade\nUpgrade: websocket\n\n";
    let get = "GET / HTTP/1.1\nHost: h\n\n";
    let host = || ("Host", text("internal"));
    for name in [
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-Host",
        "Forwarded",
        "Via",
    ] {
        let also = (name, text("v"));
        for (change, host, value) in [
            (edits(&[name], &[host()], &[]), "internal", None),
            (edits(&[], &[host(), also], &[]), "internal", Some("v")),
            (edits(&["Host", name], &[], &[]), "SERVER", None),
        ] {
            for request in [upgrade, get] {
                let change = |plan: &mut Plan| {
                    plan.routes[0].edits.request = change.clone();
                    plan.forwarded.x_forwarded = true;
                };
                let got = at_server(&change, request);
                let start = format!("GET / HTTP/1.1\nHost: {host}\n");
                assert!(got.starts_with(&start), "{name}: {got}");
                assert_eq!(got.matches("\nHost: ").count(), 1, "{name}: {got}");
                let start = format!("{name}: ");
                let values: Vec<_> = got
                    .lines()
                    .filter_map(|line| line.strip_prefix(&start))
                    .collect();
                assert_eq!(values, Vec::from_iter(value), "{name}: {got}");
            }
        }
    }
}

#[test]
fn prefix_replacement_keeps_segment_boundary() {
    for (prefix, by, path, at_server_path) in [
        ("/api", "/", "/api/x", "/x"),
        ("/api/", "/", "/api/x", "/x"),
        ("/api", "/", "/api", "/"),
        ("/api", "/", "/apix?q=/api", "/x?q=/api"),
        ("/api/", "/v2", "/api/x", "/v2/x"),
        ("/api", "/v2", "/api/x", "/v2/x"),
        ("/api", "/v2", "/api", "/v2"),
        ("/api/", "/v2/", "/api/a%2Fb%20c", "/v2/a%2Fb%20c"),
        ("/api/", "/", "//api/./x/../y", "/y"),
        ("/api/", "/v2/", "/api%2fa%2Fb", "/v2/a%2Fb"),
        ("/api", "/", "/api%2fa", "/a"),
        ("/", "/v2", "/x", "/v2/x"),
        ("/a b", "/", "/a%20b/c", "/c"),
    ] {
        let change = |plan: &mut Plan| {
            plan.routes[0].when.path = PathMatch::Prefix(prefix.into());
            plan.routes[0].path_edit = PathEdit::ReplacePrefix(by.into());
        };
        let got = at_server(&change, &format!("GET {path} HTTP/1.1\nHost: h\n\n"));
        let line = got.split(" HTTP/1.1\n").next();
        assert_eq!(
            line,
            Some(&*format!("GET {at_server_path}")),
            "{prefix} by {by}"
        );
    }
    let change = |plan: &mut Plan| {
        plan.routes[0].path_edit = PathEdit::ReplacePrefix("/v2".into());
    };
    let got = at_server(&change, "OPTIONS * HTTP/1.1\nHost: h\n\n");
    assert!(got.starts_with("OPTIONS * HTTP/1.1\n"), "{got}");
}

#[test]
fn first_matching_rewrite_applies() {
    let plan = crate::testing::harness::configured(
        r#"
        [[route]]
        forward = "http://127.0.0.1:1"
        rewrite = [
            { match = "^/u/([^/]+)$", to = "/users?id=$1" },
            { match = "^/(?<lang>[a-z]{2})/(.*)$", to = "/$2/${lang}" },
        ]
        "#,
    );
    let edit = plan.routes[0].path_edit.clone();
    for (path, at_server_path) in [
        ("/u/7", "/users?id=7"),
        ("/u/7?a=b", "/users?id=7&a=b"),
        ("/u/7&admin=1;x+y", "/users?id=7%26admin%3D1%3Bx%2By"),
        ("/%75/a%20b%26c", "/users?id=a%20b%26c"),
        ("/x/..//u/7", "/users?id=7"),
        ("/de/a%2Fb/c?d", "/a%2Fb/c/de?d"),
        ("/other", "/other"),
        ("/other//%6f?x", "/other//%6f?x"),
        ("//other/./%6f?x", "/other/%6f?x"),
        ("/u%2f7", "/users?id=7"),
    ] {
        let change = |plan: &mut Plan| plan.routes[0].path_edit = edit.clone();
        let got = at_server(&change, &format!("GET {path} HTTP/1.1\nHost: h\n\n"));
        let line = got.split(" HTTP/1.1\n").next();
        assert_eq!(line, Some(&*format!("GET {at_server_path}")), "{path}");
    }
    let change = |plan: &mut Plan| plan.routes[0].path_edit = edit.clone();
    let got = at_server(&change, "OPTIONS * HTTP/1.1\nHost: h\n\n");
    assert!(got.starts_with("OPTIONS * HTTP/1.1\n"), "{got}");
}

#[test]
fn overlong_path_is_refused() {
    let to = format!("/x?{}", "a=$1&".repeat(8));
    let plan = crate::testing::harness::configured(&format!(
        "[[route]]\nforward = \"http://127.0.0.1:1\"\nrewrite = {{ match = \"(.*)\", to = {to:?} }}"
    ));
    let path = "/=".repeat(1000);
    let response = crate::testing::harness::exchange_text(
        &plan,
        &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
    );
    assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
}

#[test]
fn exact_path_is_replaced() {
    let change = |plan: &mut Plan| {
        plan.routes[0].when.path = PathMatch::Exact("/old/page".into());
        plan.routes[0].path_edit = PathEdit::ReplacePrefix("/new".into());
    };
    for (path, at_server_path) in [
        ("/old/page", "/new"),
        ("/old/page?q=/old", "/new?q=/old"),
        ("//old/./%70age", "/new"),
    ] {
        let got = at_server(&change, &format!("GET {path} HTTP/1.1\nHost: h\n\n"));
        let line = got.split(" HTTP/1.1\n").next();
        assert_eq!(line, Some(&*format!("GET {at_server_path}")), "{path}");
    }
}

#[test]
fn forwarded_responses_are_edited() {
    let change = |plan: &mut Plan| {
        plan.routes[0].edits.response = edits(
            &["server"],
            &[("Cache-Control", text("no-store"))],
            &[
                ("X-Server", variable(Variable::Server)),
                ("X-Was", variable(Variable::Uri)),
            ],
        );
    };
    let response = at_client(
        &change,
        "HTTP/1.1 200 OK\nServer: x\nCache-Control: public\nDate: -----------------------------\nX-Was: 0\nContent-Length: 2\n\nok",
    );
    assert_eq!(
        response,
        "HTTP/1.1 200 OK\nDate: -----------------------------\nX-Was: 0\nContent-Length: 2\n\
         Cache-Control: no-store\nX-Server: SERVER\nX-Was: /p?q\n\nok"
    );
}

/// A route with `action` whose responses lose Server and get a fixed field and one of the request.
fn plan(action: Action) -> Plan {
    let mut plan = Plan::one_liner(OneLiner::Synthetic, Vec::new());
    plan.routes[0].action = action;
    let path = variable(Variable::Path);
    plan.routes[0].edits.response =
        edits(&["Server"], &[("X-Set", text("1"))], &[("X-Path", path)]);
    plan
}

#[test]
fn generated_responses_are_edited() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, bytes) in [("small", 2), ("large", 64 * 1024)] {
        let mut file = File::create(directory.path().join(name)).expect("a new file");
        file.write_all(&vec![b'x'; bytes])
            .expect("it can be written");
        // A recently modified file has other response fields.
        file.set_modified(SystemTime::UNIX_EPOCH)
            .expect("its owner may");
    }
    let files = || Action::Files(Files::in_directory(directory.path()));
    let respond = |body: &str| Action::Respond {
        status: 200,
        body: body.into(),
        headers: vec![("X-Set".into(), "0".into())],
    };
    let redirect = || Action::Redirect {
        status: 302,
        location: text("/x"),
    };
    for (action, path, status) in [
        (respond("ok"), "/a", 200),
        (respond(&"x".repeat(32 * 1024)), "/a", 200),
        (redirect(), "/a", 302),
        (files(), "/small", 200),
        (files(), "/large", 200),
        (Action::Synthetic, "/a", 200),
        (Action::Synthetic, "/a?s=20k", 200),
        (Action::Synthetic, "/a?P=1", 200),
    ] {
        // Twice, because cached files use other code.
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").repeat(2);
        let target = path.split('?').next().unwrap_or(path);
        let responses = exchange_text(&plan(action.clone()), &request);
        let lines = format!("\r\nX-Set: 1\r\nX-Path: {target}\r\n\r\n");
        assert_eq!(
            responses.matches(&lines).count(),
            2,
            "{action:?}: {responses}"
        );
        assert_eq!(
            responses.matches("\r\nX-Set: ").count(),
            2,
            "{action:?}: {responses}"
        );
        assert_eq!(responses.matches(&format!("HTTP/1.1 {status} ")).count(), 2);
        assert!(!responses.contains("\r\nServer: "), "{responses}");
    }
}

#[test]
fn all_fields_of_generated_responses_are_edited() {
    let removed = |names: &[&str]| edits(names, &[("X-Frame-Options", text("DENY"))], &[]);
    let respond = |status| Action::Respond {
        status,
        body: b"ok".to_vec(),
        headers: [
            ("X-Frame-Options", "ALLOWALL"),
            ("x_frame_options", "ALLOWALL"),
            ("X-Powered-By", "v1"),
            ("Content-Encoding", "x-own"),
            ("Vary", "Accept-Encoding"),
            ("X-Kept", "1"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec(),
    };
    let ours = &["X-Powered-By", "Content-Encoding", "Vary"];
    // HEAD and closing connections use other code.
    let all = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ];
    for (action, on, names, edited) in [
        (respond(200), ResponseFilter::RouteOnly, &ours[..], true),
        (respond(503), ResponseFilter::RouteOnly, ours, true),
        (
            respond(200),
            ResponseFilter::Statuses(vec![(200, 299)]),
            ours,
            true,
        ),
        (
            respond(404),
            ResponseFilter::Statuses(vec![(200, 299)]),
            ours,
            false,
        ),
        (
            Action::Synthetic,
            ResponseFilter::RouteOnly,
            &["X-req", "X_RSP"],
            true,
        ),
    ] {
        let mut plan = plan(action.clone());
        plan.routes[0].edits.response = removed(names);
        plan.routes[0].edits.response_on = on.clone();
        for request in all {
            let response = exchange_text(&plan, &request.replace("/ ", "/?R=1 "));
            let has = |start: &str| {
                response.lines().any(|line| {
                    line.to_ascii_lowercase()
                        .replace('_', "-")
                        .starts_with(start)
                })
            };
            for name in names {
                let start = format!("{}: ", name.to_ascii_lowercase().replace('_', "-"));
                assert_eq!(
                    has(&start),
                    !edited,
                    "{name} of {action:?} on {on:?}: {response}"
                );
            }
            assert_eq!(response.contains("ALLOWALL"), !edited, "{response}");
            assert_eq!(
                response.matches("\r\nX-Frame-Options: DENY\r\n").count(),
                usize::from(edited),
                "{response}"
            );
            assert_eq!(
                response.contains("\r\nX-Kept: 1\r\n"),
                action != Action::Synthetic,
                "{response}"
            );
        }
    }
}

#[test]
fn fixed_fields_are_added_to_generated_responses() {
    let mut plan = plan(Action::Respond {
        status: 200,
        body: b"ok".to_vec(),
        headers: Vec::new(),
    });
    plan.routes[0].edits.response = edits(&[], &[("X-Set", text("1"))], &[]);
    let request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2);
    assert_eq!(
        exchange_text(&plan, &request),
        "HTTP/1.1 200 OK\r\nServer: onrush\r\nDate: -----------------------------\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: 2\r\nX-Set: 1\r\n\r\nok"
            .repeat(2)
    );
}

#[test]
fn gateway_errors_are_edited_if_configured() {
    for (on, edited) in [
        (ResponseFilter::RouteOnly, false),
        (ResponseFilter::Always, true),
        (ResponseFilter::Statuses(vec![(500, 599)]), true),
        (
            ResponseFilter::Statuses(vec![(200, 299), (503, 504)]),
            false,
        ),
    ] {
        let change = |plan: &mut Plan| {
            plan.routes[0].edits.response = edits(
                &["server"],
                &[("X-Host", variable(Variable::HostName))],
                &[],
            );
            plan.routes[0].edits.response_on = on.clone();
            plan.timeouts.upstream_first_byte = Duration::from_secs(1);
        };
        let response = at_client(&change, "garbage\n\n");
        assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
        assert_eq!(
            response.contains("\nX-Host: h\n"),
            edited,
            "{on:?}: {response}"
        );
        assert_eq!(
            response.contains("\nServer: "),
            !edited,
            "{on:?}: {response}"
        );
    }
}

#[test]
fn forwarded_responses_are_edited_by_status() {
    let classes = ResponseFilter::Statuses(vec![(200, 299), (404, 404)]);
    for (on, status, edited) in [
        (ResponseFilter::RouteOnly, 200, true),
        (ResponseFilter::RouteOnly, 304, true),
        (ResponseFilter::RouteOnly, 500, true),
        (ResponseFilter::Always, 500, true),
        (classes.clone(), 206, true),
        (classes.clone(), 404, true),
        (classes.clone(), 304, false),
        (classes, 500, false),
    ] {
        let change = |plan: &mut Plan| {
            plan.routes[0].edits.response = edits(&["x-gone"], &[("X-Set", text("1"))], &[]);
            plan.routes[0].edits.response_on = on.clone();
        };
        let response = format!(
            "HTTP/1.1 {status} X\nTransfer-Encoding: chunked\nX-Gone: 1\n\n0\nX-Gone: 2\nX-Kept: 3\n\n"
        );
        let response = at_client(&change, &response);
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{response}"
        );
        assert_eq!(
            response.contains("\nX-Set: 1\n"),
            edited,
            "{on:?}: {response}"
        );
        assert_eq!(
            response.contains("\nX-Gone: 1\n"),
            !edited,
            "{on:?}: {response}"
        );
        // Also not as a trailer; a 304 has none.
        let has_body = status != 304;
        assert_eq!(
            response.contains("\nX-Gone: 2\n"),
            !edited && has_body,
            "{on:?}: {response}"
        );
        assert_eq!(
            response.contains("\nX-Kept: 3\n"),
            has_body,
            "{on:?}: {response}"
        );
    }
}

#[test]
fn generated_errors_are_edited_if_configured() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(directory.path().join("sub")).expect("a new directory");
    let mut file = File::create(directory.path().join("x")).expect("a new file");
    file.write_all(b"x").expect("it can be written");
    file.set_modified(SystemTime::UNIX_EPOCH)
        .expect("its owner may");
    let files = || Action::Files(Files::in_directory(directory.path()));
    let fixed = |status| Action::Respond {
        status,
        body: b"no".to_vec(),
        headers: Vec::new(),
    };
    for (action, request, status, is_of_route) in [
        (fixed(503), "GET / HTTP/1.1\r\nHost: h\r\n\r\n", 503, true),
        (files(), "GET /x HTTP/1.1\r\nHost: h\r\n\r\n", 200, true),
        (files(), "GET /sub HTTP/1.1\r\nHost: h\r\n\r\n", 301, true),
        (files(), "OPTIONS /x HTTP/1.1\r\nHost: h\r\n\r\n", 204, true),
        (
            files(),
            "GET /x HTTP/1.1\r\nHost: h\r\nIf-None-Match: *\r\n\r\n",
            304,
            true,
        ),
        (files(), "GET /none HTTP/1.1\r\nHost: h\r\n\r\n", 404, false),
        (files(), "PUT /x HTTP/1.1\r\nHost: h\r\n\r\n", 405, false),
        (
            files(),
            "GET /x HTTP/1.1\r\nHost: h\r\nIf-Match: \"y\"\r\n\r\n",
            412,
            false,
        ),
        (
            files(),
            "GET /x HTTP/1.1\r\nHost: h\r\nRange: bytes=9-\r\n\r\n",
            416,
            false,
        ),
        (
            Action::Synthetic,
            "GET /?r=99 HTTP/1.1\r\nHost: h\r\n\r\n",
            400,
            false,
        ),
        (
            Action::Synthetic,
            "GET /?r=500 HTTP/1.1\r\nHost: h\r\n\r\n",
            500,
            true,
        ),
    ] {
        for (on, edited) in [
            (ResponseFilter::RouteOnly, is_of_route),
            (ResponseFilter::Always, true),
            (ResponseFilter::Statuses(vec![(status, status)]), true),
            (ResponseFilter::Statuses(vec![(599, 599)]), false),
        ] {
            let mut plan = plan(action.clone());
            plan.routes[0].edits.response_on = on.clone();
            let response = exchange_text(&plan, request);
            assert!(
                response.starts_with(&format!("HTTP/1.1 {status} ")),
                "{request}: {response}"
            );
            let is_edited = response.contains("\r\nX-Set: 1\r\n");
            assert_eq!(is_edited, edited, "{on:?}: {request}: {response}");
            assert_eq!(response.contains("\r\nServer: "), !edited, "{response}");
        }
    }
}

/// A request with fields and trailers that CGI would confuse with fields that a route sets or removes.
const TWINS: &str = "POST / HTTP/1.1\nHost: h\nTransfer-Encoding: chunked\nX_User: 1\nx-user: 1\nX_USER: 1\nX.User: 1\n\
                     X_Long-User_Name: 1\nX-Users: 2\nUser_Id: 2\nx_gone: 1\nX_Real_IP: 1\ncontent_length: 1\n\
                     X_Forwarded_For: 1\nX-Forwarded_Proto: 1\nTransfer_Encoding: 1\n\n\
                     1\nx\n0\nX_User: 1\nX-Gone: 1\nContent_Length: 1\nX-Forwarded-Port: 1\nX-Sum: 2\n\n";

fn user(plan: &mut Plan) {
    plan.routes[0].edits.request = edits(
        &["X-Gone"],
        &[("X-User", text("me")), ("X-Long-User-Name", text("it"))],
        &[],
    );
}

#[test]
fn alternative_field_name_spellings_are_removed() {
    let wanted = "POST / HTTP/1.1\nHost: h\nX-Users: 2\nUser_Id: 2\nTransfer-Encoding: chunked\nVia: 1.1 onrush\n\
                  X-User: me\nX-Long-User-Name: it\n\n1\nx\n0\nX-Sum: 2\n\n";
    assert_eq!(at_server(&user, TWINS), wanted);
    // Without edits by the route, only fields that could be confused with framing or forwarding fields are removed.
    let got = at_server(&|_| {}, TWINS);
    assert!(got.contains("\nX_User: 1\nx-user: 1\n"), "{got}");
    assert!(
        got.ends_with("\n\n1\nx\n0\nX_User: 1\nX-Gone: 1\nX-Sum: 2\n\n"),
        "{got}"
    );
}

#[test]
fn alternative_field_name_spellings_can_be_kept() {
    let change = |plan: &mut Plan| {
        user(plan);
        plan.routes[0].edits.allow_underscores = true;
    };
    let got = at_server(&change, TWINS);
    for name in [
        "X_User",
        "X_USER",
        "X.User",
        "X_Long-User_Name",
        "User_Id",
        "x_gone",
        "X_Real_IP",
        "content_length",
        "X_Forwarded_For",
        "X-Forwarded_Proto",
        "Transfer_Encoding",
    ] {
        assert!(got.contains(&format!("\n{name}: ")), "{name}: {got}");
    }
    for name in ["x-user", "X-Gone", "X-Forwarded-Port"] {
        assert!(!got.contains(&format!("\n{name}: 1")), "{name}: {got}");
    }
}

#[test]
fn connection_header_cannot_remove_edited_fields() {
    let change = |plan: &mut Plan| {
        user(plan);
        plan.forwarded.x_forwarded = true;
    };
    let got = at_server(
        &change,
        "GET / HTTP/1.1\nHost: h\nConnection: X-User, x-long-user-name, Host, Via, X-Forwarded-For, X-Own\nX-Own: 1\n\n",
    );
    assert_eq!(
        got,
        "GET / HTTP/1.1\nHost: h\nX-Forwarded-For: 127.0.0.1\nX-Forwarded-Proto: http\nX-Forwarded-Host: h\n\
         Via: 1.1 onrush\nX-User: me\nX-Long-User-Name: it\n\n"
    );
}

#[test]
fn response_fields_are_removed_in_all_spellings() {
    let change = |plan: &mut Plan| {
        plan.routes[0].edits.response = edits(&["X-Powered-By"], &[("X-Set", text("1"))], &[]);
    };
    let response = at_client(
        &change,
        "HTTP/1.1 200 OK\nX_Powered_By: x\nx-powered_by: x\nx_set: 0\nX_Kept: 2\nContent-Length: 0\n\n",
    );
    assert_eq!(
        response,
        "HTTP/1.1 200 OK\nX_Kept: 2\nContent-Length: 0\nDate: -----------------------------\nX-Set: 1\n\n"
    );
}

#[test]
fn oversized_edited_request_gets_431() {
    let long = "v".repeat(9 * 1024);
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nX-A: {long}\r\n\r\n");
    let twice = || variable(Variable::Header("X-A".into()));
    let on_request = |plan: &mut Plan| {
        plan.routes[0].edits.request = edits(&[], &[], &[("X-B", twice())]);
    };
    let on_response = |plan: &mut Plan| {
        plan.routes[0].edits.response = edits(&[], &[], &[("X-B", twice())]);
    };
    for change in [&on_request as &dyn Fn(&mut Plan), &on_response] {
        let outcome = forward_with(change, &[&[Step::Read, send(OK)]], &request.repeat(2));
        let refused = outcome.response.matches("HTTP/1.1 431 ").count();
        assert_eq!((refused, outcome.requests.len()), (2, 0), "{outcome:?}");
    }
    // Twice that exceeds the limit of a head.
    let host = "h".repeat(onrush_engine::BUFFER_BYTES / 2);
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let told = |plan: &mut Plan| plan.forwarded.x_forwarded = true;
    let outcome = forward_with(&told, &[&[Step::Read, send(OK)]], &request);
    assert!(outcome.response.starts_with("HTTP/1.1 431 "), "{outcome:?}");
    let fits = |plan: &mut Plan| {
        plan.routes[0].edits.request = edits(&[], &[("X-A", twice())], &[]);
    };
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\nX-A: {long}\r\n\r\n");
    let outcome = forward_with(&fits, &[&[Step::Read, send(OK)]], &request);
    assert!(outcome.response.starts_with("HTTP/1.1 200 "), "{outcome:?}");
}

#[test]
fn oversized_edited_response_gets_502() {
    let change = |plan: &mut Plan| {
        let long = text(&"v".repeat(3 * 1024));
        plan.routes[0].edits.response = edits(&[], &[("X-B", long)], &[]);
    };
    let response = format!(
        "HTTP/1.1 200 OK\nX-A: {}\nContent-Length: 0\n\n",
        "v".repeat(14 * 1024)
    );
    let response = at_client(&change, &response);
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
}

fn of_servers(plan: &mut Plan, hide: &[&str], refuse: &[&str]) {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    plan.routes[0].edits.upstream = UpstreamHeaders {
        hide: owned(hide),
        refuse: owned(refuse),
    };
}

#[test]
fn server_fields_are_hidden_for_any_status() {
    for status in ["200 OK", "404 Not Found"] {
        let change = |plan: &mut Plan| {
            of_servers(plan, &["server", "Date", "X-Accel-Charset", "x-a"], &[]);
            plan.routes[0].edits.response = edits(&[], &[], &[("X-A", text("ours"))]);
            plan.routes[0].edits.response_on = ResponseFilter::Statuses(vec![(200, 200)]);
        };
        let response = format!(
            "HTTP/1.1 103 Early Hints\nX-A: 0\nLink: </a>\n\nHTTP/1.1 {status}\nServer: theirs\nDate: Thu, 01 Jan 1970 00:00:00 GMT\nX_Accel_Charset: a\nX-A: 1\nX-B: 2\nTransfer-Encoding: chunked\n\n2\nok\n0\nX-A: 3\nX-C: 4\n\n"
        );
        let got = at_client(&change, &response);
        let added = if status == "200 OK" {
            "X-A: ours\n"
        } else {
            ""
        };
        assert_eq!(
            got,
            format!(
                "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 {status}\nX-B: 2\nServer: onrush\nDate: -----------------------------\nTransfer-Encoding: chunked\n{added}\n2\nok\n0\nX-C: 4\n\n"
            )
        );
    }
}

#[test]
fn forbidden_server_field_gets_502() {
    let change = |plan: &mut Plan| of_servers(plan, &[], &["X-Accel-Redirect"]);
    for (field, status) in [("X-ACCEL-redirect", 502), ("X-Accel", 200)] {
        let response = format!("HTTP/1.1 200 OK\n{field}: /secret\nContent-Length: 5\n\nwrong");
        let got = at_client(&change, &response);
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{got}");
        assert_eq!(got.contains("wrong"), status == 200, "{got}");
        let interim = format!("HTTP/1.1 103 Early Hints\n{field}: /secret\n\n");
        let got = at_client(
            &change,
            &(interim + "HTTP/1.1 200 OK\nContent-Length: 0\n\n"),
        );
        assert_eq!(got.contains("HTTP/1.1 502 "), status == 502, "{got}");
        assert_eq!(got.contains("/secret"), status == 200, "{got}");
    }
}

#[test]
fn route_may_set_server_field() {
    let change = |plan: &mut Plan| {
        of_servers(plan, &["Server"], &[]);
        plan.routes[0].edits.response = edits(&[], &[("Server", text("mine"))], &[]);
    };
    let got = at_client(
        &change,
        "HTTP/1.1 200 OK\nServer: theirs\nContent-Length: 0\n\n",
    );
    assert_eq!(got.matches("Server: ").count(), 1, "{got}");
    assert!(got.contains("\nServer: mine\n"), "{got}");
}
