//! `onrush convert`: sends requests to nginx or HAProxy, then to Onrush with the converted configuration on the same
//! port. Both must respond the same.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::application::Application;
use crate::peer::peer;
use crate::program::{Finished, Program, Serve, TIMEOUT, run_onrush, until};

/// A request: its line, and header fields.
pub(crate) type Asked = (&'static str, &'static [&'static str]);

/// Response fields that must be equal.
const FIELDS: [&str; 7] = [
    "location",
    "content-type",
    "content-encoding",
    "cache-control",
    "www-authenticate",
    "x-a",
    "x-seen",
];

/// Request fields that the application must receive as before.
const APPLICATION_FIELDS: [&str; 4] = ["host", "x-real-ip", "x-seen", "accept"];

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound").port()
}

pub(crate) fn wait_for(program: &mut Program, port: u16) {
    until("a server of others", || {
        assert!(program.is_running(), "it has ended");
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
}

/// The compared parts of the response to a request.
pub(crate) fn ask(port: u16, (line, fields): Asked) -> String {
    let names_host = fields.iter().any(|field| field.starts_with("Host: "));
    let host = if names_host {
        ""
    } else {
        "Host: h.example\r\n"
    };
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    let request = format!("{line} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut response = Vec::new();
    // Do not shut down our side: nginx would treat that as the client's abort.
    stream.read_to_end(&mut response).expect("an end");
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status = status.expect("a status").to_owned();
    let mut kept = vec![status.clone()];
    // Error pages differ between servers.
    let is_own_page = status.starts_with(['3', '4', '5']);
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field");
        let name = name.to_ascii_lowercase();
        let is_of_page = matches!(&*name, "content-type" | "cache-control");
        if !FIELDS.contains(&&*name) || is_own_page && is_of_page {
            continue;
        }
        // nginx redirects to absolute URLs, and sends no charset.
        let value = value.replace(&format!("http://h.example:{port}"), "");
        let value = value.replace("http://h.example", "");
        let value = value.split("; charset").next().unwrap_or_default();
        let value = value.split(", charset").next().unwrap_or_default();
        kept.push(format!("{name}: {value}"));
    }
    kept[1..].sort_unstable();
    match body.split_once("HTTP/1.").filter(|_| body.contains("\r\n")) {
        // The request that the application received.
        Some((asked, _)) => {
            kept.push(asked.to_owned());
            let fields = body.lines().filter(|line| {
                let name = line.split(':').next().unwrap_or_default();
                APPLICATION_FIELDS.contains(&&*name.to_ascii_lowercase())
            });
            let mut fields: Vec<String> = fields.map(str::to_ascii_lowercase).collect();
            fields.sort_unstable();
            kept.extend(fields);
        }
        None if is_own_page || response.contains("\r\nContent-Encoding") => {}
        None => kept.push(body.to_owned()),
    }
    kept.join("\n")
}

/// Converts `file`, without anything left out.
fn convert(language: &str, file: &Path) -> Finished {
    let finished = run_onrush(&["convert", language, &file.display().to_string()]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    finished
}

/// Sends the requests to the other program, then to Onrush in its place, and compares. `check` warns of the routes with
/// the paths in `edits` and of nothing else: the edits may produce a path that an earlier route refuses, as in the
/// original.
pub(crate) fn compare(
    mut program: Program,
    (port, language): (u16, &str),
    directory: &TempDir,
    requests: &[Asked],
    edits: &[&str],
) {
    wait_for(&mut program, port);
    let before: Vec<String> = requests.iter().map(|asked| ask(port, *asked)).collect();
    drop(program);
    let written = convert(language, &directory.path().join("conf"));
    let result = directory.path().join("onrush.toml");
    fs::write(&result, &written.out).expect("it is ours");
    let result = result.display().to_string();
    let checked = run_onrush(&["check", &result]);
    let diagnostics = checked
        .err
        .lines()
        .filter_map(|line| line.strip_prefix(&*result));
    let found: Vec<&str> = diagnostics
        .map(|line| edited(line, &written.out).unwrap_or(line))
        .collect();
    assert_eq!(
        (checked.code, &found[..]),
        (Some(0), edits),
        "{}\n{}",
        checked.err,
        written.out
    );
    let serve = Serve::start(&["--config", &result]);
    assert_eq!(serve.address, format!("127.0.0.1:{port}"));
    for (asked, before) in requests.iter().zip(before) {
        assert_eq!(ask(port, *asked), before, "{asked:?} of\n{}", written.out);
    }
}

/// The path of a route, if this diagnostic (without its file) warns of the route's edit.
fn edited<'a>(line: &str, result: &'a str) -> Option<&'a str> {
    line.contains("warning: this [[route]] may rewrite a path")
        .then_some(())?;
    let number: usize = line.split(':').nth(1)?.parse().ok()?;
    let mut route = result.lines().skip(number);
    route.find_map(|line| line.strip_prefix("path = "))
}

/// The nginx configuration of the measurements of 2012, with common surroundings.
fn nginx_start(at: &str, port: u16) -> String {
    format!(
        "daemon off; master_process off; worker_processes 2; worker_rlimit_nofile 4096;
pid {at}/pid; error_log {at}/error.log;
events {{ use epoll; worker_connections 512; }}
http {{
    sendfile on; tcp_nopush on; keepalive_requests 100; open_file_cache max=100;
    access_log off; types_hash_max_size 2048; default_type application/octet-stream;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_prefer_server_ciphers on;
    types {{ text/html html htm; text/css css; text/plain txt; }}
    client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi;
    uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
    include {at}/sites/*.conf;
    server {{
        listen 127.0.0.1:{port} default_server backlog=128;
        root {at}/www; index index.html index.htm;
"
    )
}

const NGINX_SERVER: &str = r#"
        server_name _;
        gzip on; gzip_types text/css; gzip_min_length 100;
        if ($request_method = DELETE) { return 405; }
        if ($http_x_block) { return 403; }
        if ($moved) { return 301 $moved; }
        rewrite ^/r/(.*)$ /new/$1? permanent;
        location / { try_files $uri $uri/ =404; }
        location /staff { default_type text/plain; if ($staff = 0) { return 403; } return 200 staff; }
        location ^~ /q { default_type text/plain; return 200 "preferred\n"; }
        location /qpp { default_type text/plain; return 200 "app\n"; }
        location ~ \.(sql|bak)$ { return 403; }
        location ^~ /nested/ { default_type text/plain; location ~ \.secret$ { return 403; } return 200 nested; }
        location /key { default_type text/plain; if ($key != 1) { return 403; } return 200 key; }
        location /empty { default_type text/plain; if ($http_x_t = "") { return 403; } return 200 full; }
        location = /exact { default_type text/plain; return 200 "exact\n"; }
        location ^~ /preferred/ { default_type text/plain; return 200 "preferred\n"; }
        location ~ ^/nothing/.*\.txt$ { default_type text/plain; return 200 "expression\n"; }
        location /nothing/ { return 404; }
        location /old/ { return 302 https://new.example$request_uri; }
        location /aliased/ { alias $FILES/www/sub/; }
        location /cached/ { expires 1h; add_header X-A b; root $FILES/www; }
        location /api/ {
            proxy_pass http://app/v1/;
            proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_set_header X-Real-IP $remote_addr; proxy_set_header Accept "";
            add_header X-A relayed always;
        }
        location /host/ { proxy_pass http://app; proxy_set_header Host $http_host; proxy_read_timeout 30s; }
        location /application/ { root $FILES/www; try_files $uri /index.html; client_max_body_size 8k; }
        location /shell/ { root $FILES/www; try_files $uri /index.html =404; }
        location ~ ^/look/(?!open/|(a|b)c) { return 403; }
        location /look/ { default_type text/plain; return 200 look; }
        location /open/shut/ { deny all; }
        location ~ /shut\.d/ { return 403; }
        location /reading/ { limit_except GET { deny all; } proxy_pass http://app; proxy_set_header X-Seen $server_port; }
        location = /robots.txt { return 200 "User-agent: *\n"; }
        location /listed/ { root $FILES/www; autoindex on; }
        location = /icon.css { alias $FILES/www/a.css; }
        location ~ ^/u/ { rewrite ^/u/([0-9]+)/(.*)$ /users/$2/$1 break; proxy_pass http://app; client_max_body_size 10; }
        location /moved/ { rewrite ^/moved/(.*)$ /else/$1 break; proxy_pass http://app; }
        location /denied { deny all; }
        location /open { allow 127.0.0.0/8; deny all; proxy_pass http://app/opened; }
        location /private/ { auth_basic "staff only"; auth_basic_user_file $FILES/users; root $FILES/www; }
    }
}
"#;

#[test]
#[ignore = "foreign programs: make test-all"]
fn converted_nginx_configuration_responds_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().display().to_string();
    let (port, application) = (free_port(), Application::start("app"));
    for folder in ["www/sub", "www/cached", "www/private", "sites"] {
        fs::create_dir_all(directory.path().join(folder)).expect("it is ours");
    }
    let style = "a { color: red }\n".repeat(50);
    for (name, text) in [
        ("www/index.html", "<p>index</p>"),
        ("www/a.css", &style),
        ("www/.hidden", "hidden"),
        ("www/sub/index.htm", "<p>sub</p>"),
        ("www/sub/b.txt", "text"),
        ("www/cached/c.html", "<p>cached</p>"),
        ("www/private/p.html", "<p>private</p>"),
    ] {
        fs::write(directory.path().join(name), text).expect("it is ours");
    }
    let hashed = Program::start(&mut peer("openssl", &["passwd", "-6", "secret"])).finish();
    let users = directory.path().join("users");
    fs::write(&users, format!("joe:{}", hashed.out)).expect("it is ours");
    // Onrush warns of password files that everybody can read.
    fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let site = format!(
        "upstream app {{ server {}; keepalive 4; }}
map $http_x_key $key {{ default 0; secret 1; }}
geo $staff {{ default 0; 127.0.0.0/8 1; 127.9.0.0/16 0; }}
map $uri $moved {{ /moved-a /a.html; ~^/moved-b/ /sub/; }}
server {{ listen 127.0.0.1:{port}; server_name other.example *.wide.example;
  location / {{ default_type text/plain; return 200 other; }} }}\n",
        application.address
    );
    fs::write(directory.path().join("sites/site.conf"), site).expect("it is ours");
    let text = nginx_start(&at, port) + &NGINX_SERVER.replace("$FILES", &at);
    fs::write(directory.path().join("conf"), text).expect("it is ours");
    let error_log = format!("{at}/error.log");
    let arguments = ["-p", &at, "-e", &error_log, "-c", &format!("{at}/conf")];
    let program = Program::start(&mut peer("nginx", &arguments));
    let requests: &[Asked] = &[
        ("GET /", &[]),
        ("HEAD /", &[]),
        ("GET /a.css", &[]),
        ("GET /a.css", &["Accept-Encoding: gzip"]),
        ("GET /.hidden", &[]),
        ("GET /sub", &[]),
        ("GET /sub/", &[]),
        ("GET /sub/b.txt", &["Range: bytes=1-2"]),
        ("GET /cached/", &[]),
        ("GET /cached/c.html", &[]),
        ("GET /none", &[]),
        ("POST /a.css", &["Content-Length: 0"]),
        ("DELETE /a.css", &[]),
        ("GET /exact", &["X-Block: 1"]),
        ("GET /exact", &[]),
        ("GET /exact/", &[]),
        ("GET /staff", &[]),
        ("GET /qpp/x.sql", &[]),
        ("GET /qpp/x", &[]),
        ("GET /qx.sql", &[]),
        ("GET /nested/x.secret", &[]),
        ("GET /nested/x.bak", &[]),
        ("GET /key", &["X-Key: SECRET"]),
        ("GET /key", &["X-Key: other"]),
        ("GET /empty", &[]),
        ("GET /empty", &["X-T:"]),
        ("GET /empty", &["X-T: 1"]),
        ("GET /MOVED-A", &[]),
        ("GET /preferred/x.txt", &[]),
        ("GET /nothing/x.txt", &[]),
        ("GET /nothing/x", &[]),
        ("GET /old/x?y=1", &[]),
        ("GET /r/x/y", &[]),
        ("GET /moved-a", &[]),
        ("GET /moved-b/x", &[]),
        ("GET /aliased/b.txt", &[]),
        ("GET /api/users?id=7", &["Accept: text/plain"]),
        ("POST /api/", &["Content-Length: 0"]),
        ("GET /host/x", &["Host: some.example"]),
        ("GET /moved/x/y?z", &[]),
        ("GET /application/some/where", &[]),
        ("GET /icon.css", &[]),
        ("GET /listed/", &[]),
        ("GET /u/7/x", &[]),
        ("GET /u/x", &[]),
        ("POST /u/7/x", &["Content-Length: 11"]),
        ("GET /denied", &[]),
        ("GET /x.sql%0a", &[]),
        ("GET /x.sql%0ax", &[]),
        ("GET /open/shut/x", &[]),
        ("GET /open/shut%2fx", &[]),
        ("GET /open/x%2Fshut.d%2Fy", &[]),
        ("GET /look/open/x", &[]),
        ("GET /look/open", &[]),
        ("GET /look/bcd", &[]),
        ("GET /look/", &[]),
        ("GET /shell/some/where", &[]),
        ("GET /shell/", &[]),
        ("GET /reading/x", &[]),
        ("PUT /reading/x", &["Content-Length: 0"]),
        ("GET /reading?x=1", &[]),
        ("GET /robots.txt", &[]),
        ("GET /open", &[]),
        ("GET /private/p.html", &[]),
        (
            "GET /private/p.html",
            &["Authorization: Basic am9lOnNlY3JldA=="],
        ),
        (
            "GET /private/p.html",
            &["Authorization: Basic am9lOndyb25n"],
        ),
        ("GET /", &["Host: other.example"]),
        ("GET /", &["Host: a.wide.example"]),
        ("GET /", &["Host: wide.example"]),
    ];
    compare(program, (port, "nginx"), &directory, requests, &[]);
}

const HAPROXY: &str = r"
global
    maxconn 100
    log /dev/log local0
defaults
    mode http
    option dontlognull
    timeout connect 1s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:$PORT
    acl is_b hdr(host) -i b.example
    acl is_api path_beg /api/ /v1/
    acl is_read method GET HEAD
    http-request deny if { path_beg /denied } !is_b
    http-request deny deny_status 429 if { hdr_sub(user-agent) -i bot }
    http-request return status 200 content-type text/plain string own if { path /own }
    http-request redirect code 301 location https://new.example%[capture.req.uri] if { path_end .php }
    redirect prefix https://old.example if { path_dir old }
    http-request set-header X-Seen read if is_read
    http-request set-header X-Real-IP %[src]
    http-request del-header Accept
    http-response set-header X-A relayed
    use_backend b if is_b is_api || { url_param(to) b }
    default_backend a
backend a
    balance random
    option httpchk GET /
    server a $A check
backend b
    http-request replace-path ^/api/(.*) /\1
    http-response set-header X-Seen b
    server b $B
";

#[test]
#[ignore = "foreign programs: make test-all"]
fn converted_haproxy_configuration_responds_alike() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let (a, b) = (Application::start("a"), Application::start("b"));
    let text = HAPROXY.replace("$PORT", &port.to_string());
    let text = text.replace("$A", &a.address).replace("$B", &b.address);
    let conf = directory.path().join("conf");
    fs::write(&conf, text).expect("it is ours");
    let arguments = ["-db", "-f", &conf.display().to_string()];
    let program = Program::start(&mut peer("haproxy", &arguments));
    let requests: &[Asked] = &[
        ("GET /", &[]),
        ("POST /", &["Content-Length: 0"]),
        ("GET /denied/x", &[]),
        ("GET /denied/x", &["Host: b.example"]),
        ("GET /", &["User-Agent: some RoBot"]),
        ("GET /own", &[]),
        ("GET /own/", &[]),
        ("GET /x.php?y=1", &[]),
        ("GET /x/old/y?z", &[]),
        ("GET /older", &[]),
        ("GET /api/x", &["Host: b.example", "Accept: text/plain"]),
        ("GET /api/x", &["Host: B.Example"]),
        ("PUT /v1/x", &["Host: b.example", "Content-Length: 0"]),
        ("GET /api/x", &[]),
        ("GET /x?to=b", &[]),
        ("GET /x?to=a", &[]),
    ];
    // With ?to=b a client of another host reaches /denied, as with HAProxy, which checks the path before the edit.
    let edits = ["\"/api/\""; 2];
    compare(program, (port, "haproxy"), &directory, requests, &edits);
}

#[test]
fn exit_code_reflects_conversion() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("conf");
    let name = path.display().to_string();
    for (language, text, code, said) in [
        ("nginx", "http { server { return 204; } }", 0, "0 left out"),
        (
            "nginx",
            "http {\n server { fastcgi_pass unix:/x; } }",
            2,
            "conf:2: left out: fastcgi_pass unix:/x: ",
        ),
        (
            "nginx",
            "http {\n server {",
            1,
            "conf:2: the file ends inside the block",
        ),
        (
            "haproxy",
            "global\n maxconn 4\ndefaults\n mode http\n",
            0,
            "0 left out",
        ),
        (
            "haproxy",
            "frontend f\n mode tcp\n bind :1\n",
            2,
            "conf:1: left out: frontend f: ",
        ),
        (
            "haproxy",
            "bind :1\n",
            1,
            "conf:1: \"bind\" is outside of a section",
        ),
    ] {
        fs::write(&path, text).expect("it is ours");
        let finished = run_onrush(&["convert", language, &name]);
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert!(finished.err.contains(said), "{finished:?}");
        assert_eq!(finished.out.is_empty(), code == 1, "{finished:?}");
    }
    let missing = run_onrush(&["convert", "nginx", "/does/not/exist"]);
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(
        missing.err.contains("/does/not/exist: No such file"),
        "{missing:?}"
    );
}
