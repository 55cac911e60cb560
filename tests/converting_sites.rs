//! Sites of nginx and HAProxy, one directive each: the original and the result get the same requests. They respond the same,
//! except where a note of the conversion announces the difference.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use tempfile::TempDir;

use crate::application::Application;
use crate::converting::{free_port, wait_for};
use crate::peer::peer;
use crate::program::{Finished, PATIENCE, Program, Serve, run_onrush};

/// One site, requested by its own name.
struct Site {
    /// Its lines: the inside of a server of nginx, or the frontend and its backend of HAProxy.
    lines: &'static str,
    /// Fields to compare besides status and body, of responses and of requests at the application.
    fields: &'static [&'static str],
    requests: &'static [Request],
}

/// A request, as text up to its Host, and the expected difference of its response.
type Request = (&'static str, Difference);

/// Expected difference of the result.
#[derive(Clone, Copy, Debug)]
enum Difference {
    None,
    /// The result responds with this status, and a note with these words announces it.
    Status(&'static str, &'static str),
    /// A field or the body differs, and a note with these words announces it.
    Content(&'static str),
}

use Difference::{Content, None as Same, Status};

/// The compared parts of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    status: String,
    content: Vec<String>,
}

/// Sends a request to the site of this name.
fn ask(port: u16, host: &str, request: &str, fields: &[&str]) -> Answer {
    let (line, rest) = request.split_once('\n').unwrap_or((request, ""));
    let rest: String = rest.lines().map(|field| format!("{field}\r\n")).collect();
    let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n{rest}Connection: close\r\n\r\n");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.write_all(text.as_bytes()).expect("it is taken");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("an end");
    let response = String::from_utf8_lossy(&response).into_owned();
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").to_owned();
    let counts = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default();
        fields.iter().any(|field| field.eq_ignore_ascii_case(name))
    };
    let port = format!(":{port}");
    let shown = |line: &str| {
        let line = line
            .replace(&port, "")
            .replace(&format!("http://{host}"), "")
            .to_lowercase();
        match line.split_once(": ") {
            Some(("server", value)) if value.starts_with("nginx") || value == "onrush" => {
                "server: its own".to_owned()
            }
            Some(("date", value)) if !value.contains("1970") => "date: now".to_owned(),
            _ => line,
        }
    };
    let mut content: Vec<String> = head.lines().filter(counts).map(shown).collect();
    match body.strip_prefix("app\n") {
        Some(asked) => {
            let line = asked.lines().next().unwrap_or_default();
            content.push(
                line.rsplit_once(' ')
                    .map_or(line, |(line, _)| line)
                    .to_owned(),
            );
            content.extend(
                asked
                    .lines()
                    .filter(counts)
                    .map(|line| format!("asked {line}").to_lowercase()),
            );
        }
        // Each program has its own pages for errors and redirects.
        None if status.starts_with('2') => content.push(body.to_owned()),
        None => {}
    }
    content.sort_unstable();
    Answer { status, content }
}

fn name(at: usize) -> String {
    format!("site{at}.example")
}

/// The responses of all sites.
fn answers(port: u16, sites: &[Site]) -> Vec<Answer> {
    let all = sites.iter().enumerate().flat_map(|(at, site)| {
        let requests = site.requests.iter();
        requests.map(move |(request, _)| ask(port, &name(at), request, site.fields))
    });
    all.collect()
}

/// Asks the original, then the result in its place, and compares.
fn compare(mut program: Program, port: u16, language: &str, directory: &TempDir, sites: &[Site]) {
    wait_for(&mut program, port);
    let before = answers(port, sites);
    drop(program);
    let file = directory.path().join("conf").display().to_string();
    let converted = run_onrush(&["convert", language, &file]);
    assert!(matches!(converted.code, Some(0 | 2)), "{converted:?}");
    let result = directory.path().join("onrush.toml");
    fs::write(&result, &converted.out).expect("it is ours");
    let serve = Serve::start(&["--config", &result.display().to_string()]);
    assert_eq!(serve.address, format!("127.0.0.1:{port}"));
    let after = answers(port, sites);
    let asked = sites.iter().flat_map(|site| {
        let requests = site.requests.iter();
        requests.map(move |(request, difference)| (site.lines, request, difference))
    });
    let mut wrong = String::new();
    for ((lines, request, difference), (before, after)) in asked.zip(before.iter().zip(&after)) {
        if let Some(what) = unlike(before, after, *difference, &converted) {
            wrong += &format!(
                "\n{lines}\n  {request:?}: {what}\n  before {before:?}\n  after  {after:?}\n"
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}\n{}", converted.err);
}

/// The error in the result's response, if there is one.
fn unlike(
    before: &Answer,
    after: &Answer,
    difference: Difference,
    converted: &Finished,
) -> Option<String> {
    let is_announced = |words: &str| converted.err.contains(words);
    match difference {
        Same => (before != after).then(|| "they differ".to_owned()),
        Status(status, _) if after.status != status || before.status == status => {
            Some(format!("expected another status, {status}"))
        }
        Content(_) if before.status != after.status || before == after => {
            Some("expected the same status with other content".to_owned())
        }
        Status(_, words) | Content(words) => {
            (!is_announced(words)).then(|| format!("no note has {words:?}"))
        }
    }
}

const NGINX: &[Site] = &[
    Site {
        lines: "location /admin/ { deny all; } location / { proxy_pass http://app; }",
        fields: &[],
        requests: &[
            ("GET /x/..%2fadmin/s", Same),
            ("GET /.%2fadmin/s", Same),
            ("GET /%2fadmin/s", Same),
            ("GET /admin/s", Same),
            ("GET /x", Same),
        ],
    },
    Site {
        lines: "root $FILES/www; location / { auth_basic a; auth_basic_user_file $FILES/users; } location /static/ { }",
        fields: &[],
        requests: &[
            ("GET /static/..%2fsecret", Same),
            ("GET /static/a.txt", Same),
        ],
    },
    Site {
        lines: "location / { secure_link $arg_m; secure_link_md5 \"x$uri\"; if ($secure_link = \"\") { return 403; } root $FILES/www; }",
        fields: &[],
        requests: &[("GET /a.html", Same), ("GET /a.html?m=x", Same)],
    },
    Site {
        lines: "location / { valid_referers none friend.example; if ($invalid_referer) { return 403; } root $FILES/www; }",
        fields: &[],
        requests: &[
            ("GET /a.html\nReferer: http://x/", Same),
            ("GET /a.html", Status("403", "--open-guards")),
        ],
    },
    Site {
        lines: "if ($ssl_client_verify != SUCCESS) { return 403; } location / { root $FILES/www; }",
        fields: &[],
        requests: &[("GET /a.html", Same)],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $time_iso8601; proxy_set_header X-B $realip_remote_addr; }",
        fields: &["x-a", "x-b"],
        requests: &[(
            "GET /\nX-A: theirs\nX-B: theirs",
            Content("Onrush has nothing for $realip_remote_addr"),
        )],
    },
    Site {
        lines: "location / { empty_gif; }",
        fields: &[],
        requests: &[("GET /", Status("501", "empty_gif"))],
    },
    Site {
        lines: "root $FILES/www; location /moved/ { rewrite ^/moved/(.*)$ /sub/$1 break; }",
        fields: &[],
        requests: &[("GET /moved/b.html", Same), ("GET /moved/none", Same)],
    },
    Site {
        lines: "location / { if ($http_x_key != \"secret$host\") { return 403; } root $FILES/www; } location /arg { if ($arg_t = $cookie_t) { return 403; } return 200 arg; }",
        fields: &[],
        requests: &[
            ("GET /a.html\nX-Key: secret$host", Same),
            ("GET /a.html", Same),
            ("GET /arg?t=1\nCookie: t=1", Same),
        ],
    },
    Site {
        lines: "root $FILES/www; location = /index.html { add_header X-A own; }",
        fields: &["x-a"],
        requests: &[
            ("GET /index.html", Same),
            ("GET /", Content("is not said of index.html")),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_hide_header X-A; add_header X-A ours; add_header X-B ours; }",
        fields: &["x-a", "x-b"],
        requests: &[("GET /\nX-Answer: X-A: theirs|X-B: theirs", Same)],
    },
    Site {
        lines: "rewrite ^/old$ /new?x=1 redirect; rewrite ^/bare$ /new?x=1? redirect; return 204;",
        fields: &["location"],
        requests: &[
            ("GET /old?y=2", Same),
            ("GET /old", Content("without a query from the client")),
            ("GET /bare?y=2", Same),
        ],
    },
    Site {
        lines: "location / { root $FILES/www; add_header Last-Modified now; add_header ETag \"\"; }",
        fields: &["last-modified", "etag"],
        requests: &[("GET /a.html", Same)],
    },
    Site {
        lines: "location /u { return 301 /x$uri; } location /h { return 301 /x$http_x_a; }",
        fields: &["location"],
        requests: &[
            ("GET /uv", Same),
            ("GET /u%2561", Content("decodes it")),
            ("GET /h\nX-A: 1", Same),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; proxy_set_header X-A $proxy_add_x_forwarded_for; }",
        fields: &["x-a"],
        requests: &[
            ("GET /", Same),
            (
                "GET /\nX-Forwarded-For: 192.0.2.1",
                Content("the address of the client alone"),
            ),
        ],
    },
    Site {
        lines: "location / { proxy_pass http://app; } location /i/ { internal; root $FILES/www; } location /pass { proxy_pass http://app; proxy_pass_header X-Accel-Expires; proxy_pass_header Server; } location /ignore { proxy_pass http://app; proxy_ignore_headers X-Accel-Redirect; }",
        fields: &[
            "x-accel-expires",
            "x-accel-limit-rate",
            "x-accel-buffering",
            "x-accel-charset",
            "x-accel-redirect",
            "x-pad",
            "server",
            "date",
        ],
        requests: &[
            (
                "GET /\nX-Answer: X-Accel-Expires: 0|X-Accel-Limit-Rate: 0|X-Accel-Buffering: no|X-Accel-Charset: utf-8|X-Pad: x",
                Same,
            ),
            (
                "GET /\nX-Answer: Server: theirs|Date: Thu, 01 Jan 1970 00:00:00 GMT",
                Same,
            ),
            (
                "GET /pass\nX-Answer: X-Accel-Expires: 0|Server: theirs",
                Same,
            ),
            ("GET /ignore\nX-Answer: X-Accel-Redirect: /i/a.html", Same),
            (
                "GET /\nX-Answer: X-Accel-Redirect: /i/a.html",
                Status("502", "a response with X-Accel-Redirect"),
            ),
        ],
    },
    Site {
        lines: "root $FILES/www; autoindex on; autoindex_format json;",
        fields: &[],
        requests: &[("GET /sub/", Content("prefers it"))],
    },
    Site {
        lines: "return 200 fixed;",
        fields: &["allow"],
        requests: &[("TRACE /", Same), ("GET /", Same)],
    },
    Site {
        lines: "real_ip_header X-Real-IP; set_real_ip_from 127.0.0.0/8; location / { allow 127.0.0.0/8; deny all; root $FILES/www; }",
        fields: &[],
        requests: &[
            (
                "GET /a.html\nX-Real-IP: 192.0.2.1",
                Status("501", "a field that Onrush does not read"),
            ),
            (
                "GET /a.html",
                Status("501", "a field that Onrush does not read"),
            ),
        ],
    },
];

#[test]
fn sites_of_nginx_differ_where_a_note_announces_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().display().to_string();
    let (port, application) = (free_port(), Application::start("app"));
    write_files(directory.path());
    let servers = NGINX.iter().enumerate().map(|(index, site)| {
        let lines = site.lines.replace("$FILES", &at);
        format!(
            "server {{ listen 127.0.0.1:{port}; server_name {}; {lines} }}\n",
            name(index)
        )
    });
    let servers: String = servers.collect();
    let text = format!(
        "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log; events {{ }}
http {{ access_log off; types {{ text/html html; }} default_type text/plain;
client_body_temp_path {at}/body; proxy_temp_path {at}/proxy; fastcgi_temp_path {at}/fastcgi; uwsgi_temp_path {at}/uwsgi; scgi_temp_path {at}/scgi;
upstream app {{ server {}; }}
server {{ listen 127.0.0.1:{port} default_server; server_name \"\"; return 404; }}
{servers}}}",
        application.address
    );
    fs::write(directory.path().join("conf"), text).expect("it is ours");
    let error_log = format!("{at}/error.log");
    let arguments = ["-p", &at, "-e", &error_log, "-c", &format!("{at}/conf")];
    let program = Program::start(&mut peer("nginx", &arguments));
    compare(program, port, "nginx", &directory, NGINX);
}

fn write_files(directory: &Path) {
    for folder in ["www/sub", "www/static"] {
        fs::create_dir_all(directory.join(folder)).expect("it is ours");
    }
    for (name, text) in [
        ("www/index.html", "index"),
        ("www/a.html", "a"),
        ("www/secret", "secret"),
        ("www/sub/b.html", "b"),
        ("www/static/a.txt", "static"),
        (
            "users",
            "joe:$6$ab$jnZj29NS/hK2GaouP6AGMIBwD6owZFRejcn9QRdlwSjZaVr.fR9dH2TXrKL/PaacUXwtGfI.4O9zxvy2k6fbE1\n",
        ),
    ] {
        fs::write(directory.join(name), text).expect("it is ours");
    }
}

const HAPROXY: &[Site] = &[
    Site {
        lines: "http-send-name-header X-Name\n server only $A",
        fields: &["x-name"],
        requests: &[("GET /\nX-Name: theirs", Same)],
    },
    Site {
        lines: "cookie SRV insert nocache indirect\n server one $A cookie one",
        fields: &["set-cookie", "cache-control", "cookie"],
        requests: &[
            (
                "GET /",
                Content("a response that sets it does not say Cache-Control: private"),
            ),
            ("GET /\nCookie: SRV=one", Content("servers see the cookie")),
        ],
    },
    Site {
        lines: "cookie SRV insert domain example\n server one $A cookie one",
        fields: &["set-cookie"],
        requests: &[("GET /", Content("the cookie is for the host alone"))],
    },
    Site {
        lines: "http-request redirect code 301 prefix /new drop-query append-slash if { path_beg /slash }\n server one $A",
        fields: &["location"],
        requests: &[("GET /slash", Same), ("GET /slash/?x=1", Same)],
    },
    Site {
        lines: "http-request set-header X-A \"${HOME}\"\n http-request set-header X-B \"${UNSET_NAME-5s}\"\n server one $A",
        fields: &["x-a", "x-b"],
        requests: &[("GET /", Same)],
    },
    Site {
        lines: "http-request set-header X-A %[unique-id]\n server one $A",
        fields: &["x-a"],
        requests: &[(
            "GET /\nX-A: theirs",
            Content("has 32 hexadecimal digits; HAProxy writes"),
        )],
    },
    Site {
        lines: "option http-restrict-req-hdr-names delete\n server one $A",
        fields: &["x_a"],
        requests: &[(
            "GET /\nX_A: 1",
            Content("fields of clients pass whose names have other characters"),
        )],
    },
    Site {
        lines: "compression algo gzip\n compression type text/plain\n http-request return status 200 content-type text/plain string small if { path /small }\n server one $A",
        fields: &["content-encoding"],
        requests: &[("GET /x\nAccept-Encoding: gzip", Same)],
    },
];

#[test]
fn sites_of_haproxy_differ_where_a_note_announces_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, application) = (free_port(), Application::start("app"));
    let mut text = format!(
        "defaults\n mode http\n timeout connect 1s\n timeout client 60s\n timeout server 60s\n timeout client-fin 20s\nfrontend front\n bind 127.0.0.1:{port}\n"
    );
    for at in 0..HAPROXY.len() {
        text += &format!(" use_backend b{at} if {{ hdr(host) {} }}\n", name(at));
    }
    for (at, site) in HAPROXY.iter().enumerate() {
        let lines = site.lines.replace("$A", &application.address);
        text += &format!("backend b{at}\n {lines}\n");
    }
    let conf = directory.path().join("conf");
    fs::write(&conf, text).expect("it is ours");
    let arguments = ["-db", "-f", &conf.display().to_string()];
    let program = Program::start(&mut peer("haproxy", &arguments));
    compare(program, port, "haproxy", &directory, HAPROXY);
}
