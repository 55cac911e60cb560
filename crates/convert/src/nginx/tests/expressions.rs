//! PCRE expressions in rules that refuse requests.

use super::*;

/// The first route of a server with these lines, and the outcome of this directive.
fn first(server: &str, directive: &str) -> (String, Outcome) {
    let text = format!("http {{ server {{ {server} location / {{ proxy_pass http://a; }} }} }}");
    let conversion = converted(&text);
    let lines = lines(&conversion);
    let route = lines.split(|line| *line == "[[route]]").nth(1);
    let route = route.expect("a route").join("; ");
    (route, outcome(&conversion, directive))
}

#[test]
fn deny_expressions_match_like_pcre() {
    for (expression, expected) in [
        (r"^/caf\xc3\xa9", r"~^/caf(?-u:\xC3)(?-u:\xA9)"),
        (r"^/z\303\251", r"~^/z(?-u:\xC3)(?-u:\xA9)"),
        ("\"[<>&&]\"", r"~(?-u)[<>\&\&]"),
        ("^/[[(]", r"~(?-u)^/[\[(]"),
        ("^/[[:^alpha:]]", "~^/(?-u:[[:^alpha:]])"),
    ] {
        let (route, said) = first(
            &format!("location ~ {expression} {{ return 403; }}"),
            "location",
        );
        assert_eq!(said, Outcome::Carried, "{expression}");
        let denied = "; respond = { status = 403 }";
        let bare = |route: String| route.replace(['"', '\''], "");
        assert_eq!(bare(route), format!("path = {expected}{denied}"));
        let test = format!("if ($http_x ~ {expression}) {{ return 403; }}");
        let (route, _) = first(&test, "if");
        assert_eq!(
            bare(route),
            format!("headers = {{ X = {expected} }}{denied}")
        );
    }
}

#[test]
fn unsupported_deny_expressions_refuse() {
    let (route, said) = first("location /caf\u{FFFD}/ { return 403; }", "location");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
    assert_eq!(route, "path = \"~^/\"; respond = { status = 403 }");
    for (expression, closed) in [
        (r"^/\pL", "~^/(?s-u:.*)"),
        (r"^/a++b", "~^/a+b"),
        ("^/(?x) a", "~^/"),
    ] {
        let location = format!("location ~ \"{expression}\" {{ deny all; }}");
        let (route, said) = first(&location, "location");
        assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
        assert_eq!(
            route,
            format!("path = \"{closed}\"; respond = {{ status = 403 }}")
        );
        let test = format!("if ($http_x ~ \"{expression}\") {{ return 403; }}");
        let (route, said) = first(&test, "if");
        assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
        assert_eq!(route, "respond = { status = 403 }");
    }
}

#[test]
fn anchors_apply_to_each_alternative() {
    let (route, _) = first("if ($host ~ ^a$|^b$) { return 403; }", "if");
    let part =
        r"headers = { Cookie = '~(?-u)(?i:(?:^|[;,]) *s *= *)(?:(?:a[^;\n]b)|[^;]*(?:c)(?:;|$))' }";
    let (cookie, _) = first("if ($cookie_s ~ \"^a.b|c$\") { return 403; }", "if");
    assert!(cookie.starts_with(part), "{cookie}");
    let expected = r"headers = { Host = '~(?i-u)^a\.?(:[0-9]+)?$|^b\.?(:[0-9]+)?$' }";
    assert!(route.starts_with(expected), "{route}");
}
