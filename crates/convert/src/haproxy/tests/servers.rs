//! Options that HAProxy has per server and Onrush per group.

use super::*;

/// Converts a configuration with one frontend and one backend, whose section contains the lines `inside`.
#[track_caller]
pub(super) fn backend(inside: &str) -> Conversion {
    converted(&format!(
        "frontend f\n mode http\n bind :80\n default_backend b\nbackend b\n mode http\n{inside}\n"
    ))
}

/// Keys of its group other than `servers`.
pub(super) fn keys(conversion: &Conversion) -> Vec<&str> {
    let lines = lines(conversion);
    let group = lines.iter().skip_while(|line| **line != "[upstream.b]");
    group.skip(2).copied().collect()
}

/// Checks the keys of a backend's group, and the outcome of its server `x`.
#[track_caller]
pub(super) fn check(inside: &str, expected: &[&str], is_said: fn(&Outcome) -> bool) {
    let conversion = backend(inside);
    assert_eq!(keys(&conversion), expected, "{inside}");
    let said = outcome(&conversion, "server x");
    assert!(is_said(&said), "{inside}: {said:?}");
}

pub(super) fn carried(outcome: &Outcome) -> bool {
    *outcome == Outcome::Carried
}

pub(super) fn approximated(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Approximated(_))
}

pub(super) fn left_out(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::LeftOut(_))
}

#[test]
fn server_overrides_default_server() {
    check(
        " default-server ssl verify none send-proxy check inter 9s\n server x 10.0.0.1:1 verify required ca-file /ca no-send-proxy inter 3s",
        &[
            "health = { tcp = true, interval = \"3s\" }",
            "tls = { ca = \"/ca\" }",
        ],
        carried,
    );
    check(
        " default-server ssl verify none\n server x 10.0.0.1 no-ssl",
        &[],
        carried,
    );
    check(
        " server x 10.0.0.1:1 check verify none sni str(a)",
        &["health = \"tcp\""],
        carried,
    );
}

#[test]
fn differing_server_options_have_notes() {
    let tls = "tls = { verify = false }";
    for (other, x, expected, is_said) in [
        (
            "ssl verify none",
            "",
            &[tls][..],
            left_out as fn(&Outcome) -> bool,
        ),
        (
            "ssl verify none",
            "ssl verify required ca-file /a",
            &["tls = { ca = \"/a\" }"],
            carried,
        ),
        (
            "ssl verify none sni str(a)",
            "ssl sni str(a) verify none",
            &["tls = { verify = false, name = \"a\" }"],
            carried,
        ),
        ("send-proxy", "", &["proxy_protocol = \"v1\""], left_out),
        (
            "send-proxy-v2",
            "send-proxy",
            &["proxy_protocol = \"v2\""],
            left_out,
        ),
        ("slowstart 10s", "", &["slow_start = \"10s\""], approximated),
        (
            "check rise 3",
            "check rise 4",
            &["health = { tcp = true, rise = 3 }"],
            approximated,
        ),
        (
            "check rise 3",
            "backup",
            &["health = { tcp = true, rise = 3 }"],
            carried,
        ),
    ] {
        let inside = format!(" server a 10.0.0.1:1 {other}\n server x 10.0.0.2:1 {x}");
        check(&inside, expected, is_said);
    }
}

#[test]
fn disabled_servers_are_ignored() {
    for line in ["disabled", "weight 0"] {
        let inside = format!(" server x 10.0.0.1:1\n server a 10.0.0.2:1 ssl send-proxy {line}");
        check(&inside, &[], carried);
    }
}
