//! Settings of proxies, servers and addresses, and unavoidable differences of the result.

use super::*;

/// Converts a frontend and a backend `app` with these lines.
fn of(front: &str, back: &str) -> Conversion {
    converted(&format!(
        "frontend f\n mode http\n bind :80\n{front}\n default_backend app\nbackend app\n mode http\n{back}\n"
    ))
}

const SERVER: &str = " server one 10.0.0.1:80";

#[track_caller]
fn check_line(conversion: &Conversion, line: &str) {
    assert!(
        lines(conversion).contains(&line),
        "{line}\n{}",
        conversion.text
    );
}

#[test]
fn small_bodies_are_compressed() {
    let conversion = of(" compression algo gzip", SERVER);
    check_line(
        &conversion,
        "compress = { codings = [\"gzip\"], size_min = 1, types = [\"application/*\", \"audio/*\", \"font/*\", \"image/*\", \"text/*\", \"video/*\"] }",
    );
    check_note(&conversion, "compression", "without Content-Type");
    let words = " compression algo gzip\n compression type text/plain\n compression offload";
    let conversion = of(words, SERVER);
    check_line(
        &conversion,
        "compress = { codings = [\"gzip\"], size_min = 1, types = [\"text/plain\"] }",
    );
    check_line(
        &conversion,
        "request_headers = { remove = [\"Accept-Encoding\"] }",
    );
}

/// Checks that the note of a line contains these words.
#[track_caller]
fn check_note(conversion: &Conversion, line: &str, words: &str) {
    let said = format!("{:?}", outcome(conversion, line));
    assert!(said.contains(words), "{said}");
}

#[test]
fn single_server_name_header_is_sent() {
    let name = " http-send-name-header X-Name";
    let conversion = of("", &format!("{name}\n{SERVER}"));
    check_line(
        &conversion,
        "request_headers = { set = { X-Name = \"one\" } }",
    );
    let conversion = of("", &format!("{name}\n{SERVER}\n server two 10.0.0.2:80"));
    check_line(&conversion, "request_headers = { remove = [\"X-Name\"] }");
    let said = outcome(&conversion, "http-send-name-header");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
}

#[test]
fn sticky_cookie_differences_are_reported() {
    for (words, expected) in [
        ("insert", "HttpOnly"),
        ("insert indirect", "the cookie is forwarded to servers"),
        ("insert nocache", "Cache-Control"),
    ] {
        let conversion = of("", &format!(" cookie SRV {words}\n{SERVER} cookie a"));
        match outcome(&conversion, "cookie") {
            Outcome::Approximated(how) => assert!(how.contains(expected), "{words}: {how}"),
            other => panic!("{words}: {other:?}"),
        }
    }
    for words in [
        "insert domain .a.org",
        "insert preserve",
        "insert maxidle 5m",
    ] {
        let conversion = of("", &format!(" cookie SRV {words}\n{SERVER} cookie a"));
        let said = outcome(&conversion, "cookie");
        assert!(matches!(said, Outcome::LeftOut(_)), "{words}: {said:?}");
    }
}

#[test]
fn environment_variables_expand_in_double_quotes() {
    let conversion = converted(&format!(
        "global\n setenv NAME shop\nfrontend f\n mode http\n bind :80\n timeout client \"${{NONE-5s}}\"\n http-request set-header X-A \"$NAME\"\n http-request set-header X-B ${{NAME}}\n default_backend app\n{AROUND}"
    ));
    check_line(&conversion, "client_body = \"5s\"");
    check_line(
        &conversion,
        "request_headers = { set = { X-A = \"shop\", X-B = \"${{NAME}}\" } }",
    );
    let said = outcome(&conversion, "timeout client");
    assert!(matches!(said, Outcome::Approximated(_)), "{said:?}");
    assert_eq!(
        outcome(&conversion, "http-request set-header X-A"),
        Outcome::Carried
    );
}

#[test]
fn request_id_header_is_set_after_rules() {
    let conversion = of(
        " unique-id-format %[uuid()]\n unique-id-header X-Id\n http-request del-header X-Id",
        SERVER,
    );
    check_line(
        &conversion,
        "request_headers = { set = { X-Id = \"{request_id}\" } }",
    );
    let said = outcome(&conversion, "unique-id-format");
    assert!(matches!(said, Outcome::Approximated(_)), "{said:?}");
}

#[test]
fn dropped_header_names_are_reported() {
    for (word, is_left_out) in [("preserve", false), ("delete", true), ("reject", true)] {
        let line = format!(" option http-restrict-req-hdr-names {word}");
        let said = outcome(&of(&line, SERVER), "option http-restrict");
        assert_eq!(
            matches!(said, Outcome::LeftOut(_)),
            is_left_out,
            "{word}: {said:?}"
        );
    }
}

#[test]
fn server_name_in_request_rules_is_nosrv() {
    let conversion = of(
        " http-request set-header X-A %s:%b\n http-response set-header X-B %s",
        SERVER,
    );
    check_line(
        &conversion,
        "request_headers = { set = { X-A = \"<NOSRV>:f\" } }",
    );
    check_line(
        &conversion,
        "response_headers = { set = { X-B = \"{server}\" } }",
    );
    let said = outcome(&conversion, "http-response");
    assert!(matches!(said, Outcome::Approximated(_)), "{said:?}");
}

#[test]
fn ca_is_omitted_without_verification() {
    for (server, tls) in [
        (
            "ssl verify none ca-file /ca.pem",
            "tls = { verify = false }",
        ),
        (
            "ssl ca-file /ca.pem verify none",
            "tls = { verify = false }",
        ),
        (
            "ssl ca-file /ca.pem verify required",
            "tls = { ca = \"/ca.pem\" }",
        ),
    ] {
        check_line(&of("", &format!("{SERVER} {server}")), tls);
    }
    let of_global = converted(&format!(
        "global\n ssl-server-verify none\nfrontend f\n mode http\n bind :80\n default_backend b\nbackend b\n mode http\n{SERVER} ssl\n"
    ));
    check_line(&of_global, "tls = { verify = false }");
    for (bind, expected) in [
        ("verify none ca-file /ca.pem", ""),
        ("ca-file /ca.pem verify none", ""),
        ("ca-file /ca.pem", ""),
        (
            "verify optional ca-file /ca.pem",
            "client_ca = \"/ca.pem\", client_certificates = \"optional\"",
        ),
    ] {
        let front = format!(" bind :443 ssl crt /a.pem {bind}");
        let conversion = of(&front, SERVER);
        let is_there = conversion.text.contains("client_ca");
        assert_eq!(
            is_there,
            !expected.is_empty(),
            "{bind}: {}",
            conversion.text
        );
        assert!(
            conversion.text.contains(expected),
            "{bind}: {}",
            conversion.text
        );
    }
}

#[test]
fn crt_list_can_require_client_certificates() {
    let files = vec![
        (
            "/h.cfg",
            format!(
                "frontend f\n mode http\n bind :443 ssl crt-list /certs\n default_backend b\nbackend b\n mode http\n{SERVER}\n"
            ),
        ),
        (
            "/certs",
            "/a.pem [verify required ca-file /ca.pem] a.org\n/b.pem\n".to_owned(),
        ),
    ];
    let conversion = verified(converted_files(files).expect("it is HAProxy's language"));
    let asked = "client_ca = \"/ca.pem\", client_certificates = \"required\"";
    assert!(conversion.text.contains(asked), "{}", conversion.text);
}

#[test]
fn append_slash_does_not_duplicate_slash() {
    let conversion = of(
        " redirect code 301 prefix /new drop-query append-slash if { path_beg /slash }",
        SERVER,
    );
    for line in [
        "path = '~^/slash(?s-u:.*)(?:/\\z)'",
        "redirect = { to = \"/new{path}\", status = 301 }",
        "redirect = { to = \"/new{path}/\", status = 301 }",
    ] {
        check_line(&conversion, line);
    }
    let said = outcome(&conversion, "redirect");
    assert_eq!(said, Outcome::Carried);
}

#[test]
fn append_slash_applies_to_scheme_redirect() {
    let conversion = of(" redirect scheme https append-slash if { path /a }", SERVER);
    let text = &conversion.text;
    assert!(text.contains("https://{host}{uri}/\""), "{text}");
    check_note(&conversion, "redirect", "after a query");
}

#[test]
fn notes_list_differences_and_omissions() {
    let cookie = " cookie SRV insert indirect nocache domain example.org";
    let conversion = of("", &format!("{cookie}\n{SERVER}"));
    for words in [
        "LeftOut",
        "only valid for the host",
        "the cookie is forwarded to servers",
        "Cache-Control: private",
    ] {
        check_note(&conversion, "cookie", words);
    }
    let conversion = of("", &format!(" cookie SRV insert\n{SERVER}"));
    check_note(&conversion, "cookie", "servers without a cookie value");
    let format = " unique-id-format %ci";
    check_note(
        &of(format, SERVER),
        "unique-id-format",
        "32 hexadecimal digits",
    );
}

#[test]
fn connections_with_proxy_protocol_are_not_reused() {
    let conversion = of("", &format!(" http-reuse always\n{SERVER} send-proxy"));
    assert!(!conversion.text.contains("reuse ="), "{}", conversion.text);
    let said = outcome(&conversion, "http-reuse");
    assert!(matches!(said, Outcome::Approximated(_)), "{said:?}");
}

#[test]
fn differing_value_formats_have_notes() {
    for value in ["%[unique-id]", "%[uuid]", "%ID", "%[ssl_c_s_dn]"] {
        let conversion = of(&format!(" http-request set-header X-A {value}"), SERVER);
        let said = outcome(&conversion, "http-request");
        assert!(
            matches!(said, Outcome::Approximated(_)),
            "{value}: {said:?}"
        );
    }
}

#[test]
fn server_fin_becomes_tunnel_fin() {
    for (back, expected) in [
        (" timeout server-fin 5s\n timeout tunnel 1h\n", Some("5s")),
        (" timeout tunnel 1h\n", Some("1h")),
        ("", None),
    ] {
        let conversion = of(" timeout client-fin 20s", &format!("{back}{SERVER}"));
        match expected {
            Some(time) => check_line(&conversion, &format!("tunnel_fin = \"{time}\"")),
            None => assert!(
                !conversion.text.contains("tunnel_fin"),
                "{}",
                conversion.text
            ),
        }
        match outcome(&conversion, "timeout client-fin") {
            Outcome::WithoutEffect(why) => assert!(why.contains("server-fin"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

/// Keys about client certificates of `bind :443 ssl` with these options and this `crt-list`; `None` if the result does
/// not listen.
fn clients(bind: &str, list: &str, guards: Guards) -> Option<String> {
    let text = format!(
        "frontend f\n mode http\n bind :443 ssl {bind}\n default_backend b\nbackend b\n mode http\n{SERVER}\n"
    );
    let files = vec![("/h.cfg", text), ("/certs", list.to_owned())];
    let (path, directory) = (Path::new("/h.cfg"), Path::new("/"));
    let conversion = convert(&MemoryFiles(files), path, directory, guards);
    let conversion = verified(conversion.expect("it is HAProxy's language"));
    let tls = lines(&conversion).into_iter();
    let mut tls = tls.filter(|line| line.starts_with("tls = "));
    let tls = tls.next()?;
    let at = tls.find("client_").or(tls.find("names = "));
    Some(at.map_or(String::new(), |at| tls[at..].replace(['"', ' '], "")))
}

#[test]
fn client_certificate_rules_fail_closed() {
    for (bind, list, closed, open) in [
        (
            "crt /x verify required ca-file /a crl-file /r",
            "",
            Some("client_ca=/a,client_crl=/r,client_certificates=required}"),
            None,
        ),
        (
            "crt /x verify none ca-file /a crl-file /r",
            "",
            Some(""),
            None,
        ),
        (
            "crt /x verify required ca-verify-file /a",
            "",
            Some("client_ca=/a,client_certificates=required}"),
            None,
        ),
        (
            "crt /x verify required ca-file @system-ca",
            "",
            None,
            Some(""),
        ),
        (
            "crt-list /certs",
            "/x [verify required ca-file /a] a.org *.a.org !no.a.org\n/y [verify optional ca-file /b crl-file /r] b.org\n/z",
            None,
            Some(""),
        ),
        (
            "crt-list /certs",
            "/x[verify required ca-file /a] a.org\n/y [verify optional ca-file /b crl-file /r] b.org\n/z [verify none] c.org",
            Some(
                "client_ca=/a,client_certificates=required,names=[{host=a.org,client_ca=/a,client_certificates=required},{host=b.org,client_ca=/b,client_crl=/r,client_certificates=optional},{host=c.org}]}",
            ),
            None,
        ),
        (
            "crt /z crt-list /certs",
            "/x [verify required ca-file /a] *.a.org !no.a.org a.org",
            Some("client_ca=/a,client_certificates=required}"),
            None,
        ),
        (
            "crt-list /certs",
            "/x [verify required ca-file /a] a.org\n/x b.org",
            Some(
                "client_ca=/a,client_certificates=required,names=[{host=a.org,client_ca=/a,client_certificates=required},{host=b.org}]}",
            ),
            None,
        ),
        // A certificate without names: the strictest rule for all.
        (
            "crt-list /certs",
            "/z z.org\n/x [verify required ca-file /a]",
            Some("client_ca=/a,client_certificates=required}"),
            None,
        ),
        // Two authorities, and it is unknown which names each is for.
        (
            "crt-list /certs",
            "/x [verify required ca-file /a]\n/y [verify required ca-file /b]",
            None,
            Some(""),
        ),
        // An entry inherits the options of the line.
        (
            "verify required ca-file /a crt-list /certs",
            "/x x.org\n/y [crl-file /r] y.org",
            Some(
                "client_ca=/a,client_certificates=required,names=[{host=x.org,client_ca=/a,client_certificates=required},{host=y.org,client_ca=/a,client_crl=/r,client_certificates=required}]}",
            ),
            None,
        ),
    ] {
        let closed = closed.map(str::to_owned);
        assert_eq!(
            clients(bind, list, Guards::Closed),
            closed,
            "{bind}: {list}"
        );
        if let Some(open) = open {
            let found = clients(bind, list, Guards::Open);
            assert_eq!(found.as_deref(), Some(open), "{bind}: {list}");
        }
    }
}

#[test]
fn self_signed_certificate_keeps_client_verification() {
    let conversion = of(" bind :443 ssl verify required ca-file /ca.pem", SERVER);
    check_line(
        &conversion,
        "tls = { certificate = \"self-signed\", client_ca = \"/ca.pem\", client_certificates = \"required\" }",
    );
}

#[test]
fn minimum_tls_version_is_converted() {
    for (global, bind, is_modern) in [
        ("", "", false),
        ("", "ssl-min-ver TLSv1.3", true),
        ("", "ssl-min-ver TLSv1.2", false),
        ("", "no-sslv3 no-tlsv10 no-tlsv11 no-tlsv12", true),
        ("ssl-min-ver TLSv1.3 no-tls-tickets", "", true),
        ("ssl-min-ver TLSv1.3", "ssl-min-ver TLSv1.2", false),
        ("force-tlsv13", "", true),
    ] {
        let conversion = converted(&format!(
            "global\n ssl-default-bind-options {global}\nfrontend f\n mode http\n bind :443 ssl crt /a.pem {bind}\n default_backend app\n{AROUND}"
        ));
        let found = conversion.text.contains("profile = \"modern\"");
        assert_eq!(found, is_modern, "{global}: {bind}: {}", conversion.text);
    }
}

#[test]
fn server_verification_is_never_weakened() {
    let revocable = "server one 10.0.0.1:443 ssl verify required ca-file /ca crl-file /crl";
    let other = "server two 10.0.0.2:443 ssl verify required ca-file /ca";
    let conversion = of("", &format!(" {revocable}\n {other}"));
    check_line(&conversion, "servers = [\"10.0.0.2:443\"]");
    let said = outcome(&conversion, "server one");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
    let alone = of("", &format!(" {revocable}"));
    assert!(!alone.text.contains("10.0.0.1"), "{}", alone.text);
    let conversion = of(
        "",
        &format!(" server one 10.0.0.1:443 ssl verify none crl-file /crl\n {other}"),
    );
    check_line(&conversion, "tls = { ca = \"/ca\" }");
}
