//! `[upstream.NAME]`: meaning, and error messages.

use std::time::Duration;

use onrush_config::plan::*;

use crate::support::{MessageCases, check_errors, check_warnings, parsed};

/// A group with these keys, in a file whose only route forwards to it.
fn group(keys: &str) -> Upstream {
    let text = format!("[[route]]\nforward = \"app\"\n[upstream.app]\n{keys}");
    let parsed = parsed(&text);
    assert_eq!(parsed.warnings, [], "{text}");
    parsed.plan.upstreams.into_iter().next().expect("one group")
}

#[test]
fn full_upstream_group_is_parsed() {
    let found = group(
        r#"
        servers = [
            "10.0.0.1:8000",
            { address = "app.example.com:8000", weight = 3, backup = true, connections_max = 5 },
            "srv:_http._tcp.example.com",
        ]
        balance = "hash"
        hash = "header:X-User"
        slow_start = "30s"
        connections_max = 100
        queue = { max = "2k" }
        health = { path = "/health", host = "app.example.com", status = [200, "301-308", "4xx"], body = "~^ok", interval = "5s", timeout = "2s", rise = 1, fall = 4, jitter = "20%", port = 9000 }
        eject = { failures = 3, error_share = false, latency = "300%", time = "20s", share_max = "34%" }
        retries = { count = 1, on = ["connect", "timeout"], statuses = [502, 503], budget = "10%" }
        connections_idle_max = 64
        connections_ready = 8
        reuse = "safe"
        tls = { ca = "ca.pem", name = "App.example.com", certificate = "client.pem", key = "/etc/client.key" }
        "#,
    );
    let server = |address| Server {
        connections_max: 100.try_into().ok(),
        ..Server::at(address)
    };
    let expected = Upstream {
        balance: Balance::Hash(HashKey::Header("X-User".to_owned())),
        slow_start: Some(Duration::from_secs(30)),
        queue_max: 2000,
        health: Some(Health {
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            rise: 1.try_into().expect("not 0"),
            fall: 4.try_into().expect("not 0"),
            jitter: 20,
            port: Some(9000),
            ..Health::of(Check::Http {
                path: "/health".to_owned(),
                host: Some("app.example.com".to_owned()),
                status: vec![(200, 200), (301, 308), (400, 499)],
                body: body_of(&found),
            })
        }),
        eject: Some(Eject {
            on: EjectOn::Responses,
            consecutive_failures: 3.try_into().ok(),
            error_share: None,
            latency_share: Some(300),
            time: Duration::from_secs(20),
            share_max: 34,
        }),
        retries: Retries {
            count: 1,
            on: RetryOn {
                connect: true,
                reset: false,
                timeout: true,
                invalid_response: false,
            },
            statuses: vec![502, 503],
            budget: 10,
        },
        connections_idle_max: 64,
        preconnect: 8,
        reuse: Reuse::Safe,
        tls: Some(UpstreamTls {
            verify: Verify::File("conf/ca.pem".into()),
            name: Some("app.example.com".to_owned()),
            certificate: Some(("conf/client.pem".into(), "/etc/client.key".into())),
        }),
        ..Upstream::new(
            "app".to_owned(),
            vec![
                server(ServerAddress::Ip(([10, 0, 0, 1], 8000).into())),
                Server {
                    weight: 3,
                    backup: true,
                    connections_max: 5.try_into().ok(),
                    ..Server::at(ServerAddress::Name {
                        host: "app.example.com".to_owned(),
                        port: 8000,
                    })
                },
                server(ServerAddress::Srv("_http._tcp.example.com".to_owned())),
            ],
        )
    };
    assert_eq!(found, expected);
}

/// Pattern for the body of a check. Only the crate can create patterns, so its matches are asserted instead.
fn body_of(group: &Upstream) -> Option<Pattern> {
    let Some(Check::Http { body, .. }) = group.health.as_ref().map(|health| &health.check) else {
        panic!("no check over HTTP: {group:?}")
    };
    let pattern = body.as_ref().expect("a pattern");
    assert!(pattern.matches(b"ok!") && !pattern.matches(b"not ok"));
    body.clone()
}

#[test]
fn upstream_http2_settings_are_parsed() {
    let streams = |streams_max, connections_shared_max| {
        UpstreamProtocol::Http2(Multiplexing {
            streams_max,
            connections_shared_max,
        })
    };
    for (keys, protocol) in [
        ("", UpstreamProtocol::Http1),
        ("protocol = \"h1\"", UpstreamProtocol::Http1),
        ("protocol = \"h2\"", streams(100, 64)),
        (
            "protocol = \"h2\"\nstreams_max = 7\nconnections_shared_max = 2",
            streams(7, 2),
        ),
    ] {
        let found = group(&format!("servers = [\"a:1\"]\n{keys}"));
        assert_eq!(found.protocol, protocol, "{keys}");
    }
    let check = |health: &str| {
        let keys = format!("servers = [\"a:1\"]\nprotocol = \"h2\"\nhealth = {health}");
        group(&keys).health.map(|health| health.check)
    };
    let grpc = |service: &str, host: Option<&str>| {
        Some(Check::Grpc {
            service: service.into(),
            host: host.map(Into::into),
        })
    };
    assert_eq!(check("\"grpc\""), grpc("", None));
    let named = check("{ grpc = \"shop.Orders\", host = \"shop.example\" }");
    assert_eq!(named, grpc("shop.Orders", Some("shop.example")));
}

#[test]
fn short_forms_use_defaults() {
    let servers = "servers = [\"a:1\", \"b:1\"]";
    let plain = group(servers);
    assert_eq!(plain.retries, Retries::default());
    let with = |keys: &str| group(&format!("{servers}\n{keys}"));
    assert_eq!(
        with("health = \"tcp\"").health,
        Some(Health::of(Check::Tcp))
    );
    assert_eq!(
        with("health = { tcp = true }").health,
        Some(Health::of(Check::Tcp))
    );
    let http = Check::Http {
        path: "/".to_owned(),
        host: None,
        status: vec![(200, 399)],
        body: None,
    };
    assert_eq!(
        with("health = { path = \"/\" }").health,
        Some(Health::of(http))
    );
    assert_eq!(with("eject = true").eject, Some(Eject::default()));
    assert_eq!(with("eject = {}").eject, Some(Eject::default()));
    assert_eq!(with("eject = false").eject, None);
    let on_connections = Eject::on(EjectOn::Connections);
    assert_eq!(with("").eject, Some(on_connections));
    assert_eq!(
        with("eject = { on = \"connections\", time = \"30s\" }").eject,
        Some(Eject {
            time: Duration::from_secs(30),
            ..on_connections
        })
    );
    assert_eq!(
        (on_connections.error_share, on_connections.share_max),
        (None, 100)
    );
    assert_eq!(with("retries = 0").retries.count, 0);
    assert_eq!(with("retries = {}").retries, Retries::default());
    assert_eq!(with("tls = true").tls, Some(UpstreamTls::default()));
    assert_eq!(with("tls = false").tls, None);
    let unverified = with("tls = { verify = false }").tls.expect("tls");
    assert_eq!(unverified.verify, Verify::Insecure);
    let sticky = |cookie: &str, age_max| {
        Some(Sticky {
            cookie: cookie.to_owned(),
            age_max,
        })
    };
    assert_eq!(with("sticky = \"srv\"").sticky, sticky("srv", None));
    assert_eq!(
        with("sticky = { cookie = \"srv\", age_max = \"8h\" }").sticky,
        sticky("srv", Some(Duration::from_secs(8 * 3600)))
    );
}

#[test]
fn health_check_timeout_is_limited_by_interval() {
    let health =
        group("servers = [\"a:1\"]\nhealth = { path = \"/\", interval = \"500ms\" }").health;
    assert_eq!(health.expect("health").timeout, Duration::from_millis(500));
}

#[test]
fn all_balancing_methods_are_parsed() {
    for (keys, balance) in [
        ("\"round_robin\"", Balance::RoundRobin),
        ("\"random\"", Balance::Random),
        ("\"power_of_two\"", Balance::PowerOfTwo),
        ("\"least_connections\"", Balance::LeastConnections),
        ("\"peak_ewma\"", Balance::PeakEwma),
        ("\"first\"", Balance::First),
        (
            "\"hash\"\nhash = \"address\"",
            Balance::Hash(HashKey::Address),
        ),
        ("\"hash\"\nhash = \"path\"", Balance::Hash(HashKey::Path)),
        (
            "\"hash\"\nhash = \"cookie:id\"",
            Balance::Hash(HashKey::Cookie("id".to_owned())),
        ),
    ] {
        let found = group(&format!("servers = [\"a:1\"]\nbalance = {keys}"));
        assert_eq!(found.balance, balance);
    }
}

#[test]
fn proxy_protocol_disables_connection_reuse() {
    let found = group("servers = [\"a:1\"]\nproxy_protocol = \"v2\"");
    assert_eq!(found.proxy_protocol, Some(ProxyVersion::V2));
    assert_eq!(found.reuse, Reuse::Never);
}

#[test]
fn https_url_enables_upstream_tls() {
    let parsed = parsed(
        "[[route]]\npath = \"/a\"\nforward = \"https://a\"\n[[route]]\npath = \"/b\"\nforward = \"http://a:443\"\n[[route]]\nforward = \"https://a:443/\"",
    );
    let [tls, plain] = &parsed.plan.upstreams[..] else {
        panic!("two groups: {:?}", parsed.plan.upstreams)
    };
    assert_eq!(tls.tls, Some(UpstreamTls::default()));
    assert_eq!(plain.tls, None);
    assert_eq!(tls.servers, plain.servers);
    assert_eq!(parsed.plan.routes[2].action, Action::forward(0));
}

#[test]
fn invalid_upstream_settings_are_reported() {
    check_errors(BAD);
}

const BAD: &MessageCases = &[
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"leastconn\"",
        &[
            "3:11: unknown balance \"leastconn\": expected one of \"round_robin\", \"random\", \"power_of_two\", \"least_connections\", \"hash\", \"peak_ewma\", \"first\"",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"roundrobin\"",
        &["3:11: unknown balance \"roundrobin\"; nearest: \"round_robin\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"hash\"",
        &[
            "3:1: balance \"hash\" needs a key: expected hash = \"address\", \"path\", \"header:NAME\" or \"cookie:NAME\"",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhash = \"path\"",
        &["3:1: hash needs balance = \"hash\", which is missing"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"random\"\nhash = \"path\"",
        &["4:1: hash is only for balance = \"hash\", and balance has another value"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"hash\"\nhash = \"adress\"",
        &["4:8: unknown key to hash \"adress\"; nearest: \"address\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nbalance = \"hash\"\nhash = \"header:a b\"",
        &["4:8: \"a b\" is not a header name"],
    ),
    (
        "[upstream.app]\nservers = [{ address = \"a:1\", backup = true }]",
        &[
            "2:11: [upstream.app] has only backup servers: expected at least one server that is not a backup",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"srv:a b\", { address = \"a:1\", connections_max = 0 }]",
        &[
            "2:12: \"srv:a b\" does not name SRV records: expected a name such as \"srv:_http._tcp.example.com\"",
            "2:60: connections_max 0 is out of range: expected 1 to 65535",
        ],
    ),
    // Checks.
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = true",
        &[
            "3:10: health is true or false: expected \"tcp\", \"grpc\", or a table such as { path = \"/health\" }",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = { interval = \"2s\" }",
        &["3:10: health has no path: expected a path such as \"/health\", or tcp = true"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = { tcp = true, path = \"/\" }",
        &["3:24: path is for checks over HTTP, and tcp = true only connects"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = { path = \"health\", status = [99, \"3xx\"], rise = 0, jitter = \"60%\", port = 70000, host = \"a b\", body = \"~(\" }",
        &[
            "3:19: \"health\" is not a path to request: expected one such as \"/health\"",
            "3:39: \"99\" is not a status: expected 200 to 599, a range such as \"200-299\", or a class such as \"2xx\"",
            "3:58: rise 0 is out of range: expected 1 to 1000",
            "3:70: jitter 60% is out of range: expected 0% to 50%",
            "3:84: port 70000 is out of range: expected 1 to 65535",
            "3:98: \"a b\" is not a host: expected one such as \"app.example.com\" or \"app.example.com:8000\"",
            "3:112: \"(\" is not a regular expression: unclosed group",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = { path = \"/\", intervall = \"2s\" }",
        &["3:24: unknown key \"intervall\" in health; nearest: \"interval\""],
    ),
    // Ejection and retries.
    (
        "[upstream.app]\nservers = [\"a:1\", \"b:1\"]\neject = { failures = 0, error_share = \"101%\", latency = \"50%\", share_max = 50 }",
        &[
            "3:22: failures 0 is out of range: expected 1 to 1000",
            "3:39: error_share 101% is out of range: expected 1% to 100%",
            "3:57: latency 50% is out of range: expected 110% to 10000%",
            "3:76: share_max in eject is a number: expected a share such as \"50%\"",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\", \"b:1\"]\neject = { on = \"conections\" }",
        &["3:16: unknown kind of failure \"conections\"; nearest: \"connections\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nretries = 11",
        &["3:11: retries 11 is out of range: expected 0 to 10"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nretries = { on = [\"conect\"], statuses = [200, \"x\"], budget = \"0%\" }",
        &[
            "3:19: unknown failure \"conect\"; nearest: \"connect\"",
            "3:42: status 200 is not a failure status: expected 400 to 599",
            "3:47: statuses in retries is a string: expected a list of statuses such as [502, 503]",
            "3:62: budget 0% is out of range: expected 1% to 100%",
        ],
    ),
    // Connections.
    (
        "[upstream.app]\nservers = [\"a:1\"]\nreuse = \"never\"\nconnections_ready = 1",
        &["4:1: connections_ready needs connections that are reused, but reuse is \"never\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nstreams_max = 10",
        &["3:1: streams_max is only for protocol = \"h2\": set it, or remove the key"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nprotocol = \"h3\"",
        &["3:12: unknown protocol of servers \"h3\"; nearest: \"h1\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nprotocol = \"h2\"\nstreams_max = 0\nconnections_shared_max = 5000",
        &[
            "4:15: streams_max 0 is out of range: expected 1 to 1024",
            "5:26: connections_shared_max 5000 is out of range: expected 1 to 1024",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nprotocol = \"h2\"\nproxy_protocol = \"v1\"",
        &[
            "4:1: proxy_protocol ties a connection to one client, but with protocol = \"h2\" many clients share a connection",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nprotocol = \"h2\"\nreuse = \"safe\"\nconnections_idle_max = 3",
        &[
            "4:1: reuse is for connections that carry one request at a time: with protocol = \"h2\" expected streams_max and connections_shared_max",
            "5:1: connections_idle_max is for connections that carry one request at a time: with protocol = \"h2\" expected streams_max and connections_shared_max",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nhealth = \"grpc\"",
        &["3:1: a gRPC health check uses HTTP/2: expected protocol = \"h2\" as well"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nprotocol = \"h2\"\nhealth = { grpc = \"a b\" }",
        &[
            "4:19: \"a b\" is not the name of a service: expected one such as \"shop.Orders\", or \"\" for the whole server",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\npipeline = 32",
        &[
            "3:1: key \"pipeline\" in [upstream.app] was removed: set protocol = \"h2\", which carries requests of many clients on one connection",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nproxy_protocol = \"v1\"\nreuse = \"always\"",
        &[
            "4:1: reuse must be \"never\" with proxy_protocol, which ties a connection to one client",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nproxy_protocol = 2",
        &["3:18: proxy_protocol in [upstream.app] is a number: expected \"v1\" or \"v2\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nconnections_ready = 10\nconnections_idle_max = 5",
        &["3:1: connections_ready 10 is more than connections_idle_max 5"],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nqueue = 100",
        &["3:9: queue is a number: expected a table such as { max = 1000 }"],
    ),
    // TLS.
    (
        "[upstream.app]\nservers = [\"a:1\"]\ntls = { verify = false, ca = \"ca.pem\", certificate = \"c.pem\", name = \"a b\" }",
        &[
            "3:7: certificate and key of tls need each other: set both, or neither",
            "3:25: ca contradicts verify = false, which accepts every certificate",
            "3:70: \"a b\" is not a host name: expected one such as \"app.example.com\"",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"unix:/run/a\"]\ntls = true",
        &[
            "3:1: a Unix socket has no name to verify: expected tls = { name = \"app.example.com\" }",
        ],
    ),
    // Sticky clients.
    (
        "[upstream.app]\nservers = [\"a:1\"]\nsticky = { cookie = \"a;b\", age_max = \"0s\" }",
        &[
            "3:21: \"a;b\" is not the name of a cookie",
            "3:38: an age of 0s is out of range: expected 1s to 9600h",
        ],
    ),
];

#[test]
fn ineffective_upstream_settings_cause_warnings() {
    check_warnings(IDLE);
}

const IDLE: &MessageCases = &[
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"10.0.0.1:1\"]\nqueue = { max = 5 }\nslow_start = \"5s\"",
        &[
            "6:1: queue has no effect without connections_max: no server is ever full",
            "7:1: slow_start has no effect without health or eject: no server is ever taken out and put back",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"10.0.0.1:1\"]\neject = true",
        &["6:1: eject has no effect with a single server: the last server is never taken out"],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"a:1\"]\neject = { failures = false, error_share = false }",
        &["6:9: eject has no criterion: expected one of failures, error_share and latency"],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"10.0.0.1:1\", { address = \"10.0.0.9:1\", backup = true }]\nretries = 0\neject = false",
        &[
            "5:1: the backup servers of [upstream.app] never get a request: no check can take out all the others, and requests are not retried; expected health, retries, or eject with a share_max that allows all the others",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"10.0.0.2:1\", \"10.0.0.3:1\", \"10.0.0.1:1\", { address = \"10.0.0.9:1\", backup = true }]\nretries = 0\neject = true",
        &[
            "5:1: the backup servers of [upstream.app] never get a request: no check can take out all the others, and requests are not retried; expected health, retries, or eject with a share_max that allows all the others",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"10.0.0.1:1\", { address = \"10.0.0.9:1\", backup = true }]\nretries = 0\neject = { failures = false, error_share = false, latency = \"300%\" }",
        &[
            "5:1: the backup servers of [upstream.app] never get a request: no check can take out all the others, and requests are not retried; expected health, retries, or eject with a share_max that allows all the others",
        ],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"a:1\"]\nretries = { count = 0, statuses = [503] }",
        &["6:24: statuses has no effect when count is 0"],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"a:1\"]\nhealth = { path = \"/\", timeout = \"5s\" }",
        &["6:24: timeout is longer than interval: the next check waits for the end of this one"],
    ),
    (
        "[[route]]\npath = \"/a\"\nforward = \"app\"\n[upstream.app]\nservers = [\"a:1\"]\nreuse = \"never\"\nconnections_idle_max = 9",
        &["7:1: connections_idle_max has no effect when reuse is \"never\""],
    ),
];

#[test]
fn reachable_backups_cause_no_warning() {
    let two = "{ address = \"10.0.0.9:1\", backup = true }";
    for (first, keys) in [
        ("10.0.0.1:1", ""),
        ("10.0.0.1:1", "eject = false"),
        ("10.0.0.1:1", "retries = 0"),
        ("10.0.0.1:1", "retries = 0\neject = true"),
        ("10.0.0.1:1", "retries = 0\neject = false\nhealth = \"tcp\""),
        ("a:1", "retries = 0\neject = false"),
    ] {
        let found = group(&format!("servers = [{first:?}, {two}]\n{keys}"));
        assert_eq!(found.servers.len(), 2);
    }
}

#[test]
fn resolve_retry_and_addresses_max_are_parsed() {
    let of = |keys: &str, server: &str| {
        let text =
            format!("[[route]]\nforward = \"app\"\n[upstream.app]\nservers = [{server}]\n{keys}");
        parsed(&text).plan.upstreams.remove(0)
    };
    let default = of("", "\"app:80\"");
    assert_eq!(default.resolve_retry, Duration::from_secs(5));
    assert_eq!(default.servers[0].addresses_max, 64);
    let set = of(
        "resolve_retry = \"2s\"",
        "{ address = \"app:80\", addresses_max = 200 }",
    );
    assert_eq!(set.resolve_retry, Duration::from_secs(2));
    assert_eq!(set.servers[0].addresses_max, 200);
}
