//! Any text becomes a configuration of Onrush or an error with its position. Inputs are arbitrary bytes, and keywords
//! of the languages in any order, which pass more of the parser.
#![forbid(unsafe_code)]

#[path = "support/checks.rs"]
mod checks;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Arguments: valid, nearly valid, and contradictory ones.
const ARGUMENTS: &[&str] = &[
    "/",
    "/a/",
    "/a/b",
    "=",
    "~",
    "~*",
    "^~",
    "\\.php$",
    "^/a/(.*)$",
    "^(.*)$",
    "(?!x)",
    "[",
    "@n",
    "80",
    "443",
    "*:80",
    ":80",
    "[::]:80",
    "127.0.0.1:8080",
    "127.0.0.1",
    "unix:/s",
    "localhost:1",
    "0",
    "1",
    "99999999999",
    "-1",
    "ssl",
    "http2",
    "quic",
    "default_server",
    "proxy_protocol",
    "a.org",
    "*.a.org",
    "www.*",
    "~^r",
    ".b.org",
    "_",
    "\"\"",
    "$uri",
    "$host",
    "$1",
    "$uri/",
    "$request_uri",
    "$is_args$args",
    "$m",
    "$http_x_y",
    "${x",
    "$",
    "=404",
    "/index.html",
    "http://app",
    "http://app/x/",
    "https://b:8443",
    "http://$host",
    "http://unix:/s:/x",
    "grpc://app",
    "grpcs://b:8443",
    "301",
    "404",
    "444",
    "200",
    "permanent",
    "last",
    "break",
    "on",
    "off",
    "all",
    "10.0.0.0/8",
    "::/0",
    "10s",
    "1h30m",
    "1k",
    "zone=z:1m",
    "zone=z",
    "rate=1r/s",
    "burst=5",
    "nodelay",
    "X-A",
    "Host",
    "Connection",
    "always",
    "weight=5",
    "backup",
    "down",
    "max_fails=0",
    "fail_timeout=5s",
    "default",
    "{{",
    "}}",
    "text/html",
    "(",
    ")",
    "!=",
    "if",
    "unless",
    "{",
    "}",
    "!",
    "||",
    "!{",
    "path_beg",
    "path",
    "path_end",
    "hdr(host)",
    "hdr(x)",
    "src",
    "ssl_fc",
    "method",
    "GET",
    "-i",
    "-m",
    "beg",
    "reg",
    "-f",
    "/none",
    "http_auth(u)",
    "is_a",
    "b",
    "code",
    "location",
    "prefix",
    "scheme",
    "https",
    "%[hdr(host)]",
    "%[path]",
    "/x%[path]",
    "%s:%b",
    "\"$X${Y-z}\"",
    "none",
    "append-slash",
    "var(txn.x)",
    "%[src]",
    "%ci",
    "%",
    "%[",
    "check",
    "inter",
    "2s",
    "cookie",
    "insert",
    "crt",
    "verify",
    "required",
    "ca-file",
    "send-proxy",
    "proto",
    "alpn",
    "h1",
    "h2",
    "h2,http/1.1",
    "string",
    "content-type",
    "status",
    "%[req.hdr(host),lower,map(/x)]",
    "\\1",
    "u",
    "password",
    "$6$a$b",
];

const NGINX: &[&str] = &[
    "listen",
    "server_name",
    "root",
    "alias",
    "index",
    "try_files",
    "return",
    "rewrite",
    "set",
    "break",
    "proxy_pass",
    "proxy_set_header",
    "proxy_read_timeout",
    "proxy_next_upstream",
    "grpc_pass",
    "grpc_set_header",
    "grpc_ssl_verify",
    "keepalive",
    "add_header",
    "expires",
    "allow",
    "deny",
    "auth_basic",
    "auth_basic_user_file",
    "limit_req",
    "limit_req_zone",
    "limit_conn",
    "gzip",
    "gzip_types",
    "error_page",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_protocols",
    "ssl_verify_client",
    "client_max_body_size",
    "keepalive_timeout",
    "include",
    "server",
    "least_conn",
    "hash",
    "default",
    "~^/x",
    "internal",
    "autoindex",
    "fastcgi_pass",
    "worker_processes",
    "default_type",
    "set_real_ip_from",
    "real_ip_header",
];

const BLOCKS: &[&str] = &[
    "http",
    "server",
    "location",
    "if",
    "upstream app",
    "map $uri $m",
    "geo $g",
    "types",
];

const HAPROXY: &[&str] = &[
    "bind",
    "mode http",
    "mode tcp",
    "acl is_a",
    "acl",
    "use_backend b",
    "use_backend",
    "default_backend b",
    "http-request deny",
    "http-request redirect",
    "http-request return",
    "http-request set-header",
    "http-request add-header",
    "http-request del-header",
    "http-request replace-path",
    "http-request set-path",
    "http-request auth",
    "http-request allow",
    "http-request lua.x",
    "http-request replace-header",
    "http-request set-src",
    "http-request tarpit",
    "http-request replace-path ^/a/(.*) /b/\\1",
    "http-response deny",
    "http-send-name-header",
    "tcp-request connection accept",
    "tcp-request content reject",
    "unique-id-format %ci",
    "unique-id-header",
    "option http-restrict-req-hdr-names",
    "server t 127.0.0.1:81 ssl ca-file /ca.pem",
    "http-response set-header",
    "http-after-response add-header",
    "redirect",
    "server s 127.0.0.1:80",
    "server",
    "default-server",
    "balance",
    "cookie",
    "option httpchk",
    "option forwardfor",
    "http-check expect",
    "http-check send",
    "timeout client",
    "timeout server",
    "retries",
    "retry-on",
    "compression algo gzip",
    "compression type",
    "errorfile",
    "monitor-uri",
    "stick-table",
    "user",
    "http-reuse",
];

const SECTIONS: &[&str] = &[
    "global",
    "defaults",
    "frontend f",
    "backend b",
    "backend",
    "listen l",
    "userlist u",
    "defaults d",
    "frontend g from d",
];

fn line(names: &'static [&'static str]) -> impl Strategy<Value = String> {
    (select(names), vec(select(ARGUMENTS), 0..6))
        .prop_map(|(name, arguments)| format!("{name} {}", arguments.join(" ")))
}

/// Nested blocks with terminated directives.
fn nginx_text() -> impl Strategy<Value = String> {
    let leaf = line(NGINX).prop_map(|line| format!("{line};\n"));
    leaf.prop_recursive(5, 60, 8, |inner| {
        let block = (
            select(BLOCKS),
            vec(select(ARGUMENTS), 0..3),
            vec(inner, 0..8),
        );
        block.prop_map(|(name, arguments, inside)| {
            format!("{name} {} {{\n{}}}\n", arguments.join(" "), inside.concat())
        })
    })
}

fn haproxy_text() -> impl Strategy<Value = String> {
    let section = (select(SECTIONS), vec(line(HAPROXY), 0..10));
    let section =
        section.prop_map(|(name, lines)| format!("{name}\n mode http\n {}\n", lines.join("\n ")));
    vec(section, 1..5).prop_map(|sections| sections.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        checks::nginx_any(&bytes);
        checks::haproxy_any(&bytes);
    }

    #[test]
    fn random_nginx_directives_convert_to_valid_configuration(
        inside in vec(nginx_text(), 0..6),
        server in vec(nginx_text(), 0..6),
    ) {
        let text = format!("http {{\n{}server {{\n{}}}\n}}\n", inside.concat(), server.concat());
        checks::nginx_any(text.as_bytes());
    }

    #[test]
    fn random_haproxy_lines_convert_to_valid_configuration(text in haproxy_text()) {
        checks::haproxy_any(text.as_bytes());
    }
}

#[test]
#[ignore = "slow: make test-all"]
fn huge_input_hits_limit() {
    for text in [
        "a {".repeat(100_000),
        "include x;".to_owned(),
        "a ".repeat(1_000_000),
        format!(
            "http {{ server {{ {} }} }}",
            "if ($http_a) { set $x 1; } ".repeat(2000)
        ),
        format!(
            "http {{ server {{ {} }} }}",
            (0..100)
                .map(|at| format!("if ($http_a{at}) {{ set $x {at}; }}\n"))
                .collect::<String>()
        ),
    ] {
        checks::nginx_any(text.as_bytes());
    }
    let conditions: String = (0..100)
        .map(|at| format!(" http-request set-header X-A {at} if {{ hdr(a{at}) b }}\n"))
        .collect();
    for text in [
        "global\n".repeat(200_000),
        format!("frontend f\n mode http\n bind :80\n{conditions}"),
        format!(
            "frontend f\n mode http\n bind :80\n use_backend b if {}\n",
            "!".repeat(100_000)
        ),
    ] {
        checks::haproxy_any(text.as_bytes());
    }
}
