//! Responses where a file is missing: a fallback file or a directory listing. And a single file as the whole response.

use super::*;
use crate::testing::harness::configured;

/// A plan with the files of `tree` below `/app/` and additional keys.
fn plan(tree: &Tree, keys: &str) -> Plan {
    configured(&format!(
        "[[route]]\npath = \"/app/\"\nfiles = {{ root = {:?}, {keys} }}",
        tree.0.path()
    ))
}

#[test]
fn fallback_is_served_for_missing_files() {
    let tree = Tree::of(&["assets/x.js", ".git/config", "secret/.x", "a/index.html"]);
    tree.write("shell/app.html", b"<app>");
    symlink("/etc/passwd", tree.path("out")).unwrap();
    let plan = plan(&tree, "fallback = \"/shell/app.html\"");
    for path in [
        "users/7",
        "",
        "assets/",
        "a/b/../../x.css",
        ".git/config",
        "out",
        "assets/x.js/y",
    ] {
        let response = get(&plan, &format!("/app/{path}"));
        assert_eq!(
            (status(&response), body(&response)),
            (200, "<app>"),
            "{path}: {response}"
        );
        assert_eq!(
            field(&response, "Content-Type"),
            Some("text/html; charset=utf-8")
        );
        assert_eq!(field(&response, "Last-Modified"), Some(TIME));
    }
    for (path, code) in [("assets/x.js", 200), ("assets", 301), ("a/", 200)] {
        let response = get(&plan, &format!("/app/{path}"));
        assert_eq!(status(&response), code, "{path}");
        assert_ne!(body(&response), "<app>", "{path}");
    }
    let since = format!("If-Modified-Since: {TIME}\r\n");
    assert_eq!(status(&get_with(&plan, "/app/users/7", &since)), 304);
    let range = get_with(&plan, "/app/users/7", "Range: bytes=1-3\r\n");
    assert_eq!((status(&range), body(&range)), (206, "app"));
    let head = exchange_text(&plan, &request("HEAD", "/app/users/7", ""));
    assert_eq!((status(&head), body(&head)), (200, ""));
    assert_eq!(
        status(&exchange_text(
            &plan,
            &request("DELETE", "/app/users/7", "")
        )),
        405
    );
}

#[test]
fn missing_fallback_is_ignored() {
    let tree = Tree::of(&["a/x"]);
    let plan = plan(&tree, "fallback = \"gone.html\"");
    assert_eq!(status(&get(&plan, "/app/x")), 404);
    assert_eq!(status(&get(&plan, "/app/a/")), 403);
}

#[test]
fn fallback_uses_compressed_sibling() {
    let tree = Tree::of(&["index.html", "index.html.gz"]);
    let plan = plan(&tree, "fallback = \"index.html\", precompressed = true");
    let response = get_with(&plan, "/app/users/7", "Accept-Encoding: gzip\r\n");
    assert_eq!(field(&response, "Content-Encoding"), Some("gzip"));
}

#[test]
fn listing_is_served_if_enabled() {
    let tree = Tree::of(&["a/<b>.txt", "a/.hidden", "a/sub/x", "with/index.html"]);
    let plan = plan(&tree, "listing = true");
    let page = get(&plan, "/app/a/");
    assert_eq!(status(&page), 200, "{page}");
    assert_eq!(
        field(&page, "Content-Type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(field(&page, "Vary"), Some("Accept"));
    assert_eq!(
        field(&page, "Content-Length"),
        Some(body(&page).len().to_string().as_str())
    );
    for part in [
        "<h1>Index of /app/a/</h1>",
        "./%3Cb%3E.txt",
        "&lt;b&gt;.txt",
        "./sub/",
        "../",
        TIME,
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!page.contains("hidden"), "{page}");
    let head = exchange_text(&plan, &request("HEAD", "/app/a/", ""));
    assert_eq!(head, page[..page.len() - body(&page).len()]);
    let json = get_with(&plan, "/app/a/", "Accept: application/json\r\n");
    assert_eq!(field(&json, "Content-Type"), Some("application/json"));
    assert!(
        json.contains("{\"name\":\"\\u003cb>.txt\",\"type\":\"file\""),
        "{json}"
    );
    assert_eq!(status(&get(&plan, "/app/a")), 301);
    assert_eq!(body(&get(&plan, "/app/with/")), "0123456789");
    assert!(!get(&plan, "/app/").contains("../"), "nothing is above it");
    assert_eq!(status(&get(&plan, "/app/nothing/")), 404);
}

#[test]
fn listing_includes_hidden_names_and_is_bounded() {
    let tree = Tree::of(&[".hidden"]);
    let names: Vec<String> = (0..crate::limits::LISTING_ENTRIES_MAX)
        .map(|at| format!("f{at}"))
        .collect();
    for name in &names {
        fs::File::create(tree.path(name)).unwrap();
    }
    let all = get(&plan(&tree, "listing = true"), "/app/");
    assert!(!all.contains(".hidden") && !all.contains("This list is incomplete"));
    let cut = get(&plan(&tree, "listing = true, hidden = true"), "/app/");
    assert!(cut.contains("This list is incomplete"));
    fs::remove_file(tree.path("f7")).unwrap();
    let hidden = get(&plan(&tree, "listing = true, hidden = true"), "/app/");
    assert!(hidden.contains("./.hidden") && !hidden.contains("This list is incomplete"));
}

/// A plan with a route that responds with the file `name` of `tree`.
fn single(tree: &Tree, status: u16, name: &str, keys: &str) -> Plan {
    configured(&format!(
        "[[route]]\nrespond = {{ status = {status}, file = {:?} }}\n{keys}",
        tree.path(name)
    ))
}

#[test]
fn single_file_is_sent_as_response() {
    let tree = Tree::of(&["sorry.html"]);
    tree.write_sparse("large.bin", 100_000);
    // Links may lead anywhere here, because clients cannot choose the path.
    symlink(tree.path("sorry.html"), tree.path("link.html")).unwrap();
    for name in ["sorry.html", "link.html"] {
        for method in ["GET", "POST"] {
            let plan = single(
                &tree,
                503,
                name,
                "response_headers = { set = { Retry-After = \"60\" } }",
            );
            let response = exchange_text(&plan, &request(method, "/any?x", "Range: bytes=0-1\r\n"));
            assert_eq!((status(&response), body(&response)), (503, "0123456789"));
            assert_eq!(
                field(&response, "Content-Type"),
                Some("text/html; charset=utf-8")
            );
            assert_eq!(field(&response, "Retry-After"), Some("60"));
        }
    }
    let plan = single(&tree, 200, "sorry.html", "");
    let requests = [request("GET", "/x", ""), request("HEAD", "/x", "")].concat();
    let response = exchange_text(&plan, &requests);
    assert_eq!(
        response.matches("Content-Length: 10\r\n").count(),
        2,
        "{response}"
    );
    assert_eq!(response.matches("0123456789").count(), 1, "{response}");
    let since = format!("If-Modified-Since: {TIME}\r\n");
    assert_eq!(status(&get_with(&plan, "/x", &since)), 304);
    assert_eq!(status(&get_with(&plan, "/x", "Range: bytes=0-1\r\n")), 206);
    for status_of in [200, 404] {
        let large = single(&tree, status_of, "large.bin", "");
        let response = exchange(&large, request("GET", "/", "").as_bytes());
        assert!(response.len() > 100_000);
        assert_eq!(
            response
                .iter()
                .rev()
                .take(100_000)
                .filter(|&&byte| byte == 0)
                .count(),
            100_000
        );
        assert_eq!(
            exchange_text(&large, &request("HEAD", "/", ""))
                .matches('\0')
                .count(),
            0
        );
    }
}

#[test]
fn changed_single_file_is_reread() {
    for status_of in [200, 503] {
        on_simulated_cores(move |site| async move {
            let tree = Tree::of(&["x.txt"]);
            let address = site.serve(&single(&tree, status_of, "x.txt", ""));
            let mut client = site.connect(&address).await;
            let mut ask = async || {
                client.send(request("GET", "/", "").as_bytes()).await;
                client.receive_text().await
            };
            assert_eq!(body(&ask().await), "0123456789");
            tree.write("x.txt", b"new");
            site.core.sleep(FILE_CHECK).await;
            assert_eq!(body(&ask().await), "new");
            fs::remove_file(tree.path("x.txt")).unwrap();
            site.core.sleep(FILE_CHECK).await;
            assert_eq!(status(&ask().await), 404);
            tree.write("x.txt", b"back");
            assert_eq!(body(&ask().await), "back");
        });
    }
}

#[test]
fn single_file_is_compressed() {
    let tree = Tree::new();
    tree.write("x.txt", &[b'x'; 4096]);
    let plan = single(&tree, 200, "x.txt", "compress = true");
    let response = exchange(
        &plan,
        request("GET", "/", "Accept-Encoding: gzip\r\n").as_bytes(),
    );
    let head = String::from_utf8_lossy(&response).into_owned();
    assert_eq!(field(&head, "Content-Encoding"), Some("gzip"));
}

#[test]
fn missing_single_file_fails_check() {
    let tree = Tree::of(&["x"]);
    for (name, why) in [
        ("gone", "it does not exist"),
        ("", "it is not a regular file"),
    ] {
        let unusable = crate::site::check::read(&single(&tree, 200, name, ""));
        let Err(crate::site::check::PlanErrors(wrong)) = unusable else {
            panic!("{name:?} can be served");
        };
        let message = wrong[0].to_string();
        assert!(
            message.starts_with("cannot serve the file ") && message.ends_with(why),
            "{message}"
        );
        assert!(wrong[0].place.is_some());
    }
}
