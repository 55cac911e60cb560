//! `[[route]]`: meaning, and error messages.

use std::time::Duration;

use onrush_config::plan::*;

use crate::support::{MessageCases, check_errors, check_warnings, parsed, warnings};

/// A route with these keys and a response, in a file with a group `app`.
fn route(keys: &str) -> Route {
    let response = if keys.contains("forward =") || keys.contains("redirect =") {
        ""
    } else {
        "forward = \"app\""
    };
    let text = format!("[[route]]\n{response}\n{keys}\n[upstream.app]\nservers = [\"a:1\"]");
    parsed(&text)
        .plan
        .routes
        .into_iter()
        .next()
        .expect("one route")
}

fn template(pieces: &[Piece]) -> Template {
    Template(pieces.to_vec())
}

fn text(text: &str) -> Piece {
    Piece::Text(text.to_owned())
}

#[test]
fn route_conditions_are_parsed() {
    let when = route(
        r#"
        host = ["example.com", "*.Example.com"]
        path = "~^/v[0-9]+/"
        method = ["GET", "HEAD"]
        headers = { X-Version = "2", X-Debug = "!", Accept = "~json", Cookie = "*" }
        query = { beta = "1", "a b" = "*" }
        from = "10.0.0.0/8"
        scheme = "https"
        "#,
    )
    .when;
    assert_eq!(
        when.hosts,
        [
            Host::Exact("example.com".to_owned()),
            Host::Subdomains(".example.com".to_owned())
        ]
    );
    assert!(when.path.matches(b"/v12/x") && !when.path.matches(b"/v/x"));
    assert_eq!(when.methods, ["GET", "HEAD"]);
    let names: Vec<&str> = when.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["X-Version", "X-Debug", "Accept", "Cookie"]);
    assert_eq!(when.headers[0].1, ValueMatch::Exact("2".to_owned()));
    assert_eq!(when.headers[1].1, ValueMatch::Absent);
    assert!(matches!(&when.headers[2].1, ValueMatch::Regex(found) if found.as_str() == "json"));
    assert_eq!(when.headers[3].1, ValueMatch::Present);
    assert_eq!(
        when.query,
        [
            ("beta".to_owned(), ValueMatch::Exact("1".to_owned())),
            ("a b".to_owned(), ValueMatch::Present)
        ]
    );
    assert_eq!(when.scheme, Some(Scheme::Https));
    let from = when.from.expect("networks");
    assert!(from.contain([10, 1, 2, 3].into()) && !from.contain([11, 0, 0, 1].into()));
}

#[test]
fn negated_conditions_are_parsed() {
    let not = |keys: &str| route(keys).when.not;
    let one = not("not = { path = \"/public/\", method = \"GET\", scheme = \"http\" }");
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].path, PathMatch::Prefix("/public/".to_owned()));
    assert_eq!(one[0].methods, ["GET"]);
    assert_eq!(one[0].scheme, Some(Scheme::Http));
    let two = not(
        "not = [{ from = \"10.0.0.0/8\" }, { headers = { X-A = \"*\" }, query = { a = \"1\" }, host = \"a\" }]",
    );
    assert!(two[0].from.is_some() && two[1].headers.len() == 1 && two[1].query.len() == 1);
    assert_eq!(two[1].hosts, [Host::Exact("a".to_owned())]);
    check_errors(&[
        (
            "[[route]]\nsynthetic = true\nnot = { pat = \"/x\", not = { path = \"/\" }, method = \"get\" }",
            &[
                "3:9: unknown key \"pat\" in not; nearest: \"path\"",
                "3:21: unknown key \"not\" in not; expected one of: host, path, method, headers, query, from, scheme, listener",
                "3:52: method \"get\" is written \"GET\": methods are case-sensitive",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\nnot = \"/x\"\n[[route]]\nsynthetic = true\nnot = []\n[[route]]\nsynthetic = true\nnot = {}",
            &[
                "3:7: not is a string: expected a table of conditions such as { path = \"/public/\" }",
                "6:7: not in [[route]] is empty: expected a table of conditions such as { path = \"/public/\" }",
                "9:7: not is empty: expected a table of conditions such as { path = \"/public/\" }",
            ],
        ),
    ]);
    check_warnings(&[
        (
            "[[route]]\npath = \"/a/\"\nsynthetic = true\nnot = { path = \"/a\" }",
            &[
                "1:1: this [[route]] is never reached: its not matches every request that the route would match",
            ],
        ),
        // The second route gets the requests that the first one excludes.
        (
            "[[route]]\nsynthetic = true\nnot = { path = \"/\", method = \"GET\" }",
            &[],
        ),
        (
            "[[route]]\nsynthetic = true\nnot = { method = \"GET\" }\n[[route]]\npath = \"/a\"\nsynthetic = true\nnot = { method = [\"GET\", \"PUT\"] }",
            &[
                "4:1: this [[route]] is never reached: the one in line 1 matches all of its requests",
            ],
        ),
    ]);
}

#[test]
fn access_rules_are_parsed() {
    let access = route(
        r#"
        allow = ["10.0.0.0/8", "::1"]
        deny = "10.6.6.6"
        rate_limit = { requests = "100/m", burst = 5, concurrent = 10, key = "header:X-Key" }
        basic_auth = { realm = "staff", users = { ann = "$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy" }, file = "htpasswd" }
        "#,
    )
    .access;
    assert!(
        access.allow.contain([10, 6, 6, 6].into()) && access.deny.contain([10, 6, 6, 6].into())
    );
    assert_eq!(
        access.rate_limit,
        Some(RateLimit {
            key: RateKey::Header("X-Key".to_owned()),
            requests: Some(Rate {
                count: 100.try_into().expect("not 0"),
                per: Duration::from_secs(60),
                burst: 5,
            }),
            concurrent: 10.try_into().ok(),
        })
    );
    let auth = access.basic_auth.expect("passwords");
    assert_eq!(
        (auth.realm.as_str(), auth.users.len(), auth.file),
        ("staff", 1, Some("conf/htpasswd".into()))
    );
    let short = route("rate_limit = \"5/s\"").access.rate_limit;
    let short = short.expect("a limit");
    assert_eq!(
        (short.key, short.requests.map(|rate| rate.burst)),
        (RateKey::Address, Some(5))
    );
}

#[test]
fn header_edits_accept_templates() {
    let edits = route(
        r#"
        request_headers = { set = { Host = "app", X-Real-IP = "{client.address}" }, add = { X-Tag = ["a", "{{b}}"] }, remove = "Cookie" }
        response_headers = { set = { X-Served-By = "{upstream}/{server}" }, remove = ["Server", "X-Powered-By"] }
        "#,
    )
    .edits;
    let named = |name: &str, pieces: &[Piece]| (name.to_owned(), template(pieces));
    assert_eq!(
        edits.request,
        FieldEdits {
            remove: vec!["Cookie".to_owned()],
            set: vec![
                named("Host", &[text("app")]),
                named("X-Real-IP", &[Piece::Variable(Variable::ClientAddress)]),
            ],
            add: vec![named("X-Tag", &[text("a")]), named("X-Tag", &[text("{b}")]),],
        }
    );
    assert_eq!(
        edits.response,
        FieldEdits {
            remove: vec!["Server".to_owned(), "X-Powered-By".to_owned()],
            set: vec![named(
                "X-Served-By",
                &[
                    Piece::Variable(Variable::Upstream),
                    text("/"),
                    Piece::Variable(Variable::Server)
                ]
            )],
            add: Vec::new(),
        }
    );
}

#[test]
fn route_overrides_default_upstream_headers() {
    let at = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let text = "upstream_headers = { hide = [\"Server\", \"Date\"], refuse = \"X-R\" }\n[[route]]\npath = \"/a\"\nforward = \"http://10.0.0.1\"\nupstream_headers = { hide = [\"X-A\"] }\n[[route]]\nforward = \"http://10.0.0.1\"";
    let plan = parsed(text).plan;
    let found = [0, 1].map(|at| plan.routes[at].edits.upstream.clone());
    let whole = UpstreamHeaders {
        hide: at(&["Server", "Date"]),
        refuse: at(&["X-R"]),
    };
    let own = UpstreamHeaders {
        hide: at(&["X-A"]),
        refuse: Vec::new(),
    };
    assert_eq!(found, [own, whole]);
    check_errors(&[(
        "[[route]]\nforward = \"http://10.0.0.1\"\nupstream_headers = { hide = [\"Connection\", \"a b\"] }",
        &[
            "3:30: header \"Connection\" is set by the server itself: leave it out",
            "3:44: \"a b\" is not a header name",
        ],
    )]);
    check_warnings(&[(
        "[[route]]\npath = \"/a\"\nrespond = { status = 200 }\nupstream_headers = { hide = \"X\" }",
        &["4:1: upstream_headers has no effect on a route that does not forward"],
    )]);
}

#[test]
fn response_filter_and_underscores_are_parsed() {
    for (keys, keeps_underscores, on) in [
        ("", false, ResponseFilter::RouteOnly),
        (
            "request_headers = { underscores = true }",
            true,
            ResponseFilter::RouteOnly,
        ),
        (
            "request_headers = { underscores = false }",
            false,
            ResponseFilter::RouteOnly,
        ),
        (
            "response_headers = { on = \"always\" }",
            false,
            ResponseFilter::Always,
        ),
        (
            "response_headers = { on = 404 }",
            false,
            ResponseFilter::Statuses(vec![(404, 404)]),
        ),
        (
            "response_headers = { on = [\"2xx\", 404, \"500-503\"] }",
            false,
            ResponseFilter::Statuses(vec![(200, 299), (404, 404), (500, 503)]),
        ),
    ] {
        let edits = route(keys).edits;
        assert_eq!(
            (edits.allow_underscores, edits.response_on),
            (keeps_underscores, on),
            "{keys}"
        );
    }
}

#[test]
fn prefix_replacement_keeps_single_slash() {
    for (keys, path) in [
        ("path = \"/api/\"\nstrip_prefix = true", "/"),
        ("path = \"/api\"\nstrip_prefix = true", "/"),
        ("path = \"/api/\"\nstrip_prefix = \"/api\"", "/"),
        ("path = \"/api/v1/\"\nstrip_prefix = \"/api\"", "/v1/"),
        ("path = \"/api/v1\"\nstrip_prefix = \"/api/\"", "/v1"),
        ("path = \"/old/\"\nreplace_prefix = \"/new\"", "/new/"),
        ("path = \"/old\"\nreplace_prefix = \"/new\"", "/new"),
        ("path = \"/\"\nreplace_prefix = \"/base\"", "/base/"),
        ("path = \"=/old\"\nreplace_prefix = \"/new\"", "/new"),
        (
            "path = \"/api/v1/\"\nstrip_prefix = \"/api\"\nreplace_prefix = \"/new\"",
            "/new/v1/",
        ),
        (
            "path = \"/api/v1\"\nstrip_prefix = \"/api/\"\nreplace_prefix = \"/new\"",
            "/new/v1",
        ),
        (
            "path = \"/api/\"\nstrip_prefix = true\nreplace_prefix = \"/new\"",
            "/new/",
        ),
    ] {
        assert_eq!(
            route(keys).path_edit,
            PathEdit::ReplacePrefix(path.to_owned()),
            "{keys}"
        );
    }
    assert_eq!(
        route("path = \"/a\"\nstrip_prefix = false").path_edit,
        PathEdit::Keep
    );
}

#[test]
fn route_overrides_global_body_limit() {
    let max = |top: &str, keys: &str| {
        let file = format!("{top}\n[[route]]\nsynthetic = true\n{keys}");
        let plan = parsed(&file).plan;
        (plan.request_body_max, plan.routes[0].request_body_max)
    };
    let default = Some(1 << 30);
    assert_eq!(max("", ""), (default, default));
    let one_mebibyte = Some(1 << 20);
    assert_eq!(
        max("request_body_max = \"1m\"", ""),
        (one_mebibyte, one_mebibyte)
    );
    assert_eq!(
        max("request_body_max = \"off\"", "request_body_max = 7"),
        (None, Some(7))
    );
    assert_eq!(
        max("request_body_max = 7", "request_body_max = \"off\""),
        (Some(7), None)
    );
    check_errors(&[
        (
            "request_body_max = 0",
            &[
                "1:20: request_body_max 0 could mean no limit or no body: expected \"off\" for no limit, or 1 and more bytes",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\nrequest_body_max = \"1mb\"",
            &[
                "3:20: \"1mb\" is not a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 4MiB",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\nrequest_body_max = false",
            &[
                "3:20: request_body_max in [[route]] is true or false: expected a size such as \"10m\", or \"off\" for no limit",
            ],
        ),
    ]);
}

#[test]
fn route_error_pages_precede_global_ones() {
    let text = r#"
        error_pages = { 5xx = "sorry.html", 404 = { file = "404", content_type = "text/html" }, intercept = true }
        [[route]]
        synthetic = true
        error_pages = { 4xx = { body = "no" }, "500-503" = { retry_after = "2m" }, 404 = { body = "{}", content_type = "application/json" } }
        [[route]]
        forward = "http://10.0.0.1"
        error_pages = { intercept = false }
        "#;
    let plan = parsed(text).plan;
    let shown = |pages: &ErrorPages| -> Vec<String> {
        let one = |page: &ErrorPage| match &page.content {
            Some(PageContent::Body { text, content_type }) => {
                format!("{:?} {text} {content_type}", page.statuses)
            }
            Some(PageContent::File { file, content_type }) => {
                format!("{:?} {file:?} {content_type:?}", page.statuses)
            }
            None => format!("{:?} {:?}", page.statuses, page.retry_after),
        };
        pages.pages.iter().map(one).collect()
    };
    let whole = [
        "(404, 404) \"conf/404\" Some(\"text/html\")",
        "(500, 599) \"conf/sorry.html\" None",
    ];
    assert_eq!(shown(&plan.error_pages), whole);
    let own = [
        "(404, 404) {} application/json",
        "(500, 503) Some(120s)",
        "(400, 499) no text/html; charset=utf-8",
    ];
    let first = &plan.routes[0].error_pages;
    assert_eq!(shown(first), [&own[..], &whole].concat());
    let second = &plan.routes[1].error_pages;
    assert_eq!(shown(second), whole);
    let intercepts = [&plan.error_pages, first, second].map(|pages| pages.intercept);
    assert_eq!(intercepts, [true, true, false]);
    assert_eq!(plan.startup_files().count(), 6);
    check_errors(&[
        (
            "error_pages = { 4x = \"a\", 200 = \"b\", 404 = 1, 403 = {}, 402 = { bdy = \"x\" }, intercept = 1 }",
            &[
                "1:17: unknown key \"4x\" in error_pages: expected a status such as 404, a class such as 5xx, a range such as \"500-503\", or intercept",
                "1:27: \"200\" is not an error: expected statuses from 400 to 599",
                "1:44: 404 in error_pages is a number: expected a file such as \"404.html\", or a table such as { body = \"…\" }",
                "1:53: 403 in error_pages has no file: expected file, body or retry_after",
                "1:65: unknown key \"bdy\" in 402 in error_pages; nearest: \"body\"",
                "1:90: intercept in error_pages is a number: expected true or false",
            ],
        ),
        (
            "error_pages = { 503 = { file = \"a\", body = \"b\", retry_after = \"10ms\", content_type = \"a\\nb\" } }",
            &[
                "1:37: body cannot be used with file: expected one of them",
                "1:63: retry_after 10ms is too short: expected 1s or more",
                "1:86: the value of header \"Content-Type\" contains a control character",
            ],
        ),
        (
            "error_pages = \"404.html\"",
            &[
                "1:15: error_pages is a string: expected a table such as { 404 = \"404.html\", 5xx = \"sorry.html\" }",
            ],
        ),
    ]);
}

#[test]
fn route_overrides_global_timeouts() {
    let text = r#"
        [[route]]
        forward = "http://10.0.0.1"
        timeouts = { upstream_first_byte = "5m", request = "10m" }
        [[route]]
        synthetic = true
        [timeouts]
        upstream_body = "3s"
        "#;
    let plan = parsed(text).plan;
    assert_eq!(plan.routes[1].timeouts, None);
    assert_eq!(
        plan.routes[0].timeouts,
        Some(Timeouts {
            upstream_first_byte: Duration::from_secs(300),
            request: Some(Duration::from_secs(600)),
            upstream_body: Duration::from_secs(3),
            ..Timeouts::default()
        })
    );
    check_errors(&[(
        "[[route]]\nforward = \"http://10.0.0.1\"\ntimeouts = { connect = \"0s\", drain = \"1s\" }",
        &[
            "3:24: a time of 0s is out of range: expected 1ms to 24h",
            "3:30: unknown key \"drain\" in timeouts of a [[route]]; expected one of: client_body, client_send, connect, queue, upstream_first_byte, upstream_body, request, tunnel_idle, tunnel_fin",
        ],
    )]);
    check_warnings(&[(
        "[[route]]\npath = \"/x\"\nsynthetic = true\ntimeouts = { client_body = \"1s\", queue = \"1s\" }",
        &["4:34: queue has no effect on a route that does not forward"],
    )]);
    check_warnings(&[
        (
            "[timeouts]\nrequest = \"5s\"\nqueue = \"4s\"\nconnect = \"5s\"\n[[route]]\npath = \"/x\"\nforward = \"http://10.0.0.1\"",
            &["4:1: connect has no effect because request expires first"],
        ),
        (
            "[timeouts]\nrequest = \"5s\"\n[[route]]\npath = \"/x\"\nforward = \"http://10.0.0.1\"\ntimeouts = { upstream_first_byte = \"5m\" }",
            &["6:14: upstream_first_byte has no effect because request expires first"],
        ),
    ]);
}

#[test]
fn rewrite_capture_groups_must_exist() {
    let path_edit = |keys: &str| route(keys).path_edit;
    let one = path_edit("rewrite = { match = \"^/u/([0-9]+)$\", to = \"/users?id=$1\" }");
    assert!(matches!(one, PathEdit::Rewrite(rules) if rules.len() == 1));
    let two = path_edit(
        "rewrite = [{ match = \"a\", to = \"/b\" }, { match = \"(?<x>c)\", to = \"/${x}\" }]",
    );
    assert!(matches!(two, PathEdit::Rewrite(rules) if rules.len() == 2));
    check_errors(&[
        (
            "[[route]]\nforward = \"http://10.0.0.1\"\nrewrite = [{ match = \"(a)\", to = \"/$2\" }, { match = \"(\", to = \"/x\" }, { to = \"x\" }]",
            &[
                "3:34: no group \"2\" in \"(a)\": groups are numbered from 1, or named as in \"(?<name>…)\"",
                "3:53: \"(\" is not a regular expression: unclosed group",
                "3:71: rewrite has no match: expected a regular expression such as \"^/users/([0-9]+)$\"",
            ],
        ),
        (
            "[[route]]\npath = \"/a/\"\nforward = \"http://10.0.0.1\"\nrewrite = { match = \"a\", to = \"//evil\" }\nstrip_prefix = true",
            &[
                "4:31: \"//evil\" is not a path: expected one such as \"/u/$1\", in ASCII and without spaces",
                "5:1: strip_prefix cannot be used with rewrite: expected one of them",
            ],
        ),
        (
            "[[route]]\nforward = \"http://10.0.0.1\"\nrewrite = { match = \"a\", to = \"/$x\" }",
            &[
                "3:31: a \"$\" in \"/$x\" does not name a group: expected \"$1\" or \"${name}\", or \"$$\" for the character",
            ],
        ),
    ]);
}

#[test]
fn cors_origins_are_list_or_wildcard() {
    let cors = |keys: &str| route(&format!("cors = {{ {keys} }}")).cors.expect("cors");
    let any = cors("origins = \"*\"");
    assert_eq!(any.origins, None);
    assert_eq!(any.methods, ["GET", "HEAD", "POST"]);
    let some = cors(
        "origins = [\"https://A.example\", \"http://[::1]:8080\"], methods = \"PUT\", headers = [\"X-A\"], expose = \"X-B\", credentials = true, age_max = \"1h\"",
    );
    assert_eq!(
        some,
        Cors {
            origins: Some(vec!["https://a.example".into(), "http://[::1]:8080".into()]),
            methods: vec!["PUT".into()],
            headers: vec!["X-A".into()],
            expose: vec!["X-B".into()],
            credentials: true,
            age_max: Some(Duration::from_secs(3600)),
        }
    );
    check_errors(&[
        (
            "[[route]]\nsynthetic = true\ncors = { origins = \"*\", credentials = true }",
            &[
                "3:25: credentials cannot be used with origins = \"*\": every site could send requests in the name of its visitors; expected a list of origins",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\ncors = { origins = [\"a.example\", \"https://a/\"], headers = [\"a b\"] }\n[[route]]\nsynthetic = true\ncors = {}",
            &[
                "3:21: \"a.example\" is not an origin: expected \"*\", or a scheme and a host such as \"https://app.example.com\", without a path",
                "3:34: \"https://a/\" is not an origin: expected \"*\", or a scheme and a host such as \"https://app.example.com\", without a path",
                "3:60: \"a b\" is not a header name",
                "6:8: cors has no origins: expected \"*\", or origins such as \"https://app.example.com\"",
            ],
        ),
        (
            "[[route]]\nsynthetic = true\ncors = { origins = [\"*\", \"https://a\"] }\nresponse_headers = { set = { X-A = \"1\" }, on = 404 }",
            &[
                "3:1: cors applies to responses of every status, but on limits response_headers to some: expected on = \"always\", or no on",
                "3:10: origins has \"*\" beside others: expected \"*\" alone, or a list of origins",
            ],
        ),
    ]);
    check_warnings(&[(
        "[[route]]\npath = \"/x\"\nmethod = \"GET\"\nsynthetic = true\ncors = { origins = \"*\" }",
        &[
            "5:1: cors has no effect on preflight requests: browsers send them with OPTIONS, which is not among the methods of the route",
        ],
    )]);
}

#[test]
fn route_overrides_global_compression() {
    let compress = |top: &str, keys: &str| {
        let file = format!("{top}\n[[route]]\nsynthetic = true\n{keys}");
        parsed(&file).plan.routes[0].compress.clone()
    };
    let default = Compress::default();
    let small = Compress {
        size_min: 10,
        ..default.clone()
    };
    assert_eq!(compress("", ""), None);
    assert_eq!(compress("", "compress = true"), Some(default.clone()));
    assert_eq!(compress("compress = true", ""), Some(default));
    assert_eq!(
        compress("compress = { size_min = 10 }", ""),
        Some(small.clone())
    );
    assert_eq!(
        compress("compress = { size_min = 10 }", "compress = true"),
        Some(small.clone())
    );
    assert_eq!(compress("compress = true", "compress = false"), None);
    assert_eq!(
        compress(
            "compress = { size_min = \"10\" }",
            "compress = { codings = [\"gzip\"], types = \"Text/HTML\" }"
        ),
        Some(Compress {
            codings: vec![Coding::Gzip],
            types: vec!["text/html".to_owned()],
            ..small
        })
    );
}

#[test]
fn redirect_location_and_status_are_parsed() {
    let location = template(&[
        text("https://"),
        Piece::Variable(Variable::Host),
        Piece::Variable(Variable::Uri),
    ]);
    for (keys, status) in [
        ("redirect = \"https://{host}{uri}\"", 302),
        (
            "redirect = { to = \"https://{host}{uri}\", status = 308 }",
            308,
        ),
    ] {
        assert_eq!(
            route(keys).action,
            Action::Redirect {
                status,
                location: location.clone()
            }
        );
    }
}

#[test]
fn splits_and_mirrors_are_parsed() {
    let text = r#"
        [[route]]
        forward = [{ to = "app", weight = 95 }, { to = "canary", weight = 5 }, "http://c:1"]
        mirror = { to = "shadow", share = "0.5%" }
        [[route]]
        path = "/never"
        forward = "app"
        mirror = "shadow"
        [upstream.app]
        servers = ["a:1"]
        [upstream.canary]
        servers = ["b:1"]
        [upstream.shadow]
        servers = ["d:1"]
    "#;
    let parsed = parsed(text);
    let weight = |weight: u32| weight.try_into().expect("not 0");
    assert_eq!(
        parsed.plan.routes[0].action,
        Action::Forward {
            split: vec![(0, weight(95)), (1, weight(5)), (3, weight(1))],
            mirror: Some(Mirror {
                upstream: 2,
                share: 50
            }),
        }
    );
    let Action::Forward { mirror, .. } = &parsed.plan.routes[1].action else {
        panic!("{:?}", parsed.plan.routes[1].action)
    };
    assert_eq!(mirror.map(|mirror| mirror.share), Some(10_000));
    assert_eq!(parsed.warnings.len(), 1, "all groups are used");
}

#[test]
fn files_fallback_is_parsed() {
    let files = |keys: &str| {
        let text = format!("[[route]]\nfiles = {{ root = \"/srv\", {keys} }}");
        match parsed(&text).plan.routes.remove(0).action {
            Action::Files(files) => files,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        files("listing = true, fallback = \"/app/index.html\""),
        Files {
            listing: true,
            fallback: Some("app/index.html".to_owned()),
            ..Files::in_directory("/srv")
        }
    );
    assert_eq!(files("hidden = false"), Files::in_directory("/srv"));
    check_errors(&[(
        "[[route]]\nfiles = { root = \"/srv\", listing = \"yes\", fallback = \"../index.html\" }\n[[route]]\nfiles = { root = \"/srv\", fallback = \"a/\" }",
        &[
            "2:36: listing in files is a string: expected true or false",
            "2:54: \"../index.html\" is not a file beneath root: expected one such as \"index.html\"",
            "4:37: \"a/\" is not a file beneath root: expected one such as \"index.html\"",
        ],
    )]);
}

#[test]
fn fixed_response_body_may_be_file() {
    let text = "[[route]]\nrespond = { status = 503, file = \"sorry.html\" }";
    assert_eq!(
        parsed(text).plan.routes[0].action,
        Action::RespondFile {
            status: 503,
            file: "conf/sorry.html".into()
        }
    );
    check_errors(&[(
        "[[route]]\nrespond = { status = 200, file = \"a\", body = \"b\", headers = { X-A = \"1\" } }\n[[route]]\nrespond = { status = 204, file = \"a\" }\n[[route]]\nrespond = { status = 200, file = \"\" }",
        &[
            "2:39: body cannot be used with file: expected one of them",
            "2:51: headers cannot be used with file: expected response_headers of the [[route]]",
            "4:27: a response with status 204 has no body",
            "6:34: \"\" is not a path: expected a file such as \"sorry.html\"",
        ],
    )]);
}

#[test]
fn precompressed_codings_keep_configured_order() {
    for (value, codings) in [
        ("false", vec![]),
        ("true", vec![Coding::Brotli, Coding::Zstd, Coding::Gzip]),
        ("[\"gzip\", \"br\"]", vec![Coding::Gzip, Coding::Brotli]),
        ("\"zstd\"", vec![Coding::Zstd]),
    ] {
        let text = format!("[[route]]\nfiles = {{ root = \"/srv\", precompressed = {value} }}");
        let parsed = parsed(&text);
        assert!(
            matches!(&parsed.plan.routes[0].action, Action::Files(files) if files.precompressed == codings),
            "{value}"
        );
    }
}

#[test]
fn invalid_route_settings_are_reported() {
    check_errors(BAD);
}

const BAD: &MessageCases = &[
    // Conditions.
    (
        "[[route]]\nsynthetic = true\nhost = []",
        &["3:8: host in [[route]] is empty: expected a host name such as \"static.example.com\""],
    ),
    (
        "[[route]]\nsynthetic = true\nhost = [\"a\", \"*b\"]",
        &[
            "3:14: host \"*b\": a \"*\" stands for whole labels at the beginning, such as \"*.example.com\"",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nmethod = [\"get\", \"G T\"]",
        &[
            "3:11: method \"get\" is written \"GET\": methods are case-sensitive",
            "3:18: \"G T\" is not a method: expected one such as \"GET\"",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nheaders = { \"a b\" = \"1\", X = 1, Y = \"~(\" }\nquery = \"a\"",
        &[
            "3:13: \"a b\" is not a header name",
            "3:30: \"X\" in headers is a number: expected \"value\", \"*\" for any, \"!\" for none, or \"~\" and a regular expression",
            "3:37: \"(\" is not a regular expression: unclosed group",
            "4:9: query in [[route]] is a string: expected a table such as { Name = \"value\" }",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nfrom = \"10.0.0.1/8\"\nallow = []",
        &[
            "3:8: \"10.0.0.1/8\" has bits set after its prefix: expected \"10.0.0.0/8\" for the network, or 10.0.0.1 alone",
            "4:9: allow in [[route]] is empty: expected a network such as \"10.0.0.0/8\", or a list of them",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nscheme = \"HTTPS\"\n[[route]]\nsynthetic = true\nscheme = 443",
        &[
            "3:10: unknown scheme \"HTTPS\"; nearest: \"https\"",
            "6:10: scheme in [[route]] is a number: expected \"http\" or \"https\"",
        ],
    ),
    // Access.
    (
        "[[route]]\nsynthetic = true\nrate_limit = {}",
        &[
            "3:14: rate_limit limits nothing: expected requests such as \"100/s\", or concurrent such as 10",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nrate_limit = { concurrent = 0, burst = 5, key = \"adress\" }",
        &[
            "3:29: concurrent 0 is out of range: expected 1 to 100000000",
            "3:32: burst goes with requests, which is missing",
            "3:49: unknown key to count by \"adress\"; nearest: \"address\"",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nrate_limit = \"fast\"",
        &[
            "3:14: \"fast\" is not a rate: expected requests per second, minute or hour, such as \"100/s\", \"1k/m\" or \"10/h\"",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nbasic_auth = { realm = \"a\\\"b\" }",
        &[
            "3:14: basic_auth has no users: expected users = { NAME = \"HASH\" }, or file = \"htpasswd\"",
            "3:24: \"a\\\"b\" cannot be a realm: expected text without quotes, backslashes and control characters",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nbasic_auth = { users = { ann = \"secret\", \"a:b\" = 1 } }",
        &[
            "3:32: this is not a password hash: expected bcrypt, argon2id or SHA-crypt, made by \"htpasswd -nB NAME\" or \"openssl passwd -6\"",
            "3:42: \"a:b\" is not a user's name: it cannot be empty or contain a colon",
            "3:50: a password's hash is a number: expected text such as \"$2y$10$…\"",
        ],
    ),
    // Fields.
    (
        "[[route]]\nforward = \"a:1\"\nrequest_headers = { set = { X = \"{hots}\", Y = \"{server}\", Connection = \"close\" }, remove = [\"host\"], ad = {} }",
        &[
            "3:19: a request has one Host field (RFC 9112, section 3.2): it can be set, not removed or added",
            "3:33: unknown variable {hots}; nearest: {host}",
            "3:47: {server} is available in responses only: a request may be sent to several servers",
            "3:59: header \"Connection\" is set by the server itself: leave it out",
            "3:102: unknown key \"ad\" in request_headers; nearest: \"add\"",
        ],
    ),
    (
        "[[route]]\nforward = \"a:1\"\nrequest_headers = { underscores = \"keep\", on = 1 }\nresponse_headers = { on = [\"often\", 600, true], underscores = true }",
        &[
            "3:35: underscores in request_headers is a string: expected true or false",
            "3:43: unknown key \"on\" in request_headers; expected one of: set, add, remove, underscores",
            "4:28: \"often\" is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\"",
            "4:37: \"600\" is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\"",
            "4:42: on in response_headers is true or false: expected \"always\", or statuses such as 200, \"200-299\" or \"2xx\", one or a list",
            "4:49: unknown key \"underscores\" in response_headers; expected one of: set, add, remove, on",
        ],
    ),
    (
        "[[route]]\nforward = \"a:1\"\nresponse_headers = { on = [] }",
        &[
            "3:27: on in response_headers is empty: expected \"always\", or statuses such as 200, \"200-299\" or \"2xx\", one or a list",
        ],
    ),
    (
        "[[route]]\nsynthetic = true\nresponse_headers = { set = { X = [\"a\", \"b\"] }, add = { Y = \"a\\nb\" } }",
        &[
            "3:34: header \"X\" is set once: expected one string, or add for several",
            "3:60: the value of header \"Y\" contains a control character",
        ],
    ),
    // Paths.
    (
        "[[route]]\nforward = \"a:1\"\nstrip_prefix = true",
        &["3:1: strip_prefix needs a route whose path is a prefix or exact, such as path = \"/\""],
    ),
    (
        "[[route]]\nforward = \"a:1\"\npath = \"~^/a\"\nreplace_prefix = \"/b\"",
        &[
            "4:1: replace_prefix needs a route whose path is a prefix or exact, such as path = \"/\"",
        ],
    ),
    (
        "[[route]]\nforward = \"a:1\"\npath = \"/a/\"\nstrip_prefix = \"/b\"",
        &["4:1: strip_prefix \"/b\" is not the beginning of the route's path \"/a/\""],
    ),
    (
        "[[route]]\nforward = \"a:1\"\npath = \"/a/\"\nstrip_prefix = 1\nreplace_prefix = \"b\"",
        &[
            "4:16: strip_prefix in [[route]] is a number: expected true to strip the path of the route, or the beginning of it such as \"/api\"",
            "5:18: \"b\" is not the beginning of a path: expected one such as \"/api\"",
        ],
    ),
    // Compression.
    (
        "[[route]]\nsynthetic = true\ncompress = { codings = [\"brotli\", \"gzip\", \"gzip\"], types = [\"html\", \"*/*\"], size_min = \"1kb\" }",
        &[
            "3:14: codings in compress has a coding twice",
            "3:25: unknown coding \"brotli\": expected one of \"zstd\", \"br\", \"gzip\"",
            "3:61: \"html\" is not a media type: expected one such as \"text/html\", or \"text/*\" for all of a kind",
            "3:69: \"*/*\" is not a media type: expected one such as \"text/html\", or \"text/*\" for all of a kind",
            "3:88: \"1kb\" is not a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 4MiB",
        ],
    ),
    (
        "compress = \"gzip\"",
        &[
            "1:12: [compress] is a string: expected true, false, or a table such as { types = [\"text/*\"], size_min = \"1k\" }",
        ],
    ),
    // Redirects.
    (
        "[[route]]\nredirect = \"example.com\"",
        &[
            "2:12: \"example.com\" is not a location: expected one such as \"https://{host}{uri}\" or \"/new\"",
        ],
    ),
    (
        "[[route]]\nredirect = { to = \"/{server}\", status = 200 }",
        &[
            "2:19: \"/{server}\" uses a variable of the upstream server, and a redirect has no server",
            "2:41: status 200 is not a redirect status: expected 301, 302, 303, 307 or 308",
        ],
    ),
    (
        "[[route]]\nredirect = \"https://{path.rest}\"",
        &[
            "2:12: \"https://{path.rest}\" would let clients choose the host: expected a host before the path, such as \"https://{host}{uri}\"",
        ],
    ),
    (
        "[[route]]\nredirect = \"//{query}\"",
        &[
            "2:12: \"//{query}\" would let clients choose the host: expected a host before the path, such as \"https://{host}{uri}\"",
        ],
    ),
    // Fields that are set.
    (
        "[[route]]\nforward = \"http://a:1\"\n[route.request_headers.set]\nX-One = \"1\"\nx-one = \"2\"\nHost = \"a/b\"",
        &[
            "5:1: header \"x-one\" is set twice, here and as \"X-One\" in line 4: leave one of them out",
            "6:8: \"a/b\" is not a Host: expected a host name or an address, with or without a port, such as \"app.internal:8080\" or \"{host}\"",
        ],
    ),
    (
        "[[route]]\nforward = \"http://a:1\"\nrequest_headers = { set = { host = \"\" } }",
        &[
            "3:36: \"\" is not a Host: expected a host name or an address, with or without a port, such as \"app.internal:8080\" or \"{host}\"",
        ],
    ),
    // Several groups.
    (
        "[[route]]\nforward = [{ to = \"app\", weight = 0 }, { to = \"app\" }, { weight = 1 }, \"apt\", 1]\n[upstream.app]\nservers = [\"a:1\"]",
        &[
            "2:35: weight 0 is out of range: expected 1 to 1000",
            "2:47: \"app\" is already in this list: give it a weight instead",
            "2:56: part of forward has no to: expected a group's name such as \"app\"",
            "2:72: unknown group \"apt\"; nearest: \"app\"",
            "2:79: part of forward is a number: expected a group's name, or a table such as { to = \"app\", weight = 95 }",
        ],
    ),
    (
        "[[route]]\nforward = []",
        &[
            "2:11: forward in [[route]] is empty: expected a list such as [{ to = \"app\", weight = 95 }, { to = \"canary\", weight = 5 }]",
        ],
    ),
    (
        "[[route]]\nforward = \"a:1\"\nmirror = { to = \"shadow\", share = \"0%\" }",
        &[
            "3:17: unknown group \"shadow\": expected an [upstream.shadow], or a single server as a URL such as \"http://10.0.0.9:8000\"",
            "3:35: \"0%\" is not a share of requests: expected 0.01% to 100%, such as \"10%\" or \"0.5%\"",
        ],
    ),
    // Files.
    (
        "[[route]]\nfiles = { root = \"/srv\", precompressed = [] }",
        &[
            "2:42: precompressed in files is empty: expected a list of \"zstd\", \"br\" and \"gzip\"",
        ],
    ),
];

#[test]
fn ineffective_route_settings_cause_warnings() {
    check_warnings(IDLE);
}

const IDLE: &MessageCases = &[
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[route.request_headers]\nset = { X-One = \"1\", X-Two = \"2\" }\nremove = [\"x-two\"]\n[route.response_headers]\nremove = \"Server\"\nadd = { X-Two = \"2\" }\nset = { server = \"a\" }\n[upstream.app]\nservers = [\"a:1\"]",
        &[
            "5:22: header \"X-Two\" is set here and removed in line 6: set wins, because it replaces earlier values; remove the header from set or from remove",
            "10:9: header \"server\" is set here and removed in line 8: set wins, because it replaces earlier values; remove the header from set or from remove",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\nresponse_headers = { remove = [\"X-A\"], add = { X-A = \"1\" } }",
        &[],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\ncompress = true\nresponse_headers = { set = { Content-Encoding = \"{header:X-Coding}\" } }",
        &[
            "4:1: compress has no effect on this route: its response_headers in line 5 set Content-Encoding, and the response would have two; remove one of them",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\ncompress = false\nresponse_headers = { add = { Content-Encoding = \"gzip\" } }",
        &[],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\nrequest_headers = { remove = \"Cookie\" }\nstrip_prefix = true\nresponse_headers = { remove = \"Server\" }",
        &[
            "4:1: request_headers has no effect on a route that does not forward",
            "5:1: strip_prefix has no effect on a route that does not forward",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nsynthetic = true\nallow = \"10.0.0.0/8\"\ndeny = \"0.0.0.0/0\"",
        &["5:1: deny is checked first and refuses every client that allow admits"],
    ),
];

#[test]
fn unreachable_routes_cause_warnings() {
    for (earlier, later, is_covered) in [
        ("method = \"GET\"", "method = \"GET\"", true),
        ("method = [\"GET\", \"HEAD\"]", "method = \"GET\"", true),
        ("method = \"GET\"", "method = [\"GET\", \"HEAD\"]", false),
        ("method = \"GET\"", "", false),
        ("", "method = \"GET\"", true),
        ("host = \"*.a.b\"", "host = [\"c.a.b\", \"*.d.a.b\"]", true),
        ("host = \"*.a.b\"", "host = [\"c.a.b\", \"a.b\"]", false),
        ("host = [\"a\", \"b\"]", "host = \"b\"", true),
        ("headers = { X = \"*\" }", "headers = { x = \"1\" }", true),
        (
            "headers = { X = \"~^1\" }",
            "headers = { X = \"12\" }",
            true,
        ),
        (
            "headers = { X = \"~^1\" }",
            "headers = { X = \"2\" }",
            false,
        ),
        ("headers = { X = \"1\" }", "headers = { X = \"*\" }", false),
        ("headers = { X = \"!\" }", "headers = { X = \"*\" }", false),
        ("headers = { X = \"*\" }", "headers = { X = \"!\" }", false),
        (
            "headers = { X = \"1\" }",
            "headers = { X = \"1\", Y = \"2\" }",
            true,
        ),
        (
            "headers = { X = \"1\", Y = \"2\" }",
            "headers = { X = \"1\" }",
            false,
        ),
        ("query = { a = \"*\" }", "query = { A = \"1\" }", false),
        (
            "from = \"10.0.0.0/8\"",
            "from = [\"10.1.0.0/16\", \"10.2.0.0/16\"]",
            true,
        ),
        (
            "from = \"10.0.0.0/8\"",
            "from = [\"10.1.0.0/16\", \"11.0.0.0/8\"]",
            false,
        ),
        ("from = \"10.0.0.0/8\"", "", false),
        ("scheme = \"http\"", "scheme = \"http\"\npath = \"/\"", true),
        ("scheme = \"http\"", "scheme = \"https\"", false),
        ("scheme = \"http\"", "", false),
        ("", "scheme = \"http\"", true),
        ("path = \"~^/a\"", "path = \"=/ab\"", true),
        ("path = \"~^/a\"", "path = \"/ab\"", false),
    ] {
        let text =
            format!("[[route]]\n{earlier}\nsynthetic = true\n[[route]]\n{later}\nsynthetic = true");
        let is_said = |warning: &String| warning.contains("this [[route]] is never reached: ");
        let is_warned = warnings(&text).iter().any(is_said);
        assert_eq!(is_warned, is_covered, "{text}");
    }
}

#[test]
fn route_for_unserved_scheme_causes_warning() {
    const PLAIN: &str = "[[listen]]\naddress = \":80\"\n";
    const TLS: &str = "[[listen]]\naddress = \":443\"\ntls = \"self-signed\"\n";
    let no_tls = "this [[route]] is never reached: no [[listen]] uses TLS, and no proxy is trusted to report \"https\"";
    let only_tls = "this [[route]] is never reached: every [[listen]] uses TLS, and no proxy is trusted to report \"http\"";
    let introduced = format!("{PLAIN}proxy_protocol = {{ from = \"10.0.0.0/8\" }}\n");
    let trusting = format!("[forwarded]\ntrust = \"10.0.0.0/8\"\n{PLAIN}");
    for (before, scheme, said) in [
        (PLAIN.to_owned(), "https", Some(no_tls)),
        (PLAIN.to_owned(), "http", None),
        (TLS.to_owned(), "http", Some(only_tls)),
        (TLS.to_owned(), "https", None),
        ([TLS, PLAIN].concat(), "http", None),
        ([TLS, PLAIN].concat(), "https", None),
        // Flags may add listeners.
        (String::new(), "https", None),
        // Trusted proxies may have received either scheme.
        (introduced, "https", None),
        (trusting, "https", None),
    ] {
        let text = format!("{before}[[route]]\nscheme = \"{scheme}\"\nsynthetic = true");
        let line = text.lines().count() - 2;
        let expected: Vec<String> = said
            .iter()
            .map(|said| format!("{line}:1: {said}"))
            .collect();
        assert_eq!(warnings(&text), expected, "{text}");
    }
}

#[test]
fn path_edit_into_denied_path_causes_warning() {
    fn two(guard: &str, editing: &str) -> Vec<String> {
        warnings(&format!(
            "[[route]]\n{guard}\n[[route]]\nforward = \"app\"\n{editing}\n[upstream.app]\nservers = [\"a:1\"]"
        ))
    }
    const REFUSED: &str = "path = \"/admin\"\nrespond = { status = 403 }";
    const STRIPPED: &str = "path = \"/api\"\nstrip_prefix = true";
    let warned = "4:1: this [[route]] may rewrite a path to \"/admin\", which the [[route]] in line 1 refuses: routes are matched by the path before the rewrite";
    for editing in [
        STRIPPED,
        "path = \"/api\"\nreplace_prefix = \"/admin/api\"",
        "rewrite = { match = \"^/old/(.*)$\", to = \"/$1\" }",
        "path = \"/x\"\nrewrite = { match = \"^/x/(.*)$\", to = \"/adm$1\" }",
    ] {
        assert_eq!(two(REFUSED, editing), [warned], "{editing}");
    }
    let own = "path = \"/admin\"\nforward = \"app\"\nallow = \"10.0.0.0/8\"";
    assert_eq!(two(own, STRIPPED).len(), 1);
    let others = "path = \"/admin\"\nforward = \"http://10.0.0.1\"\nallow = \"10.0.0.0/8\"";
    for (guard, editing) in [
        (REFUSED, "path = \"/api\"\nreplace_prefix = \"/v2\""),
        (REFUSED, "path = \"/api\""),
        (
            REFUSED,
            "rewrite = { match = \"^/u/([0-9]+)$\", to = \"/users/$1\" }",
        ),
        ("path = \"/admin\"\nrespond = { status = 200 }", STRIPPED),
        (
            "path = \"/api/v2/admin\"\nrespond = { status = 403 }",
            "path = \"/api\"\nreplace_prefix = \"/api/v3\"",
        ),
        (
            "host = \"a.example\"\npath = \"/admin\"\nrespond = { status = 403 }",
            "host = \"b.example\"\npath = \"/api\"\nstrip_prefix = true",
        ),
        (others, STRIPPED),
    ] {
        assert!(two(guard, editing).is_empty(), "{guard} {editing}");
    }
}

#[test]
fn path_edit_into_regex_denied_path_causes_warning() {
    let two = |guard: &str, editing: &str| {
        warnings(&format!(
            "[[route]]\npath = {guard:?}\nrespond = {{ status = 403 }}\n[[route]]\nforward = \"app\"\n{editing}\n[upstream.app]\nservers = [\"a:1\"]"
        ))
    };
    const STRIPPED: &str = "path = \"/api\"\nstrip_prefix = true";
    const REWRITTEN: &str = "rewrite = { match = \"^/old/(.*)$\", to = \"/$1\" }";
    let warned = "4:1: this [[route]] may rewrite a path to a path that \"^/admin(/|$)\" matches, which the [[route]] in line 1 refuses: routes are matched by the path before the rewrite";
    for editing in [STRIPPED, REWRITTEN] {
        assert_eq!(two("~^/admin(/|$)", editing), [warned], "{editing}");
    }
    for (guard, editing) in [
        // The client's path also matches.
        ("~^/(api/)?admin", STRIPPED),
        (r"~/\.git", STRIPPED),
        (r"~/\.git", REWRITTEN),
        (r"~\.php$", "path = \"/api/\"\nreplace_prefix = \"/v2\""),
        ("~^/admin", "path = \"/api\"\nreplace_prefix = \"/v2\""),
        (
            "~^/admin",
            "rewrite = { match = \"^/u/([0-9]+)$\", to = \"/users/$1\" }",
        ),
    ] {
        assert!(two(guard, editing).is_empty(), "{guard} {editing}");
    }
    let fixed = "rewrite = { match = \"^/shop\", to = \"/index.php?q=1\" }";
    assert_eq!(two(r"~\.php$", fixed).len(), 1);
}

/// Whether there is a warning if the second route edits paths and the first one refuses `guard`.
fn is_edit_warned_of(guard: &str, path: &str, edit: &str) -> bool {
    let found = warnings(&format!(
        "[[route]]\npath = {guard:?}\nrespond = {{ status = 403 }}\n[[route]]\nforward = \"http://10.0.0.1\"\npath = {path:?}\n{edit}"
    ));
    found
        .iter()
        .any(|warning| warning.contains("may rewrite a path to"))
}

#[test]
fn path_edit_into_denied_subpath_causes_warning() {
    for (guard, path, edit) in [
        ("/api/v2/admin", "/api", "replace_prefix = \"/api/v2\""),
        ("~^/api/v2/admin", "/api", "replace_prefix = \"/api/v2\""),
        ("/admin", "/a", "strip_prefix = true"),
        ("/admin", "/ad", "strip_prefix = true"),
        ("/internal", "/in", "replace_prefix = \"/internal\""),
        ("/base/admin", "/", "replace_prefix = \"/base\""),
        (
            "/x/admin",
            "/x",
            "rewrite = { match = \"^/x/v1/(.*)$\", to = \"/x/$1\" }",
        ),
        (
            "=/x/admin",
            "/x",
            "rewrite = { match = \"^/x/v1/(.*)$\", to = \"/x/$1\" }",
        ),
        (
            "/admin",
            "/",
            "rewrite = { match = \"/foo/(.*)\", to = \"/$1\" }",
        ),
    ] {
        assert!(
            is_edit_warned_of(guard, path, edit),
            "{guard} {path} {edit}"
        );
    }
    for (guard, path, edit) in [
        // Only `/api/api/admin` is edited to that path.
        ("/api/admin", "/api", "strip_prefix = true"),
        ("=/api/admin", "/api", "strip_prefix = true"),
        // The client's path begins with the refused path.
        ("/admin", "/admin/v1", "replace_prefix = \"/admin/v2\""),
        ("/api/", "/api/v1", "strip_prefix = \"/api\""),
        (
            "/x/admin",
            "/x",
            "rewrite = { match = \"^/x/(.*)$\", to = \"/x/$1?v=1\" }",
        ),
        (
            "/v2/admin",
            "/x",
            "rewrite = { match = \"^/(.*)$\", to = \"/v2/$1\" }",
        ),
        // No path of a client becomes the refused path.
        ("=/admin", "=/x", "replace_prefix = \"/y\""),
        ("=/admin", "/x/", "replace_prefix = \"/admin/\""),
        ("/Admin", "/u", "replace_prefix = \"/admin/\""),
    ] {
        assert!(
            !is_edit_warned_of(guard, path, edit),
            "{guard} {path} {edit}"
        );
    }
}

#[test]
fn path_edit_inserting_denied_text_causes_warning() {
    for (guard, path, edit) in [
        ("~[.]php$", "/x", "replace_prefix = \"/index.php\""),
        ("~n$", "/api", "replace_prefix = \"/admin\""),
        ("~admin", "/x", "replace_prefix = \"/admin\""),
        ("~/private/", "/x", "replace_prefix = \"/private/\""),
        ("~/private/", "/x", "replace_prefix = \"/private\""),
        ("~(?i)ADMIN", "/x", "replace_prefix = \"/Admin/\""),
        ("~^/[^/]+/secret$", "/api", "strip_prefix = true"),
        ("~^/$", "/api", "strip_prefix = true"),
        (
            "~[.]git$",
            "/x",
            "rewrite = { match = \"^/x/(.+)$\", to = \"/r/$1.git\" }",
        ),
        (
            "~[.]git(/|$)",
            "/x",
            "rewrite = { match = \"^/x/([a-z]+)/([a-z]+)$\", to = \"/$1/$2.git\" }",
        ),
        (
            "~/private/",
            "/x",
            "rewrite = { match = \"/([a-z]+)/([a-z]+)$\", to = \"/$1/private/$2\" }",
        ),
        // Too large to decide.
        (r"~^/\badmin\b", "/x", "strip_prefix = true"),
    ] {
        assert!(
            is_edit_warned_of(guard, path, edit),
            "{guard} {path} {edit}"
        );
    }
    for (guard, path, edit) in [
        // The client's path contains the text as well.
        (r"~/\.git", "/api", "strip_prefix = true"),
        ("~[.]php$", "/api", "strip_prefix = true"),
        ("~admin", "/api", "strip_prefix = true"),
        ("~/admin(/|$)", "/api", "replace_prefix = \"/v2\""),
        ("~/admin", "/admin/v1", "replace_prefix = \"/admin/v2\""),
        ("~^/(x/)?admin", "/x", "strip_prefix = true"),
        ("~^/x/admin", "/x/", "strip_prefix = true"),
        ("~^/[^p]", "/x", "strip_prefix = true"),
        // No path of a client becomes a refused path.
        ("~^/[a-c]dmin", "/api", "replace_prefix = \"/q\""),
        ("~/admin$", "/x/admin", "replace_prefix = \"/pub/\""),
        (
            "~[.]php$",
            "/x",
            "rewrite = { match = \"^/x/([a-z]+)$\", to = \"/r/$1.html\" }",
        ),
        (
            "~/admin",
            "/",
            "rewrite = { match = \"^/admin/(.*)/x$\", to = \"/admin/v2/$1\" }",
        ),
    ] {
        assert!(
            !is_edit_warned_of(guard, path, edit),
            "{guard} {path} {edit}"
        );
    }
}

#[test]
fn path_edit_is_decoded_before_deny_check() {
    for edit in [
        "replace_prefix = \"/%61dmin\"",
        "rewrite = { match = \"^/u/(.*)$\", to = \"/%61dmin/$1\" }",
        "rewrite = { match = \"^/u$\", to = \"/%61dmin\" }",
    ] {
        for guard in ["/admin", "~^/admin"] {
            assert!(is_edit_warned_of(guard, "/u", edit), "{guard} {edit}");
        }
    }
    for edit in ["replace_prefix = \"/%2\"", "replace_prefix = \"/100%\""] {
        assert!(!is_edit_warned_of("/admin", "/u", edit), "{edit}");
    }
}

#[test]
fn path_edit_warning_requires_common_listener() {
    let two = |guard: &str, editing: &str| {
        warnings(&format!(
            "[[listen]]\naddress = \"127.0.0.1:1\"\nname = \"a\"\n[[listen]]\naddress = \"127.0.0.1:2\"\nname = \"b\"\n\
             [[route]]\n{guard}\npath = \"/admin\"\nrespond = {{ status = 403 }}\n\
             [[route]]\n{editing}\npath = \"/api\"\nstrip_prefix = true\nforward = \"http://10.0.0.1\""
        ))
        .len()
    };
    const A: &str = "listener = \"a\"";
    const B: &str = "listener = \"b\"";
    for (guard, editing, wanted) in [(A, B, 0), (A, A, 1), ("", B, 1), (A, "", 1)] {
        assert_eq!(two(guard, editing), wanted, "{guard} {editing}");
    }
}

#[test]
fn path_edit_warning_requires_common_method_and_scheme() {
    let two = |guard: &str, editing: &str| {
        warnings(&format!(
            "[[route]]\n{guard}\npath = \"/admin\"\nrespond = {{ status = 403 }}\n\
             [[route]]\n{editing}\npath = \"/api\"\nstrip_prefix = true\nforward = \"http://10.0.0.1\""
        ))
        .len()
    };
    const POST: &str = "method = \"POST\"";
    const HTTP: &str = "scheme = \"http\"";
    for (guard, editing, wanted) in [
        (POST, "method = \"GET\"", 0),
        (POST, "method = [\"GET\", \"POST\"]", 1),
        (POST, "", 1),
        ("", POST, 1),
        (HTTP, "scheme = \"https\"", 0),
        (HTTP, HTTP, 1),
        (HTTP, "", 1),
        ("", HTTP, 1),
    ] {
        assert_eq!(two(guard, editing), wanted, "{guard} {editing}");
    }
}

#[test]
fn no_path_edit_warning_if_earlier_route_denies() {
    let of = |other: &str| {
        warnings(&format!(
            "[[route]]\nhost = \"a.example\"\npath = \"/admin\"\nheaders = {{ X-Bot = \"1\" }}\nrespond = {{ status = 403 }}\n[[route]]\n{other}\nrespond = {{ status = 403 }}\n[[route]]\npath = \"/api/\"\nstrip_prefix = true\nforward = \"http://10.0.0.1\""
        ))
    };
    for other in [
        "headers = { X-Bot = \"1\" }",
        "path = \"/api/\"\nheaders = { X-Bot = \"1\" }",
        "host = \"a.example\"\npath = \"/api\"\nheaders = { X-Bot = \"1\" }",
    ] {
        assert!(of(other).is_empty(), "{other}: {:?}", of(other));
    }
    let taken = "[[route]]\nhost = \"a.example\"\npath = \"/admin\"\nsynthetic = true\n[[route]]\npath = \"/admin\"\nrespond = { status = 403 }\n[[route]]\npath = \"/api/\"\nstrip_prefix = true\nforward = \"http://10.0.0.1\"\n";
    assert_eq!(warnings(taken).len(), 1);
    assert!(warnings(&format!("{taken}host = \"a.example\"")).is_empty());
    for other in [
        "headers = { X-Bot = \"2\" }",
        "path = \"/api/x\"\nheaders = { X-Bot = \"1\" }",
        "host = \"b.example\"\nheaders = { X-Bot = \"1\" }",
        "headers = { X-Bot = \"1\" }\nmethod = \"PUT\"",
    ] {
        assert_eq!(of(other).len(), 1, "{other}");
    }
}

#[test]
fn unmatchable_paths_are_rejected() {
    check_errors(&[
        (
            "[[route]]\npath = \"/a%2fb\"\nsynthetic = true",
            &[
                "2:8: path \"/a%2fb\" contains an encoded slash, but paths are matched after decoding: write \"/\"",
            ],
        ),
        (
            "[[route]]\npath = \"/a/../b\"\nsynthetic = true",
            &[
                "2:8: path \"/a/../b\" contains the segment \"..\": write the path without such segments",
            ],
        ),
        (
            "[[route]]\npath = \"/a/\"\nforward = \"http://10.0.0.1\"\nreplace_prefix = \"/./\"",
            &[
                "4:18: path \"/./\" contains the segment \".\": write the path without such segments",
            ],
        ),
        (
            "[[route]]\npath = \"/a\"\nforward = \"http://10.0.0.1\"\nreplace_prefix = \"//admin\"",
            &["4:18: \"//admin\" is not the beginning of a path: expected one such as \"/api\""],
        ),
        (
            "[[route]]\nforward = \"http://10.0.0.1\"\nrewrite = { match = \"(a)\", to = \"/../$1\" }",
            &[
                "3:33: path \"/../$1\" contains the segment \"..\": write the path without such segments",
            ],
        ),
    ]);
}
