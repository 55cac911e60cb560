//! Files over real connections, on every driver.

mod absent;
mod changes;
mod forms;
mod parts;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use onrush_config::Plan;
use onrush_config::plan::{Action, OneLiner, PathMatch};

use super::*;
use crate::limits::{FILE_CHECK, FILE_IDLE, FILE_IN_MEMORY_MAX, FILES_MAX, FILES_OPEN_MAX};
use crate::site::route_handler::Response;
use crate::site::service::Service;
use crate::testing::harness::{exchange, exchange_text, on_every_driver, on_simulated_cores};

const TIME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
/// ETag of a 10-byte file modified at [`TIME`].
const ETAG: &str = "\"ae1b981bc490a00-a\"";

/// A directory to serve.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        Tree(tempfile::tempdir().unwrap())
    }

    /// A directory with these files; each contains `0123456789`.
    fn of(paths: &[&str]) -> Tree {
        let tree = Tree::new();
        for path in paths {
            tree.write(path, b"0123456789");
        }
        tree
    }

    fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(path)
    }

    /// Writes a file modified at [`TIME`].
    fn write(&self, path: impl AsRef<Path>, content: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        touch(&path);
    }

    fn write_sparse(&self, path: &str, length: u64) {
        let path = self.path(path);
        fs::File::create(&path).unwrap().set_len(length).unwrap();
        touch(&path);
    }

    fn plan(&self) -> Plan {
        Plan::one_liner(OneLiner::Files(self.0.path().to_path_buf()), Vec::new())
    }

    fn plan_with(&self, path: PathMatch, index: &[&str], hidden: bool) -> Plan {
        let mut plan = self.plan();
        plan.routes[0].when.path = path;
        plan.routes[0].action = Action::Files(plan::Files {
            index: index.iter().map(|name| (*name).to_owned()).collect(),
            hidden,
            ..plan::Files::in_directory(self.0.path())
        });
        plan
    }
}

fn touch(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

fn get(plan: &Plan, target: &str) -> String {
    exchange_text(plan, &request("GET", target, ""))
}

fn get_with(plan: &Plan, target: &str, fields: &str) -> String {
    exchange_text(plan, &request("GET", target, fields))
}

fn status(response: &str) -> u16 {
    response[9..12].parse().unwrap()
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").unwrap().1
}

fn field<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let head = response.split("\r\n\r\n").next().unwrap();
    head.split("\r\n")
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 % 251) as u8).collect()
}

fn cache_of(service: &Service) -> Rc<Cache> {
    let site = service.site();
    let Response::Files(files) = &site.routes.route(0).target.response else {
        panic!("the plan has files only");
    };
    Rc::clone(&files.cache)
}

#[test]
fn file_has_type_length_and_validators() {
    let tree = Tree::of(&["a.txt"]);
    let expected = format!(
        "HTTP/1.1 200 OK\r\nServer: onrush\r\nDate: {}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: 10\r\nLast-Modified: {TIME}\r\nETag: {ETAG}\r\nAccept-Ranges: bytes\r\n\r\n0123456789",
        "-".repeat(29)
    );
    let request = request("GET", "/a.txt", "");
    // The second and third responses come from the cache.
    assert_eq!(
        exchange_text(&tree.plan(), &request.repeat(3)),
        expected.repeat(3)
    );
}

#[test]
fn head_matches_get_without_body() {
    let tree = Tree::of(&["small"]);
    tree.write_sparse("large", 1_000_000);
    for name in ["/small", "/large"] {
        let got = get(&tree.plan(), name);
        let head = exchange_text(&tree.plan(), &request("HEAD", name, ""));
        assert_eq!(head, &got[..got.len() - body(&got).len()], "{name}");
    }
}

#[test]
fn http_1_0_client_gets_connection_field() {
    let tree = Tree::of(&["a"]);
    for (text, connection) in [
        ("GET /a HTTP/1.0\r\n\r\n", "close"),
        (
            "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "keep-alive",
        ),
        (
            "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
            "close",
        ),
    ] {
        let response = exchange_text(&tree.plan(), text);
        assert_eq!(field(&response, "Connection"), Some(connection), "{text}");
        assert_eq!(body(&response), "0123456789");
    }
}

#[test]
fn files_of_all_sizes_are_sent_completely() {
    let held = FILE_IN_MEMORY_MAX;
    for length in [0, 1, held - 1, held, held + 1, 300_000] {
        let tree = Tree::new();
        tree.write("file", &pattern(length));
        let response = exchange(
            &tree.plan(),
            request("GET", "/file", "").repeat(2).as_bytes(),
        );
        let head_length = memchr::memmem::find(&response, b"\r\n\r\n").unwrap() + 4;
        let head = str::from_utf8(&response[..head_length]).unwrap();
        assert_eq!(
            field(head, "Content-Length"),
            Some(length.to_string().as_str())
        );
        let once = [head.as_bytes(), &pattern(length)].concat();
        assert!(response == once.repeat(2), "{length} bytes");
    }
}

#[test]
fn pipelined_file_responses_keep_order() {
    let tree = Tree::new();
    let contents = [pattern(100), pattern(100_000), b"end".to_vec()];
    let mut requests = String::new();
    for (at, content) in contents.iter().enumerate() {
        tree.write(format!("{at}"), content);
        requests += &request("GET", &format!("/{at}"), "");
    }
    let mut response = &exchange(&tree.plan(), requests.as_bytes())[..];
    for content in contents {
        let head_length = memchr::memmem::find(response, b"\r\n\r\n").unwrap() + 4;
        response = &response[head_length..];
        assert!(response.starts_with(&content));
        response = &response[content.len()..];
    }
    assert!(response.is_empty());
}

#[test]
fn directory_serves_first_existing_index() {
    let tree = Tree::of(&["both/index.htm", "none/other"]);
    tree.write("index.html", b"top");
    tree.write("both/index.html", b"first");
    tree.write("second/index.htm", b"second");
    fs::create_dir_all(tree.path("odd/index.html")).unwrap();
    tree.write("odd/index.htm", b"a directory is no index file");
    let plan = tree.plan_with(PathMatch::Any, &["index.html", "index.htm"], false);
    for (path, content) in [
        ("/", "top"),
        ("/both/", "first"),
        ("/second/", "second"),
        ("/odd/", "a directory is no index file"),
    ] {
        let response = get(&plan, path);
        assert_eq!(
            (status(&response), body(&response)),
            (200, content),
            "{path}"
        );
        let media = field(&response, "Content-Type");
        assert_eq!(media, Some("text/html; charset=utf-8"));
    }
    assert_eq!(status(&get(&plan, "/none/")), 403);
    assert_eq!(status(&get(&plan, "/missing/")), 404);
    assert_eq!(status(&get(&plan, "/none/other/")), 404);
}

#[test]
fn directory_without_slash_redirects_to_same_host() {
    let tree = Tree::of(&["dir/index.html", "d r/sub/index.html", "\\h/x", "p/x"]);
    for (target, location) in [
        ("/dir", "/dir/"),
        ("/dir?a=1&b=/", "/dir/?a=1&b=/"),
        ("/dir?", "/dir/?"),
        ("/d%20r/sub", "/d%20r/sub/"),
        ("http://other:1/dir?q", "/dir/?q"),
        ("//dir", "/dir/"),
        ("///dir", "/dir/"),
        ("/\\h", "/%5Ch/"),
        ("//\\h", "/%5Ch/"),
        ("/x/../dir", "/x/../dir/"),
    ] {
        let response = get(&tree.plan(), target);
        assert_eq!(status(&response), 301, "{target}");
        assert_eq!(field(&response, "Location"), Some(location), "{target}");
    }
    let prefix = tree.plan_with(PathMatch::Prefix("/static".into()), &["index.html"], false);
    for (target, location) in [("/static", "/static/"), ("/static/dir", "/static/dir/")] {
        let response = get(&prefix, target);
        assert_eq!(status(&response), 301, "{target}");
        assert_eq!(field(&response, "Location"), Some(location), "{target}");
    }
}

#[test]
fn file_path_excludes_stripped_route_prefix() {
    let tree = Tree::of(&["index.html", "a", "static/a"]);
    for (path, target, found) in [
        (PathMatch::Prefix("/static/".into()), "/static/a", 200),
        (PathMatch::Prefix("/static/".into()), "/static/", 200),
        (PathMatch::Prefix("/static".into()), "/static/a", 200),
        (PathMatch::Prefix("/static".into()), "/static/", 200),
        (PathMatch::Prefix("/static".into()), "/static../a", 404),
        (PathMatch::Prefix("/static".into()), "/static.", 404),
        (PathMatch::Prefix("/static".into()), "/static%2fa", 200),
        (
            PathMatch::Prefix("/static".into()),
            "/x%2f..%2fstatic/a",
            200,
        ),
        (PathMatch::Prefix("/static".into()), "/static/..%2fa", 404),
        (PathMatch::Exact("/a".into()), "/a", 200),
        (PathMatch::Exact("/static/a".into()), "/static/a", 200),
    ] {
        for hidden in [false, true] {
            let plan = tree.plan_with(path.clone(), &["index.html"], hidden);
            assert_eq!(status(&get(&plan, target)), found, "{path:?} {target}");
        }
    }
}

#[test]
fn only_visible_regular_files_are_served() {
    let outside = Tree::of(&["secret"]);
    let tree = Tree::of(&["file", ".hidden", "a/.git/config", "a/..b", "a/b"]);
    symlink(outside.path("secret"), tree.path("absolute")).unwrap();
    let name = outside.0.path().file_name().unwrap();
    symlink(
        Path::new("..").join(name).join("secret"),
        tree.path("relative"),
    )
    .unwrap();
    symlink(outside.0.path(), tree.path("directory")).unwrap();
    symlink("loop", tree.path("loop")).unwrap();
    symlink("nowhere", tree.path("dangling")).unwrap();
    symlink("/proc/self/root/etc/passwd", tree.path("magic")).unwrap();
    std::os::unix::net::UnixListener::bind(tree.path("socket")).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(tree.path("fifo"))
        .status();
    assert!(made.unwrap().success());
    let long = format!("/{}", "x".repeat(300));
    for target in [
        "/missing",
        "/file/",
        "/file/x",
        "/FILE",
        "/.hidden",
        "/a/.git/config",
        "/a/.git/",
        "/a/..b",
        "/absolute",
        "/relative",
        "/directory/secret",
        "/directory/",
        "/loop",
        "/dangling",
        "/magic",
        "/socket",
        "/fifo",
        "/a%2F.git%2Fconfig",
        "/directory%2Fsecret",
        "/%5c..%5csecret",
        &long,
    ] {
        assert_eq!(status(&get(&tree.plan(), target)), 404, "{target}");
    }
    for target in [
        "/..",
        "/../secret",
        "/a/../../secret",
        "/%2e%2e/secret",
        "/a%2f..%2f..%2fetc/passwd",
        "/a/..%2f..%2fsecret",
    ] {
        assert_eq!(status(&get(&tree.plan(), target)), 400, "{target}");
    }
}

#[test]
fn hidden_option_serves_dot_files() {
    let tree = Tree::of(&[
        ".hidden",
        ".dir/file",
        ".well-known/acme-challenge/token",
        ".well-known/.hidden",
        "sub/.well-known/token",
    ]);
    for (target, by_default) in [
        ("/.hidden", 404),
        ("/.dir/file", 404),
        ("/.well-known/acme-challenge/token", 200),
        ("/.well-known/.hidden", 404),
        ("/sub/.well-known/token", 404),
    ] {
        assert_eq!(status(&get(&tree.plan(), target)), by_default, "{target}");
        let all = tree.plan_with(PathMatch::Any, &[], true);
        assert_eq!(status(&get(&all, target)), 200, "{target}");
    }
}

#[test]
fn symlinks_within_root_are_followed() {
    let tree = Tree::of(&["a/file", "b/x"]);
    symlink("a/file", tree.path("link")).unwrap();
    symlink("../a", tree.path("b/up")).unwrap();
    for target in ["/link", "/b/up/file"] {
        assert_eq!(body(&get(&tree.plan(), target)), "0123456789", "{target}");
    }
}

#[test]
fn symlink_with_hidden_name_is_not_served() {
    let tree = Tree::of(&["..data/index.html"]);
    symlink("..data/index.html", tree.path("index.html")).unwrap();
    symlink("..data", tree.path("visible")).unwrap();
    symlink("index.html", tree.path(".link")).unwrap();
    for (target, wanted) in [
        ("/index.html", 200),
        ("/visible/index.html", 200),
        ("/..data/index.html", 404),
        ("/.link", 404),
    ] {
        assert_eq!(status(&get(&tree.plan(), target)), wanted, "{target}");
    }
}

#[test]
fn file_names_may_contain_any_bytes() {
    let tree = Tree::of(&["with space.txt", "grüße.txt", "100%.txt", "a+b&c=d;e"]);
    tree.write(OsStr::from_bytes(b"latin-\xe9.txt"), b"0123456789");
    for target in [
        "/with%20space.txt",
        "/gr%C3%BC%C3%9Fe.txt",
        "/100%25.txt",
        "/a+b&c=d;e",
        "/%61%2bb%26c%3Dd%3be",
        "/latin-%e9.txt",
        "//with%20space.txt",
        "/./with%20space.txt?query",
    ] {
        // Twice: the second response comes from the cache.
        let response = exchange_text(&tree.plan(), &request("GET", target, "").repeat(2));
        assert_eq!(
            response.matches("\r\n\r\n0123456789").count(),
            2,
            "{target}"
        );
    }
}

#[test]
fn files_are_read_only() {
    let tree = Tree::of(&["file"]);
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let response = exchange_text(&tree.plan(), &request(method, "/file", ""));
        assert_eq!(status(&response), 405, "{method}");
        assert_eq!(field(&response, "Allow"), Some("GET, HEAD, OPTIONS"));
    }
    for target in ["/file", "*"] {
        let response = exchange_text(&tree.plan(), &request("OPTIONS", target, ""));
        assert_eq!(status(&response), 204);
        assert_eq!(field(&response, "Allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(field(&response, "Content-Length"), None);
    }
    let posted = "POST /file HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello";
    let response = exchange_text(
        &tree.plan(),
        &format!("{posted}{}", request("GET", "/file", "")),
    );
    assert!(response.starts_with("HTTP/1.1 405 ") && response.ends_with("0123456789"));
}

#[test]
fn unreadable_file_is_forbidden() {
    use std::os::unix::fs::PermissionsExt;
    let tree = Tree::of(&["file"]);
    fs::set_permissions(tree.path("file"), fs::Permissions::from_mode(0o0)).unwrap();
    if fs::File::open(tree.path("file")).is_ok() {
        eprintln!("skipped: this user may read everything");
        return;
    }
    assert_eq!(status(&get(&tree.plan(), "/file")), 403);
}
