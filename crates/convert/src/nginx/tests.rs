//! Conversion of whole configurations of nginx.

mod differences;
mod expressions;
mod grpc;
mod guards;
mod permission;
mod rewrites;

use super::*;
use crate::source::note::{Notes, Outcome};
use crate::written::{self, MemoryFiles, outcome, verified};

/// Runs a part of the conversion on these directives, as the inside of `http`.
pub(super) fn work_of<T>(
    text: &str,
    part: impl for<'a> FnOnce(&mut Context<'a>, &'a [Directive]) -> T,
) -> T {
    let files = MemoryFiles(vec![("/n.conf", text.to_owned())]);
    let tree = tree::read(&files, Path::new("/n.conf")).expect("it is nginx's language");
    let mut work = Context {
        files: &files,
        notes: Notes::default(),
        routes: Vec::new(),
        groups: Groups::default(),
        timeouts: Timeouts::default(),
        log: AccessLog::default(),
        maps: tree.directives.iter().filter_map(Map::of).collect(),
        http: &tree.directives,
        trusted: Vec::new(),
        prefix: PathBuf::from("/etc/nginx"),
        forwards_clients: false,
        passes: None,
        unverified: Vec::new(),
        uncertain: Vec::new(),
        budget: Budget::default(),
        guards: Guards::Closed,
    };
    part(&mut work, &tree.directives)
}

fn converted_files(mut files: Vec<(&'static str, String)>) -> Result<Conversion, InputError> {
    files.push(("/usr/share/nginx/html/index.html", String::new()));
    let path = Path::new("/etc/nginx/nginx.conf");
    convert(
        &MemoryFiles(files),
        path,
        Path::new("/usr/share/nginx"),
        Guards::Closed,
    )
}

/// Converts a configuration and checks that Onrush accepts the result.
#[track_caller]
fn converted(text: &str) -> Conversion {
    let conversion = converted_files(vec![("/etc/nginx/nginx.conf", text.to_owned())]);
    let conversion = conversion.expect("it is nginx's language");
    verified(conversion)
}

/// Lines of the result without comments, the route for TRACE, and default keys.
fn lines(conversion: &Conversion) -> Vec<&str> {
    let usual = format!("upstream_headers = {}", hidden::usual());
    let mut lines: Vec<&str> = written::lines(conversion)
        .filter(|line| *line != "request_body_max = \"1m\"")
        .filter(|line| *line != usual)
        .collect();
    let trace = lines.iter().position(|line| *line == "method = \"TRACE\"");
    let trace = trace.expect("a route that refuses TRACE");
    lines.drain(trace - 1..trace + 2);
    lines
}

/// Checks the lines of the result for the inside of a server, after `[[listen]]`.
#[track_caller]
fn check(server: &str, expected: &[&str]) {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let lines = lines(&conversion);
    assert_eq!(lines[..2], ["[[listen]]", "address = \"0.0.0.0:80\""]);
    assert_eq!(&lines[2..], expected, "{server}");
}

#[test]
fn root_and_alias_become_file_routes() {
    check(
        "root /srv/www; index index.htm index.html; location / { try_files $uri $uri/ =404; }
         location /i/ { alias /data/images/; }",
        &[
            "[[route]]",
            "path = \"/i/\"",
            "files = { root = \"/data/images/\", index = [\"index.htm\", \"index.html\"], hidden = true }",
            "[[route]]",
            "path = \"/\"",
            "files = { root = \"/srv/www\", index = [\"index.htm\", \"index.html\"], hidden = true }",
        ],
    );
}

#[test]
fn proxy_pass_preserves_request() {
    check(
        "location /api/ { proxy_pass http://app:8000/v1/; proxy_set_header X-Real-IP $remote_addr; }",
        &[
            "[forwarded]",
            "send = \"none\"",
            "[[route]]",
            "path = \"=/api\"",
            "redirect = { to = \"/api/?{query}\", status = 301 }",
            "[[route]]",
            "path = \"/api/\"",
            "strip_prefix = true",
            "replace_prefix = \"/v1/\"",
            "request_headers = { set = { Host = \"app:8000\", X-Real-IP = \"{client.address}\" } }",
            "forward = \"app_8000\"",
            "[[route]]",
            "files = { root = \"/usr/share/nginx/html\", hidden = true }",
            "[upstream.app_8000]",
            "servers = [\"app:8000\"]",
        ],
    );
}

#[test]
fn error_page_and_try_files_are_converted() {
    check(
        "root /srv; error_page 404 /404.html; error_page 500 502 /50x.html; location = /50x.html { root /pages; }
         location / { try_files $uri $uri/ /index.html; client_max_body_size 8m; }
         location /files/ { autoindex on; } location = /icon { alias /srv/icon.png; }",
        &[
            "[[route]]",
            "path = '~^/50x\\.html\\z'",
            "error_pages = { 404 = \"/srv/404.html\", 500 = \"/pages/50x.html\", 502 = \"/pages/50x.html\" }",
            "files = { root = \"/pages\", hidden = true }",
            "[[route]]",
            "path = \"=/icon\"",
            "error_pages = { 404 = \"/srv/404.html\", 500 = \"/pages/50x.html\", 502 = \"/pages/50x.html\" }",
            "respond = { status = 200, file = \"/srv/icon.png\" }",
            "[[route]]",
            "path = \"~^/files/\"",
            "error_pages = { 404 = \"/srv/404.html\", 500 = \"/pages/50x.html\", 502 = \"/pages/50x.html\" }",
            "files = { root = \"/srv\", hidden = true, listing = true }",
            "[[route]]",
            "path = \"/\"",
            "error_pages = { 404 = \"/srv/404.html\", 500 = \"/pages/50x.html\", 502 = \"/pages/50x.html\" }",
            "request_body_max = \"8m\"",
            "files = { root = \"/srv\", hidden = true, fallback = \"index.html\" }",
        ],
    );
}

#[test]
fn negated_condition_becomes_separate_routes() {
    check(
        "if ($host != \"www.a.org\") { return 301 https://www.a.org$request_uri; } return 200 ok;",
        &[
            "[[route]]",
            "host = \"www.a.org\"",
            "respond = { status = 200, body = \"ok\", headers = { Content-Type = \"text/plain\" } }",
            "[[route]]",
            "redirect = { to = \"https://www.a.org{uri}\", status = 301 }",
        ],
    );
    check(
        "location / { if ($request_method = OPTIONS) { add_header X-A b; return 204; } return 403; }",
        &[
            "[[route]]",
            "path = \"/\"",
            "method = \"OPTIONS\"",
            "response_headers = { add = { X-A = \"b\" } }",
            "respond = { status = 204 }",
            "[[route]]",
            "path = \"/\"",
            "respond = { status = 403 }",
        ],
    );
}

#[test]
fn map_becomes_routes() {
    let text = "http { map $uri $new { /old /new; ~^/x /y; }
        server { if ($new) { return 301 $new; } return 404; } }";
    let conversion = converted(text);
    assert_eq!(
        lines(&conversion)[2..],
        [
            "[[route]]",
            "path = '~(?i-u)^/old\\n?$'",
            "redirect = { to = \"/new\", status = 301 }",
            "[[route]]",
            "path = \"~^/x\"",
            "redirect = { to = \"/y\", status = 301 }",
            "[[route]]",
            "respond = { status = 404 }",
        ]
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn rewrites_become_redirects_or_prefix_changes() {
    check(
        "rewrite ^/old/(.*)$ /new/$1? permanent; rewrite ^ https://$host$request_uri? permanent;",
        &[
            "[[route]]",
            "path = \"/old/\"",
            "redirect = { to = \"/new/{path.rest}\", status = 301 }",
            "[[route]]",
            "redirect = { to = \"https://{host.name}{uri}\", status = 301 }",
        ],
    );
    check(
        "rewrite ^/(.*)$ https://b.org/$1 redirect;",
        &["[[route]]", "redirect = \"https://b.org{uri}\""],
    );
    check(
        "location /api { rewrite ^/api/(.*)$ /$1 break; proxy_pass http://b; proxy_set_header Host $http_host;
         proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } location / { return 404; }",
        &[
            "[[route]]",
            "path = \"/api/\"",
            "strip_prefix = true",
            "forward = \"b\"",
            "[[route]]",
            "path = \"/api\"",
            "forward = \"b\"",
            "[[route]]",
            "path = \"/\"",
            "respond = { status = 404 }",
            "[upstream.b]",
            "servers = [\"b:80\"]",
        ],
    );
}

#[test]
fn upstream_is_converted_with_server_options() {
    let text = "http { upstream app { least_conn; server 10.0.0.1:8000 weight=5 max_fails=3 fail_timeout=30s;
        server 10.0.0.2:8000 backup; server 10.0.0.3:8000 down; keepalive 32; }
        server { location / { proxy_pass http://app; proxy_next_upstream error timeout http_502;
        proxy_connect_timeout 2s; proxy_read_timeout 30; } } }";
    let conversion = converted(text);
    let lines = lines(&conversion);
    assert_eq!(
        lines[lines.len() - 6..],
        [
            "[upstream.app]",
            "servers = [{ address = \"10.0.0.1:8000\", weight = 5 }, { address = \"10.0.0.2:8000\", backup = true }]",
            "balance = \"least_connections\"",
            "eject = { on = \"connections\", failures = 3, time = \"30s\" }",
            "connections_idle_max = 32",
            "retries = { on = [\"connect\", \"reset\", \"timeout\"], statuses = [502] }",
        ]
    );
    let timeouts = [
        "connect = \"2s\"",
        "upstream_body = \"30s\"",
        "upstream_first_byte = \"30s\"",
    ];
    assert!(
        timeouts.iter().all(|line| lines.contains(line)),
        "{lines:?}"
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn servers_get_default_ports() {
    let conversion = converted(
        "http { upstream app { server 10.0.0.1; server 10.0.0.2:8443; server unix:/s; }
         server { location /a { proxy_pass https://app; } location /b { proxy_pass https://b.org; } } }",
    );
    for servers in [
        "servers = [\"10.0.0.1:80\", \"10.0.0.2:8443\", \"unix:/s\"]",
        "servers = [\"b.org:443\"]",
    ] {
        assert!(lines(&conversion).contains(&servers), "{}", conversion.text);
    }
}

#[test]
fn invalid_servers_are_omitted() {
    for (server, said) in [
        ("a..b", "\"a..b:80\" is not a server"),
        ("[::1", "\"[::1\" is not a server"),
        ("a:0", "server \"a:0\" has port 0"),
        ("a:99999", "\"a:99999\""),
    ] {
        let conversion = converted(&format!(
            "http {{ upstream app {{ server {server}; server b:1; }} server {{ location /a {{ proxy_pass http://app; }}
             location /b {{ proxy_pass http://{server}; }} }} }}"
        ));
        let lines = lines(&conversion);
        assert!(lines.contains(&"servers = [\"b:1\"]"), "{lines:?}");
        let refusal = ["path = \"/b\"", "respond = { status = 502 }"];
        assert!(lines.windows(2).any(|pair| pair == refusal), "{lines:?}");
        for directive in [
            format!("server {server}"),
            format!("proxy_pass http://{server}"),
        ] {
            let Outcome::LeftOut(why) = outcome(&conversion, &directive) else {
                panic!("{:?}", conversion.notes);
            };
            assert!(why.contains(said), "{why}");
        }
    }
    let conversion = converted("http { server { location / { proxy_pass http://$x; } } }");
    let why = "servers must be names or addresses, without variables; the response is 502";
    assert_eq!(
        outcome(&conversion, "proxy_pass"),
        Outcome::LeftOut(why.to_owned())
    );
}

#[test]
fn http_and_https_servers_are_distinguished_by_scheme() {
    let text = "http { server { listen 80; server_name a.org; return 301 https://$host$request_uri; }
        server { listen 443 ssl http2; server_name a.org; ssl_certificate a.pem; ssl_certificate_key /k/a.key;
        ssl_protocols TLSv1.3; location / { root /srv; } } }";
    let conversion = converted(text);
    assert_eq!(
        lines(&conversion),
        [
            "[[listen]]",
            "address = \"0.0.0.0:80\"",
            "[[listen]]",
            "address = \"0.0.0.0:443\"",
            "tls = { certificate = \"/usr/share/nginx/a.pem\", key = \"/k/a.key\", profile = \"modern\" }",
            "[[route]]",
            "scheme = \"http\"",
            "redirect = { to = \"https://{host.name}{uri}\", status = 301 }",
            "[[route]]",
            "path = \"/\"",
            "scheme = \"https\"",
            "files = { root = \"/srv\", hidden = true }",
        ]
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn access_rules_are_converted() {
    let text = "http { limit_req_zone $binary_remote_addr zone=one:10m rate=10r/s;
        server { location / { allow 10.0.0.0/8; deny all; auth_basic \"staff only\"; auth_basic_user_file conf/htpasswd;
        limit_req zone=one burst=20 nodelay; root /srv; }
        location /x { deny 192.0.2.1; allow all; return 200; } } }";
    let conversion = converted(text);
    assert_eq!(
        lines(&conversion)[2..],
        [
            "[[route]]",
            "path = \"/x\"",
            "respond = { status = 200 }",
            "[[route]]",
            "path = \"/\"",
            "allow = \"10.0.0.0/8\"",
            "basic_auth = { realm = \"staff only\", file = \"/usr/share/nginx/conf/htpasswd\" }",
            "rate_limit = { requests = \"10/s\", burst = 20 }",
            "files = { root = \"/srv\", hidden = true }",
        ]
    );
}

#[test]
fn omitted_directives_are_reported_with_position() {
    let conversion = converted(
        "http {\n server {\n  location ~ \\.php$ { fastcgi_pass unix:/run/php.sock; }\n  frobnicate on;\n } }",
    );
    assert!(!conversion.is_complete());
    let said = |name: &str| {
        let note = conversion
            .notes
            .iter()
            .find(|note| note.directive.starts_with(name));
        note.expect("it is said").to_string()
    };
    assert_eq!(
        said("fastcgi_pass"),
        "/etc/nginx/nginx.conf:3: left out: fastcgi_pass unix:/run/php.sock: Onrush has no equivalent; the response is 501"
    );
    assert_eq!(
        said("frobnicate"),
        "/etc/nginx/nginx.conf:4: left out: frobnicate on: no equivalent in Onrush, or unknown to the converter"
    );
}

#[test]
fn limit_except_rules_become_method_routes() {
    check(
        "location /a/ { limit_except GET { allow 10.0.0.0/8; deny all; } proxy_pass http://app; }
         location / { limit_except PUT POST { deny all; } root /srv; }",
        &[
            "[forwarded]",
            "send = \"none\"",
            "[[route]]",
            "path = \"=/a\"",
            "redirect = { to = \"/a/?{query}\", status = 301 }",
            "[[route]]",
            "path = \"/a/\"",
            "method = [\"GET\", \"HEAD\"]",
            "request_headers = { set = { Host = \"app\" } }",
            "forward = \"app\"",
            "[[route]]",
            "path = \"/a/\"",
            "allow = \"10.0.0.0/8\"",
            "request_headers = { set = { Host = \"app\" } }",
            "forward = \"app\"",
            "[[route]]",
            "path = \"/\"",
            "method = [\"PUT\", \"POST\"]",
            "files = { root = \"/srv\", hidden = true }",
            "[[route]]",
            "path = \"/\"",
            "deny = [\"0.0.0.0/0\", \"::/0\"]",
            "files = { root = \"/srv\", hidden = true }",
            "[upstream.app]",
            "servers = [\"app:80\"]",
        ],
    );
}

#[test]
fn expires_map_becomes_cache_control_by_type() {
    let conversion = converted(
        "http { map $sent_http_content_type $long { default off; text/html epoch; ~image/ max; ~*(text/css|application/javascript) 1h; }
         server { location /a/ { expires $long; root /srv; } location /b/ { expires 7d; proxy_pass http://app; }
         location /c/ { expires 1h; add_header Cache-Control public; root /srv; } location /d { expires $long; return 302 /a/; } } }",
    );
    for line in [
        "cache_control = [{ status = \"2xx\", type = \"text/html\", value = \"no-cache\" }, { status = \"2xx\", type = \"image/*\", value = \"max-age=315360000\" }, { status = \"2xx\", type = [\"text/css\", \"application/javascript\", \"text/javascript\"], value = \"max-age=3600\" }]",
        "cache_control = { status = [\"2xx\", \"3xx\"], value = \"max-age=604800\", replace = true }",
        "response_headers = { add = { Cache-Control = [\"public\", \"max-age=3600\"] } }",
        "cache_control = { status = [\"2xx\", \"3xx\"], value = \"no-cache\" }",
    ] {
        assert!(
            lines(&conversion).contains(&line),
            "{line} in {}",
            conversion.text
        );
    }
    assert!(conversion.is_complete());
}

#[test]
fn types_without_rule_get_no_cache_control() {
    let conversion = converted(
        "http { map $sent_http_content_type $long { default 1y; \"\" off; text/html off; image/png 1h; }
         server { expires $long; root /srv; } }",
    );
    let rule =
        "cache_control = { status = \"2xx\", type = \"image/png\", value = \"max-age=3600\" }";
    assert!(lines(&conversion).contains(&rule), "{}", conversion.text);
    let Outcome::Approximated(how) = outcome(&conversion, "expires") else {
        panic!("not all of it is said");
    };
    assert!(how.contains("get no Cache-Control"), "{how}");
}

#[test]
fn return_text_has_type_of_path() {
    let conversion = converted(
        "http { types { text/plain txt; } default_type application/octet-stream;
         server { location = /robots.txt { return 200 x; } location /b { return 200 y; } } }",
    );
    for line in [
        "respond = { status = 200, body = \"x\", headers = { Content-Type = \"text/plain\" } }",
        "respond = { status = 200, body = \"y\", headers = { Content-Type = \"application/octet-stream\" } }",
    ] {
        assert!(lines(&conversion).contains(&line), "{line}");
    }
    assert!(matches!(
        outcome(&conversion, "types"),
        Outcome::Approximated(_)
    ));
}

#[test]
fn server_port_is_constant_for_single_listener() {
    let conversion = converted(
        "http { server { listen 8080; location / { proxy_pass http://app; proxy_set_header X-Forwarded-Port $server_port; } } }",
    );
    let fields = "request_headers = { set = { Host = \"app\", X-Forwarded-Port = \"8080\" } }";
    assert!(lines(&conversion).contains(&fields), "{}", conversion.text);
}

#[test]
fn both_javascript_media_types_are_compressed() {
    let conversion =
        converted("http { server { gzip on; gzip_types application/javascript; root /srv; } }");
    let types = "types = [\"text/html\", \"application/javascript\", \"text/javascript\"]";
    assert!(conversion.text.contains(types), "{}", conversion.text);
}

#[test]
fn rewrite_strips_prefix() {
    let conversion = converted(
        "http { server { location ^~ /app/ { rewrite /app(.*) $1 break; proxy_pass http://app; }
         location /app/api { rewrite ^/app(.*)$ $1 break; proxy_pass http://app; } } }",
    );
    let lines = lines(&conversion);
    let is_there = |part: &[&str]| lines.windows(part.len()).any(|lines| lines == part);
    assert!(
        is_there(&["path = \"/app/\"", "strip_prefix = true"]),
        "{lines:?}"
    );
    let longer = [
        "path = \"/app/api\"",
        "strip_prefix = true",
        "replace_prefix = \"/api\"",
    ];
    assert!(is_there(&longer), "{lines:?}");
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
}

#[test]
fn absent_request_header_is_not_sent_empty() {
    let conversion = converted(
        "http { server { location / { proxy_pass http://app; proxy_set_header Range $http_range; proxy_set_header X-A $http_b; } } }",
    );
    let fields = "request_headers = { set = { Host = \"app\", X-A = \"{header:B}\" } }";
    assert!(lines(&conversion).contains(&fields), "{}", conversion.text);
    assert!(matches!(
        outcome(&conversion, "proxy_set_header X-A"),
        Outcome::Approximated(_)
    ));
}

#[test]
fn unmatchable_deny_rule_refuses_requests() {
    // `a|^/b` cannot be combined in one regular expression with the `if` condition or with a prefix.
    let conversion = converted(
        "http { server { root /srv; if ($uri ~ x$) { set $a 1; } location ~ a|^/b { deny all; } location / { } } }",
    );
    let Outcome::Approximated(how) = outcome(&conversion, "location ~ a|^/b") else {
        panic!("{:?}", conversion.notes);
    };
    assert!(how.contains("are refused"), "{how}");
    let lines = lines(&conversion);
    let refusal = ["path = \"~a|^/b\"", "respond = { status = 403 }"];
    assert!(lines.windows(2).any(|part| part == refusal), "{lines:?}");
}

#[test]
fn unsupported_rewrite_does_not_restrict_locations() {
    let conversion = converted(
        "http { server { root /srv; rewrite /info/ /info.php; location ~ a$ { deny all; } location / { } } }",
    );
    assert!(matches!(
        outcome(&conversion, "rewrite"),
        Outcome::LeftOut(_)
    ));
    assert_eq!(outcome(&conversion, "location ~ a$"), Outcome::Carried);
}

#[test]
fn auth_request_refuses_all_requests() {
    let conversion = converted(
        "http {\n server {\n  auth_request /check;\n  location / { proxy_pass http://app; }\n  location /open { auth_request off; return 200 a; }\n } }",
    );
    assert!(lines(&conversion).contains(&"respond = { status = 501 }"));
    assert!(
        !lines(&conversion)
            .iter()
            .any(|line| line.starts_with("forward"))
    );
    assert!(matches!(
        outcome(&conversion, "auth_request"),
        Outcome::LeftOut(_)
    ));
}

#[test]
fn servers_are_distinguished_by_listener() {
    let conversion = converted(
        "http { server { listen 80; return 200 a; } server { listen 127.0.0.1:8081; listen 127.0.0.2:8081; return 200 b; } }",
    );
    assert!(matches!(
        outcome(&conversion, "listen 127"),
        Outcome::Carried
    ));
    let lines = lines(&conversion);
    for listener in [
        "listener = \"0.0.0.0:80\"",
        "listener = [\"127.0.0.1:8081\", \"127.0.0.2:8081\"]",
    ] {
        assert!(lines.contains(&listener), "{lines:?}");
    }
}

#[test]
fn access_log_is_converted_per_location() {
    let conversion = converted(
        "http { access_log /var/log/nginx/access.log; server { location / { return 200; }
         location /quiet/ { access_log off; return 200; } } }",
    );
    let log = "access = \"/var/log/nginx/access.log\"";
    let lines = lines(&conversion);
    assert!(
        lines.contains(&"[log]") && lines.contains(&log),
        "{lines:?}"
    );
    let quiet = ["path = \"/quiet/\"", "log = false"];
    assert!(lines.windows(2).any(|pair| pair == quiet), "{lines:?}");
    let conversion = converted("http { access_log off; server { return 200; } }");
    assert!(!conversion.text.contains("log"), "{}", conversion.text);
}

#[test]
fn includes_are_sorted_by_name() {
    let files = vec![
        (
            "/etc/nginx/nginx.conf",
            "http { include sites/*; include mime.types; }".to_owned(),
        ),
        (
            "/etc/nginx/sites/b",
            "server { server_name b.org; return 200 b; }".to_owned(),
        ),
        (
            "/etc/nginx/sites/a",
            "server { server_name a.org; return 200 a; }".to_owned(),
        ),
    ];
    let conversion = converted_files(files).expect("it is nginx's language");
    let lines = lines(&conversion);
    assert_eq!(
        lines[2..5],
        [
            "[[route]]",
            "host = \"b.org\"",
            "respond = { status = 200, body = \"b\", headers = { Content-Type = \"text/plain\" } }"
        ]
    );
    assert!(conversion.is_complete(), "{:?}", conversion.notes);
    let circle = vec![("/etc/nginx/nginx.conf", "include nginx.conf;".to_owned())];
    let said = converted_files(circle)
        .expect_err("it has no end")
        .to_string();
    assert_eq!(
        said,
        "/etc/nginx/nginx.conf:1: too many nested includes: expected at most 16"
    );
}

#[test]
fn syntax_errors_have_position() {
    for (text, expected) in [
        (
            "http {\n server {",
            "/etc/nginx/nginx.conf:2: the file ends inside the block that starts in line 2: expected \"}\"",
        ),
        (
            "http { listen 80 }",
            "/etc/nginx/nginx.conf:1: \"}\" after \"listen\": expected \";\"",
        ),
        (
            "http {}\n}",
            "/etc/nginx/nginx.conf:2: unexpected \"}\": expected a directive",
        ),
        (
            ";",
            "/etc/nginx/nginx.conf:1: \";\" without a directive before it",
        ),
        (
            "http",
            "/etc/nginx/nginx.conf:1: the file ends after \"http\": expected \";\" or \"{\"",
        ),
        (
            "hello world;",
            "/etc/nginx/nginx.conf: not an nginx configuration: expected http { … } or server { … }",
        ),
        (
            "",
            "/etc/nginx/nginx.conf: not an nginx configuration: expected http { … } or server { … }",
        ),
    ] {
        let files = vec![("/etc/nginx/nginx.conf", text.to_owned())];
        let said = converted_files(files).expect_err("it is none").to_string();
        assert_eq!(said, expected, "{text:?}");
    }
    let deep = "a {".repeat(40);
    let files = vec![("/etc/nginx/nginx.conf", deep)];
    let said = converted_files(files)
        .expect_err("it is too deep")
        .to_string();
    assert!(said.contains("too many nested blocks"), "{said}");
}

#[test]
fn default_prefix_follows_configuration_path() {
    for (path, prefix) in [
        ("/usr/local/nginx/conf/nginx.conf", "/usr/local/nginx"),
        ("/etc/nginx/nginx.conf", "/etc/nginx"),
        ("nginx.conf", ""),
    ] {
        assert_eq!(default_prefix(Path::new(path)), Path::new(prefix));
    }
}

#[test]
fn worker_user_is_converted() {
    let server = "http { server { listen 80; location / { return 204; } } }";
    let process = |text: &str| {
        let conversion = converted(&format!("{text} {server}"));
        let lines = lines(&conversion);
        let its = lines.iter().skip_while(|line| **line != "[process]");
        let its = its.take_while(|line| !line.starts_with("[["));
        let its: Vec<String> = its.map(|line| (*line).to_owned()).collect();
        (its, conversion)
    };
    for (text, expected) in [
        (
            "user www-data;",
            &["[process]", "user = \"www-data\"", "group = \"www-data\""][..],
        ),
        (
            "user nobody nogroup;",
            &["[process]", "user = \"nobody\"", "group = \"nogroup\""],
        ),
    ] {
        let (its, conversion) = process(text);
        assert_eq!(its, expected, "{text}");
        assert_eq!(outcome(&conversion, "user"), Outcome::Carried);
        assert!(!conversion.text.contains("without [process] user"));
    }
    let (its, conversion) = process("user root;");
    assert!(its.is_empty());
    let said = outcome(&conversion, "user");
    assert!(matches!(said, Outcome::WithoutEffect(_)), "{said:?}");
    let comment = "# The workers of nginx run as root: without [process] user the server keeps the privileges";
    assert!(conversion.text.contains(comment), "{}", conversion.text);
    let (its, conversion) = process("user \"a b\";");
    assert!(its.is_empty());
    let said = outcome(&conversion, "user");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
    let (its, conversion) = process("");
    assert!(its.is_empty());
    let comment = "chosen at build time: without [process] user the server keeps the privileges";
    assert!(conversion.text.contains(comment), "{}", conversion.text);
    let alone = converted("server { listen 80; return 204; }");
    assert!(!alone.text.contains("[process]"), "{}", alone.text);
}
