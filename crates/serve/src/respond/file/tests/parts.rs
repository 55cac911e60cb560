//! Conditional and range requests for files.

use std::ops::Range;

use super::*;

#[test]
fn preconditions_decide_status() {
    let tree = Tree::of(&["file"]);
    for (fields, expected) in [
        (format!("If-None-Match: {ETAG}"), 304),
        (format!("If-None-Match: \"other\", W/{ETAG}"), 304),
        ("If-None-Match: \"other\"".into(), 200),
        (format!("If-Modified-Since: {TIME}"), 304),
        (
            "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT".into(),
            200,
        ),
        (format!("If-Match: {ETAG}"), 200),
        ("If-Match: \"other\"".into(), 412),
        (format!("If-Unmodified-Since: {TIME}"), 200),
        (
            "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36 GMT".into(),
            412,
        ),
        // A failed precondition takes precedence over a range.
        (format!("If-None-Match: {ETAG}\r\nRange: bytes=0-1"), 304),
        (format!("If-Match: {ETAG}\r\nRange: bytes=0-1"), 206),
    ] {
        for method in ["GET", "HEAD"] {
            let response = exchange_text(
                &tree.plan(),
                &request(method, "/file", &format!("{fields}\r\n")),
            );
            let expected = match (method, expected) {
                ("HEAD", 206) => 200,
                (_, expected) => expected,
            };
            assert_eq!(status(&response), expected, "{method} {fields}");
            if expected == 304 {
                assert_eq!(field(&response, "ETag"), Some(ETAG));
                assert_eq!(field(&response, "Last-Modified"), Some(TIME));
                assert_eq!(field(&response, "Content-Length"), None);
                assert_eq!(body(&response), "");
            }
        }
    }
}

#[test]
fn single_range_is_sent() {
    let tree = Tree::of(&["small"]);
    tree.write("large", &pattern(50_000));
    let large = |range: Range<usize>| pattern(50_000)[range].to_vec();
    for (target, range, content_range, content) in [
        ("/small", "bytes=0-0", "bytes 0-0/10", b"0".to_vec()),
        ("/small", "bytes=2-4", "bytes 2-4/10", b"234".to_vec()),
        ("/small", "bytes=7-", "bytes 7-9/10", b"789".to_vec()),
        ("/small", "bytes=-2", "bytes 8-9/10", b"89".to_vec()),
        (
            "/large",
            "bytes=0-9",
            "bytes 0-9/50000",
            pattern(10).to_vec(),
        ),
        (
            "/large",
            "bytes=100-40099",
            "bytes 100-40099/50000",
            large(100..40_100),
        ),
        (
            "/large",
            "bytes=-1",
            "bytes 49999-49999/50000",
            large(49_999..50_000),
        ),
    ] {
        let request = request("GET", target, &format!("Range: {range}\r\n"));
        let response = exchange(&tree.plan(), request.as_bytes());
        let at = memchr::memmem::find(&response, b"\r\n\r\n").unwrap() + 4;
        let head = str::from_utf8(&response[..at]).unwrap();
        assert_eq!(status(head), 206, "{range}");
        assert_eq!(field(head, "Content-Range"), Some(content_range));
        let length = content.len().to_string();
        assert_eq!(field(head, "Content-Length"), Some(length.as_str()));
        assert!(response[at..] == content, "{range}");
    }
}

#[test]
fn unsatisfiable_range_is_416_and_malformed_is_ignored() {
    let tree = Tree::of(&["file"]);
    tree.write("empty", b"");
    for (target, fields, expected) in [
        ("/file", "Range: bytes=10-", 416),
        ("/file", "Range: bytes=-0", 416),
        ("/empty", "Range: bytes=0-", 416),
        ("/empty", "Range: bytes=-1", 200),
        ("/file", "Range: bytes=2-1", 200),
        ("/file", "Range: lines=0-1", 200),
        ("/file", "Range: bytes=0-1\r\nRange: bytes=2-3", 200),
    ] {
        let response = get_with(&tree.plan(), target, &format!("{fields}\r\n"));
        assert_eq!(status(&response), expected, "{target} {fields}");
        if expected == 416 {
            let length = if target == "/file" { 10 } else { 0 };
            let content_range = format!("bytes */{length}");
            assert_eq!(
                field(&response, "Content-Range"),
                Some(content_range.as_str())
            );
        }
    }
}

#[test]
fn outdated_if_range_gets_whole_file() {
    let tree = Tree::of(&["file"]);
    for (validator, expected) in [
        (ETAG, 206),
        (TIME, 206),
        ("\"other\"", 200),
        ("Sun, 06 Nov 1994 08:49:38 GMT", 200),
    ] {
        let fields = format!("Range: bytes=1-2\r\nIf-Range: {validator}\r\n");
        let response = get_with(&tree.plan(), "/file", &fields);
        assert_eq!(status(&response), expected, "{validator}");
    }
}

#[test]
fn multiple_ranges_are_multipart() {
    let tree = Tree::new();
    for length in [2000usize, 50_000] {
        tree.write("file.bin", &pattern(length));
        let plan = tree.plan();
        on_every_driver(|site| {
            let plan = plan.clone();
            async move {
                let address = site.serve(&plan);
                let fields = "Range: bytes=1000-1009,0-4,-100,99999-\r\n";
                let mut client = site.connect(&address).await;
                let both = request("GET", "/file.bin", fields) + &request("HEAD", "/file.bin", "");
                client.send(both.as_bytes()).await;
                let head = client.receive_until(b"\r\n\r\n").await;
                let head = String::from_utf8(head).unwrap();
                assert_eq!(status(&head), 206);
                let media = field(&head, "Content-Type").unwrap();
                let boundary = media
                    .strip_prefix("multipart/byteranges; boundary=")
                    .unwrap();
                let mut expected = Vec::new();
                for range in [1000..1010, 0..5, length - 100..length] {
                    expected.extend(
                        format!(
                            "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
                             Content-Range: bytes {}-{}/{length}\r\n\r\n",
                            range.start,
                            range.end - 1
                        )
                        .into_bytes(),
                    );
                    expected.extend(&pattern(length)[range]);
                }
                expected.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
                let announced: usize = field(&head, "Content-Length").unwrap().parse().unwrap();
                assert_eq!(announced, expected.len());
                assert!(client.receive_exactly(announced).await == expected);
                // The body has exactly that length: the next response follows.
                let next = client.receive_until(b"\r\n\r\n").await;
                assert!(next.starts_with(b"HTTP/1.1 200 "));
            }
        });
    }
}

#[test]
fn large_file_length_exceeds_32_bits() {
    let tree = Tree::new();
    tree.write_sparse("huge", 5_000_000_000);
    let head = exchange_text(&tree.plan(), &request("HEAD", "/huge", ""));
    assert_eq!(field(&head, "Content-Length"), Some("5000000000"));
    let response = get_with(&tree.plan(), "/huge", "Range: bytes=4999999998-\r\n");
    assert_eq!(
        field(&response, "Content-Range"),
        Some("bytes 4999999998-4999999999/5000000000")
    );
    assert_eq!(body(&response), "\0\0");
}
