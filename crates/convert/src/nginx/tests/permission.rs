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

/// That a condition of these words is written so, in the first route that it makes, and what is said of it.
#[track_caller]
fn check_condition(http: &str, condition: &str, expected: &[&str], is_carried: Outcome) {
    let text =
        format!("http {{ {http} server {{ if ({condition}) {{ return 404; }} return 200; }} }}");
    let conversion = converted(&text);
    let lines = lines(&conversion);
    let routes: Vec<&str> = lines
        .into_iter()
        .filter(|line| !line.starts_with(['[', 'a']))
        .collect();
    assert_eq!(routes, expected, "{condition}");
    let said = outcome(&conversion, "if");
    let is_same = std::mem::discriminant(&said) == std::mem::discriminant(&is_carried);
    assert!(is_same, "{said:?}");
}

#[test]
fn conditions_hold_for_the_requests_for_which_they_do_in_nginx() {
    const YES: &str = "respond = { status = 404 }";
    const NO: &str = "respond = { status = 200 }";
    let approximated = || Outcome::Approximated(String::new());
    check_condition(
        "geo $staff { default 0; 127.0.0.0/8 1; 127.9.0.0/16 0; }",
        "$staff = 0",
        &[
            "from = \"127.9.0.0/16\"",
            YES,
            "from = \"127.0.0.0/8\"",
            NO,
            YES,
        ],
        Outcome::Carried,
    );
    check_condition(
        "geo $b { default 0; 127.0.0.0/8 0; 127.9.0.0/16 1; }",
        "$b",
        &["from = \"127.9.0.0/16\"", YES, NO],
        Outcome::Carried,
    );
    check_condition(
        "map $http_x_key $b { default 0; Secret 1; }",
        "$b",
        &["headers = { X-Key = \"~(?i)^Secret$\" }", YES, NO],
        approximated(),
    );
    check_condition(
        "map $http_user_agent $b { default 0; \"\" 1; }",
        "$b",
        &[
            "headers = { User-Agent = \"!\" }",
            YES,
            "headers = { User-Agent = \"~^$\" }",
            YES,
            NO,
        ],
        approximated(),
    );
    check_condition(
        "",
        "$http_host != \"a.test\"",
        &["headers = { Host = \"a.test\" }", NO, YES],
        Outcome::Carried,
    );
    check_condition(
        "map $host $b { hostnames; default 0; www.* 1; .x.org 2; }",
        "$b = 1",
        &[
            "headers = { Host = '~(?i)^(.+\\.)?x\\.org\\.?(:[0-9]+)?$' }",
            NO,
            "headers = { Host = '~(?i)^www\\.' }",
            YES,
            NO,
        ],
        Outcome::Carried,
    );
    check_condition(
        "",
        "$cookie_a = yes",
        &[
            "headers = { Cookie = \"~(?i:(?:^|[;,]) *a *= *)yes(?:;|$)\" }",
            YES,
            NO,
        ],
        approximated(),
    );
    check_condition(
        "",
        "$arg_debug = 1",
        &["query = { debug = \"1\" }", YES, NO],
        approximated(),
    );
    check_condition(
        "",
        "$request_uri = /x",
        &["path = \"=/x\"", YES, NO],
        approximated(),
    );
    check_condition(
        "",
        "$uri = /x",
        &["path = \"=/x\"", YES, NO],
        Outcome::Carried,
    );
}
