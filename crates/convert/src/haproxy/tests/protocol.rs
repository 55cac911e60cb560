//! HTTP version towards servers.

use super::servers::{approximated, backend, carried, check, keys, left_out};
use super::*;

const HTTP2: &str = "protocol = \"h2\"";
const TLS: &str = "tls = { verify = false }";

type Said = fn(&Outcome) -> bool;

#[test]
fn server_options_determine_upstream_protocol() {
    let table: [(&str, &[&str], Said); 15] = [
        ("proto h2", &[HTTP2], carried),
        ("proto h1", &[], carried),
        ("alpn h2", &[], carried),
        ("no-ssl alpn h2", &[], carried),
        ("ssl verify none alpn h2", &[HTTP2, TLS], carried),
        ("alpn h2 ssl verify none", &[HTTP2, TLS], carried),
        (
            "ssl verify none alpn h2,http/1.1",
            &[HTTP2, TLS],
            approximated,
        ),
        ("ssl verify none alpn http/1.1,h2", &[TLS], approximated),
        ("ssl verify none alpn http/1.1", &[TLS], carried),
        ("ssl verify none alpn http/1.1,http/1.0", &[TLS], carried),
        ("ssl verify none", &[TLS], carried),
        ("ssl verify none proto h2", &[HTTP2, TLS], approximated),
        (
            "ssl verify none proto h2 alpn h2,http/1.1",
            &[HTTP2, TLS],
            carried,
        ),
        ("ssl verify none proto h1 alpn h2", &[TLS], carried),
        ("check-proto h2 check-alpn h2", &[], carried),
    ];
    for (words, expected, is_said) in table {
        check(&format!(" server x 10.0.0.1:1 {words}"), expected, is_said);
        // Options of `default-server` have the same result.
        check(
            &format!(" default-server {words}\n server x 10.0.0.1:1"),
            expected,
            is_said,
        );
    }
    check(
        " default-server ssl verify none alpn h2\n server x 10.0.0.1:1 alpn http/1.1",
        &[TLS],
        carried,
    );
}

#[test]
fn missing_http1_fallback_has_a_note() {
    let conversion = backend(" server x 10.0.0.1:1 ssl verify none alpn h2,http/1.1");
    let said = format!("{:?}", outcome(&conversion, "server x"));
    assert!(said.contains("does not fall back to HTTP/1.1"), "{said}");
    assert!(said.contains("WebSockets, which get 501"), "{said}");
}

#[test]
fn servers_share_common_http_version() {
    let table: [(&str, &str, &[&str], Said); 9] = [
        (
            "ssl verify none alpn h2",
            "ssl verify none alpn h2",
            &[HTTP2, TLS],
            carried,
        ),
        (
            "ssl verify none alpn h2",
            "ssl verify none alpn h2,http/1.1",
            &[HTTP2, TLS],
            approximated,
        ),
        (
            "ssl verify none",
            "ssl verify none alpn h2,http/1.1",
            &[TLS],
            approximated,
        ),
        (
            "ssl verify none",
            "ssl verify none alpn h2",
            &[TLS],
            left_out,
        ),
        (
            "ssl verify none",
            "ssl verify none proto h2",
            &[TLS],
            left_out,
        ),
        (
            "ssl verify none alpn http/1.1,h2",
            "ssl verify none alpn h2",
            &[TLS],
            left_out,
        ),
        ("proto h2", "proto h2 backup", &[HTTP2], carried),
        ("", "proto h2", &[HTTP2], carried),
        (
            "disabled",
            "ssl verify none alpn h2",
            &[HTTP2, TLS],
            carried,
        ),
    ];
    for (other, x, expected, is_said) in table {
        let inside = format!(" server a 10.0.0.1:1 {other}\n server x 10.0.0.2:1 {x}");
        check(&inside, expected, is_said);
    }
}

#[test]
fn http1_server_is_excluded_from_http2_upstream() {
    let conversion = backend(
        " server a 10.0.0.1:1 proto h2\n server x 10.0.0.2:1\n server y 10.0.0.3:1 ssl send-proxy check",
    );
    assert!(lines(&conversion).contains(&"servers = [\"10.0.0.1:1\"]"));
    assert_eq!(keys(&conversion), [HTTP2]);
    for name in ["server x", "server y"] {
        let said = outcome(&conversion, name);
        assert!(
            matches!(&said, Outcome::LeftOut(why) if why.contains("not in the group")),
            "{said:?}"
        );
    }
}

#[test]
fn fastcgi_server_is_omitted() {
    let conversion = backend(" server a 10.0.0.1:1\n server x 10.0.0.2:1 proto fcgi");
    assert!(lines(&conversion).contains(&"servers = [\"10.0.0.1:1\"]"));
    assert!(left_out(&outcome(&conversion, "server x")));
    let alone = backend(" server x 10.0.0.2:1 proto fcgi");
    assert!(
        lines(&alone).contains(&"respond = { status = 503 }"),
        "{}",
        alone.text
    );
}

#[test]
fn http2_differences_have_notes() {
    check(
        " http-reuse never\n option httpchk GET /up\n server x 10.0.0.1:1 proto h2 check send-proxy",
        &["health = { path = \"/up\" }", HTTP2],
        left_out,
    );
    for (mode, is_said) in [
        ("never", approximated as Said),
        ("safe", approximated),
        ("always", carried),
    ] {
        let conversion = backend(&format!(
            " http-reuse {mode}\n server x 10.0.0.1:1 proto h2"
        ));
        assert_eq!(keys(&conversion), [HTTP2]);
        assert!(is_said(&outcome(&conversion, "http-reuse")), "{mode}");
    }
}
