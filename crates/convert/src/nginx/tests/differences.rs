//! Differences from nginx that the notes report, and results that are the same.

use super::*;

/// Checks that the result for the inside of a server has the `expected` parts and not the `missing` ones.
#[track_caller]
fn check_text(server: &str, expected: &[&str], missing: &[&str]) -> Conversion {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let text = lines(&conversion).join("\n");
    for part in expected {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    for part in missing {
        assert!(!text.contains(part), "{part} is in\n{text}");
    }
    conversion
}

/// Checks that the note on a directive of a server contains the words `said`.
#[track_caller]
fn check_note(server: &str, directive: &str, said: &str) {
    let conversion = converted(&format!("http {{ server {{ listen 80; {server} }} }}"));
    let outcome = format!("{:?}", outcome(&conversion, directive));
    assert!(outcome.contains(said), "{outcome}\n{}", conversion.text);
}

#[test]
fn rewritten_file_path_becomes_another_root() {
    check_text(
        "root /w; location /a/ { rewrite ^/a/(.*)$ /b/$1 break; }",
        &["path = \"/a/\"\nfiles = { root = \"/w/b/\""],
        &[],
    );
    for rule in [
        "rewrite ^/a/(.*)$ /b/c$1 break;",
        "rewrite (.*)x$ $1y break;",
        "rewrite ^/a/(.*)$ /$1?a=b break;",
    ] {
        let server = format!("root /w; location /a/ {{ {rule} }}");
        check_text(&server, &["respond = { status = 501 }"], &[]);
        check_note(&server, "rewrite", "LeftOut");
    }
}

#[test]
fn comparison_with_variable_is_unsupported() {
    for condition in ["$http_x_key != \"secret$host\"", "$arg_t = $cookie_t"] {
        let server =
            format!("location / {{ if ({condition}) {{ return 403; }} proxy_pass http://a; }}");
        check_text(
            &server,
            &["respond = { status = 403 }"],
            &["{host}", "forward ="],
        );
        check_note(&server, "if", "has variables");
    }
    check_text(
        "location / { if ($http_x ~ (a|b$host)) { return 403; } return 200; }",
        &["headers = { X = \"~(a|b$host)\" }"],
        &[],
    );
}

#[test]
fn redirect_with_arguments_keeps_query() {
    check_text(
        "rewrite ^/a$ /b?x=1 redirect;",
        &["redirect = \"/b?x=1&{query}\""],
        &[],
    );
    check_text(
        "rewrite ^/a$ /b?x=1? redirect;",
        &["redirect = \"/b?x=1\""],
        &[],
    );
}

#[test]
fn singleton_headers_are_replaced() {
    check_text(
        "add_header ETag \"\"; add_header Last-Modified x; root /w;",
        &["response_headers = { set = { Last-Modified = \"x\" }, remove = [\"ETag\"] }"],
        &[],
    );
}

#[test]
fn empty_server_name_matches_requests_without_host() {
    let text = "http { server { server_name a.org; return 200; } server { server_name \"\" b.org; return 404; } }";
    let conversion = converted(text);
    let found = lines(&conversion).join("\n");
    assert!(
        found.contains("headers = { Host = \"!\" }\nrespond = { status = 404 }"),
        "{found}"
    );
    assert!(
        found.contains("host = \"b.org\"\nrespond = { status = 404 }"),
        "{found}"
    );
}

#[test]
fn location_timeouts_do_not_affect_others() {
    check_text(
        "location /a/ { proxy_pass http://a; proxy_read_timeout 2s; proxy_connect_timeout 3s; }
         location /b/ { proxy_pass http://a; proxy_connect_timeout 3s; }",
        &[
            "[timeouts]\nconnect = \"3s\"\n[",
            "path = \"/a/\"\ntimeouts = { upstream_first_byte = \"2s\", upstream_body = \"2s\" }",
        ],
        &[],
    );
    check_text(
        "proxy_read_timeout 2s; location / { proxy_pass http://a; } location /b/ { proxy_pass http://b; }",
        &["[timeouts]\nupstream_body = \"2s\"\nupstream_first_byte = \"2s\""],
        &["timeouts = {"],
    );
}

#[test]
fn address_rules_with_unused_proxy_header_refuse() {
    let server = "listen 81 proxy_protocol; allow 10.0.0.0/8; deny all; root /w;";
    check_text(server, &["respond = { status = 501 }"], &["files ="]);
    check_text(
        "listen 81 proxy_protocol; real_ip_header proxy_protocol; set_real_ip_from 10.0.0.0/8; allow 10.0.0.0/8; deny all; root /w;",
        &["allow = \"10.0.0.0/8\"", "files ="],
        &[],
    );
    // nginx uses the address of the connection or the address in another field.
    for words in [
        "listen 81 proxy_protocol; real_ip_header proxy_protocol;",
        "set_real_ip_from 10.0.0.0/8;",
        "real_ip_header X-Real-IP; set_real_ip_from 10.0.0.0/8;",
        "listen 81 proxy_protocol; real_ip_header X-Forwarded-For; set_real_ip_from 10.0.0.0/8;",
    ] {
        let server = format!("{words} allow 10.0.0.0/8; deny all; root /w;");
        check_text(&server, &["respond = { status = 501 }"], &["files ="]);
    }
    check_text(
        "real_ip_header X-Forwarded-For; set_real_ip_from 10.0.0.0/8; allow 10.0.0.0/8; deny all; root /w;",
        &["trust = [\"10.0.0.0/8\"]", "files ="],
        &[],
    );
    check_note(
        "set_real_ip_from 10.0.0.0/8; root /w;",
        "set_real_ip_from",
        "X-Real-IP",
    );
}

#[test]
fn conditions_on_unknown_client_address_refuse() {
    for (http, server) in [
        ("", "if ($remote_addr != 10.0.0.1) { return 403; }"),
        (
            "",
            "set $a $remote_addr; if ($a != 10.0.0.1) { return 444; }",
        ),
        (
            "geo $a { default 0; 10.0.0.0/8 1; }",
            "if ($a = 0) { return 403; }",
        ),
        (
            "map $remote_addr $a { default 0; 10.0.0.1 1; }",
            "if ($a = 0) { rewrite ^ /no last; }",
        ),
    ] {
        let text = |listen: &str| {
            let text = format!("http {{ {http} server {{ {listen} {server} root /w; }} }}");
            converted(&text).text
        };
        let closed = text("listen 81 proxy_protocol;");
        assert!(closed.contains("respond = { status = 403 }"), "{closed}");
        assert!(!closed.contains("files ="), "{closed}");
        let known =
            "listen 81 proxy_protocol; real_ip_header proxy_protocol; set_real_ip_from 10.0.0.0/8;";
        let known = text(known);
        assert!(known.contains("files ="), "{known}");
    }
}

#[test]
fn geo_of_other_variable_refuses() {
    let text = "http { geo $http_x_ip $a { default 0; 10.0.0.0/8 1; } server { if ($a = 0) { return 403; } root /w; } }";
    let conversion = converted(text);
    let text = &conversion.text;
    assert!(text.contains("respond = { status = 403 }"), "{text}");
    assert!(!text.contains("files ="), "{text}");
}

#[test]
fn single_failure_ejects_server_if_others_remain() {
    let text = |servers: &str| {
        let text = format!(
            "http {{ upstream a {{ {servers} }} server {{ location / {{ proxy_pass http://a; proxy_next_upstream error http_503; }} }} }}"
        );
        let conversion = converted(&text);
        let said = format!("{:?}", outcome(&conversion, "proxy_next_upstream"));
        assert!(said.contains("does not count as a failure"), "{said}");
        conversion.text
    };
    let two = text("server 10.0.0.1; server 10.0.0.2;");
    let eject = "eject = { on = \"connections\", failures = 1 }";
    assert!(two.contains(eject), "{two}");
    let one = text("server 10.0.0.1;");
    assert!(!one.contains("eject"), "{one}");
}

#[test]
fn trace_method_is_refused() {
    let conversion = converted("http { server { return 200; } }");
    let text = &conversion.text;
    let trace = text.find("method = \"TRACE\"\nrespond = { status = 405 }");
    assert!(trace < text.find("status = 200"), "{text}");
}

#[test]
fn differences_have_notes() {
    for (server, directive, said) in [
        ("return 301 https://a.org$uri;", "return", "decodes it"),
        (
            "location / { proxy_pass http://a; proxy_set_header X-B $http_x_c; }",
            "proxy_set_header",
            "joins the values",
        ),
        (
            "location / { proxy_pass http://a; proxy_set_header X-B $realip_remote_addr; }",
            "proxy_set_header",
            "the field is removed",
        ),
        (
            "location / { proxy_pass http://a; proxy_set_header X-B $proxy_add_x_forwarded_for; }",
            "proxy_set_header",
            "contains only the client address",
        ),
        (
            "add_header X-B $http_x_c; return 200;",
            "add_header",
            "sent empty",
        ),
        (
            "add_header X-B $is_args$args; return 200;",
            "add_header",
            "a ? even if the request has no query",
        ),
        ("set $args a; return 200;", "set", "LeftOut"),
        ("set $limit_rate 1k; return 200;", "set", "LeftOut"),
        ("limit_rate 1k; return 200;", "limit_rate", "limit the rate"),
        (
            "keepalive_requests 1; return 200;",
            "keepalive_requests",
            "Approximated",
        ),
        (
            "keepalive_timeout 0; root /w;",
            "keepalive_timeout",
            "Approximated",
        ),
        (
            "keepalive_timeout 0; return 200;",
            "keepalive_timeout",
            "Approximated",
        ),
        (
            "root /w; autoindex on; autoindex_format xml;",
            "autoindex_format",
            "LeftOut",
        ),
        (
            "root /w; autoindex on; autoindex_format json;",
            "autoindex_format",
            "Approximated",
        ),
        (
            "root /w; location = /index.html { add_header X-A a; }",
            "location = /index.html",
            "do not apply to index.html",
        ),
        (
            "listen 81 proxy_protocol; root /w;",
            "listen 81",
            "nginx uses the address",
        ),
        (
            "listen 81 proxy_protocol; real_ip_header proxy_protocol; set_real_ip_from 10.0.0.0/8; root /w;",
            "listen 81",
            "nginx expects one on every connection",
        ),
    ] {
        check_note(server, directive, said);
    }
}

#[test]
fn hidden_header_can_be_added_again() {
    for (added, values) in [
        ("add_header X-A b;", "\"b\""),
        ("add_header X-A b; add_header X-A c;", "[\"b\", \"c\"]"),
    ] {
        let edits = format!("response_headers = {{ add = {{ X-A = {values} }}, on = [200,");
        check_text(
            &format!("location / {{ proxy_pass http://a; proxy_hide_header X-A; {added} }}"),
            &["\"X-Accel-Redirect\", \"X-A\"], refuse = [", &edits],
            &["remove"],
        );
    }
}

#[test]
fn nginx_internal_headers_are_hidden() {
    let text = converted("http { server { location / { proxy_pass http://a; } } }").text;
    let usual = "upstream_headers = { hide = [\"Date\", \"Server\", \"X-Pad\", \"X-Accel-Buffering\", \"X-Accel-Charset\", \"X-Accel-Expires\", \"X-Accel-Limit-Rate\", \"X-Accel-Redirect\"], refuse = [\"X-Accel-Redirect\"] }";
    assert_eq!(text.matches(usual).count(), 1, "{text}");
    check_text(
        "location / { proxy_pass http://a; proxy_ignore_headers X-Accel-Redirect; proxy_pass_header Server; proxy_hide_header Date; }",
        &["upstream_headers = { hide = [\"Date\", \"X-Pad\","],
        &["refuse", "\"Server\""],
    );
    let files = converted("http { server { root /w; } }").text;
    assert!(!files.contains("upstream_headers"), "{files}");
}

/// The result for the inside of a server if these files exist.
#[track_caller]
fn text_beside(server: &str, files: &[(&'static str, &str)]) -> String {
    let text = format!("http {{ server {{ listen 80; {server} }} }}");
    let mut all = vec![("/etc/nginx/nginx.conf", text)];
    all.extend(files.iter().map(|(name, text)| (*name, (*text).to_owned())));
    let conversion = converted_files(all).expect("it is nginx's language");
    verified(conversion).text
}

#[test]
fn file_alias_applies_to_exact_path() {
    let text = text_beside("location /a { alias /x/f; }", &[("/x/f", "")]);
    let file = text.find("path = \"=/a\"\nrespond = { status = 200, file = \"/x/f\" }");
    let others = text.find("path = \"/a\"\nrespond = { status = 404 }");
    assert!(file.is_some() && file < others, "{text}");
}

#[test]
fn missing_relative_root_is_404() {
    let text = text_beside("root other; location /a/ { root html; }", &[]);
    assert!(text.contains("\nrespond = { status = 404 }"), "{text}");
    assert!(text.contains("root = \"/usr/share/nginx/html\""), "{text}");
}

#[test]
fn unsupported_hashes_exclude_users() {
    const HASH: &str = "$6$ab$jnZj29NS/hK2GaouP6AGMIBwD6owZFRejcn9QRdlwSjZaVr.fR9dH2TXrKL/PaacUXwtGfI.4O9zxvy2k6fbE1";
    let auth = "auth_basic x; auth_basic_user_file /p; root /w;";
    let text = text_beside(
        auth,
        &[("/p", &format!("a:$apr1$x$y\n# c\nb:{HASH}:comment\n"))],
    );
    assert!(
        text.contains(&format!(
            "basic_auth = {{ realm = \"x\", users = {{ b = \"{HASH}\" }} }}"
        )),
        "{text}"
    );
    let text = text_beside(auth, &[("/p", "a:$apr1$x$y\n")]);
    assert!(
        text.contains("respond = { status = 501 }") && !text.contains("files ="),
        "{text}"
    );
    let text = text_beside(auth, &[("/p", &format!("a:{HASH}\n"))]);
    assert!(text.contains("file = \"/p\""), "{text}");
}

#[test]
fn upstream_tls_names_are_valid() {
    check_text(
        "location / { proxy_pass https://a; proxy_ssl_name backend:123; proxy_ssl_certificate $arg_x.crt; proxy_ssl_certificate_key k; }",
        &["tls = { verify = false, name = \"backend\" }"],
        &[],
    );
    check_text(
        "location / { proxy_pass https://a; proxy_ssl_name a_b:x:1; }",
        &["tls = { verify = false }"],
        &[],
    );
}
