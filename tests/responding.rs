//! Our own responses, as received by curl, ab and wrk.

use std::fs;
use std::os::unix::net::UnixStream;

use crate::peer::{ab, curl, wrk};
use crate::program::{Client, Serve, drivers};

/// A directory with an index, a short text and a large file.
fn site() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let write = |name: &str, content: &[u8]| {
        fs::write(directory.path().join(name), content).expect("it is ours");
    };
    fs::create_dir(directory.path().join("below")).expect("it is ours");
    write("index.html", b"<h1>home</h1>\n");
    write("below/index.html", b"<h1>below</h1>\n");
    write("digits.txt", b"0123456789");
    write(".hidden", b"secret");
    write(
        "large.bin",
        &(0..3_000_000)
            .map(|at| (at * 31 % 251) as u8)
            .collect::<Vec<_>>(),
    );
    directory
}

#[test]
fn curl_gets_the_fixed_response() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let response = curl(&["-i", &serve.url("/any/path?query")]).out;
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert!(response.contains("\r\nContent-Length: 5\r\n"), "{response}");
    assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    let head = curl(&["-I", &serve.url("/")]).out;
    assert!(
        head.contains("\r\nContent-Length: 5\r\n") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    // curl offers an upgrade to HTTP/2, which a server may ignore.
    assert_eq!(curl(&["--http2", &serve.url("/")]).out, "hello");
    assert_eq!(curl(&["--http1.0", &serve.url("/")]).out, "hello");
    assert_eq!(curl(&["-X", "DELETE", &serve.url("/")]).out, "hello");
    assert_eq!(serve.stop().requests(), 5);
}

#[test]
fn unread_request_bodies_are_discarded() {
    let directory = site();
    let large = directory.path().join("large.bin").display().to_string();
    let serve = Serve::start(&["--respond", "200:hello"]);
    let by_length = ["--data-binary", &format!("@{large}"), &serve.url("/")];
    assert_eq!(curl(&by_length).out, "hello");
    let by_chunks = ["-T", "-", "-H", "Expect:", &serve.url("/"), &serve.url("/")];
    // No input: an empty chunked body, and then a GET on the same connection.
    assert_eq!(curl(&by_chunks).out, "hellohello");
    assert_eq!(serve.stop().requests(), 3);
}

#[test]
fn curl_downloads_files() {
    let directory = site();
    let serve = Serve::start(&[&directory.path().display().to_string()]);
    assert_eq!(curl(&[&serve.url("/")]).out, "<h1>home</h1>\n");
    assert_eq!(curl(&["-L", &serve.url("/below")]).out, "<h1>below</h1>\n");
    let moved = curl(&["-i", &serve.url("/below")]).out;
    assert!(moved.starts_with("HTTP/1.1 301 "), "{moved}");
    assert_eq!(curl(&["-r", "2-4", &serve.url("/digits.txt")]).out, "234");
    assert_eq!(curl(&["-r", "-3", &serve.url("/digits.txt")]).out, "789");
    let head = curl(&["-I", &serve.url("/digits.txt")])
        .out
        .to_ascii_lowercase();
    assert!(head.contains("\r\ncontent-type: text/plain"), "{head}");
    assert!(head.contains("\r\ncontent-length: 10\r\n"), "{head}");
    for (path, status) in [
        ("/nothing", "404"),
        ("/.hidden", "404"),
        ("/%2e%2e/%2e%2e/etc/passwd", "400"),
        ("/..%2f..%2f..%2f..%2fetc/passwd", "400"),
        ("/digits.txt/", "404"),
        ("/a%00", "400"),
    ] {
        let code = [
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--path-as-is",
            &serve.url(path),
        ];
        assert_eq!(curl(&code).out, status, "{path}");
    }
    let code = [
        "-o",
        "/dev/null",
        "-w",
        "%{http_code}",
        "-X",
        "POST",
        &serve.url("/digits.txt"),
    ];
    assert_eq!(curl(&code).out, "405");
}

#[test]
fn large_file_supports_conditional_requests() {
    let directory = site();
    let copy = directory.path().join("copy").display().to_string();
    let tag = directory.path().join("tag").display().to_string();
    for io in drivers() {
        let serve = Serve::start(&[&directory.path().display().to_string(), "--io", io]);
        let url = serve.url("/large.bin");
        curl(&["-o", &copy, "--etag-save", &tag, &url]);
        let (original, copied) = (directory.path().join("large.bin"), &copy);
        let same = fs::read(original).unwrap() == fs::read(copied).unwrap();
        assert!(same, "changed on its way ({io})");
        let code = [
            "-o",
            "/dev/null",
            "-w",
            "%{http_code}",
            "--etag-compare",
            &tag,
            &url,
        ];
        assert_eq!(curl(&code).out, "304");
    }
}

#[test]
fn curl_gets_synthetic_responses() {
    let serve = Serve::start(&["--synthetic"]);
    let size = ["-o", "/dev/null", "-w", "%{http_code} %{size_download}"];
    for (query, said) in [
        ("/?s=10k", "200 10240"),
        ("/?s=0", "200 0"),
        ("/?s=100&r=503", "503 100"),
        ("/?s=100&k=1&c=0&t=5", "200 100"),
    ] {
        let url = serve.url(query);
        assert_eq!(curl(&[&size[..], &[&url]].concat()).out, said, "{query}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn ab_uses_keep_alive() {
    let directory = site();
    let fixed = Serve::start(&["--respond", "200:hello"]);
    let files = Serve::start(&[&directory.path().display().to_string()]);
    let synthetic = Serve::start(&["--synthetic"]);
    ab(&fixed.url("/"));
    ab(&files.url("/digits.txt"));
    ab(&synthetic.url("/?s=100"));
    assert_eq!(fixed.stop().requests(), 1000);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn wrk_gets_correct_responses() {
    let directory = site();
    for io in drivers() {
        let fixed = Serve::start(&["--respond", "200:hello", "--io", io]);
        let counted = wrk(&fixed.url("/"));
        // Each of ten connections may have one response that wrk did not wait for.
        let served = fixed.stop().requests();
        assert!(
            (counted..=counted + 10).contains(&served),
            "{counted} and {served}"
        );
    }
    let files = Serve::start(&[&directory.path().display().to_string()]);
    wrk(&files.url("/digits.txt"));
    wrk(&files.url("/large.bin"));
}

#[test]
fn all_listen_addresses_respond() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("socket");
    let unix = format!("unix:{}", socket.display());
    let arguments = [
        "--respond",
        "200:hello",
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "[::1]:0",
        "--listen",
        &unix,
    ];
    let serve = Serve::start(&arguments);
    let line = serve
        .start_up_lines
        .lines()
        .find(|line| line.contains("listening on"));
    let addresses: Vec<&str> = line
        .unwrap()
        .trim_start_matches("  listening on ")
        .split(", ")
        .collect();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    assert_eq!(curl(&[&format!("http://{}/", addresses[0])]).out, "hello");
    assert_eq!(
        curl(&["-g", &format!("http://{}/", addresses[1])]).out,
        "hello"
    );
    let path = socket.display().to_string();
    assert_eq!(curl(&["--unix-socket", &path, "http://any/"]).out, "hello");
    let response = Client::<UnixStream>::connect(&socket).exchange(b"GET / HTTP/1.0\r\n\r\n");
    assert!(response.ends_with("\r\n\r\nhello"), "{response}");
    assert_eq!(serve.stop().requests(), 4);
    assert!(
        !socket.exists(),
        "a Unix socket's file goes with its server"
    );
}

#[test]
fn routes_of_file_respond() {
    let directory = site();
    let path = directory.path().join("onrush.toml");
    let text = format!(
        r#"
threads = 1
[[listen]]
address = "127.0.0.1:0"
[[route]]
host = "static.example.com"
files = {{ root = "{}" }}
[[route]]
path = "=/health"
respond = {{ status = 200, body = "well" }}
[[route]]
path = "/lab"
method = ["GET", "HEAD", "PUT", "POST"]
from = ["10.0.0.0/8", "2001:db8::/32"]
headers = {{ X-Beta = "*" }}
synthetic = true
[[route]]
path = "/lab"
synthetic = true
[[route]]
path = "/moved"
respond = {{ status = 308, headers = {{ Location = "/new" }} }}
"#,
        directory.path().display()
    );
    fs::write(&path, text).expect("it is ours");
    let serve = Serve::start(&["--config", &path.display().to_string()]);
    assert!(
        serve.start_up_lines.starts_with("onrush serves 5 routes\n"),
        "{}",
        serve.start_up_lines
    );
    let conditions =
        "/lab… (GET, HEAD, PUT and 1 more; from 10.0.0.0/8, 2001:db8::/32; header X-Beta) -> ";
    assert!(
        serve.start_up_lines.contains(conditions),
        "{}",
        serve.start_up_lines
    );
    assert_eq!(curl(&[&serve.url("/health")]).out, "well");
    let named = [
        "-H",
        "Host: STATIC.example.com:81",
        &serve.url("/digits.txt"),
    ];
    assert_eq!(curl(&named).out, "0123456789");
    assert_eq!(curl(&[&serve.url("/lab?s=7")]).out.len(), 7);
    let status = ["-o", "/dev/null", "-w", "%{http_code} %{redirect_url}"];
    let moved = curl(&[&status[..], &[&serve.url("/moved/x")]].concat()).out;
    assert_eq!(moved, format!("308 {}", serve.url("/new")));
    let none = curl(&[&status[..], &[&serve.url("/health/")]].concat()).out;
    assert_eq!(none, "404 ");
}

#[test]
fn pipelined_responses_are_in_order() {
    let serve = Serve::start(&["--respond", "200:hello"]);
    let requests = "GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(5000);
    let response = serve.connect().exchange(requests.as_bytes());
    assert_eq!(response.matches("\r\n\r\nhello").count(), 5000);
    assert_eq!(serve.stop().requests(), 5000);
}

#[test]
fn slow_client_is_disconnected() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("onrush.toml");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = silent.local_addr().expect("bound");
    for io in drivers() {
        let text = format!(
            "io = \"{io}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/own\"\nrespond = {{ status = 200, body = \"own\" }}\n[[route]]\nforward = \"http://{server}\"\n[timeouts]\nclient_head = \"100ms\"\nclient_idle = \"100ms\"\nupstream_first_byte = \"100ms\"\n"
        );
        fs::write(&path, text).expect("it is ours");
        let serve = Serve::start(&["--config", &path.display().to_string()]);
        let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
        let mut stalling = serve.connect();
        stalling.send(b"GET /own HTTP/1.1\r\nHo");
        let mut waiting = serve.connect();
        waiting.send(get("/").as_bytes());
        let mut idle = serve.connect();
        idle.send(get("/own").as_bytes());
        assert!(
            idle.receive()
                .is_some_and(|response| response.ends_with("\r\n\r\nown"))
        );
        let response = stalling.receive().expect("a response");
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert_eq!(stalling.receive(), None);
        let response = waiting.receive().expect("a response");
        assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
        assert_eq!(idle.receive(), None);
        assert_eq!(curl(&[&serve.url("/own")]).out, "own");
        let totals = serve.stop();
        assert_eq!(
            (totals.requests(), totals.number_before(" refused")),
            (4, 1),
            "{totals:?}"
        );
        assert_eq!(totals.number_before(" failed upstream"), 1, "{totals:?}");
    }
}
