//! nginx servers selected by host, which HTTP/1.0, absolute request targets and HTTP/2 do not take from `Host` alone.

use super::*;

const SERVERS: [(&str, &str); 5] = [
    ("default.example", "return 200 default;"),
    ("\"\"", "return 200 hostless;"),
    ("~^(www|m)\\.pattern\\.example$", "return 200 pattern;"),
    ("*.wide.example", "return 200 wide;"),
    (
        "yes.example no.example",
        "if ($host ~ ^no) { return 403; } return 200 yes;",
    ),
];

/// Requests without the final blank line.
const REQUESTS: [&str; 9] = [
    "GET / HTTP/1.0",
    "GET / HTTP/1.0\r\nHost: www.pattern.example",
    "GET / HTTP/1.1\r\nHost: m.pattern.example",
    "GET http://www.pattern.example/ HTTP/1.1\r\nHost: other.example",
    "GET http://other.example/ HTTP/1.1\r\nHost: www.pattern.example",
    "GET http://www.pattern.example/ HTTP/1.0",
    "GET http://a.wide.example/ HTTP/1.0",
    "GET http://no.example/ HTTP/1.1\r\nHost: yes.example",
    "GET http://yes.example/ HTTP/1.1\r\nHost: no.example",
];

/// Hosts of HTTP/2 requests.
const HOSTS: [&str; 5] = [
    "www.pattern.example",
    "a.wide.example",
    "no.example",
    "yes.example",
    "other.example",
];

/// Status of each response, with the body of a 200.
fn answers(port: u16, port_of_http2: u16) -> Vec<String> {
    let of_text = REQUESTS.map(|request| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("not zero");
        let text = format!("{request}\r\nConnection: close\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("it is taken");
        let response = receive_all(&mut stream);
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        shown(&head["HTTP/1.1 ".len()..][..3], body)
    });
    let of_http2 = HOSTS.map(|host| {
        let url = format!("http://127.0.0.1:{port_of_http2}/");
        let field = format!("Host: {host}");
        let words = ["-s", "--http2-prior-knowledge", "-w", "\n%{http_code}"];
        let mut command = peer("curl", &words);
        let out = Program::start(command.args(["-H", &field, &url]))
            .finish()
            .out;
        let (body, status) = out.rsplit_once('\n').expect("a status");
        shown(status, body)
    });
    of_text.into_iter().chain(of_http2).collect()
}

fn shown(status: &str, body: &str) -> String {
    match status {
        "200" => body.to_owned(),
        _ => status.to_owned(),
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn host_comes_from_absolute_target_or_http2_authority() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, port_of_http2) = (free_port(), free_port());
    let servers = SERVERS.map(|(name, lines)| {
        format!("server {{ listen 127.0.0.1:{port}; listen 127.0.0.1:{port_of_http2} http2; server_name {name}; {lines} }}\n")
    });
    let mut program = start_nginx(directory.path(), &servers.concat());
    wait_for(&mut program, port);
    let before = answers(port, port_of_http2);
    drop(program);
    let (_serve, converted) = serve_result("nginx", directory.path(), port);
    assert_eq!(answers(port, port_of_http2), before, "{}", converted.out);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn unsupported_server_names_do_not_reach_default_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let servers = [
        ("default.example", "return 200 open;"),
        ("~^(?<!x)guarded\\d+\\.example$", "return 403;"),
        ("plain.example", "return 200 plain;"),
    ];
    let servers = servers.map(|(name, lines)| {
        format!("server {{ listen 127.0.0.1:{port}; server_name \"{name}\"; {lines} }}\n")
    });
    let statuses = || {
        [
            "guarded7.example",
            "default.example",
            "plain.example",
            "other.example",
        ]
        .map(|host| ask(port, host, "GET /", &[]).status)
    };
    let mut program = start_nginx(directory.path(), &servers.concat());
    wait_for(&mut program, port);
    assert_eq!(statuses(), ["403", "200", "200", "200"]);
    drop(program);
    let (_serve, converted) = serve_result("nginx", directory.path(), port);
    assert_eq!(statuses(), ["421", "200", "200", "200"], "{converted:?}");
    assert!(converted.err.contains("is 421"), "{converted:?}");
}
