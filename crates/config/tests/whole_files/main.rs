//! Whole configuration files: their meaning, and all error messages.

use std::path::Path;
use std::time::Duration;

mod admin;
mod cache_control;
mod include;
mod listen;
mod listener;
mod log;
mod process;
mod protocol;
mod route;
mod support;
mod tracing;
mod upstream;

use onrush_config::plan::*;
use onrush_config::{Parsed, parse};

use support::{MessageCases, check_errors, errors, parsed, warnings};

const FULL: &str = r#"
threads = 2
cpus = "0,2-3"
io = "epoll"
accept = "hash"

[[listen]]
address = "0.0.0.0:8080"

[[listen]]
address = "unix:onrush.sock"

[[route]]
host = "Static.Example.com"
path = "/assets/"
files = { root = "www", index = ["index.html", "index.htm"], hidden = true }

[[route]]
path = "=/health"
respond = { status = 200, body = "ok", headers = { X-Two = ["a", " b "], Content-Type = "text/plain" } }

[[route]]
path = "/lab"
synthetic = true

[[route]]
path = "/old/"
forward = "http://10.0.0.9:8000"

[[route]]
path = "/older/"
forward = "http://10.0.0.9:8000/"

[[route]]
forward = "app"

[upstream.app]
balance = "random"
connections_idle_max = "1k"
servers = ["10.0.0.1:8000", { address = "app2.example.com:8000", weight = 2 }, "unix:/run/app.sock"]

[timeouts]
client_head = "250ms"
connect = "1s"
"#;

#[test]
fn request_limits_are_parsed() {
    let plan = parsed("request_head_max = \"4k\"\nrequest_fields_max = 50\nrequest_target_max = 1000\n[[route]]\nsynthetic = true").plan;
    let limits = RequestLimits {
        head_bytes_max: 4096,
        fields_max: 50,
        target_bytes_max: 1000,
    };
    assert_eq!(plan.request_limits, limits);
    check_errors(&[(
        "request_head_max = \"16k\"\nrequest_fields_max = 101\nrequest_target_max = \"all\"",
        &[
            "1:1: request_head_max of 16384 bytes is out of range: expected 256 to 15360",
            "2:22: request_fields_max 101 is out of range: expected 1 to 100",
            "3:22: \"all\" is not a size: expected bytes, or k, m or g of 1024, such as 512, 64k or 4MiB",
        ],
    )]);
}

#[test]
fn busy_poll_is_optional() {
    const ROUTE: &str = "[[route]]\nsynthetic = true";
    assert!(!parsed(ROUTE).plan.busy_poll);
    for (text, expected) in [
        ("busy_poll = true\ncpus = \"1\"", &[][..]),
        ("busy_poll = true\nthreads = 1", &[]),
        ("busy_poll = false", &[]),
        (
            "busy_poll = true",
            &[
                "1:1: busy_poll uses 100 % of every CPU that this process may use: expected cpus or threads as well, to leave CPUs for other programs",
            ],
        ),
    ] {
        let text = format!("{text}\n{ROUTE}");
        assert_eq!(
            parsed(&text).plan.busy_poll,
            text.contains("true\n"),
            "{text}"
        );
        assert_eq!(warnings(&text), expected, "{text}");
    }
    check_errors(&[
        (
            "busy_poll = \"yes\"\n[[route]]\nsynthetic = true",
            &["1:13: busy_poll in the file is a string: expected true or false"],
        ),
        (
            "[[route]]\nsynthetic = true\nbusy_poll = true",
            &[
                "3:1: key \"busy_poll\" does not belong in [[route]]; expected at the top of the file, before the first [section]",
            ],
        ),
    ]);
}

#[test]
fn client_limits_are_parsed() {
    let plan = parsed("[clients]\nconnections_max = \"10k\"\n[[route]]\nsynthetic = true").plan;
    assert_eq!(plan.clients.connections_max.map(u32::from), Some(10_000));
    assert_eq!(plan.clients.connections_per_address_max, None);
    assert_eq!(plan.clients.http2_resets_per_second, 10_000);
    let plan = parsed("[clients]\nhttp2_resets_per_second = 50\n[[route]]\nsynthetic = true").plan;
    assert_eq!(plan.clients.http2_resets_per_second, 50);
    assert_eq!(plan.clients.stalled_streams_per_address_max.get(), 256);
    check_errors(&[
        (
            "[clients]\nhttp2_resets_per_second = 0",
            &["2:27: http2_resets_per_second 0 is out of range: expected 1 to 1000000"],
        ),
        (
            "[clients]\nconnections_max = 0\nconnections_per_address_max = \"many\"\nconections = 1",
            &[
                "2:19: connections_max 0 is out of range: expected 1 to 16777215",
                "3:31: \"many\" is not a count: expected a whole number, or thousands or millions, such as 100, 10k or 1m",
                "4:1: unknown key \"conections\" in [clients]; nearest: \"connections_max\"",
            ],
        ),
        (
            "clients = 100",
            &[
                "1:11: [clients] is a number: expected a table such as { connections_per_address_max = 100 }",
            ],
        ),
    ]);
}

#[test]
fn full_configuration_is_parsed() {
    let Parsed { plan, warnings } = parsed(FULL);
    assert_eq!(warnings, []);
    assert_eq!(plan.threads, Threads::Count(2.try_into().expect("not 0")));
    assert_eq!(plan.cpus, Some(vec![0, 2, 3]));
    assert_eq!(plan.io, Io::Epoll);
    assert_eq!(plan.accept, Accept::Hash);
    let addresses: Vec<String> = plan
        .listen
        .iter()
        .map(|listen| listen.address.to_string())
        .collect();
    assert_eq!(addresses, ["0.0.0.0:8080", "unix:conf/onrush.sock"]);
    let actions: Vec<&Action> = plan.routes.iter().map(|route| &route.action).collect();
    assert_eq!(
        actions,
        [
            &Action::Files(Files {
                index: vec!["index.html".to_owned(), "index.htm".to_owned()],
                hidden: true,
                ..Files::in_directory("conf/www")
            }),
            &Action::Respond {
                status: 200,
                body: b"ok".to_vec(),
                headers: [
                    ("X-Two", "a"),
                    ("X-Two", "b"),
                    ("Content-Type", "text/plain")
                ]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            },
            &Action::Synthetic,
            &Action::forward(1),
            &Action::forward(1),
            &Action::forward(0),
        ]
    );
    assert_eq!(
        plan.routes[0]
            .when
            .hosts
            .first()
            .map(Host::to_string)
            .as_deref(),
        Some("static.example.com")
    );
    assert_eq!(
        plan.routes[0].when.path,
        PathMatch::Prefix("/assets/".to_owned())
    );
    assert_eq!(
        plan.routes[1].when.path,
        PathMatch::Exact("/health".to_owned())
    );
    assert_eq!(plan.routes[5].when.path, PathMatch::Any);
    let [app, single] = &plan.upstreams[..] else {
        panic!("two groups: {:?}", plan.upstreams)
    };
    assert_eq!(
        (
            app.name.as_str(),
            app.balance.clone(),
            app.connections_idle_max
        ),
        ("app", Balance::Random, 1000)
    );
    let servers: Vec<(String, u32)> = app
        .servers
        .iter()
        .map(|server| (server.address.to_string(), server.weight))
        .collect();
    let expected = [
        ("10.0.0.1:8000", 1),
        ("app2.example.com:8000", 2),
        ("unix:/run/app.sock", 1),
    ];
    assert_eq!(
        servers,
        expected.map(|(address, weight)| (address.to_owned(), weight))
    );
    assert_eq!(
        (single.name.as_str(), single.balance.clone()),
        ("10.0.0.9:8000", Balance::RoundRobin)
    );
    assert_eq!(plan.timeouts.client_head, Duration::from_millis(250));
    assert_eq!(plan.timeouts.connect, Duration::from_secs(1));
    assert_eq!(plan.timeouts.drain, Timeouts::default().drain);
}

#[test]
fn minimal_file_equals_one_liner() {
    let forward = |address: &str| {
        let server = onrush_config::address::parse_server_url(address).expect("a server");
        Plan::one_liner(OneLiner::Forward(vec![server.address]), Vec::new())
    };
    for (text, plan) in [
        (
            "[[route]]\nsynthetic = true",
            Plan::one_liner(OneLiner::Synthetic, Vec::new()),
        ),
        (
            "[[route]]\nfiles = { root = \"/srv\" }",
            Plan::one_liner(OneLiner::Files("/srv".into()), Vec::new()),
        ),
        (
            "[[route]]\nrespond = { status = 200, body = \"ok\" }",
            Plan::one_liner(
                OneLiner::Respond {
                    status: 200,
                    body: b"ok".to_vec(),
                },
                Vec::new(),
            ),
        ),
        ("[[route]]\nforward = \"http://a:1\"", forward("http://a:1")),
        (
            "[[route]]\nforward = \"unix:/run/a\"",
            forward("unix:/run/a"),
        ),
    ] {
        assert_eq!(parsed(text).plan, plan, "{text}");
    }
}

#[test]
fn error_output_has_excerpts_and_underlines() {
    let text = "[[route]]\npath = \"/p/\"\n  forwrad = \"app\"\n\n[timeouts]\nconnect = 10\n";
    let printed = parse(text, Path::new("conf/onrush.toml"))
        .expect_err("two mistakes")
        .to_string();
    assert_eq!(
        printed,
        r#"conf/onrush.toml:3:3: unknown key "forwrad" in [[route]]; nearest: "forward"
    3 |   forwrad = "app"
      |   ^^^^^^^
conf/onrush.toml:6:11: connect in [timeouts] is a number: expected a duration such as "10s"
    6 | connect = 10
      |           ^^"#
    );
}

#[test]
fn invalid_settings_are_reported_with_positions() {
    check_errors(BAD);
}

const BAD: &MessageCases = &[
    // The file itself.
    (
        "threads = 0",
        &["1:11: \"0\" is not a number of threads: expected auto, or 1 to 1024"],
    ),
    (
        "threads = \"all\"",
        &["1:11: \"all\" is not a number of threads: expected auto, or 1 to 1024"],
    ),
    (
        "threads = 1.5",
        &[
            "1:11: threads in the file is a number with a fraction: expected \"auto\" or a number such as 4",
        ],
    ),
    (
        "threads = -1",
        &["1:11: \"-1\" is not a number of threads: expected auto, or 1 to 1024"],
    ),
    (
        "cpus = \"3-1\"",
        &["1:8: \"3-1\" in the CPU list \"3-1\" is reversed: expected the lower CPU first"],
    ),
    (
        "cpus = [0, 1]",
        &["1:8: cpus in the file is a list: expected a list of CPUs such as \"0,2-3\""],
    ),
    (
        "io = \"iouring\"",
        &["1:6: unknown driver \"iouring\"; nearest: \"io_uring\""],
    ),
    (
        "io = true",
        &["1:6: io in the file is true or false: expected \"auto\", \"epoll\" or \"io_uring\""],
    ),
    (
        "accept = \"cpus\"",
        &["1:10: unknown way to accept \"cpus\"; nearest: \"cpu\""],
    ),
    (
        "accept = 1",
        &["1:10: accept in the file is a number: expected \"auto\", \"cpu\" or \"hash\""],
    ),
    (
        "thread = 1",
        &["1:1: unknown key \"thread\" in the file; nearest: \"threads\""],
    ),
    (
        "port = 80",
        &[
            "1:1: unknown key \"port\" in the file; expected one of: include, threads, cpus, io, accept, busy_poll, listen, route, upstream, timeouts, forwarded, compress, admin, log, tracing, request_body_max, error_pages, cache_control, upstream_headers, clients, process, request_head_max, request_fields_max, request_target_max",
        ],
    ),
    (
        "reload = true",
        &["1:1: key \"reload\" in the file is not supported yet in this version"],
    ),
    // Listeners.
    (
        "[[listen]]\naddress = \"example.com:80\"",
        &[
            "2:11: \"example.com:80\" is not an address to listen on: expected an IP address and a port such as \"0.0.0.0:80\", \"[::]:80\" or \":80\", or \"unix:/run/onrush.sock\"",
        ],
    ),
    (
        "[[listen]]\naddress = \"10.0.0.1\"",
        &["2:11: \"10.0.0.1\" has no port: expected one such as \"10.0.0.1:80\""],
    ),
    (
        "[[listen]]\naddress = 80",
        &["2:11: address in [[listen]] is a number: expected an address such as \"0.0.0.0:80\""],
    ),
    (
        "[[listen]]",
        &["1:1: [[listen]] has no address: expected an address such as \"0.0.0.0:80\""],
    ),
    (
        "[[listen]]\nadress = \":80\"",
        &["2:1: unknown key \"adress\" in [[listen]]; nearest: \"address\""],
    ),
    (
        "[listen]\naddress = \":80\"",
        &["1:1: listen is written [[listen]], once for each"],
    ),
    (
        "[[listen]]\naddress = \":80\"\n[[listen]]\naddress = \"0.0.0.0:80\"",
        &["4:11: 0.0.0.0:80 is already an address of the [[listen]] in line 2"],
    ),
    (
        "[[listen]]\naddress = \"unix:a\"\n[[listen]]\naddress = \"unix:a\"",
        &["4:11: unix:a is already an address of the [[listen]] in line 2"],
    ),
    (
        "[[listen]]\naddress = \"127.0.0.1:80\"\n[[listen]]\naddress = \"[::ffff:127.0.0.1]:80\"",
        &["4:11: 127.0.0.1:80 is already an address of the [[listen]] in line 2"],
    ),
    (
        "[[listen]]\naddress = \":80\"\nthreads = 2",
        &[
            "3:1: key \"threads\" does not belong in [[listen]]; expected at the top of the file, before the first [section]",
        ],
    ),
    // Routes and their conditions.
    (
        "[[route]]\npath = \"/p/\"",
        &[
            "1:1: this [[route]] has no response: expected exactly one of respond, redirect, files, synthetic and forward",
        ],
    ),
    (
        "[[route]]\nforwrad = \"app\"",
        &["2:1: unknown key \"forwrad\" in [[route]]; nearest: \"forward\""],
    ),
    (
        "[[route]]\nroot = \"/srv\"\nsynthetic = true\npath = \"/x\"",
        &[
            "2:1: unknown key \"root\" in [[route]]; expected one of: host, path, method, headers, query, from, scheme, listener, not, allow, deny, rate_limit, basic_auth, request_body_max, error_pages, timeouts, request_headers, response_headers, upstream_headers, strip_prefix, replace_prefix, rewrite, cors, cache_control, mirror, compress, log, tracing, respond, redirect, files, synthetic, forward",
        ],
    ),
    (
        "[[route]]\nrespond = { status = 200 }\nfiles = { root = \"/srv\" }\npath = \"/x\"",
        &[
            "3:1: \"files\" is a second response, after \"respond\" in line 2: a [[route]] has exactly one of respond, redirect, files, synthetic and forward",
        ],
    ),
    (
        "[[route]]\nhost = \"a b\"\nsynthetic = true",
        &["2:8: \"a b\" is not a host name: expected one such as \"static.example.com\""],
    ),
    (
        "[[route]]\npath = \"p\"\nsynthetic = true",
        &[
            "2:8: path \"p\" does not begin with \"/\": expected a prefix such as \"/p/\" or an exact path such as \"=/p\"",
        ],
    ),
    (
        "[[route]]\npath = \"~(p\"\nsynthetic = true",
        &["2:8: \"(p\" is not a regular expression: unclosed group"],
    ),
    // Fixed responses.
    (
        "[[route]]\nrespond = \"ok\"",
        &["2:11: respond is a string: expected a table such as { status = 200, body = \"ok\" }"],
    ),
    (
        "[[route]]\nrespond = { body = \"ok\" }",
        &["2:11: respond has no status: expected a number such as 200"],
    ),
    (
        "[[route]]\nrespond = { status = 99 }",
        &["2:22: status 99 is not a final status: expected 200 to 599"],
    ),
    (
        "[[route]]\nrespond = { status = \"200\" }",
        &["2:22: status in respond is a string: expected a number such as 200"],
    ),
    (
        "[[route]]\nrespond = { status = 999999999999999999999999999999999999999999 }",
        &["2:22: status in respond is too large: expected a number such as 200"],
    ),
    (
        "[[route]]\nrespond = { status = 204, body = \"x\" }",
        &["2:34: a response with status 204 has no body"],
    ),
    (
        "[[route]]\nrespond = { status = 200, headers = { Content-Length = \"1\", \"a b\" = \"\", X = 1 } }",
        &[
            "2:39: header \"Content-Length\" is set by the server itself: leave it out",
            "2:61: \"a b\" is not a header name",
            "2:77: header \"X\" is a number: expected text such as \"text/plain\"",
        ],
    ),
    // Files and synthetic responses.
    (
        "[[route]]\nfiles = \"/srv\"",
        &["2:9: files is a string: expected a table such as { root = \"/srv/www\" }"],
    ),
    (
        "[[route]]\nfiles = {}",
        &["2:9: files has no root: expected a directory such as \"/srv/www\""],
    ),
    (
        "[[route]]\nfiles = { root = \"\" }",
        &["2:18: \"\" is not a path: expected a directory such as \"/srv/www\""],
    ),
    (
        "[[route]]\nfiles = { root = \"a\", index = [\"a/b\", \"..\"], hidden = \"no\" }",
        &[
            "2:32: \"a/b\" is not a file name: expected one such as \"index.html\"",
            "2:39: \"..\" is not a file name: expected one such as \"index.html\"",
            "2:55: hidden in files is a string: expected true or false",
        ],
    ),
    (
        "[[route]]\nsynthetic = false",
        &["2:13: synthetic can only be true; leave it out for another response"],
    ),
    // Groups of servers.
    (
        "[[route]]\nforward = \"apt\"\n[upstream.app]\nservers = [\"a:1\"]",
        &["2:11: unknown group \"apt\"; nearest: \"app\""],
    ),
    (
        "[[route]]\nforward = \"web\"\n[upstream.app]\nservers = [\"a:1\"]",
        &[
            "2:11: unknown group \"web\": expected an [upstream.web], or a single server as a URL such as \"http://10.0.0.9:8000\"",
        ],
    ),
    (
        "[[route]]\nforward = \"10.0.0.9\"",
        &["2:11: server \"10.0.0.9\" has no port: expected one such as \"10.0.0.9:8000\""],
    ),
    (
        "[upstream.app]\nservers = []",
        &["2:11: [upstream.app] has no servers: expected at least one such as \"10.0.0.1:8000\""],
    ),
    (
        "[upstream.app]",
        &["1:1: [upstream.app] has no servers: expected a list such as [\"10.0.0.1:8000\"]"],
    ),
    (
        "[upstream.app]\nserver = [\"a:1\"]",
        &["2:1: unknown key \"server\" in [upstream.app]; nearest: \"servers\""],
    ),
    (
        "[upstream.app]\nservers = \"a:1\"",
        &[
            "2:11: servers in [upstream.app] is a string: expected a list such as [\"10.0.0.1:8000\"]",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"10.0.0.1\"]",
        &["2:12: server \"10.0.0.1\" has no port: expected one such as \"10.0.0.1:8000\""],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\",\n\"b:1\", \"a:1\"]",
        &["3:8: server a:1 is already in [upstream.app], in line 2: give it a weight instead"],
    ),
    (
        "[upstream.app]\nservers = [1, { weight = 2 }, { address = \"a:1\", weight = 0 }, { address = \"b:1\", wieght = 2 }]",
        &[
            "2:12: a server is a number: expected an address such as \"10.0.0.1:8000\" or { address = \"10.0.0.1:8000\", weight = 2 }",
            "2:15: a server has no address: expected an address such as \"10.0.0.1:8000\"",
            "2:59: weight 0 is out of range: expected 1 to 1000",
            "2:83: unknown key \"wieght\" in a server; nearest: \"weight\"",
        ],
    ),
    (
        "[upstream.app]\nservers = [\"a:1\"]\nconnections_idle_max = \"70k\"",
        &["3:24: connections_idle_max 70k is out of range: expected 0 to 65535"],
    ),
    (
        "[upstream.\"a b\"]\nservers = [\"a:1\"]",
        &[
            "1:11: \"a b\" is not a name for a group: expected letters, digits, \"-\", \"_\" and \".\"",
        ],
    ),
    (
        "[[upstream]]\nname = \"app\"",
        &["1:1: upstream is written [upstream.NAME], with a name that a route can forward to"],
    ),
    (
        "[upstream]\nservers = [\"a:1\"]",
        &["2:1: upstream is written [upstream.NAME]: \"servers\" is a list, not a group"],
    ),
    // Timeouts.
    (
        "[timeouts]\nconnect = 1",
        &["2:11: connect in [timeouts] is a number: expected a duration such as \"10s\""],
    ),
    (
        "[timeouts]\nconnect = \"1\"",
        &[
            "2:11: \"1\" is not a duration: expected a number and its unit, such as 250ms, 1.5s, 2m, 1h or 7d",
        ],
    ),
    (
        "[timeouts]\nconnect = \"0s\"",
        &["2:11: a time of 0s is out of range: expected 1ms to 24h"],
    ),
    (
        "[timeouts]\nconect = \"1s\"",
        &["2:1: unknown key \"conect\" in [timeouts]; nearest: \"connect\""],
    ),
    (
        "[[timeouts]]\nconnect = \"1s\"",
        &["1:1: timeouts is written [timeouts], once, with keys such as connect = \"1s\" below"],
    ),
    // Not TOML.
    (
        "threads = ",
        &["1:11: not TOML: string values must be quoted, expected literal string"],
    ),
    (
        "io = \"epoll",
        &["1:12: not TOML: invalid basic string, expected `\"`"],
    ),
    (
        "threads = 1\nthreads = 2",
        &["2:1: not TOML: duplicate key"],
    ),
];

#[test]
fn file_without_routes_is_rejected() {
    for text in ["", "route = []", "threads = 1"] {
        assert_eq!(
            errors(text),
            ["1:1: there is no [[route]]: expected at least one, which defines the responses"]
        );
    }
    // A load target needs no routes, even if it has other errors.
    let far_end =
        "[[listen]]\naddress = \"127.0.0.1:7\"\nprotocol = \"sink\"\ntransport = \"tcpp\"";
    assert!(
        errors(far_end)
            .iter()
            .all(|error| error.starts_with("4:13: "))
    );
    // A misspelt key, or one of the wrong type, is reported once.
    let routes = "[[routes]]\nsynthetic = true";
    assert_eq!(
        errors(routes),
        ["1:3: unknown key \"routes\" in the file; nearest: \"route\""]
    );
    assert_eq!(
        errors("[route]\nsynthetic = true"),
        ["1:1: route is written [[route]], once for each"]
    );
}

#[test]
fn all_errors_are_reported_in_file_order() {
    let text =
        "threads = 0\nlisten = 1\n[[route]]\nforward = \"x\"\n[timeouts]\ndrain = \"\"\nx = 1";
    let places: Vec<String> = errors(text)
        .iter()
        .map(|error| error.splitn(3, ':').take(2).collect::<Vec<_>>().join(":"))
        .collect();
    assert_eq!(places, ["1:11", "2:10", "4:11", "6:9", "7:1"]);
}

#[test]
fn shadowed_route_causes_warning() {
    let never = |line: usize, by: usize| {
        vec![format!(
            "{line}:1: this [[route]] is never reached: the one in line {by} matches all of its requests"
        )]
    };
    let route = |conditions: &str| format!("[[route]]\n{conditions}\nsynthetic = true\n");
    let two = |first: &str, second: &str| warnings(&(route(first) + &route(second)));
    assert_eq!(two("", "path = \"/x\""), never(4, 1));
    assert_eq!(two("path = \"/\"", ""), never(4, 1));
    assert_eq!(two("path = \"/a\"", "path = \"=/a/b\""), never(4, 1));
    assert_eq!(
        two("path = \"/a\"", "host = \"h\"\npath = \"/a\""),
        never(4, 1)
    );
    assert_eq!(
        two("host = \"h\"", "host = \"H\"\npath = \"/a\""),
        never(4, 1)
    );
    assert_eq!(two("host = \"h\"", "path = \"/a\""), [""; 0]);
    assert_eq!(two("host = \"h\"", "host = \"i\""), [""; 0]);
    assert_eq!(two("path = \"/a/\"", "path = \"/a\""), [""; 0]);
}

#[test]
fn unused_groups_and_shared_cpus_cause_warnings() {
    let text = "threads = 3\ncpus = \"0-1\"\n[[route]]\nsynthetic = true\n[upstream.app]\nservers = [\"a:1\"]";
    assert_eq!(
        warnings(text),
        [
            "1:11: 3 threads share 2 CPUs: one thread per CPU is fastest",
            "5:11: no [[route]] forwards to [upstream.app]"
        ]
    );
}

#[test]
fn multiple_listeners_may_use_port_zero() {
    let text =
        "[[listen]]\naddress = \":0\"\n[[listen]]\naddress = \":0\"\n[[route]]\nsynthetic = true";
    assert_eq!(parsed(text).plan.listen.len(), 2);
}

#[test]
fn relative_paths_resolve_against_config_directory() {
    let text = "[[route]]\nfiles = { root = \"www\" }";
    for (path, root) in [
        ("onrush.toml", "www"),
        ("/etc/onrush/a.toml", "/etc/onrush/www"),
        ("../a.toml", "../www"),
    ] {
        let plan = parse(text, Path::new(path)).expect("a good file").plan;
        assert!(matches!(&plan.routes[0].action, Action::Files(files) if *files.root == *root));
    }
}

#[test]
fn count_limits_are_enforced() {
    let listen: String = (0..1025)
        .map(|port| format!("[[listen]]\naddress = \"{}\"\n", port + 1))
        .collect();
    let listen = errors(&(listen + "[[route]]\nsynthetic = true"));
    assert_eq!(
        listen,
        ["2049:1: there are 1025 [[listen]]: expected at most 1024"]
    );
    let routes = errors(&"[[route]]\nsynthetic = true\n".repeat(10_001));
    assert_eq!(
        routes,
        ["20001:1: there are 10001 [[route]]: expected at most 10000"]
    );
    let long = errors(&"#".repeat((16 << 20) + 1));
    assert_eq!(
        long,
        ["1:1: a configuration of 16777217 bytes is too long: expected at most 16777216"]
    );
    let servers: String = (1..=4097).map(|port| format!("\"a:{port}\",")).collect();
    let servers = errors(&format!(
        "[upstream.app]\nservers = [{servers}]\n[[route]]\nforward = \"app\""
    ));
    assert_eq!(
        servers,
        ["2:11: [upstream.app] has 4097 servers: expected at most 4096"]
    );
}

#[test]
fn damaged_file_does_not_panic() {
    for (at, _) in FULL.char_indices() {
        let _ = parse(&FULL[..at], Path::new("a"));
        let _ = parse(&FULL[at..], Path::new("a"));
        for damage in [
            "", "\0", "\"", "[", "]", "{", "=", "\n", "ü", "9", "\u{feff}",
        ] {
            let damaged = format!("{}{damage}{}", &FULL[..at], &FULL[at + 1..]);
            if let Err(errors) = parse(&damaged, Path::new("a")) {
                assert!(errors.iter().count() > 0 && !errors.to_string().is_empty());
            }
        }
    }
}
