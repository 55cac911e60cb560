//! A `rewrite` that leads to another location, which may refuse requests.

use super::*;

const NEW: &str =
    "location /new/ { deny all; proxy_pass http://b; } location / { proxy_pass http://a; }";

/// The routes of a server, each on one line, without those for `location /new/` and the rest, and what became of the `rewrite`.
fn routes(server: &str, guards: Guards) -> (Vec<String>, bool) {
    let text = format!("http {{ server {{ {server} }} }}");
    let files = MemoryFiles(vec![("/n.conf", text)]);
    let conversion = convert(&files, Path::new("/n.conf"), Path::new("/"), guards);
    let conversion = verified(conversion.expect("it is nginx's language"));
    let all = lines(&conversion);
    let routes = all.split(|line| *line == "[[route]]").skip(1);
    let routes = routes.map(|route| {
        let lines = route.iter();
        let lines = lines.take_while(|line| !line.starts_with('['));
        lines.copied().collect::<Vec<_>>().join("; ")
    });
    let is_closed = conversion.notes.iter().any(|note| {
        let is_rule = note.directive.starts_with("rewrite") || note.directive.starts_with("if");
        is_rule && matches!(&note.outcome, Outcome::LeftOut(why) if why.contains("--open-guards"))
    });
    (routes.collect(), is_closed)
}

/// Checks that a server with these rules has a route that refuses.
#[track_caller]
fn check_closed(rules: &str, expected: &str) {
    let (closed, is_reported) = routes(&format!("{rules} {NEW}"), Guards::Closed);
    assert!(
        closed.iter().any(|route| route == expected),
        "{rules}\n{closed:#?}"
    );
    assert!(is_reported, "{rules}");
    let (open, is_reported) = routes(&format!("{rules} {NEW}"), Guards::Open);
    assert!(
        !open.iter().any(|route| route == expected),
        "{rules}\n{open:#?}"
    );
    assert!(!is_reported, "{rules}");
}

/// Checks that no `rewrite` of these rules refuses.
#[track_caller]
fn check_open(server: &str) {
    let (_, is_closed) = routes(server, Guards::Closed);
    assert!(!is_closed, "{server}");
}

#[test]
fn rewrite_into_denied_location_refuses() {
    let refused = |when: &str| format!("{when}respond = {{ status = 403 }}");
    for (rules, when) in [
        ("rewrite ^/old/(.*)$ /new/$1;", "path = \"/old/\"; "),
        ("rewrite ^/old/(.*)$ /new/$1 last;", "path = \"/old/\"; "),
        ("rewrite ^/old/(.*)$ /new/$1 break;", "path = \"/old/\"; "),
        ("rewrite ^/o/(.*)$ /$1 last;", "path = \"/o/new/\"; "),
        ("rewrite ^/x$ /new/y?a=b last;", "path = \"=/x\"; "),
        ("rewrite /o([a-z]+) /n$1 last;", "path = \"~/o([a-z]+)\"; "),
        ("rewrite (o)\\1 /new/ last;", "path = \"~(o)(?s-u:.*)\"; "),
        (
            "location /k { if ($http_user_agent !~* \"mozilla\") { rewrite ^ /new/ last; } proxy_pass http://a; }",
            "path = \"/k\"; ",
        ),
        (
            "location /k { if ($http_x_a = 1) { rewrite ^ /new/z last; } proxy_pass http://a; }",
            "path = \"/k\"; headers = { X-A = \"1\" }; ",
        ),
        (
            "location /k { if ($http_x_a ~ (a)\\1) { rewrite ^ /new/z last; } proxy_pass http://a; }",
            "path = \"/k\"; ",
        ),
        (
            "location ~ k { rewrite o /new/z last; proxy_pass http://a; }",
            "path = \"~k\"; ",
        ),
        (
            "location /k { rewrite ^ /j last; proxy_pass http://a; } location /j { rewrite ^ /new/ last; }",
            "path = \"/k\"; ",
        ),
        (
            "location /k { rewrite ^/k/(.*)$ /q/$1 last; proxy_pass http://a; } location /q/ { if ($http_x) { return 401; } proxy_pass http://a; }",
            "path = \"/k/\"; ",
        ),
        (
            "location ^~ /k/ { rewrite ^/k/(.*)$ /q/$1 last; proxy_pass http://a; } location ~ \\.ht { deny all; }",
            "path = \"/k/\"; ",
        ),
        (
            "location /k { rewrite ^ /q last; proxy_pass http://a; } location /q { auth_basic x; auth_basic_user_file /u; proxy_pass http://a; }",
            "path = \"/k\"; ",
        ),
    ] {
        check_closed(rules, &refused(when));
    }
}

#[test]
fn rewrite_into_allowed_location_refuses_nothing() {
    for server in [
        "rewrite ^/old/(.*)$ /new/$1 last; location /new/ { proxy_pass http://a; }",
        "rewrite ^/old/(.*)$ /new/$1 last; location /new/ { internal; proxy_pass http://a; }",
        "rewrite ^/old/(.*)$ /new/$1 last; location ~ /\\.ht { deny all; } location / { proxy_pass http://a; }",
        "rewrite ^(/[^/]+)?(/wp-.*) $2 last; location ~ /\\.ht { deny all; } location / { proxy_pass http://a; }",
        "deny 10.0.0.0/8; rewrite ^/old/(.*)$ /new/$1 last; location / { proxy_pass http://a; }",
        "rewrite ^ /index.php last; location ^~ /adm { deny all; } location / { proxy_pass http://a; }",
        "rewrite ^/old/(.*)$ /new/$1 redirect; location /new/ { deny all; }",
    ] {
        check_open(server);
    }
}
