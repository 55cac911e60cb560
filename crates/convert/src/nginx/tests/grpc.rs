//! `grpc_pass`: forwarding over HTTP/2.

use super::*;

/// Checks the group for the inside of a location, and that nothing is left out.
#[track_caller]
fn check_group(http: &str, location: &str, expected: &[&str]) -> Conversion {
    let conversion = converted(&format!(
        "http {{ {http} server {{ listen 80; location /a.B/ {{ {location} }} }} }}"
    ));
    let lines = lines(&conversion);
    let group = lines.iter().skip_while(|line| !line.contains("upstream."));
    let group: Vec<&str> = group.copied().collect();
    assert_eq!(group, expected, "{location}");
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
    conversion
}

#[test]
fn grpc_pass_uses_http2() {
    check(
        "location /shop.Shop/ { grpc_pass grpc://127.0.0.1:50051; grpc_set_header X-Real-IP $remote_addr; grpc_set_header TE trailers; }
         location / { return 404; }",
        &[
            "[forwarded]",
            "send = \"none\"",
            "[[route]]",
            "path = \"=/shop.Shop\"",
            "redirect = { to = \"/shop.Shop/?{query}\", status = 301 }",
            "[[route]]",
            "path = \"/shop.Shop/\"",
            "request_headers = { set = { Host = \"127.0.0.1:50051\", X-Real-IP = \"{client.address}\" } }",
            "forward = \"127_0_0_1_50051\"",
            "[[route]]",
            "path = \"/\"",
            "respond = { status = 404 }",
            "[upstream.127_0_0_1_50051]",
            "servers = [\"127.0.0.1:50051\"]",
            "protocol = \"h2\"",
        ],
    );
    for (server, name, address) in [
        ("localhost:9000", "localhost_9000", "localhost:9000"),
        ("[::1]:9000", "___1__9000", "[::1]:9000"),
        ("unix:/run/s", "unix__run_s", "unix:/run/s"),
        ("grpc://unix:/run/s", "unix__run_s", "unix:/run/s"),
    ] {
        let expected = [
            &*format!("[upstream.{name}]"),
            &*format!("servers = [\"{address}\"]"),
            "protocol = \"h2\"",
        ];
        check_group("", &format!("grpc_pass {server};"), &expected);
    }
}

#[test]
fn grpc_keeps_or_rewrites_path() {
    let conversion = converted(
        "http { server { location /v1/ { rewrite ^/v1/(.*)$ /$1 break; grpc_pass app:1; grpc_set_header Host $http_host; }
         location / { grpc_pass $where; set $where grpcs://b:2; } } }",
    );
    let lines = lines(&conversion);
    let moved: &[&str] = &[
        "path = \"/v1/\"",
        "strip_prefix = true",
        "forward = \"app_1\"",
    ];
    let bound: &[&str] = &["forward = \"b_2\""];
    for part in [moved, bound] {
        assert!(lines.windows(part.len()).any(|it| it == part), "{lines:?}");
    }
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn grpc_ssl_directives_configure_upstream_tls() {
    check_group(
        "upstream app { server 10.0.0.1:443; keepalive 8; } proxy_ssl_name wrong; proxy_ssl_verify off;",
        "grpc_pass grpcs://app; grpc_ssl_verify on; grpc_ssl_trusted_certificate ca.pem; grpc_ssl_certificate /k/c.pem;
         grpc_ssl_certificate_key /k/c.key; grpc_ssl_name app.org; grpc_ssl_server_name on;",
        &[
            "[upstream.app]",
            "servers = [\"10.0.0.1:443\"]",
            "protocol = \"h2\"",
            "tls = { ca = \"/usr/share/nginx/ca.pem\", certificate = \"/k/c.pem\", key = \"/k/c.key\", name = \"app.org\" }",
        ],
    );
    check_group(
        "",
        "grpc_pass grpcs://app;",
        &[
            "[upstream.app]",
            "servers = [\"app:443\"]",
            "protocol = \"h2\"",
            "tls = { verify = false }",
        ],
    );
}

#[test]
fn unsupported_upstream_tls_has_notes() {
    for (pass, module) in [
        ("proxy_pass https://a", "proxy"),
        ("grpc_pass grpcs://a", "grpc"),
    ] {
        let conversion = converted(&format!(
            "http {{ server {{ location /a {{ {pass}; {module}_ssl_verify on; {module}_ssl_crl /crl; {module}_ssl_password_file /p;
             {module}_ssl_conf_command Options A; {module}_ssl_verify_depth 2; }} }} }}"
        ));
        let said = |name: &str| outcome(&conversion, &format!("{module}_ssl_{name}"));
        for name in ["crl", "password_file"] {
            assert!(
                matches!(said(name), Outcome::LeftOut(_)),
                "{module}: {name}"
            );
        }
        for name in ["conf_command", "verify_depth"] {
            assert!(
                matches!(said(name), Outcome::Approximated(_)),
                "{module}: {name}"
            );
        }
    }
}

#[test]
fn grpc_directives_are_converted() {
    let conversion = check_group(
        "upstream app { server a:1; server b:1 max_fails=2; keepalive 8; keepalive_timeout 30s; }
         grpc_socket_keepalive on; grpc_buffer_size 8k; grpc_ignore_headers X-Accel-Redirect; proxy_connect_timeout 9s;",
        "grpc_pass app; grpc_connect_timeout 2s; grpc_read_timeout 1h; grpc_send_timeout 10s; grpc_hide_header X-A;
         proxy_hide_header X-B; grpc_pass_header Server; grpc_pass_header Date; grpc_bind off; grpc_next_upstream error http_503;
         grpc_next_upstream_tries 2; grpc_intercept_errors on; error_page 502 /50x.html; proxy_set_header X-C d;",
        &[
            "[upstream.app]",
            "servers = [\"a:1\", \"b:1\"]",
            "eject = { on = \"connections\", failures = 2 }",
            "protocol = \"h2\"",
            "retries = { count = 1, on = [\"connect\", \"reset\"], statuses = [503] }",
        ],
    );
    let lines = lines(&conversion);
    for line in [
        "connect = \"2s\"",
        "upstream_body = \"1h\"",
        "upstream_first_byte = \"1h\"",
        "upstream_idle = \"30s\"",
        "request_headers = { set = { Host = \"app\" } }",
        "upstream_headers = { hide = [\"X-Pad\", \"X-Accel-Buffering\", \"X-Accel-Charset\", \"X-Accel-Expires\", \"X-Accel-Limit-Rate\", \"X-Accel-Redirect\", \"X-A\"] }",
        "error_pages = { 502 = \"/usr/share/nginx/html/50x.html\", intercept = true }",
    ] {
        assert!(lines.contains(&line), "{line} in {lines:?}");
    }
    for name in [
        "keepalive 8",
        "grpc_socket_keepalive",
        "grpc_buffer_size",
        "grpc_ignore_headers",
        "proxy_connect_timeout",
        "proxy_hide_header",
        "proxy_set_header",
    ] {
        let said = outcome(&conversion, name);
        assert!(
            matches!(said, Outcome::WithoutEffect(_)),
            "{name}: {said:?}"
        );
    }
    for name in [
        "grpc_pass_header Server",
        "grpc_pass_header Date",
        "grpc_bind",
    ] {
        assert_eq!(outcome(&conversion, name), Outcome::Carried, "{name}");
    }
}

#[test]
fn upstream_shared_by_http_and_grpc_is_duplicated() {
    let conversion = converted(
        "http { upstream app { server a:1; keepalive 8; } server { location / { proxy_pass http://app; }
         location /a.B/ { grpc_pass app; } } }",
    );
    let lines = lines(&conversion);
    let of_grpc = [
        "[upstream.app]",
        "servers = [\"a:1\"]",
        "protocol = \"h2\"",
        "[upstream.app_2]",
        "servers = [\"a:1\"]",
        "connections_idle_max = 8",
    ];
    assert_eq!(lines[lines.len() - 6..], of_grpc);
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn innermost_handler_responds() {
    let conversion = converted(
        "http { server { location / { proxy_pass http://web:1; proxy_set_header Host $http_host;
         if ($content_type ~ ^application/grpc) { grpc_pass calls:2; } } } }",
    );
    let routes: Vec<&str> = lines(&conversion)
        .into_iter()
        .filter(|line| line.starts_with("headers") || line.starts_with("forward ="))
        .collect();
    assert_eq!(
        routes,
        [
            "headers = { Content-Type = \"~^application/grpc\" }",
            "forward = \"calls_2\"",
            "forward = \"web_1\"",
        ]
    );
}

#[test]
fn invalid_grpc_servers_are_omitted() {
    for (server, said) in [
        ("grpc://app:1/x", "no path after it"),
        ("app:1/", "no path after it"),
        ("http://app", "no path after it"),
        ("$host", "without variables"),
        ("grpcs://$host:1", "without variables"),
        ("a..b:1", "is not a server"),
    ] {
        let conversion = converted(&format!(
            "http {{ server {{ location /a {{ grpc_pass {server}; }} }} }}"
        ));
        assert!(lines(&conversion).contains(&"respond = { status = 502 }"));
        let Outcome::LeftOut(why) = outcome(&conversion, "grpc_pass") else {
            panic!("{server}: {:?}", conversion.notes);
        };
        assert!(why.contains(said) && why.ends_with("502"), "{why}");
    }
    let conversion = converted(
        "http { server { location / { grpc_pass a:1; grpc_bind 10.0.0.1; grpc_next_upstream non_idempotent; grpc_frobnicate on; } } }",
    );
    for name in ["grpc_bind", "grpc_next_upstream", "grpc_frobnicate"] {
        let said = outcome(&conversion, name);
        assert!(matches!(said, Outcome::LeftOut(_)), "{name}: {said:?}");
    }
}
