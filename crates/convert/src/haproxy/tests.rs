//! Conversion of whole configurations of HAProxy.

mod maps;
mod protocol;
mod rules;
mod samples;
mod servers;
mod settings;

use super::*;
use crate::source::note::Outcome;
use crate::written::{self, MemoryFiles, outcome, verified};

fn converted_files(files: Vec<(&'static str, String)>) -> Result<Conversion, InputError> {
    convert(
        &MemoryFiles(files),
        Path::new("/h.cfg"),
        Path::new("/etc/haproxy"),
        Guards::Closed,
    )
}

/// Converts a configuration and checks that Onrush accepts the result.
#[track_caller]
fn converted(text: &str) -> Conversion {
    let conversion = converted_files(vec![
        ("/h.cfg", text.to_owned()),
        (
            "/etc/haproxy/hosts.map",
            "# hosts\na.org app\nb.org other\n".to_owned(),
        ),
        ("/etc/haproxy/bad.lst", "192.0.2.1\n10.0.0.0/8\n".to_owned()),
    ]);
    let conversion = conversion.expect("it is HAProxy's language");
    verified(conversion)
}

/// Lines of the result without comments and listeners.
fn lines(conversion: &Conversion) -> Vec<&str> {
    written::lines(conversion)
        .filter(|line| *line != "[[listen]]" && !line.starts_with("address = "))
        .collect()
}

const AROUND: &str = "backend app\n mode http\n server a 10.0.0.1:80\nbackend other\n mode http\n server b 10.0.0.2:80\n";

/// The groups of the backends in [`AROUND`].
const GROUPS: [&str; 4] = [
    "[upstream.app]",
    "servers = [\"10.0.0.1:80\"]",
    "[upstream.other]",
    "servers = [\"10.0.0.2:80\"]",
];

/// Checks the routes of a frontend with these lines.
#[track_caller]
fn check(front: &str, expected: &[&str]) {
    let text = format!("frontend f\n mode http\n bind :80\n{front}\n{AROUND}");
    let conversion = converted(&text);
    let mut lines = lines(&conversion);
    lines.retain(|line| {
        !GROUPS.contains(line) && !matches!(*line, "[forwarded]" | "send = \"none\"")
    });
    assert_eq!(lines, expected, "{front}");
    assert!(conversion.is_complete(), "{front}: {:?}", conversion.notes);
}

#[test]
fn backends_are_chosen_in_order() {
    check(
        " acl is_api path_beg /api/\n acl is_a hdr(host) -i a.org\n use_backend other if is_api !is_a\n default_backend app",
        &[
            "[[route]]",
            "host = \"a.org\"",
            "path = \"/api/\"",
            "forward = \"app\"",
            "[[route]]",
            "path = \"/api/\"",
            "forward = \"other\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
    check(
        " use_backend other if { path_end .php } || { path /x }\n default_backend app",
        &[
            "[[route]]",
            "path = '~\\.php\\z'",
            "forward = \"other\"",
            "[[route]]",
            "path = \"=/x\"",
            "forward = \"other\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
}

#[test]
fn differing_comparisons_have_notes() {
    let text = format!(
        "frontend f\n mode http\n bind :80\n acl a hdr(host) -i a.org\n acl b hdr(host),host_only b.org\n acl c url_param(p) v\n acl d req.cook(d) -m found\n http-request replace-path /rep/(.*) /\\1\n use_backend other if a or b or c or d\n default_backend app\n{AROUND}"
    );
    let conversion = converted(&text);
    let is_approximated =
        |line: &str| matches!(outcome(&conversion, line), Outcome::Approximated(_));
    let said = ["acl a", "acl b", "acl c", "http-request"].map(is_approximated);
    assert_eq!(said, [true, false, true, true]);
    assert!(
        conversion.text.contains(r"d[ \t]*=[ \t]*[^ \t]"),
        "{}",
        conversion.text
    );
}

#[test]
fn list_fields_are_compared_by_element() {
    check(
        " use_backend other if { hdr_ip(x-forwarded-for) 9.9.9.9 }\n default_backend app",
        &[
            "[[route]]",
            "headers = { x-forwarded-for = '~(?-u)(?:^|,)[ \\t]*(?:(?i:::ffff:)?0*9\\.0*9\\.0*9\\.0*9(?:[^0-9.,][^,]*)?)[ \\t]*(?:,|$)' }",
            "forward = \"other\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
    check(
        " use_backend other if { hdr(user-agent) -m beg curl }\n default_backend app",
        &[
            "[[route]]",
            "headers = { user-agent = '~(?-u)(?:^|,)[ \\t]*(?:curl)' }",
            "forward = \"other\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
}

#[test]
fn map_entries_become_routes() {
    check(
        " use_backend %[req.hdr(host),lower,map(hosts.map,app)]",
        &[
            "[[route]]",
            "host = \"a.org\"",
            "forward = \"app\"",
            "[[route]]",
            "host = \"b.org\"",
            "forward = \"other\"",
            "[[route]]",
            "headers = { Host = \"*\" }",
            "forward = \"app\"",
            "[[route]]",
            "respond = { status = 503 }",
        ],
    );
}

#[test]
fn deny_redirect_and_header_rules_are_converted() {
    check(
        " http-request deny if { src -f bad.lst }\n redirect scheme https code 301 if !{ ssl_fc }\n default_backend app",
        &[
            "[[route]]",
            "from = [\"192.0.2.1\", \"10.0.0.0/8\"]",
            "respond = { status = 403 }",
            "[[route]]",
            "scheme = \"https\"",
            "forward = \"app\"",
            "[[route]]",
            "redirect = { to = \"https://{host}{uri}\", status = 301 }",
        ],
    );
    check(
        " http-request set-header X-A %[src] if { path_beg /a }\n http-request del-header X-B\n http-response set-header X-C d\n default_backend app",
        &[
            "[[route]]",
            "path = \"/a\"",
            "request_headers = { set = { X-A = \"{client.address}\" }, remove = [\"X-B\"] }",
            "response_headers = { set = { X-C = \"d\" } }",
            "forward = \"app\"",
            "[[route]]",
            "request_headers = { remove = [\"X-B\"] }",
            "response_headers = { set = { X-C = \"d\" } }",
            "forward = \"app\"",
        ],
    );
    check(
        " http-request return status 200 content-type text/plain string ok if { path /health }\n http-request replace-path ^/v1/(.*) /\\1\n default_backend app",
        &[
            "[[route]]",
            "path = \"=/health\"",
            "respond = { status = 200, body = \"ok\", headers = { Content-Type = \"text/plain\" } }",
            "[[route]]",
            "path = \"/v1/\"",
            "strip_prefix = true",
            "forward = \"app\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
}

#[test]
fn backend_becomes_upstream_with_health_checks() {
    let text = "defaults\n mode http\n timeout connect 5s\n timeout client 50s\n timeout server 1m\n retries 3
listen l
 bind 127.0.0.1:8080
 balance leastconn
 option httpchk GET /health
 http-check expect status 200
 cookie SRV insert indirect nocache
 option forwardfor
 default-server check inter 3s fall 2
 server a 10.0.0.1:8000 weight 10 maxconn 100 cookie a
 server b 10.0.0.2:8000 backup
 server c 10.0.0.3 disabled\n";
    let conversion = converted(text);
    assert_eq!(
        lines(&conversion),
        [
            "[timeouts]",
            "client_body = \"50s\"",
            "client_head = \"50s\"",
            "client_idle = \"50s\"",
            "client_send = \"50s\"",
            "connect = \"5s\"",
            "queue = \"5s\"",
            "upstream_body = \"1m\"",
            "upstream_first_byte = \"1m\"",
            "[[route]]",
            "forward = \"l\"",
            "[upstream.l]",
            "servers = [{ address = \"10.0.0.1:8000\", weight = 10, connections_max = 100 }, { address = \"10.0.0.2:8000\", backup = true }]",
            "balance = \"least_connections\"",
            "sticky = \"SRV\"",
            "health = { path = \"/health\", interval = \"3s\", fall = 2, status = [200] }",
            "retries = 3",
        ]
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn client_and_server_tls_are_converted() {
    let text = "global\n crt-base /etc/ssl
frontend f\n mode http\n bind :443 ssl crt site.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2\n default_backend b
backend b\n mode http\n server s app.example.com:443 ssl verify required ca-file @system-ca sni str(app.example.com)\n";
    let conversion = converted(text);
    let lines = lines(&conversion);
    for line in [
        "tls = { certificate = \"/etc/ssl/site.pem\", key = \"/etc/ssl/site.pem\" }",
        "tls = { name = \"app.example.com\" }",
    ] {
        assert!(lines.contains(&line), "{lines:?}");
    }
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn busy_polling_is_converted() {
    let text = format!(
        "global\n nbthread 2\n busy-polling\nfrontend f\n mode http\n bind :80\n default_backend app\n{AROUND}"
    );
    let conversion = converted(&text);
    let lines = lines(&conversion);
    for line in ["threads = 2", "busy_poll = true"] {
        assert!(lines.contains(&line), "{lines:?}");
    }
    assert_eq!(outcome(&conversion, "busy-polling"), Outcome::Carried);
}

#[test]
fn no_log_disables_access_log() {
    for (global, log, is_on) in [
        ("log stdout local0", "log global", true),
        ("log stdout local0", "log global\n no log", false),
        ("log stdout local0\n no log", "log global", false),
        ("no log", "no log\n log stdout local0", true),
    ] {
        let text = format!(
            "global\n {global}\nfrontend f\n mode http\n bind :80\n {log}\n default_backend app\n{AROUND}"
        );
        let conversion = converted(&text);
        let has_log = lines(&conversion).contains(&"access = \"stdout\"");
        assert_eq!(has_log, is_on, "{global}, {log}: {:?}", conversion.notes);
    }
}

#[test]
fn no_disables_busy_polling() {
    for (global, is_on) in [
        ("busy-polling\n no busy-polling", false),
        ("no busy-polling\n busy-polling", true),
        ("busy-polling\nglobal\n no busy-polling", false),
        ("no busy-polling", false),
    ] {
        let text = format!(
            "global\n {global}\nfrontend f\n mode http\n bind :80\n default_backend app\n{AROUND}"
        );
        let conversion = converted(&text);
        let has_key = lines(&conversion).contains(&"busy_poll = true");
        assert_eq!(has_key, is_on, "{global}: {:?}", conversion.notes);
    }
}

#[test]
fn userlist_passwords_are_converted() {
    let hash = "$6$k6y3o.eP$JlKBx9za9667qe4xHSwRv6J.C0/D7cV91";
    let text = format!(
        "userlist u\n user joe password {hash}\n user eve insecure-password x\nfrontend f\n mode http\n bind :80\n http-request auth realm staff unless {{ http_auth(u) }}\n default_backend app\n{AROUND}"
    );
    let conversion = converted(&text);
    assert!(matches!(
        outcome(&conversion, "user eve"),
        Outcome::LeftOut(_)
    ));
    assert!(
        conversion
            .text
            .contains("basic_auth = { realm = \"staff\", users = {"),
        "{}",
        conversion.text
    );
}

#[test]
fn omitted_lines_have_notes() {
    let text = "frontend t\n mode tcp\n bind :25\nfrontend f\n mode http\n bind :80\n stick-table type ip size 1m\n frobnicate on\n";
    let conversion = converted(text);
    let said = |line: &str| {
        let note = conversion
            .notes
            .iter()
            .find(|note| note.directive.starts_with(line));
        note.expect("it is said").to_string()
    };
    assert_eq!(
        said("frontend t"),
        "/h.cfg:1: left out: frontend t: not converted: Onrush only forwards HTTP (mode http)"
    );
    assert_eq!(
        said("stick-table"),
        "/h.cfg:7: left out: stick-table type ip size 1m: Onrush has no stick tables"
    );
    assert_eq!(
        said("frobnicate"),
        "/h.cfg:8: left out: frobnicate on: no equivalent in Onrush, or unknown to the converter"
    );
}

#[test]
fn invalid_input_is_refused_with_position() {
    for (text, expected) in [
        (
            "",
            "/h.cfg: not a configuration of HAProxy: expected sections such as frontend and backend",
        ),
        (
            "\nbind :80",
            "/h.cfg:2: \"bind\" is outside of a section: expected a section such as global, defaults, frontend, backend or listen before it",
        ),
        (
            "global\n log \"x",
            "/h.cfg:2: unclosed quote in this line: expected \"",
        ),
    ] {
        let said = converted_files(vec![("/h.cfg", text.to_owned())]);
        assert_eq!(
            said.expect_err("it is none").to_string(),
            expected,
            "{text:?}"
        );
    }
    let said = converted_files(vec![])
        .expect_err("there is none")
        .to_string();
    assert_eq!(said, "/h.cfg: No such file");
}

#[test]
fn configuration_without_frontends_has_no_listener() {
    let conversion =
        converted("global\n daemon\ndefaults\n mode http\n errorfile 503 /e/503.http\n");
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
    assert_eq!(
        lines(&conversion),
        ["[[route]]", "respond = { status = 503 }"]
    );
}

#[test]
fn frontends_are_distinguished_by_listener() {
    let text = format!(
        "frontend one\n mode http\n bind :80\n default_backend app\nfrontend two\n mode http\n bind 127.0.0.1:80\n bind :81\n default_backend other\n{AROUND}"
    );
    let conversion = converted(&text);
    assert_eq!(outcome(&conversion, "bind :81"), Outcome::Carried);
    let lines = lines(&conversion);
    let expected: [&[&str]; 2] = [
        &["listener = \"0.0.0.0:80\"", "forward = \"app\""],
        &[
            "listener = [\"127.0.0.1:80\", \"0.0.0.0:81\"]",
            "forward = \"other\"",
        ],
    ];
    for route in expected {
        assert!(lines.windows(2).any(|pair| pair == route), "{lines:?}");
    }
}

#[test]
fn user_and_group_are_converted() {
    let front = format!("frontend f\n mode http\n bind :80\n default_backend app\n{AROUND}");
    let process = |global: &str| {
        let conversion = converted(&format!("global\n{global}\n{front}"));
        let lines = lines(&conversion);
        let its = lines.iter().skip_while(|line| **line != "[process]");
        let its = its.take_while(|line| !matches!(**line, "[forwarded]" | "[[route]]"));
        let its: Vec<String> = its.map(|line| (*line).to_owned()).collect();
        (its, conversion)
    };
    for (global, expected) in [
        (
            " user haproxy\n group haproxy",
            &["[process]", "user = \"haproxy\"", "group = \"haproxy\""][..],
        ),
        (
            " uid 99\n gid 98",
            &["[process]", "user = 99", "group = 98"],
        ),
    ] {
        let (its, conversion) = process(global);
        assert_eq!(its, expected, "{global}");
        for line in global.trim().split("\n ") {
            assert_eq!(outcome(&conversion, line), Outcome::Carried, "{line}");
        }
    }
    let (its, conversion) = process(" user haproxy");
    assert_eq!(its, ["[process]", "user = \"haproxy\""]);
    let said = outcome(&conversion, "user haproxy");
    assert!(matches!(said, Outcome::Approximated(_)), "{said:?}");
    for (global, comment) in [
        (
            " user root",
            "# HAProxy runs as root: without [process] user",
        ),
        (" uid 0", "# HAProxy runs as root: without [process] user"),
        (
            " group haproxy",
            "# No user is set for HAProxy: without [process] user",
        ),
        ("", "# No user is set for HAProxy: without [process] user"),
    ] {
        let (its, conversion) = process(global);
        assert!(its.is_empty(), "{global}: {its:?}");
        assert!(conversion.text.contains(comment), "{}", conversion.text);
        assert!(conversion.is_complete(), "{:?}", conversion.notes);
    }
}

#[test]
fn dst_port_becomes_listener_condition() {
    let conversion = converted(&format!(
        "frontend f\n mode http\n bind :80\n bind :8080\n bind :9000\n use_backend other if {{ dst_port 8080:8999 }}\n http-request deny if {{ dst_port 1 }}\n http-request deny if {{ dst_port gt 9000 }}\n default_backend app\n{AROUND}"
    ));
    let routes = [
        "[[route]]",
        "listener = \"0.0.0.0:8080\"",
        "forward = \"other\"",
        "[[route]]",
        "forward = \"app\"",
    ];
    let lines: Vec<&str> = lines(&conversion);
    assert!(
        lines.windows(routes.len()).any(|part| part == routes),
        "{lines:?}"
    );
}

#[test]
fn forwarded_for_is_not_removed() {
    let conversion = converted(&format!(
        "frontend f\n mode http\n bind :80\n option forwardfor\n http-request del-header X-Forwarded-For\n http-request del-header X-A\n default_backend app\n{AROUND}"
    ));
    let fields = "request_headers = { remove = [\"X-A\"] }";
    assert!(lines(&conversion).contains(&fields), "{}", conversion.text);
}

#[test]
fn redirects_get_cache_control_no_cache() {
    check(
        " http-request redirect location /x if { path /a }\n default_backend app",
        &[
            "[[route]]",
            "path = \"=/a\"",
            "cache_control = { status = 302, value = \"no-cache\" }",
            "redirect = \"/x\"",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
}

#[test]
fn append_slash_adds_slash_to_redirect() {
    check(
        " redirect code 301 prefix / drop-query append-slash if { path /a }\n default_backend app",
        &[
            "[[route]]",
            "path = \"=/a\"",
            "redirect = { to = \"{path}/\", status = 301 }",
            "[[route]]",
            "forward = \"app\"",
        ],
    );
}
