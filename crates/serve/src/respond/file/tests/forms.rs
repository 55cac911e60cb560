//! Files in several codings.

use onrush_config::plan::{self, Compress};
use onrush_http::encoding::Coding;

use super::*;
use crate::worker::compress::decode::Received;

const ALL: [Coding; 3] = [Coding::Zstd, Coding::Brotli, Coding::Gzip];
const PLANNED: [plan::Coding; 3] = [plan::Coding::Zstd, plan::Coding::Brotli, plan::Coding::Gzip];

fn with_siblings(tree: &Tree) -> Plan {
    let mut plan = tree.plan_with(PathMatch::Any, &["index.html"], false);
    if let Action::Files(files) = &mut plan.routes[0].action {
        files.precompressed = PLANNED.to_vec();
    }
    plan
}

/// The same plan with response compression.
fn encoding(mut plan: Plan) -> Plan {
    plan.routes[0].compress = Some(Compress {
        codings: PLANNED.to_vec(),
        types: vec!["text/*".into()],
        size_min: 100,
    });
    plan
}

fn ask(plan: &Plan, method: &str, target: &str, fields: &str) -> Received {
    let bytes = exchange(plan, request(method, target, fields).as_bytes());
    let method = if method == "HEAD" {
        Method::Head
    } else {
        Method::Get
    };
    let mut responses = Received::all(&bytes, method);
    assert_eq!(responses.len(), 1);
    responses.remove(0)
}

fn accept(codings: &str) -> String {
    format!("Accept-Encoding: {codings}\r\n")
}

fn text(bytes: usize) -> Vec<u8> {
    let lines =
        (0..).flat_map(|number: usize| format!("line {}\n", number * 31 % 997).into_bytes());
    lines.take(bytes).collect()
}

#[test]
fn precompressed_sibling_is_served() {
    let tree = Tree::of(&[
        "a.css",
        "a.css.br",
        "a.css.gz",
        "alone.css",
        "d/index.html",
        "d/index.html.gz",
    ]);
    // Files in memory, and files sent from disk.
    for large in [false, true] {
        if large {
            for path in ["a.css", "a.css.br", "a.css.gz"] {
                tree.write(path, &pattern(50_000 + path.len()));
            }
        }
        let plan = with_siblings(&tree);
        for (accepted, target, file, coding) in [
            ("gzip, br, zstd", "/a.css", "a.css.br", Some(Coding::Brotli)),
            ("gzip", "/a.css", "a.css.gz", Some(Coding::Gzip)),
            ("gzip, br;q=0.5", "/a.css", "a.css.gz", Some(Coding::Gzip)),
            ("zstd", "/a.css", "a.css", None),
            ("identity", "/a.css", "a.css", None),
            ("gzip", "/d/", "d/index.html.gz", Some(Coding::Gzip)),
        ] {
            let response = ask(&plan, "GET", target, &accept(accepted));
            assert!(
                response.body == fs::read(tree.path(file)).unwrap(),
                "{accepted} {target}"
            );
            assert_eq!(response.coding(), coding, "{accepted} {target}");
            assert_eq!(response.field("vary"), ["Accept-Encoding"]);
            assert_eq!(
                response.field("content-length"),
                [response.body.len().to_string()]
            );
            let media = if target == "/d/" {
                "text/html"
            } else {
                "text/css"
            };
            assert_eq!(
                response.field("content-type"),
                [format!("{media}; charset=utf-8")]
            );
            let head = ask(&plan, "HEAD", target, &accept(accepted));
            assert_eq!(head.head, response.head);
        }
        let alone = ask(&plan, "GET", "/alone.css", &accept("gzip, br"));
        assert_eq!((alone.coding(), alone.field("vary").len()), (None, 0));
    }
    // A sibling requested directly is a file like any other.
    let itself = ask(&with_siblings(&tree), "GET", "/a.css.br", &accept("br"));
    assert_eq!((itself.coding(), itself.field("vary").len()), (None, 0));
}

#[test]
fn outdated_precompressed_sibling_is_ignored() {
    let tree = Tree::of(&["a.css", "a.css.gz"]);
    fs::write(tree.path("a.css"), b"changed").unwrap();
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_778);
    let file = fs::File::options().append(true).open(tree.path("a.css"));
    file.unwrap().set_modified(second).unwrap();
    let response = ask(&with_siblings(&tree), "GET", "/a.css", &accept("gzip"));
    assert_eq!(
        (response.coding(), response.body.as_slice()),
        (None, &b"changed"[..])
    );
}

#[test]
fn added_and_removed_precompressed_siblings_are_detected() {
    let tree = Tree::of(&["a.css"]);
    on_simulated_cores(|site| {
        let path = tree.path("a.css.gz");
        let plan = with_siblings(&tree);
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let request = request("GET", "/a.css", &accept("gzip"));
            for is_there in [false, true, false] {
                if is_there {
                    fs::write(&path, b"short").unwrap();
                } else {
                    let _ = fs::remove_file(&path);
                }
                site.core.sleep(FILE_CHECK * 2).await;
                client.send(request.as_bytes()).await;
                let response = client.receive_text().await;
                assert_eq!(field(&response, "Content-Encoding").is_some(), is_there);
                let content = if is_there { "short" } else { "0123456789" };
                assert_eq!(body(&response), content);
            }
        }
    });
}

#[test]
fn file_without_sibling_is_compressed() {
    let tree = Tree::new();
    for (path, bytes) in [("small.css", 3000), ("large.css", 300_000)] {
        tree.write(path, &text(bytes));
        let target = format!("/{path}");
        for coding in ALL {
            let plan = encoding(tree.plan());
            let response = ask(&plan, "GET", &target, &accept(coding.token()));
            assert_eq!(response.coding(), Some(coding));
            assert!(response.content() == text(bytes));
            assert!(response.body.len() < bytes / 2);
            let plain = ask(&plan, "GET", &target, "");
            assert!(plain.body == text(bytes));
            assert_eq!(
                response.field("etag"),
                [format!("W/{}", plain.field("etag")[0])]
            );
            assert_eq!(response.field("accept-ranges"), [""; 0]);
            for response in [&response, &plain] {
                assert_eq!(response.field("vary"), ["Accept-Encoding"]);
                assert_eq!(response.field("last-modified"), [TIME]);
            }
            let head = ask(&plan, "HEAD", &target, &accept(coding.token()));
            assert_eq!(head.head, response.head);
        }
    }
    tree.write("small.css.gz", b"sibling");
    let plan = encoding(with_siblings(&tree));
    let response = ask(&plan, "GET", "/small.css", &accept("gzip, br, zstd"));
    assert_eq!(response.body, b"sibling");
    let response = ask(&plan, "GET", "/small.css", &accept("gzip;q=0.5, zstd"));
    assert_eq!(response.coding(), Some(Coding::Zstd));
}

#[test]
fn small_and_incompressible_files_are_not_compressed() {
    let tree = Tree::new();
    tree.write("a.png", &text(5000));
    tree.write("a.txt", &text(99));
    let plan = encoding(tree.plan());
    for target in ["/a.png", "/a.txt"] {
        let response = ask(&plan, "GET", target, &accept("gzip, br, zstd"));
        let plain = ask(&tree.plan(), "GET", target, &accept("gzip, br, zstd"));
        assert_eq!(response, plain);
    }
}

#[test]
fn range_applies_to_uncompressed_file() {
    let tree = Tree::new();
    tree.write("a.css", &text(5000));
    tree.write("a.css.br", b"sibling");
    let plan = encoding(with_siblings(&tree));
    for fields in [
        "Range: bytes=10-19\r\n",
        "Range: bytes=10-19\r\nIf-Range: \"other\"\r\n",
    ] {
        let response = ask(&plan, "GET", "/a.css", &format!("{}{fields}", accept("br")));
        let is_part = response.head.starts_with("HTTP/1.1 206 ");
        assert_eq!(is_part, !fields.contains("other"));
        assert_eq!(response.coding(), None);
        let content = text(5000);
        let wanted = if is_part { &content[10..20] } else { &content };
        assert_eq!(response.body, wanted);
        assert_eq!(response.field("vary"), ["Accept-Encoding"]);
    }
}

#[test]
fn each_coding_has_its_own_etag() {
    let tree = Tree::new();
    for (path, bytes) in [("small.css", 3000), ("large.css", 30_000)] {
        tree.write(path, &text(bytes));
        tree.write(format!("{path}.br"), &text(bytes / 2));
        let plan = encoding(with_siblings(&tree));
        let target = format!("/{path}");
        let tags = ["br", "gzip", "identity"].map(|accepted| {
            let response = ask(&plan, "GET", &target, &accept(accepted));
            response.field("etag")[0].to_owned()
        });
        assert!(tags[0].ends_with("-br\""), "{tags:?}");
        assert!(tags[1].starts_with("W/"), "{tags:?}");
        for (accepted, tag, status) in [
            ("br", &tags[0], 304),
            ("br", &tags[1], 200),
            ("br", &tags[2], 200),
            ("gzip", &tags[0], 200),
            ("gzip", &tags[1], 304),
            // Weak comparison (RFC 9110 13.1.2): equal in meaning.
            ("gzip", &tags[2], 304),
            ("identity", &tags[0], 200),
            ("identity", &tags[2], 304),
        ] {
            let fields = format!("{}If-None-Match: {tag}\r\n", accept(accepted));
            let response = ask(&plan, "GET", &target, &fields);
            let line = format!("HTTP/1.1 {status} ");
            assert!(
                response.head.starts_with(&line),
                "{accepted} {tag}: {}",
                response.head
            );
            assert_eq!(response.field("vary"), ["Accept-Encoding"]);
            if status == 304 {
                assert!(response.body.is_empty());
                let own = match accepted {
                    "br" => &tags[0],
                    "gzip" => &tags[1],
                    _ => &tags[2],
                };
                assert_eq!(response.field("etag"), [own]);
                assert_eq!(response.field("content-encoding"), [""; 0]);
            }
        }
        let fields = format!("{}If-Match: \"other\"\r\n", accept("gzip"));
        assert!(
            ask(&plan, "GET", &target, &fields)
                .head
                .starts_with("HTTP/1.1 412 ")
        );
        let fields = format!("{}If-Match: {}\r\n", accept("gzip"), tags[2]);
        assert!(
            ask(&plan, "GET", &target, &fields)
                .head
                .starts_with("HTTP/1.1 200 ")
        );
    }
}

#[test]
fn compression_respects_http_1_0_and_connection_close() {
    let tree = Tree::new();
    tree.write("small.css", &text(3000));
    tree.write("large.css", &text(30_000));
    let plan = encoding(tree.plan());
    for (target, bytes) in [("/small.css", 3000), ("/large.css", 30_000)] {
        let old = format!("GET {target} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
        let response = Received::first(&exchange(&plan, old.as_bytes()), Method::Get).0;
        assert!(response.coding().is_none() && response.body == text(bytes));
        let fields = format!("{}Connection: close\r\n", accept("gzip"));
        let response = ask(&plan, "GET", target, &fields);
        assert_eq!(response.coding(), Some(Coding::Gzip));
        assert!(response.content() == text(bytes));
        assert_eq!(response.field("connection"), ["close"]);
    }
}

#[test]
fn truncated_file_aborts_compressed_response() {
    let tree = Tree::new();
    on_simulated_cores(|site| {
        tree.write("large.css", &text(8_000_000));
        let path = tree.path("large.css");
        let plan = encoding(tree.plan());
        async move {
            let address = site.serve(&plan);
            let mut client = site.connect(&address).await;
            let request = request("GET", "/large.css", &accept("gzip"));
            client.send(request.as_bytes()).await;
            let mut received = client.receive_until(b"\r\n\r\n").await;
            fs::write(&path, b"short").unwrap();
            received.extend(client.receive_all().await);
            assert!(!Received::first(&received, Method::Get).0.is_whole);
        }
    });
}
