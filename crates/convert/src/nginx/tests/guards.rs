//! Rules that refuse requests refuse at least the same requests in the result.

use super::*;

/// Routes of the result as text, and the conversion.
#[track_caller]
fn routes_of(http: &str) -> (String, Conversion) {
    let conversion = converted(&format!("http {{ {http} }}"));
    let text = lines(&conversion).join("\n");
    let routes = text.split_once("[[route]]\n").map_or("", |(_, rest)| rest);
    (routes.to_owned(), conversion)
}

/// Checks that the result for these servers has the `expected` parts and not the `missing` ones.
#[track_caller]
fn check_routes(http: &str, expected: &[&str], missing: &[&str]) -> Conversion {
    let (routes, conversion) = routes_of(http);
    for part in expected {
        assert!(routes.contains(part), "{part} is missing in\n{routes}");
    }
    for part in missing {
        assert!(!routes.contains(part), "{part} is in\n{routes}");
    }
    conversion
}

#[test]
fn internal_locations_refuse_clients_first() {
    for rule in [
        "return 200 secret;",
        "return 301 /secret;",
        "if ($http_x) { return 200 secret; }",
        "rewrite ^ /secret redirect;",
        "set $a secret; return 200 $a;",
        "limit_except GET { deny all; } return 200 secret;",
    ] {
        let server = format!("server {{ location = /i {{ internal; {rule} root /w; }} }}");
        let expected = "path = \"=/i\"\nrespond = { status = 404 }";
        let conversion = check_routes(&server, &[expected], &["secret", "/w"]);
        let Outcome::Approximated(how) = outcome(&conversion, "internal") else {
            panic!("{:?}", conversion.notes);
        };
        assert!(how.contains("clients get 404"), "{how}");
    }
    check_routes(
        "server { location /a/ { location ~ /b { internal; return 200 secret; } proxy_pass http://a; } }",
        &["path = \"~/b\"", "respond = { status = 404 }"],
        &["secret"],
    );
}

#[test]
fn limit_except_skips_rewrite_rules() {
    let refusal = "path = \"~^/l\"\ndeny = [\"0.0.0.0/0\", \"::/0\"]\n";
    for rule in [
        "return 200 x;",
        "if ($request_method = POST) { return 200 x; }",
        "if ($http_x) { return 200 x; }",
        "rewrite ^ /x redirect;",
    ] {
        let server =
            format!("server {{ location /l {{ limit_except GET {{ deny all; }} {rule} }} }}");
        let (routes, _) = routes_of(&server);
        let all = routes.split("[[route]]\n");
        let last = all.filter(|route| route.contains("/l\"")).last();
        assert!(
            last.is_some_and(|last| last.starts_with(refusal)),
            "{routes}"
        );
        let open = routes.split("[[route]]\n");
        let open = open.filter(|route| route.contains("/x") || route.contains("body"));
        for route in open {
            assert!(route.contains("method = [\"GET\", \"HEAD\"]"), "{routes}");
        }
    }
    check_routes(
        "server { location /l/ { limit_except GET { allow 10.0.0.0/8; deny all; } rewrite ^/l/(.*)$ /z/$1 break; proxy_pass http://a; } }",
        &[
            "method = [\"GET\", \"HEAD\"]\nstrip_prefix = true\nreplace_prefix = \"/z/\"",
            "path = \"/l/\"\nallow = \"10.0.0.0/8\"\nrequest_headers = { set = { Host = \"a\" } }\nforward",
        ],
        &[],
    );
}

/// Checks that the location with this guard refuses every request, and that the note of the `if` reports it.
#[track_caller]
fn check_closed(http: &str, guard: &str) {
    let text = format!("{http} server {{ location / {{ {guard} proxy_pass http://a; }} }}");
    let conversion = check_routes(&text, &["respond = { status = 403 }"], &["forward ="]);
    let Outcome::LeftOut(why) = outcome(&conversion, "if") else {
        panic!("{:?}", conversion.notes);
    };
    assert!(why.contains("is refused (--open-guards"), "{why}");
}

#[test]
fn concatenated_variables_are_true_if_nonempty() {
    let is_set = "headers = { X = \"~(?-u)^(0.|[^0])\" }";
    let guard = "server { set $a \"$http_x$http_y\"; if ($a) { return 403; } return 200; }";
    let conversion = check_routes(
        guard,
        &[
            &format!("{is_set}\nrespond = {{ status = 403 }}"),
            "headers = { X = \"~(?-u)[^0]|0\", Y = \"~(?-u)[^0]|0\" }\nrespond = { status = 403 }",
            "respond = { status = 200 }",
        ],
        &[],
    );
    let Outcome::Approximated(how) = outcome(&conversion, "if") else {
        panic!("{:?}", conversion.notes);
    };
    assert!(how.contains("repeated field"), "{how}");
    check_routes(
        "server { set $a \"$http_x$http_y\"; if ($a) { return 200 secret; } return 403; }",
        &[is_set, "respond = { status = 403 }"],
        &["[[route]]\nrespond = { status = 200"],
    );
    check_routes(
        "server { set $a 0$http_x; if ($a) { return 403; } return 200; }",
        &["headers = { X = \"~(?-u)[^0]|0\" }\nrespond = { status = 403 }"],
        &[],
    );
    for always in [
        "a$http_x",
        "00$http_x",
        "0${http_x}0",
        "$http_x$uri",
        "$request_method$http_x",
    ] {
        check_routes(
            &format!("server {{ set $a \"{always}\"; if ($a) {{ return 403; }} return 200; }}"),
            &["respond = { status = 403 }"],
            &["status = 200"],
        );
    }
    for unknown in [
        "$http_x$connection",
        "$http_x$a",
        "$http_x$arg_1$arg_2$arg_3$arg_4$arg_5$arg_6$arg_7$arg_8",
    ] {
        check_closed(
            "",
            &format!("set $a \"{unknown}\"; if ($a) {{ return 403; }}"),
        );
    }
    check_routes(
        "server { set $a \"$http_x$connection\"; if ($a) { return 200 secret; } return 403; }",
        &["respond = { status = 403 }"],
        &["secret"],
    );
}

#[test]
fn map_of_concatenated_variables_refuses() {
    for source in [
        "$http_x_debug$http_x_admin",
        "$arg_a$arg_b",
        "$cookie_a$http_b",
        "$request_method$uri",
        "$uri$arg_a",
        "$host$uri",
        "\"$request_method:$http_x\"",
        "x$http_x_debug",
        "${http_x_debug}x",
    ] {
        let map = format!("map {source} $b {{ default 0; \"11\" 1; }}");
        check_closed(&map, "if ($b) { return 403; }");
    }
    let conversion = check_routes(
        "map \"${http_x}\" $b { default 0; 1 1; } server { if ($b) { return 403; } return 200; }",
        &["headers = { X = \"~(?i-u)^1$\" }\nrespond = { status = 403 }"],
        &[],
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
    // Text next to a variable whose value is known at conversion.
    check_routes(
        "map x$server_name $b { default 0; xa.org 1; }
         server { server_name a.org; location / { if ($b) { return 403; } proxy_pass http://a; } }",
        &["respond = { status = 403 }"],
        &["forward ="],
    );
}

#[test]
fn geo_of_other_variable_refuses() {
    for variable in ["$http_x_addr", "$realip_remote_addr", "$arg_a", "${http_x}"] {
        let geo = format!("geo {variable} $g {{ default 0; 10.0.0.0/8 1; }}");
        check_closed(&geo, "if ($g) { return 403; }");
        check_closed(&geo, "if ($g = 0) { return 403; }");
    }
    check_routes(
        "geo ${remote_addr} $g { default 0; 10.0.0.0/8 1; } server { if ($g) { return 403; } return 200; }",
        &["from = \"10.0.0.0/8\"\nrespond = { status = 403 }"],
        &[],
    );
}

#[test]
fn client_addresses_are_compared_as_text() {
    // An address is never equal to a network, nor to another spelling of itself.
    for text in ["10.0.0.0/8", "2001:DB8::1", "2001:db8:0::1", "010.0.0.1"] {
        let rule = format!("if ($remote_addr != {text}) {{ return 403; }}");
        check_routes(
            &format!("server {{ location / {{ {rule} proxy_pass http://a; }} }}"),
            &["respond = { status = 403 }"],
            &["from =", "forward ="],
        );
    }
    check_routes(
        "server { location / { if ($remote_addr != 10.0.0.1) { return 403; } proxy_pass http://a; } }",
        &["from = \"10.0.0.1\"\nrequest_headers"],
        &[],
    );
    check_closed("", "if ($remote_addr != ::ffff:10.0.0.1) { return 403; }");
    check_closed("", "if ($binary_remote_addr != 10.0.0.1) { return 403; }");
}

#[test]
fn method_expressions_match_like_nginx() {
    let refused = |condition: &str| {
        let (routes, _) = routes_of(&format!(
            "server {{ if ($request_method {condition}) {{ return 403; }} return 200; }}"
        ));
        routes
    };
    const CLOSED: &str = "respond = { status = 403 }";
    const OPEN: &str = "respond = { status = 200 }";
    for (condition, found, others) in [
        (
            "~ ^P",
            "[\"POST\", \"PUT\", \"PATCH\", \"PROPFIND\", \"PROPPATCH\"]",
            "[\"GET\", \"HEAD\", \"DELETE\", \"OPTIONS\", \"MKCOL\", \"COPY\", \"MOVE\", \"LOCK\", \"UNLOCK\"]",
        ),
        (
            "~* ^(put|delete)",
            "[\"PUT\", \"DELETE\"]",
            "[\"GET\", \"HEAD\", \"POST\", \"OPTIONS\", \"PATCH\", \"PROPFIND\", \"PROPPATCH\", \"MKCOL\", \"COPY\", \"MOVE\", \"LOCK\", \"UNLOCK\"]",
        ),
    ] {
        // A method that is in neither list may match.
        let expected = format!(
            "method = {found}\n{CLOSED}\n[[route]]\nmethod = {others}\n{OPEN}\n[[route]]\n{CLOSED}"
        );
        assert_eq!(refused(condition), expected, "{condition}");
    }
    let routes = refused("!~ ^(GET|HEAD)");
    let expected = format!("method = [\"GET\", \"HEAD\"]\n{OPEN}\n[[route]]\n");
    assert!(routes.starts_with(&expected), "{routes}");
    assert!(
        routes.ends_with(&format!("[[route]]\n{CLOSED}")),
        "{routes}"
    );
    assert_eq!(routes.matches(OPEN).count(), 1, "{routes}");
    let expected = format!("method = [\"GET\", \"HEAD\"]\n{OPEN}\n[[route]]\n{CLOSED}");
    assert_eq!(refused("!~ ^(GET|HEAD)$"), expected);
    let expected = format!("method = \"PUT\"\n{CLOSED}\n[[route]]\n{OPEN}");
    assert_eq!(refused("~ ^PUT$"), expected);
}

#[test]
fn request_uri_match_in_query_refuses() {
    for guard in [
        "if ($request_uri ~* \"union.*select|<script\") { return 403; }",
        "if ($request_uri ~ evil) { return 403; }",
        "if ($request_uri ~ \"\\.\\./\") { return 444; }",
        "if ($request_uri ~ ^/a.*b) { return 403; }",
        "if ($request_uri ~ %3C) { return 403; }",
        "if ($request_uri !~ ^/[^?]*$) { return 403; }",
        "if ($request_uri != /x) { return 403; }",
        "if ($request_uri !~ ok) { return 403; }",
        "set $t $request_uri; if ($t ~ evil) { return 403; }",
        "if ($request_uri ~ evil) { set $bad 1; } if ($bad) { return 403; }",
        "if ($bad) { return 403; }",
    ] {
        let map = "map $request_uri $bad { default 0; ~evil 1; }";
        let map = if guard.contains("set $bad") { "" } else { map };
        let text = format!("{map} server {{ location / {{ {guard} proxy_pass http://a; }} }}");
        let (routes, conversion) = routes_of(&text);
        let last = routes.rsplit("[[route]]\n").next().unwrap_or_default();
        assert!(last.contains("status = 403"), "{guard}\n{routes}");
        assert!(!conversion.is_complete(), "{:?}", conversion.notes);
    }
}

#[test]
fn request_uri_match_in_path_is_converted() {
    for (condition, path) in [
        ("~ ^/admin", "^/admin"),
        ("~ ^/(a|b)/", "^/(a|b)/"),
        ("~* ^/adm[a-z]+/x", "^/adm[a-z]+/x"),
        ("~ ^/a/(.*)$", "^/a/(.*)"),
    ] {
        let text = format!(
            "server {{ location / {{ if ($request_uri {condition}) {{ return 403; }} proxy_pass http://a; }} }}"
        );
        let conversion = check_routes(&text, &["respond = { status = 403 }", "forward ="], &[]);
        assert!(conversion.text.contains(path), "{}", conversion.text);
        assert!(matches!(
            outcome(&conversion, "if"),
            Outcome::Approximated(_)
        ));
    }
    // Matches more than in nginx: any query.
    let text = "server { if ($request_uri ~ ^/a$) { return 403; } return 200; }";
    let conversion = check_routes(text, &["^/a\\n?$'\nrespond = { status = 403 }"], &[]);
    assert!(matches!(
        outcome(&conversion, "if"),
        Outcome::Approximated(_)
    ));
    // Redirects do not refuse anyone, so unknown parts are ignored.
    for rule in ["~ old.html", "~ old$", "= /old"] {
        let text =
            format!("server {{ if ($request_uri {rule}) {{ return 301 /new; }} return 200; }}");
        let conversion = check_routes(&text, &["redirect = "], &["403"]);
        assert!(matches!(
            outcome(&conversion, "if"),
            Outcome::Approximated(_)
        ));
    }
}

#[test]
fn address_rules_refuse_if_real_ip_differs() {
    const SHOP: &str = "server { server_name shop; set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For; return 204; }";
    let closed = |server: &str, status: u16| {
        let text = format!("{SHOP} server {{ server_name b; {server} }}");
        let status = format!("respond = {{ status = {status} }}");
        let conversion = check_routes(&text, &[&status], &["forward =", "allow =", "from ="]);
        assert!(!conversion.is_complete(), "{:?}", conversion.notes);
    };
    closed(
        "allow 10.0.0.1; deny all; location / { proxy_pass http://a; }",
        501,
    );
    closed(
        "location / { if ($remote_addr != 10.0.0.1) { return 403; } proxy_pass http://a; }",
        403,
    );
    closed(
        "location / { if ($remote_addr != 10.0.0.1) { return 302 /login; } proxy_pass http://a; }",
        403,
    );
    for other in [
        "set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For;",
        "set_real_ip_from 127.0.0.0/8; set_real_ip_from proxy.test; real_ip_header X-Forwarded-For;",
    ] {
        let text = format!(
            "{SHOP} server {{ server_name b; {other} allow 10.0.0.1; deny all; root /w; }} server {{ server_name c; deny 10.0.0.1; root /w; }}"
        );
        check_routes(
            &text,
            &[
                "host = \"b\"\nrespond = { status = 501 }",
                "host = \"c\"\nrespond = { status = 501 }",
            ],
            &["files ="],
        );
    }
    check_routes(
        &format!(
            "{SHOP} server {{ server_name b; location / {{ set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; deny 10.1.1.1; root /w; }} }}"
        ),
        &["respond = { status = 501 }"],
        &["files ="],
    );
    check_routes(
        &format!(
            "{SHOP} server {{ server_name b; location / {{ proxy_pass http://a; proxy_set_header X-Real-IP $remote_addr; }} }}"
        ),
        &["remove = [\"X-Real-IP\"]"],
        &["client.address"],
    );
    let conversion = check_routes(
        &format!("{SHOP} server {{ server_name b; root /w; }}"),
        &["files ="],
        &["501"],
    );
    let Outcome::Approximated(how) = outcome(&conversion, "set_real_ip_from") else {
        panic!("{:?}", conversion.notes);
    };
    assert!(how.contains("everywhere"), "{how}");
    // All servers trust the same proxies.
    check_routes(
        "set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;
         server { server_name a; allow 10.0.0.1; deny all; root /w; }
         server { server_name b; if ($remote_addr != 10.0.0.1) { return 403; } return 204; }",
        &["allow = \"10.0.0.1\"", "from = \"10.0.0.1\""],
        &["501"],
    );
}

#[test]
fn forwarded_scheme_does_not_select_server() {
    let text = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;
        server { listen 80; return 301 https://$host$request_uri; }
        server { listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k; return 204; }";
    check_routes(
        text,
        &["listener = \"0.0.0.0:80\"", "listener = \"0.0.0.0:443\""],
        &["scheme ="],
    );
    let both = "set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For;
        server { listen 80; listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k;
        if ($scheme != https) { return 403; } return 204; }";
    check_routes(
        both,
        &[
            "listener = \"0.0.0.0:80\"\nrespond = { status = 403 }",
            "listener = \"0.0.0.0:443\"\nrespond = { status = 204 }",
        ],
        &["scheme ="],
    );
}

#[test]
fn variable_realm_is_not_off() {
    for map in [
        "map $ssl_client_verify $realm { default off; NONE staff; }",
        "map $request_uri $realm { default off; ~admin staff; }",
    ] {
        check_routes(
            &format!(
                "{map} server {{ location / {{ auth_basic $realm; auth_basic_user_file /p; root /w; }} }}"
            ),
            &["respond = { status = 501 }"],
            &["path = \"/\"\nfiles ="],
        );
    }
    for rules in [
        "set $realm off; if ($ssl_client_verify = NONE) { set $realm staff; }",
        "if ($uri ~ y$) { set $a 1; }",
    ] {
        check_routes(
            &format!(
                "map $uri $realm {{ default off; ~x$ staff; }} server {{ location / {{ {rules} auth_basic $realm; auth_basic_user_file /p; root /w; }} }}"
            ),
            &["respond = { status = 501 }"],
            &[],
        );
    }
    check_routes(
        "map $uri $realm { default staff; ~^/pub off; } server { location / { auth_basic $realm; auth_basic_user_file /p; root /w; } }",
        &["basic_auth", "files ="],
        &["501"],
    );
}

#[test]
fn revoked_certificate_gets_no_fixed_response() {
    check_routes(
        "server { listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k; ssl_verify_client on; ssl_client_certificate /b; ssl_ocsp on; return 200 secret; }",
        &["respond = { status = 501 }"],
        &["secret"],
    );
}

#[test]
fn host_condition_ignores_port() {
    check_routes(
        "server { if ($host ~ \"^a\\.org$|^b\\.org$\") { return 403; } return 200; }",
        &[
            "headers = { Host = '~(?i-u)^a\\.org\\.?(:[0-9]+)?$|^b\\.org\\.?(:[0-9]+)?$' }\nrespond = { status = 403 }",
        ],
        &[],
    );
}

#[test]
fn unsupported_expression_on_constant_refuses() {
    check_closed("", "set $a x; if ($a ~ ^(.)\\1) { return 403; }");
    check_closed(
        "map $http_x $m { default x; 1 y; }",
        "if ($m ~ ^(.)\\1) { return 403; }",
    );
    check_closed("", "if ($scheme ~ ^(.)\\1) { return 403; }");
}

#[test]
fn variable_names_are_case_insensitive() {
    check_routes(
        "server { set $bad 0; if ($HTTP_X = 1) { set $BAD 1; } if ($bad) { return 403; } return 200; }",
        &["headers = { X = \"1\" }\nrespond = { status = 403 }"],
        &[],
    );
}

#[test]
fn special_path_characters_are_escaped() {
    for path in ["/a%2fb", "/a%2Fb", "\"/a?b\"", "\"/a#b\"", "\"/a b\""] {
        let written = path
            .trim_matches('"')
            .replace('?', "\\?")
            .replace('#', "\\#");
        for (modifier, end) in [("=", "\\z'"), ("^~", ""), ("", "")] {
            let text = format!(
                "server {{ location {modifier} {path} {{ deny all; }} location / {{ return 200; }} }}"
            );
            let expected = format!("~^{written}{end}");
            let conversion = check_routes(&text, &[&expected, "deny = "], &["403"]);
            assert!(conversion.is_complete(), "{:?}", conversion.notes);
        }
    }
    for rule in [
        "proxy_pass http://a/;",
        "proxy_pass http://a;",
        "alias /x/;",
        "root /w;",
        "rewrite ^/a%2fb/(.*)$ /$1 break; proxy_pass http://a;",
        "rewrite ^/a%2fb/(.*)$ /$1 break; root /w;",
    ] {
        check_routes(
            &format!("server {{ location /a%2fb/ {{ {rule} }} location = /a%2fc/ {{ {rule} }} }}"),
            &[],
            &["strip_prefix"],
        );
    }
    for path in ["/.", "/a/.", "/.."] {
        let text =
            format!("server {{ location {path} {{ deny all; }} location / {{ return 200; }} }}");
        let written = format!("~^{}", path.replace('.', "\\."));
        check_routes(&text, &[&written, "deny = "], &[]);
    }
    for location in [
        "= /a/../b",
        "= /a/./b",
        "= /a/..",
        "^~ /a/../b",
        "/a/./b",
        "/../",
    ] {
        let text = format!(
            "server {{ location {location} {{ deny all; }} location / {{ return 200; }} }}"
        );
        let conversion = check_routes(&text, &["path = \"/\"\nrespond"], &["deny", "403"]);
        assert!(matches!(
            outcome(&conversion, "location"),
            Outcome::WithoutEffect(_)
        ));
    }
}

#[test]
fn maps_used_by_conditions_are_converted() {
    let conversion = check_routes(
        "map $http_x $m { default 0; 1 1; } map $m $n { default 0; 1 1; } geo $g { default 0; 10.0.0.0/8 1; }
         map $jwt_claim_x $u { default 0; 1 1; } map $http_y $none { default 0; }
         server { if ($n) { return 403; } if ($g) { return 403; } location /u { if ($u) { return 403; } } }",
        &[],
        &[],
    );
    for carried in ["map $http_x", "map $m", "geo $g"] {
        assert_eq!(outcome(&conversion, carried), Outcome::Carried, "{carried}");
    }
    assert!(matches!(
        outcome(&conversion, "map $jwt_claim_x"),
        Outcome::LeftOut(_)
    ));
    assert!(matches!(
        outcome(&conversion, "map $http_y"),
        Outcome::WithoutEffect(_)
    ));
}

#[test]
fn deny_all_applies_to_unix_socket_clients() {
    for rules in ["deny all;", "deny 10.0.0.1; deny all;"] {
        check_routes(
            &format!("server {{ listen unix:/s; {rules} location / {{ proxy_pass http://a; }} }}"),
            &["respond = { status = 403 }"],
            &["forward ="],
        );
    }
    check_routes(
        "server { listen unix:/s; deny unix:; location / { proxy_pass http://a; } }",
        &["respond = { status = 501 }"],
        &["forward ="],
    );
    check_routes(
        "server { deny unix:; location / { proxy_pass http://a; } }",
        &["forward ="],
        &["501"],
    );
    check_routes(
        "server { listen unix:/s; allow 10.0.0.1; deny all; location / { proxy_pass http://a; } }",
        &["allow = \"10.0.0.1\"", "forward ="],
        &[],
    );
}

#[test]
fn condition_on_encoded_argument_denies_all() {
    for condition in ["~ %3C", "~* \"%2e%2e\"", "= a%20b"] {
        check_closed("", &format!("if ($arg_x {condition}) {{ return 403; }}"));
    }
    check_closed(
        "map $arg_x $b { default 0; ~%00 1; }",
        "if ($b) { return 403; }",
    );
}

#[test]
fn hosts_of_unsupported_server_names_are_refused() {
    let http = |name: &str| {
        format!(
            "http {{ server {{ listen 80; return 200; }} server {{ listen 80; server_name {name}; return 403; }} }}"
        )
    };
    for name in ["~^(?<!a)b\\.example$", "m\u{fc}nchen.example"] {
        let conversion = converted(&http(name));
        assert!(
            conversion.text.contains("respond = { status = 421 }"),
            "{}",
            conversion.text
        );
        match outcome(&conversion, "server_name") {
            Outcome::LeftOut(why) => assert!(why.contains("421"), "{why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let conversion =
        converted("http { server { listen 80; server_name ~^(?<!a)b$; return 200; } }");
    assert!(!conversion.text.contains("421"), "{}", conversion.text);
}

#[test]
fn deny_locations_with_double_slash_match_merged_paths() {
    for (location, path) in [
        ("location //admin/", "path = \"~^/admin/\""),
        ("location = //admin", "path = \"~^/admin\""),
        ("location ~ ^//admin", "path = \"~^/admin\""),
        ("location ~ \"^/{2}admin\"", "path = \"~^/\""),
    ] {
        let text = |setting: &str| {
            let server = format!(
                "merge_slashes {setting}; {location} {{ deny all; }} location / {{ return 200; }}"
            );
            lines(&converted(&format!(
                "http {{ server {{ listen 80; {server} }} }}"
            )))
            .join("\n")
        };
        assert!(text("off").contains(path), "{}", text("off"));
        assert!(!text("on").contains(path), "{}", text("on"));
    }
    let conversion = converted("http { merge_slashes on; server { listen 80; return 200; } }");
    assert_eq!(outcome(&conversion, "merge_slashes"), Outcome::Carried);
}

#[test]
fn underscore_header_conditions_follow_nginx_settings() {
    for (setting, is_seen) in [
        ("", false),
        ("underscores_in_headers on;", true),
        ("ignore_invalid_headers off;", true),
    ] {
        let server = "if ($http_x_key = 1) { return 403; } if ($http_user_agent = 1) { return 403; } return 200;";
        let text = format!("http {{ {setting} server {{ listen 80; {server} }} }}");
        let text = lines(&converted(&text)).join("\n");
        assert_eq!(text.contains("X_Key"), is_seen, "{text}");
        assert!(!text.contains("User_Agent"), "{text}");
    }
}

#[test]
fn underscores_in_headers_applies_per_server() {
    const ON: &str = "underscores_in_headers on;";
    for (first, second, address, expected) in [
        (ON, "", "80", [true, true]),
        ("", ON, "80", [false, true]),
        ("", "", "80", [false, false]),
        ("", ON, "81", [false, true]),
        (ON, "", "81", [true, false]),
    ] {
        let server = |listen: &str, setting: &str, field: &str| {
            format!(
                "server {{ listen {listen}; server_name {field}.org; {setting} if ($http_{field}_key = \"\") {{ return 403; }} return 200; }}"
            )
        };
        let servers = server("80", first, "a") + &server(address, second, "b");
        let text = lines(&converted(&format!("http {{ {servers} }}"))).join("\n");
        let found = ["A_Key", "B_Key"].map(|name| text.contains(name));
        assert_eq!(found, expected, "{first:?} {second:?} {address}: {text}");
    }
}

/// The last route of a conversion, which gets all requests that no other route takes.
fn last_route(http: &str) -> String {
    let (routes, _) = routes_of(http);
    let last = routes.rsplit("[[route]]").next();
    last.expect("a route").to_owned()
}

#[test]
fn expressions_of_a_map_do_not_match_an_empty_value() {
    for source in [
        "$arg_tok",
        "$http_x_a",
        "$cookie_sid",
        "$arg_token",
        "$content_type",
    ] {
        for (map, condition) in [
            ("default 1; ~^[a-z]*$ 0;", "($m)"),
            ("default 0; ~[a-z]* 1;", "($m = 0)"),
            ("default 1; \"~*^(?!a)\" \"\";", "($m = 1)"),
        ] {
            let last = last_route(&format!(
                "map {source} $m {{ {map} }} server {{ location / {{ if {condition} {{ return 403; }} proxy_pass http://a; }} }}"
            ));
            assert!(last.contains("status = 403"), "{source} {map}: {last}");
        }
    }
    let last = last_route(
        "map $http_x_a $m { default r; ~^x*$ off; } server { location / { auth_basic $m; auth_basic_user_file /p; root /w; } }",
    );
    assert!(
        last.contains("basic_auth") || last.contains("status = 501"),
        "{last}"
    );
    let last = last_route(
        "map $arg_k $k { ~. 1; } map $k $m { default 1; ~^x*$ 0; } server { if ($m) { return 403; } location / { root /w; } }",
    );
    assert!(last.contains("status = 403"), "{last}");
}

#[test]
fn parameters_that_must_be_empty_do_not_multiply() {
    for (condition, routes_max) in [
        ("($arg_role = \"\")", 40),
        ("($arg_role ~ \"^$\")", 40),
        ("($arg_page !~ \"^[0-9]*$\")", 40),
        ("($arg_page !~ \"^(?!a)\")", 40),
        ("($arg_tok != 1)", 40),
    ] {
        let (routes, _) = routes_of(&format!(
            "server {{ location / {{ if {condition} {{ return 403; }} if ($arg_tok = \"\") {{ return 403; }} proxy_pass http://a; }} }}"
        ));
        let count = routes.matches("[[route]]").count();
        assert!(count < routes_max, "{condition}: {count} routes");
        assert!(routes.contains("status = 403"), "{condition}: {routes}");
    }
}

#[test]
fn rewrites_in_a_row_refuse_as_their_last_does() {
    for (rules, path) in [
        (
            "rewrite ^/a/(.*)$ /b/$1; rewrite ^/b/(.*)$ /adm/$1;",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1; rewrite ^/b/(.*)$ /c/$1; rewrite ^/c/(.*)$ /adm/$1;",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /$1; rewrite ^/b/(.*)$ /adm/$1;",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/v1(/.*)$ $1; rewrite ^/api/(.*)$ /$1 last;",
            "path = \"/v1/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1; if ($uri ~ ^/b) { return 403; }",
            "path = \"/a/\"",
        ),
        (
            "if ($http_x) { rewrite ^/a/(.*)$ /b/$1; } if ($uri ~ ^/b) { return 403; }",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1; if ($uri !~ ^/b) { break; } return 403;",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1; set $u $uri; if ($u ~ ^/b) { return 403; }",
            "path = \"/a/\"",
        ),
        (
            "rewrite ^/a/(.*)$ /b/$1?k=1; if ($arg_k = 1) { return 403; }",
            "path = \"/a/\"",
        ),
    ] {
        let (routes, _) = routes_of(&format!(
            "server {{ {rules} location /adm {{ deny all; }} location / {{ proxy_pass http://a; }} }}"
        ));
        let is_closed = |route: &str| route.contains(path) && route.contains("status = 403");
        assert!(
            routes.split("[[route]]").any(is_closed),
            "{rules}: {routes}"
        );
    }
    let (routes, _) = routes_of(
        "server { rewrite ^/a/(.*)$ /b/$1; rewrite ^/c/(.*)$ /adm/$1; if ($http_x) { return 403; } location /adm { deny all; } location / { proxy_pass http://a; } }",
    );
    assert!(!routes.contains("path = \"/a/\""), "{routes}");
}

#[test]
fn unknown_break_before_a_response_closes_guarded_content() {
    let guarded = "location /adm { deny all; proxy_pass http://a; }";
    for server in [
        "location /adm { deny all; if ($connection) { break; } return 200 r; }".to_owned(),
        "location /adm { deny all; if ($ssl_client_verify = NONE) { break; } return 200 r; }".to_owned(),
        "location /adm { auth_basic x; auth_basic_user_file /p; if ($connection) { break; } return 302 /r; }".to_owned(),
        "location /adm { deny all; if ($connection) { rewrite ^ /x break; } return 200 r; }".to_owned(),
        "location ~* \"^/adm\" { deny all; rewrite \"/(adm|secret)(/|$)\" /new/z break; return 200 r; }".to_owned(),
        format!("if ($connection) {{ break; }} return 200 r; {guarded}"),
        format!("if ($connection) {{ break; }} if ($http_x) {{ return 200 r; }} {guarded}"),
    ] {
        let (routes, conversion) = routes_of(&format!("server {{ {server} }}"));
        assert!(!routes.contains("body = \"r\"") && !routes.contains("/r"), "{server}: {routes}");
        assert!(routes.contains("status = 403"), "{server}: {routes}");
        assert!(!conversion.is_complete(), "{server}");
    }
    let open =
        "server { if ($connection) { break; } return 200 r; location / { proxy_pass http://a; } }";
    assert!(routes_of(open).0.contains("body = \"r\""));
}

#[test]
fn error_page_of_a_guarded_location_is_not_sent() {
    let rules = "deny all;";
    for (server, has_page) in [
        (
            format!("error_page 404 /adm/x; location /adm {{ {rules} }}"),
            false,
        ),
        (
            "error_page 404 /adm/x; location /adm { auth_basic x; auth_basic_user_file /p; }"
                .to_owned(),
            false,
        ),
        (
            "allow 10.0.0.0/8; deny all; error_page 404 /adm/x; location /adm { }".to_owned(),
            true,
        ),
        ("error_page 404 /adm/x; location /adm { }".to_owned(), true),
    ] {
        let (routes, conversion) =
            routes_of(&format!("server {{ root /w; {server} location / {{ }} }}"));
        let last = routes.rsplit("[[route]]").next().expect("a route");
        assert_eq!(last.contains("error_pages"), has_page, "{server}: {routes}");
        assert_eq!(conversion.is_complete(), has_page, "{server}");
    }
}

#[test]
fn error_page_of_a_fixed_response_is_reported() {
    for (page, status, is_left_out) in [
        ("418 = @x", 418, true),
        ("404 =200 /x", 404, true),
        ("403 https://a/", 403, true),
        ("418 /418.html", 418, false),
        ("500 = @x", 418, false),
    ] {
        let (_, conversion) = routes_of(&format!(
            "server {{ location / {{ error_page {page}; return {status}; }} location @x {{ proxy_pass http://a; }} }}"
        ));
        let outcome = outcome(&conversion, "error_page");
        assert_eq!(
            matches!(outcome, Outcome::LeftOut(_)),
            is_left_out,
            "{page}: {outcome:?}"
        );
    }
}
