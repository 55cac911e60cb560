//! Whole configurations of nginx, and what becomes of them.

mod permission;

use super::*;
use crate::note::{Note, Notes, Outcome};

/// Files that are not on a disk.
struct Written(Vec<(&'static str, String)>);

impl Files for Written {
    fn read(&self, path: &Path) -> Result<String, String> {
        let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
        found
            .map(|(_, text)| text.clone())
            .ok_or_else(|| "No such file".to_owned())
    }

    fn list(&self, directory: &Path) -> Vec<String> {
        let inside = self.0.iter().filter_map(|(name, _)| {
            let path = Path::new(name);
            (path.parent() == Some(directory)).then(|| path.file_name())?
        });
        inside
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

/// What a part of the conversion makes of these directives, as the inside of `http`.
pub(super) fn work_of<T>(
    text: &str,
    part: impl for<'a> FnOnce(&mut Work<'a>, &'a [Directive]) -> T,
) -> T {
    let files = Written(vec![("/n.conf", text.to_owned())]);
    let tree = tree::read(&files, Path::new("/n.conf")).expect("it is nginx's language");
    let mut work = Work {
        notes: Notes::default(),
        routes: Vec::new(),
        groups: Groups::default(),
        timeouts: Timeouts::default(),
        log: AccessLog::default(),
        maps: tree.directives.iter().filter_map(Map::of).collect(),
        http: &tree.directives,
        prefix: PathBuf::from("/etc/nginx"),
        forwards_clients: false,
        budget: Budget::default(),
    };
    part(&mut work, &tree.directives)
}

fn converted_files(files: Vec<(&'static str, String)>) -> Result<Conversion, Unusable> {
    let path = Path::new("/etc/nginx/nginx.conf");
    convert(&Written(files), path, Path::new("/usr/share/nginx"))
}

/// A configuration whose result is one of Onrush.
#[track_caller]
fn converted(text: &str) -> Conversion {
    let conversion = converted_files(vec![("/etc/nginx/nginx.conf", text.to_owned())]);
    let conversion = conversion.expect("it is nginx's language");
    if let Err(defect) = conversion.verify() {
        panic!("{}\n{defect}", conversion.text);
    }
    conversion
}

/// The result without comments and empty lines.
fn lines(conversion: &Conversion) -> Vec<&str> {
    let lines = conversion.text.lines();
    let lines = lines.map(|line| line.split("    # ").next().unwrap_or(line));
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .filter(|line| *line != "request_body_max = \"1m\"")
        .collect()
}

/// That a server's inside becomes these lines, without those of `[[listen]]`.
#[track_caller]
fn check(server: &str, expected: &[&str]) {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let lines = lines(&conversion);
    assert_eq!(lines[..2], ["[[listen]]", "address = \"0.0.0.0:80\""]);
    assert_eq!(&lines[2..], expected, "{server}");
}

/// What was said of a directive that begins so.
#[track_caller]
fn outcome(conversion: &Conversion, directive: &str) -> Outcome {
    let is_it = |note: &&Note| note.directive.starts_with(directive);
    let note = conversion.notes.iter().find(is_it);
    note.unwrap_or_else(|| panic!("nothing is said of {directive}"))
        .outcome
        .clone()
}

#[test]
fn files_beneath_a_root() {
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
fn a_server_behind_nginx_sees_what_it_saw() {
    check(
        "location /api/ { proxy_pass http://app:8000/v1/; proxy_set_header X-Real-IP $remote_addr; }",
        &[
            "[forwarded]",
            "send = \"none\"",
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
fn what_is_there_instead_of_a_file() {
    check(
        "root /srv; error_page 404 /404.html; error_page 500 502 /50x.html; location = /50x.html { root /pages; }
         location / { try_files $uri $uri/ /index.html; client_max_body_size 8m; }
         location /files/ { autoindex on; } location = /icon { alias /srv/icon.png; }",
        &[
            "[[route]]",
            "path = '~^/50x\\.html$'",
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
fn conditions_divide_requests() {
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
fn a_map_is_as_many_routes_as_it_has_values() {
    let text = "http { map $uri $new { /old /new; ~^/x /y; }
        server { if ($new) { return 301 $new; } return 404; } }";
    let conversion = converted(text);
    assert_eq!(
        lines(&conversion)[2..],
        [
            "[[route]]",
            "path = \"~(?i)^/old$\"",
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
fn rewrites_are_redirects_or_change_the_prefix() {
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
fn an_upstream_is_a_group() {
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
fn http_and_https_are_told_apart_by_their_scheme() {
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
fn who_is_let_in() {
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
fn what_is_left_out_is_said_with_its_place() {
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
        "/etc/nginx/nginx.conf:3: left out: fastcgi_pass unix:/run/php.sock: Onrush has nothing for this; the response is 501"
    );
    assert_eq!(
        said("frobnicate"),
        "/etc/nginx/nginx.conf:4: left out: frobnicate on: Onrush has nothing for it, or the converter does not know it"
    );
}

#[test]
fn a_refusal_that_is_not_carried_is_left_out_and_no_detail() {
    let conversion = converted(
        "http {\n server {\n  location / {\n   limit_except GET { deny all; }\n   return 200 a;\n  }\n } }",
    );
    assert!(!conversion.is_complete());
    let left_out = |note: &&crate::note::Note| note.to_string().contains("left out: limit_except");
    assert!(conversion.notes.iter().any(|note| left_out(&note)));
}

#[test]
fn servers_on_other_addresses_are_told_apart_by_the_listener() {
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
fn requests_are_logged_where_nginx_logs_them() {
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
fn includes_are_read_in_the_order_of_their_names() {
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
        "/etc/nginx/nginx.conf:1: files include each other in a chain that is too long: expected at most 16"
    );
}

#[test]
fn what_is_no_configuration_is_said_with_its_place() {
    for (text, expected) in [
        (
            "http {\n server {",
            "/etc/nginx/nginx.conf:2: the file ends within the block that begins in line 2: expected \"}\"",
        ),
        (
            "http { listen 80 }",
            "/etc/nginx/nginx.conf:1: \"}\" behind \"listen\": expected \";\"",
        ),
        (
            "http {}\n}",
            "/etc/nginx/nginx.conf:2: \"}\" ends nothing: expected a directive",
        ),
        (
            ";",
            "/etc/nginx/nginx.conf:1: \";\" without a directive before it",
        ),
        (
            "http",
            "/etc/nginx/nginx.conf:1: the file ends behind \"http\": expected \";\" or \"{\"",
        ),
        (
            "hello world;",
            "/etc/nginx/nginx.conf: this is no configuration of nginx: expected http { … }, or server { … }",
        ),
        (
            "",
            "/etc/nginx/nginx.conf: this is no configuration of nginx: expected http { … }, or server { … }",
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
    assert!(said.contains("blocks within blocks are too many"), "{said}");
}

#[test]
fn prefixes_are_where_nginx_was_installed() {
    for (path, prefix) in [
        ("/usr/local/nginx/conf/nginx.conf", "/usr/local/nginx"),
        ("/etc/nginx/nginx.conf", "/etc/nginx"),
        ("nginx.conf", ""),
    ] {
        assert_eq!(default_prefix(Path::new(path)), Path::new(prefix));
    }
}

#[test]
fn the_workers_user_is_that_of_the_process() {
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
    let comment = "# Workers of nginx are root: without [process] user the server keeps the rights";
    assert!(conversion.text.contains(comment), "{}", conversion.text);
    let (its, conversion) = process("user \"a b\";");
    assert!(its.is_empty());
    let said = outcome(&conversion, "user");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
    let (its, conversion) = process("");
    assert!(its.is_empty());
    let comment = "where no user is named: without [process] user the server keeps the rights";
    assert!(conversion.text.contains(comment), "{}", conversion.text);
    let alone = converted("server { listen 80; return 204; }");
    assert!(!alone.text.contains("[process]"), "{}", alone.text);
}
