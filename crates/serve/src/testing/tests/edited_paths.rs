//! Paths that a route edits: no server reads the edited path as a path that a route refuses.

use std::collections::BTreeSet;

use onrush_config::Plan;
use onrush_http::http2::End;

use super::http2::Http2Client;
use crate::testing::harness::{Step, TestCore, configured, on_simulated_core, send};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// A segment, or a part of one, that some server may drop or resolve.
const DOTS: [&str; 21] = [
    "",
    ".",
    "..",
    "...",
    "%2e",
    "%2E%2e",
    ".%2e",
    "%252e%252e",
    ".;",
    "..;",
    "..;a=b",
    "%2e%2e;a",
    "..%3b",
    ";",
    ";a=b",
    ".%5c",
    "..%5c",
    "..\\",
    "..%252f",
    "x/..",
    "x//..",
];

/// Forms that some servers read as a slash.
const SLASHES: [&str; 8] = ["/", "//", "%2f", "%2F", "\\", "%5c", "%252f", "/%2f"];

/// Edits of paths, and the path of a server that a route before refuses to everybody.
const EDITS: [(&str, &str, &str); 9] = [
    ("/", "", "/api/admin/secret"),
    ("/api", "", "/api/admin/secret"),
    ("/api", "strip_prefix = true", "/admin/secret"),
    ("/api/", "strip_prefix = true", "/admin/secret"),
    ("/api", "replace_prefix = \"/v2\"", "/v2/admin/secret"),
    ("/api", "replace_prefix = \"/v2/\"", "/v2/admin/secret"),
    (
        "/api",
        "rewrite = { match = \"^/api(.*)$\", to = \"/$1\" }",
        "/admin/secret",
    ),
    (
        "/api",
        "rewrite = { match = \"^/api/(?<rest>.*)$\", to = \"/${rest}\" }",
        "/admin/secret",
    ),
    (
        "/api",
        "rewrite = { match = \"^/api/?([^/]*)(/.*)?$\", to = \"/$1$2\" }",
        "/admin/secret",
    ),
];

/// Paths that a server may read as `/api/admin/secret`.
fn paths() -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for slash in SLASHES {
        for dots in DOTS {
            let joint = format!("{slash}{dots}{slash}");
            paths.extend([
                format!("/api{dots}/admin/secret"),
                format!("/api{dots}{slash}admin/secret"),
                format!("/api{joint}admin/secret"),
                format!("/api/x{joint}admin/secret"),
                format!("/api/admin{joint}secret"),
                format!("/api/admin/x{joint}secret"),
                format!("/api/admin/secret{slash}{dots}"),
                format!("/x{joint}api/admin/secret"),
                format!("/x/y{joint}..{slash}api/admin/secret"),
                format!("/{dots}{slash}api/admin/secret"),
                format!("//x{joint}api/admin/secret"),
                format!("/api/admin{dots}/secret"),
            ]);
        }
    }
    paths
}

/// The path as a server reads it. Each bit enables a step: drop a host after two slashes; read an unencoded backslash
/// as a slash; drop parameters of unnamed segments; decode; drop empty segments; resolve dot segments.
fn reading(target: &str, bits: u32) -> String {
    let is = |bit: u32| bits & (1 << bit) != 0;
    let mut path = target.split('?').next().unwrap_or("").to_owned();
    if is(0) && path.starts_with("//") {
        let end = path[2..].find('/').map_or(path.len(), |at| at + 2);
        path.replace_range(..end, "");
    }
    if is(1) {
        path = path.replace('\\', "/");
    }
    if is(2) {
        // A route for a named segment also matches it with parameters, so these are kept.
        let named = |segment: &str| !matches!(segment.split(';').next(), Some("" | "." | ".."));
        let segments = path.split('/').map(|segment| match named(segment) {
            true => segment,
            false => segment.split(';').next().unwrap_or(""),
        });
        path = segments.collect::<Vec<_>>().join("/");
    }
    if is(3) {
        for (encoded, byte) in [
            ("%2e", "."),
            ("%2f", "/"),
            ("%5c", "\\"),
            ("%3b", ";"),
            ("%25", "%"),
        ] {
            path = path
                .replace(encoded, byte)
                .replace(&encoded.to_uppercase(), byte);
        }
    }
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        let plain = segment.to_lowercase().replace("%2e", ".");
        match &*plain {
            "" if is(4) => {}
            "." if is(5) => {}
            ".." if is(5) => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

/// Sends all paths to `plan`, over HTTP/1.1 and HTTP/2, and returns how many were forwarded. The servers record the
/// received targets.
async fn send_all(site: &TestCore, plan: &Plan) -> usize {
    let address = site.serve(plan);
    let mut forwarded = 0;
    let mut client = site.connect(&address).await;
    let mut requests = String::new();
    for path in paths() {
        requests += &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    let responses = client.exchange(requests.as_bytes()).await;
    forwarded += memchr::memmem::find_iter(&responses, "HTTP/1.1 200 ").count();
    let answered = memchr::memmem::find_iter(&responses, "HTTP/1.1 ").count();
    assert_eq!(answered, paths().len());
    let mut client = Http2Client::connect(site, &address, 65_535).await;
    for path in paths() {
        let stream = client.open(("GET", &path), &[], End::Stream);
        let response = client.response(stream).await;
        forwarded += usize::from(response.status == 200);
        assert!(
            matches!(response.status, 200 | 400 | 403),
            "{path}: {response:?}"
        );
    }
    forwarded
}

#[test]
fn edited_paths_do_not_bypass_deny_routes() {
    for (path, edit, secret) in EDITS {
        on_simulated_core(1, move |site| async move {
            let server = site.upstream(&[&[Step::Read, send(OK), Step::Again]]);
            let plan = configured(&format!(
                "[[route]]\npath = \"/api/admin\"\nrespond = {{ status = 403 }}\n\
                 [[route]]\npath = \"{path}\"\nforward = \"http://{}\"\n{edit}\n\
                 [[route]]\nrespond = {{ status = 403 }}\n",
                server.address
            ));
            let forwarded = send_all(&site, &plan).await;
            let requests = server.requests().concat();
            assert_eq!(requests.len(), forwarded);
            assert!(forwarded > 50, "{edit}: {forwarded}");
            let mut passed = Vec::new();
            for request in requests {
                let target = request.split(' ').nth(1).expect("a target");
                let mut ways = 0..1 << 6;
                let way = ways.find(|&bits| reading(target, bits).starts_with(secret));
                passed.extend(way.map(|bits| format!("{target} by {bits:06b}")));
            }
            assert!(passed.is_empty(), "{edit}: {passed:#?}");
        });
    }
}

#[test]
fn file_paths_do_not_bypass_deny_routes() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(root.path().join("admin")).expect("it is ours");
    for name in ["admin/secret", "other"] {
        let file = std::fs::File::create(root.path().join(name)).expect("it is ours");
        // Simulated cores have another clock, and the time of a file must not be in the future.
        file.set_modified(std::time::UNIX_EPOCH).expect("a time");
    }
    for path in ["/api", "/api/"] {
        let plan = configured(&format!(
            "[[route]]\npath = \"/api/admin\"\nrespond = {{ status = 403 }}\n\
             [[route]]\npath = \"{path}\"\nfiles = {{ root = \"{}\" }}\n",
            root.path().display()
        ));
        on_simulated_core(1, move |site| {
            let plan = plan.clone();
            async move {
                let mut client = site.connect(&site.serve(&plan)).await;
                let named = ["/api/other", "/api/admin/secret", "/apiadmin/secret"];
                let all = named.into_iter().map(str::to_owned).chain(paths());
                let request = |path| format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n");
                let requests: String = all.map(request).collect();
                let responses = client.exchange(requests.as_bytes()).await;
                let found = |status: &str| {
                    memchr::memmem::find_iter(&responses, &format!("HTTP/1.1 {status}")).count()
                };
                assert!(responses.starts_with(b"HTTP/1.1 200 "));
                assert_eq!(found("200 "), 1, "the file that no other route has");
                assert_eq!(found(""), paths().len() + named.len());
            }
        });
    }
}
