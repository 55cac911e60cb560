//! What nginx refuses or keeps for itself is not given away by what is made of its configuration.

use super::*;

/// That the last route of this server has none of these words, and that what is said of a directive contains that.
#[track_caller]
fn check_missing(server: &str, missing: &[&str], directive: &str, said: &str) {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let text = lines(&conversion).join("\n");
    let text = text.rsplit("[[route]]").next().expect("a part");
    for word in missing {
        assert!(!text.contains(word), "{text}");
    }
    let outcome = format!("{:?}", outcome(&conversion, directive));
    assert!(outcome.contains(said), "{outcome}\n{text}");
}

#[test]
fn index_files_of_other_locations_are_not_sent_as_files() {
    for action in [
        "fastcgi_pass unix:/p;",
        "proxy_pass http://a;",
        "deny all;",
        "return 403;",
        "root /elsewhere;",
    ] {
        let server = format!(
            "root /w; index index.php index.html; location / {{ try_files $uri $uri/ =404; }}
             location ~ \\.php$ {{ {action} }} location ~ /\\.(git|ht) {{ deny all; }}"
        );
        check_missing(
            &server,
            &["index.php"],
            "index",
            "LeftOut(\"index.php of a directory may be location ~ \\\\.php$",
        );
    }
    check_missing(
        "root /w; location / { } location = /index.html { deny all; }",
        &["\"index.html\""],
        "root",
        "LeftOut",
    );
    check_missing(
        "root /w; location = / { index a.html; } location / { proxy_pass http://a; }",
        &["a.html"],
        "index",
        "LeftOut",
    );
    let kept = converted(
        "http { server { root /w; index index.php; location / { } location ~ \\.php$ { expires 1h; } } }",
    );
    assert_eq!(outcome(&kept, "index"), Outcome::Carried);
}

#[test]
fn pages_of_errors_are_no_files_where_another_location_takes_them() {
    check_missing(
        "root /w; error_page 404 /index.php; location ~ \\.php$ { proxy_pass http://a; }",
        &["error_pages"],
        "error_page",
        "LeftOut(\"/index.php is location ~ \\\\.php$",
    );
    check_missing(
        "root /w; error_page 403 /403.html; deny all;",
        &["error_pages"],
        "error_page",
        "LeftOut(\"who is refused",
    );
    check_missing(
        "root /w; location / { try_files $uri /index.html; } location = /index.html { deny all; }",
        &["fallback"],
        "try_files",
        "LeftOut(\"/index.html is location = /index.html",
    );
}
