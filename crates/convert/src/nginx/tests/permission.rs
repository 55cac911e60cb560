//! Requests that nginx refuses, and files that it does not serve, stay so in the result.

use super::*;

/// Checks that the last route of a server contains none of these words, and that the note on a directive contains
/// `said`.
#[track_caller]
fn check_missing(server: &str, missing: &[&str], directive: &str, said: &str) {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let text = lines(&conversion).join("\n");
    let text = text.rsplit("[[route]]").next().expect("a part");
    for word in missing {
        assert!(!text.contains(word), "{text}");
    }
    let outcome = format!("{:?}", outcome(&conversion, directive));
    assert!(outcome.contains(said), "{outcome}\n{text}");
}

#[test]
fn index_files_handled_elsewhere_are_not_served() {
    for action in [
        "fastcgi_pass unix:/p;",
        "proxy_pass http://a;",
        "deny all;",
        "return 403;",
        "root /elsewhere;",
    ] {
        let server = format!(
            "root /w; index index.php index.html; location / {{ try_files $uri $uri/ =404; }}
             location ~ \\.php$ {{ {action} }} location ~ /\\.(git|ht) {{ deny all; }}"
        );
        check_missing(
            &server,
            &["index.php"],
            "index",
            "LeftOut(\"index.php in a directory may be matched by location ~ \\\\.php$",
        );
    }
    check_missing(
        "root /w; location / { } location = /index.html { deny all; }",
        &["\"index.html\""],
        "root",
        "LeftOut",
    );
    check_missing(
        "root /w; location = / { index a.html; } location / { proxy_pass http://a; }",
        &["a.html"],
        "index",
        "LeftOut",
    );
    let kept = converted(
        "http { server { root /w; index index.php; location / { } location ~ \\.php$ { expires 1h; } } }",
    );
    assert_eq!(outcome(&kept, "index"), Outcome::Carried);
}

#[test]
fn error_pages_handled_elsewhere_are_not_served() {
    check_missing(
        "root /w; error_page 404 /index.php; location ~ \\.php$ { proxy_pass http://a; }",
        &["error_pages"],
        "error_page",
        "LeftOut(\"/index.php is matched by location ~ \\\\.php$",
    );
    check_missing(
        "root /w; error_page 403 /403.html; deny all;",
        &["error_pages"],
        "error_page",
        "LeftOut(\"access rules of the page refuse",
    );
    check_missing(
        "root /w; location / { try_files $uri /index.html; } location = /index.html { deny all; }",
        &["fallback"],
        "try_files",
        "LeftOut(\"/index.html is matched by location = /index.html",
    );
}

/// Checks the routes for a condition, and the outcome of its `if`.
#[track_caller]
fn check_condition(http: &str, condition: &str, expected: &[&str], is_carried: Outcome) {
    let text =
        format!("http {{ {http} server {{ if ({condition}) {{ return 404; }} return 200; }} }}");
    let conversion = converted(&text);
    let lines = lines(&conversion);
    let routes: Vec<&str> = lines
        .into_iter()
        .filter(|line| !line.starts_with(['[', 'a']))
        .collect();
    assert_eq!(routes, expected, "{condition}");
    let said = outcome(&conversion, "if");
    let is_same = std::mem::discriminant(&said) == std::mem::discriminant(&is_carried);
    assert!(is_same, "{said:?}");
}

#[test]
fn conditions_match_same_requests_as_nginx() {
    const YES: &str = "respond = { status = 404 }";
    const NO: &str = "respond = { status = 200 }";
    let approximated = || Outcome::Approximated(String::new());
    check_condition(
        "geo $staff { default 0; 127.0.0.0/8 1; 127.9.0.0/16 0; }",
        "$staff = 0",
        &[
            "from = \"127.9.0.0/16\"",
            YES,
            "from = \"127.0.0.0/8\"",
            NO,
            YES,
        ],
        Outcome::Carried,
    );
    check_condition(
        "geo $b { default 0; 127.0.0.0/8 0; 127.9.0.0/16 1; }",
        "$b",
        &["from = \"127.9.0.0/16\"", YES, NO],
        Outcome::Carried,
    );
    check_condition(
        "map $http_x_key $b { default 0; Secret 1; }",
        "$b",
        &["headers = { X-Key = \"~(?i-u)^Secret$\" }", YES, NO],
        approximated(),
    );
    check_condition(
        "map $http_user_agent $b { default 0; \"\" 1; }",
        "$b",
        &[
            "headers = { User-Agent = \"!\" }",
            YES,
            "headers = { User-Agent = \"~^$\" }",
            YES,
            NO,
        ],
        approximated(),
    );
    check_condition(
        "",
        "$http_host != \"a.test\"",
        &["headers = { Host = \"a.test\" }", NO, YES],
        Outcome::Carried,
    );
    check_condition(
        "map $host $b { hostnames; default 0; www.* 1; .x.org 2; }",
        "$b = 1",
        &[
            "headers = { Host = '~(?i-u)^(.+\\.)?x\\.org\\.?(:[0-9]+)?$' }",
            NO,
            "headers = { Host = '~(?i-u)^www\\.' }",
            YES,
            NO,
        ],
        Outcome::Carried,
    );
    check_condition(
        "",
        "$cookie_a = yes",
        &[
            "headers = { Cookie = \"~(?-u)(?i:(?:^|[;,]) *a *= *)yes(?:;|$)\" }",
            YES,
            NO,
        ],
        approximated(),
    );
    check_condition(
        "",
        "$arg_k = 1",
        &[
            "query = { k = \"1\" }",
            YES,
            "query = { K = \"1\" }",
            YES,
            NO,
        ],
        approximated(),
    );
    check_condition(
        "",
        "$request_uri = /x",
        &["path = \"=/x\"", YES, NO],
        approximated(),
    );
    check_condition(
        "",
        "$uri = /x",
        &["path = \"=/x\"", YES, NO],
        Outcome::Carried,
    );
}

/// Checks that the result for the inside of a server has the `expected` parts and not the `missing` ones.
#[track_caller]
fn check_text(server: &str, expected: &[&str], missing: &[&str]) -> Conversion {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let text = lines(&conversion).join("\n");
    for part in expected {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    for part in missing {
        assert!(!text.contains(part), "{part} is in\n{text}");
    }
    conversion
}

/// The routes of a server with this `if` and a forward after it.
fn forwards(condition: &str) -> Vec<String> {
    let text = format!(
        "http {{ server {{ if ({condition}) {{ return 403; }} location / {{ proxy_pass http://a; }} }} }}"
    );
    let conversion = converted(&text);
    let all = lines(&conversion);
    let routes = all.split(|line| *line == "[[route]]");
    let routes = routes.filter(|route| route.contains(&"forward = \"a\""));
    routes.map(|route| route.join("; ")).collect()
}

#[test]
fn parameter_deny_rule_ignores_name_case() {
    for condition in [
        "$arg_debug = 1",
        "$arg_debug ~ evil",
        "$arg_debug",
        "$arg_debug !~ ^[a-z]*$",
        "$arg_k = a+b",
        "$arg_k ~ a\\+b",
        "$arg_k ~ %3C",
    ] {
        assert_eq!(forwards(condition), Vec::<String>::new(), "{condition}");
    }
    for condition in ["$arg_k = evil", "$arg_debug != s", "$arg_debug = \"\""] {
        assert!(!forwards(condition).is_empty(), "{condition}");
    }
    let server = "if ($arg_k !~ ^[a-z]*$) { return 403; } location / { proxy_pass http://a; }";
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let text = lines(&conversion).join("; ");
    let routes: Vec<&str> = text.split("[[route]]; ").skip(1).collect();
    let refused = "query = { K = \"~(?-u)[^0]|0\" }; respond = { status = 403 }; ";
    assert_eq!(routes[0], refused, "{routes:?}");
    let last = routes.last().expect("a route");
    assert!(last.starts_with("respond = { status = 403 }"), "{routes:?}");
    for route in &routes[1..routes.len() - 1] {
        assert!(route.contains("query = { k = "), "{route}");
    }
}

#[test]
fn unknown_refusal_conditions_refuse_all_requests() {
    for guard in [
        "secure_link $arg_md5; if ($secure_link = \"\") { return 403; }",
        "valid_referers none server_names; if ($invalid_referer) { return 403; }",
        "valid_referers none server_names; if ($invalid_referer) { rewrite ^ /no.png last; }",
        "if ($ssl_client_verify != SUCCESS) { return 302 https://login; }",
        "if ($geoip_country_code = XX) { return 444; }",
        "if ($http_x_key !~ (a)\\1) { return 403; }",
        "if (-f /etc/lock) { return 403; }",
        "set $no 0; if ($ssl_client_s_dn != x) { set $no 1; } if ($no) { return 403; }",
        "set $a 0; if ($ssl_client_s_dn != x) { set $a 1; } set $b \"$a\"; if ($b = 1) { return 403; }",
    ] {
        let server = format!("location / {{ {guard} proxy_pass http://a; }}");
        let conversion = check_text(&server, &["respond = { status = 403 }"], &["forward ="]);
        assert!(!conversion.is_complete(), "{guard}");
        let text = format!("http {{ server {{ {server} }} }}");
        let files = MemoryFiles(vec![("/n.conf", text)]);
        let open = convert(&files, Path::new("/n.conf"), Path::new("/"), Guards::Open);
        let open = open.expect("it is nginx's language");
        assert!(open.text.contains("forward ="), "{}", open.text);
    }
}

#[test]
fn unknown_harmless_conditions_are_omitted() {
    for rule in [
        "if (!-f $request_filename) { return 404; }",
        "if (-f /maintenance) { return 503; }",
        "if ($http_user_agent ~ (a)\\1) { return 301 https://m.example.org; }",
        "if ($geoip_country_code = XX) { set $x 1; } set $x 0; if ($x) { return 403; }",
    ] {
        let server = format!("location / {{ {rule} proxy_pass http://a; }}");
        check_text(&server, &["forward ="], &["status = 403"]);
    }
}

#[test]
fn access_modules_refuse_all_requests() {
    for rule in [
        "auth_jwt realm; auth_jwt_key_file /k;",
        "auth_pam realm;",
        "auth_request /auth;",
        "access_by_lua_block { ngx.exit(403) }",
        "modsecurity on;",
        "auth_basic x; auth_basic_user_file $file;",
    ] {
        let server = format!("{rule} location / {{ proxy_pass http://a; }}");
        check_text(&server, &["respond = { status = 501 }"], &["forward ="]);
    }
    let open =
        "auth_jwt off; auth_jwt_key_file /k; modsecurity off; location / { proxy_pass http://a; }";
    check_text(open, &["forward ="], &["501"]);
}

#[test]
fn unmatchable_protected_locations_refuse() {
    let auth = "auth_basic x; auth_basic_user_file /p;";
    check_text(
        &format!("location / {{ proxy_pass http://a; }} location ~ ^/(a)\\1/ {{ {auth} }}"),
        &["path = \"~^/(a)(?s-u:.*)/\"\nrespond = { status = 403 }"],
        &["basic_auth"],
    );
    check_text(
        &format!(
            "location / {{ proxy_pass http://a; }} location ~ ^/u/ {{ location ~ x$ {{ {auth} }} }}"
        ),
        &["respond = { status = 403 }"],
        &["basic_auth"],
    );
    check_text(
        "location / { proxy_pass http://a; } location ~ ^/(a)\\1/ { expires 1h; }",
        &["forward ="],
        &["403"],
    );
}

#[test]
fn unknown_content_handler_serves_no_files() {
    for handler in [
        "js_content main.hello;",
        "echo hi;",
        "perl x::handler;",
        "redis2_pass a;",
        "nchan_publisher;",
        "content_by_lua_block { ngx.say(1) }",
        "hls;",
    ] {
        let server = format!(
            "root /w; location /x {{ {handler} }} location / {{ more_set_headers a; brotli on; }}"
        );
        check_text(
            &server,
            &["path = \"/x\"\nrespond = { status = 501 }", "files ="],
            &[],
        );
    }
}

#[test]
fn unsupported_field_value_removes_field() {
    check_text(
        "location / { proxy_pass http://a; proxy_set_header X-User $jwt_user; proxy_set_header Host $jwt_host; proxy_set_header X-Server $upstream_addr; }",
        &["set = { Host = \"a\" }, remove = [\"X-User\", \"X-Server\"]"],
        &[],
    );
}

/// The `tls` of servers with these directives, and the conversion.
#[track_caller]
fn tls_of(servers: &[&str]) -> (String, Conversion) {
    let servers: String = servers
        .iter()
        .map(|server| {
            format!("server {{ listen 443 ssl; ssl_certificate /c; ssl_certificate_key /k; return 204; {server} }}")
        })
        .collect();
    let conversion = converted(&format!("http {{ {servers} }}"));
    let all = lines(&conversion);
    let tls = all.iter().find(|line| line.starts_with("tls = "));
    let tls = tls
        .expect("it speaks TLS")
        .replace("tls = { certificate = \"/c\", key = \"/k\"", "");
    (tls, conversion)
}

#[test]
fn client_certificate_rules_are_per_server() {
    let a = "server_name a.org; ssl_verify_client optional; ssl_client_certificate /a;";
    let b = "server_name b.org; ssl_verify_client on; ssl_client_certificate /b; ssl_crl /l;";
    let (tls, conversion) = tls_of(&[a, b, "server_name c.org;"]);
    assert_eq!(
        tls,
        ", client_ca = \"/a\", client_certificates = \"optional\", names = [{ host = \"b.org\", client_ca = \"/b\", client_crl = \"/l\", client_certificates = \"required\" }, { host = \"c.org\" }] }"
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
    let (tls, _) = tls_of(&["server_name c.org;", b, "server_name d.org;"]);
    assert_eq!(
        tls,
        ", names = [{ host = \"b.org\", client_ca = \"/b\", client_crl = \"/l\", client_certificates = \"required\" }] }"
    );
    let (tls, _) = tls_of(&[
        "server_name c.org;",
        &b.replace("b.org", "*.b.org"),
        "server_name x.b.org;",
    ]);
    assert!(tls.contains("{ host = [\"c.org\", \"x.b.org\"] }"), "{tls}");
    let (tls, _) = tls_of(&[b, &b.replace("b.org", "c.org")]);
    assert!(!tls.contains("names"), "{tls}");
    let (tls, _) = tls_of(&["ssl_verify_client on; ssl_trusted_certificate /t;"]);
    assert_eq!(
        tls,
        ", client_ca = \"/t\", client_certificates = \"required\" }"
    );
}

#[test]
fn unsupported_client_certificate_rule_refuses() {
    let on = "ssl_verify_client on; ssl_client_certificate /b;";
    let (tls, conversion) = tls_of(&["server_name c.org;", &format!("server_name ~^b; {on}")]);
    assert_eq!(tls, " }");
    assert!(
        conversion.text.contains("status = 403"),
        "{}",
        conversion.text
    );
    assert!(!conversion.is_complete());
    check_text(
        &format!("{on} ssl_ocsp on; root /w;"),
        &["respond = { status = 501 }"],
        &["files ="],
    );
    let text = format!(
        "http {{ server {{ listen 443 ssl; {on} location / {{ if ($ssl_client_verify != SUCCESS) {{ return 403; }} root /w; }} }} }}"
    );
    let conversion = converted(&text);
    assert!(
        !lines(&conversion).join("\n").contains("403"),
        "{}",
        conversion.text
    );
}

#[test]
fn unsupported_upstream_crl_refuses_requests() {
    for module in ["proxy_pass https", "grpc_pass grpcs"] {
        let name = module.split('_').next().unwrap_or_default();
        let text = format!(
            "http {{ server {{ location / {{ {module}://a; {name}_ssl_verify on; {name}_ssl_crl /crl; }} }} }}"
        );
        let conversion = converted(&text);
        assert!(lines(&conversion).contains(&"respond = { status = 502 }"));
    }
}

#[test]
fn ssl_reject_handshake_refuses_requests() {
    let tls = "listen 443 ssl; ssl_certificate a; ssl_certificate_key b; ssl_reject_handshake on;";
    let text = |more: &str| converted(&format!("http {{ server {{ {tls} {more} }} }}")).text;
    let closed = text("root /w;");
    assert!(closed.contains("respond = { status = 421 }"), "{closed}");
    assert!(!closed.contains("files ="), "{closed}");
    let clear = text("listen 80; root /w;");
    assert!(clear.contains("files ="), "{clear}");
}
