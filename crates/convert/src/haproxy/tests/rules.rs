//! Rules in order: each condition sees the request as earlier rules have changed it, and rules with unknown conditions
//! refuse.

use super::*;

/// The routes of a frontend with these lines.
fn routes_of(front: &str, guards: Guards) -> (Vec<String>, Conversion) {
    let text =
        format!("frontend f\n mode http\n bind :80\n{front}\n default_backend app\n{AROUND}");
    let files = MemoryFiles(vec![("/h.cfg", text)]);
    let directory = Path::new("/etc/haproxy");
    let conversion = convert(&files, Path::new("/h.cfg"), directory, guards);
    let conversion = verified(conversion.expect("it is HAProxy's language"));
    let all = lines(&conversion);
    let routes = all.split(|line| *line == "[[route]]").skip(1);
    let routes = routes.map(|route| {
        let lines = route
            .iter()
            .take_while(|line| !line.starts_with("[upstream"));
        lines.copied().collect::<Vec<_>>().join("; ")
    });
    (routes.collect(), conversion)
}

#[track_caller]
fn check_routes(front: &str, expected: &[&str]) {
    let (routes, conversion) = routes_of(front, Guards::Closed);
    assert_eq!(routes, expected, "{front}\n{:?}", conversion.notes);
}

const DENIED: &str = "respond = { status = 403 }";
const APP: &str = "forward = \"app\"";

#[test]
fn conditions_see_edited_fields() {
    check_routes(
        " http-request del-header X-Auth\n http-request set-header X-Auth yes if { path_beg /pub }\n http-request deny if { path_beg /adm } !{ hdr(X-Auth) yes }",
        &[
            "path = \"/pub\"; request_headers = { set = { X-Auth = \"yes\" } }; forward = \"app\"",
            "path = \"/adm\"; respond = { status = 403 }",
            "request_headers = { remove = [\"X-Auth\"] }; forward = \"app\"",
        ],
    );
    check_routes(
        " http-request set-header X-A %[src]\n http-request deny if { hdr(x-a) -m found } { hdr(X-A) 1 } { path_beg /adm }",
        &[
            "path = \"/adm\"; respond = { status = 403 }",
            "request_headers = { set = { X-A = \"{client.address}\" } }; forward = \"app\"",
        ],
    );
    check_routes(
        " http-request set-header Host other.org\n http-request deny unless { hdr(host) a.org }",
        &[DENIED],
    );
    check_routes(
        " http-request set-header X-B %[req.hdr(X-A)]\n http-request del-header X-A\n http-request set-header X-C %[req.hdr(X-A)]",
        &[
            "request_headers = { set = { X-B = \"{header:X-A}\", X-C = \"\" }, remove = [\"X-A\"] }; forward = \"app\"",
        ],
    );
    check_routes(
        " http-request del-header x- -m beg\n http-request deny unless { hdr(X-Auth) yes }",
        &[DENIED],
    );
}

#[test]
fn conditions_see_rewritten_path() {
    check_routes(
        " http-request replace-path ^/v1/(.*) /\\1\n http-request deny if { path_beg /admin }",
        &[
            "path = \"/v1/admin\"; respond = { status = 403 }",
            "path = \"/v1/\"; strip_prefix = true; forward = \"app\"",
            "path = \"/admin\"; respond = { status = 403 }",
            APP,
        ],
    );
    check_routes(
        " http-request set-path /x%[path]\n http-request deny if { path_beg /x/admin }\n http-request deny if { path_beg /a }",
        &[
            "path = \"/admin\"; respond = { status = 403 }",
            "rewrite = { match = \"^/(.*)$\", to = \"/x/$1\" }; forward = \"app\"",
        ],
    );
    check_routes(
        " http-request set-path /fixed if { path_beg /a }\n http-request deny if { path /fixed }",
        &[
            "path = \"/a\"; respond = { status = 403 }",
            "path = \"=/fixed\"; respond = { status = 403 }",
            APP,
        ],
    );
    check_routes(
        " http-request set-path %[path,lower]\n http-request deny if { path_beg /admin }",
        &[DENIED],
    );
    check_routes(
        " http-request set-src hdr(x-real)\n http-request deny unless { src 10.0.0.0/8 }",
        &[DENIED],
    );
}

#[test]
fn unknown_deny_conditions_refuse_requests() {
    for (front, expected) in [
        (
            " http-request deny if { path_beg /adm } { sc_http_req_rate(0) gt 100 }",
            "path = \"/adm\"; respond = { status = 403 }",
        ),
        (
            " http-request deny deny_status 429 if { path_beg /adm } !{ env(X) 1 }",
            "path = \"/adm\"; respond = { status = 429 }",
        ),
        (
            " http-request tarpit if { path_beg /adm } { var(txn.x) 1 }",
            "path = \"/adm\"; respond = { status = 500 }",
        ),
        (
            " http-request redirect location /login if { path_beg /adm } !{ var(txn.ok) -m bool }",
            "path = \"/adm\"; respond = { status = 501 }",
        ),
        (
            " redirect location /login if { path_beg /adm } !{ var(txn.ok) -m bool }",
            "path = \"/adm\"; respond = { status = 501 }",
        ),
        (
            " http-request return status 200 if { path_beg /adm } { url_sub x }",
            "path = \"/adm\"; respond = { status = 501 }",
        ),
        (
            " use_backend none if { path_beg /adm } { var(txn.x) 1 }",
            "path = \"/adm\"; respond = { status = 503 }",
        ),
        (
            " http-request deny if { path_beg /adm } HTTP_2.0",
            "path = \"/adm\"; respond = { status = 403 }",
        ),
        (
            " http-request deny if { path_beg /adm } { hdr_ip(x-forwarded-for,-1) 10.0.0.1 }",
            "path = \"/adm\"; respond = { status = 403 }",
        ),
        (
            " tcp-request content reject if { path_beg /adm } { sc0_conn_rate gt 3 }",
            "path = \"/adm\"; respond = { status = 403 }",
        ),
        (
            " http-request use-service lua.x if { path_beg /adm }",
            "path = \"/adm\"; respond = { status = 501 }",
        ),
        (
            " http-request lua.auth if { path_beg /adm }",
            "path = \"/adm\"; respond = { status = 501 }",
        ),
    ] {
        check_routes(front, &[expected, APP]);
        let (_, conversion) = routes_of(front, Guards::Closed);
        assert!(!conversion.is_complete(), "{front}: {:?}", conversion.notes);
    }
    let front = " http-request deny if { sc_http_req_rate(0) gt 100 }";
    let (open, conversion) = routes_of(front, Guards::Open);
    assert_eq!(open, [APP]);
    assert!(!conversion.is_complete(), "{:?}", conversion.notes);
    check_routes(
        " http-response deny if { res.hdr(x-secret) -m found }",
        &["respond = { status = 502 }"],
    );
}

#[test]
fn uncombinable_expressions_refuse_requests() {
    check_routes(
        " http-request set-header X-A 1 if { path_reg b.*c }\n http-request deny if { path_reg d.*e }",
        &[
            "path = \"~(?-u)b.*c\"; respond = { status = 403 }",
            "path = \"~(?-u)d.*e\"; respond = { status = 403 }",
            APP,
        ],
    );
}

#[test]
fn rejected_connections_get_403() {
    check_routes(
        " tcp-request connection accept if { src 10.1.0.0/16 }\n tcp-request connection reject if { src 10.0.0.0/8 }",
        &[
            "from = \"10.1.0.0/16\"; forward = \"app\"",
            "from = \"10.0.0.0/8\"; respond = { status = 403 }",
            APP,
        ],
    );
}

#[test]
fn request_conditions_in_response_rules_are_unsupported() {
    check_routes(
        " http-response set-header X-A 1 if { path_beg /a }\n http-response set-header X-B 1 unless { path_beg /a }",
        &["response_headers = { set = { X-B = \"1\" } }; forward = \"app\""],
    );
}

#[test]
fn user_groups_are_resolved_from_userlist() {
    let hash = "$6$k6y3o.eP$PBB.tfeKmQRT5Xl/drYaLsOKR8cBcdOOeaq7JYq7eJWgGHSNlC/M/GdNHKlBiA17WQ1tWOULAGr76LPTfQgB5.";
    let of = |rules: &str| {
        let text = format!(
            "userlist u\n group admins users eve\n user joe password {hash}\n user eve password {hash}\n user ann password {hash} groups admins,x\nfrontend f\n mode http\n bind :80\n{rules} default_backend app\n{AROUND}"
        );
        converted(&text)
    };
    let users = |conversion: &Conversion| {
        let names = ["joe", "eve", "ann", "nobody"].into_iter();
        let is_in = |name: &&str| conversion.text.contains(&format!("{name} = \"$6$"));
        names.filter(is_in).collect::<Vec<_>>()
    };
    let all = of(
        " http-request auth unless { http_auth(u) }\n http-request deny unless { http_auth(u) }\n",
    );
    assert_eq!(users(&all), ["joe", "eve", "ann"], "{}", all.text);
    assert!(!all.text.contains("403"), "{}", all.text);
    let group = of(" acl admin http_auth_group(u) admins\n http-request auth unless admin\n");
    assert_eq!(users(&group), ["eve", "ann"], "{}", group.text);
    assert!(group.is_complete(), "{:?}", group.notes);
    let denied = of(" http-request deny unless { http_auth_group(u) admins }\n");
    assert!(denied.text.contains("403"), "{}", denied.text);
    for nobody in [
        " http-request auth\n",
        " http-request auth unless { http_auth(v) }\n",
        " http-request auth unless { http_auth(u) } { src 10.0.0.0/8 }\n",
    ] {
        assert!(
            users(&of(nobody)).contains(&"nobody"),
            "{nobody}: {}",
            of(nobody).text
        );
    }
}

#[test]
fn unsupported_field_value_removes_field() {
    check_routes(
        " http-request set-header X-Verified %[ssl_c_verify]",
        &["request_headers = { remove = [\"X-Verified\"] }; forward = \"app\""],
    );
}

#[test]
fn response_rules_end_at_allow() {
    check_routes(
        " http-response set-header X-A 1\n http-response allow if { src 10.0.0.0/8 }\n http-response set-header X-B 1",
        &[
            "from = \"10.0.0.0/8\"; response_headers = { set = { X-A = \"1\" } }; forward = \"app\"",
            "response_headers = { set = { X-A = \"1\", X-B = \"1\" } }; forward = \"app\"",
        ],
    );
}

#[test]
fn unsupported_acl_is_reported() {
    let front = " acl is_x var(txn.x) 1\n http-request deny if is_x";
    let (_, conversion) = routes_of(front, Guards::Closed);
    let said = outcome(&conversion, "acl is_x");
    assert!(matches!(said, Outcome::LeftOut(_)), "{said:?}");
}

#[test]
fn defaults_sections_inherit_rules() {
    let text = "defaults base
 mode http
 http-request deny if { path_beg /a }
defaults more from base
 http-request deny if { path_beg /b }
frontend f from more
 bind :80
 default_backend app
backend app from base
 server a 10.0.0.1:80
";
    let conversion = verified(
        converted_files(vec![("/h.cfg", text.to_owned())]).expect("it is HAProxy's language"),
    );
    let text = lines(&conversion).join("; ");
    let text = text.split("; [upstream").next().unwrap_or_default();
    let denied = |path: &str| format!("path = \"{path}\"; {DENIED}; ");
    let (a, b) = (denied("/a"), denied("/b"));
    let routes = format!("[[route]]; {a}[[route]]; {b}[[route]]; {APP}");
    assert!(text.ends_with(&routes), "{text}");
}

/// Whether a frontend with this rule refuses every request, with a note.
fn is_closed(rule: &str) -> bool {
    let (routes, conversion) = routes_of(rule, Guards::Closed);
    let is_closed = !routes.iter().any(|route| route.contains(APP));
    assert_eq!(is_closed, !conversion.is_complete(), "{rule}");
    is_closed
}

#[test]
fn deny_rules_on_unnormalized_paths_refuse() {
    for condition in [
        "{ path_sub // }",
        "{ path_sub //secret }",
        "{ path_beg //admin }",
        "{ url_beg //admin }",
        "{ path_end // }",
        "{ path_end /. }",
        "{ path_dir .. }",
        "{ path_sub .. }",
        "{ path_sub ../ }",
        "{ path_sub /./ }",
        "{ path_sub %2e }",
        "{ path_sub -i %2f }",
        "{ path,lower -m sub %2f }",
        "{ path_sub % }",
        "{ path_reg // }",
        "{ path_reg ^//+admin }",
        "{ path_reg ^/{2}admin }",
        "{ path_reg /\\.\\./ }",
        "{ path_reg -i %2f|%5c }",
        "{ path_reg -i \\x2500 }",
        "{ path_reg [^a-z/.] }",
        "!{ path_reg ^/[a-z/]*$ }",
    ] {
        for action in ["deny", "tarpit", "silent-drop", "return status 403"] {
            let rule = format!(" http-request {action} if {condition}");
            assert!(is_closed(&rule), "{rule}");
        }
    }
    for rule in [
        " acl ok path_reg ^/[a-z/]*$\n http-request deny unless ok",
        " acl ok path_reg ^/[a-z/]*$\n http-request allow if ok\n http-request deny",
        " acl bad path_sub ..\n use_backend none if bad",
        " tcp-request content reject if { path_sub // }",
    ] {
        assert!(is_closed(rule), "{rule}");
    }
    let (open, _) = routes_of(" http-request deny if { path_sub // }", Guards::Open);
    assert_eq!(open.last().map(String::as_str), Some(APP));
    let (routes, _) = routes_of(
        " http-request deny if { path_sub // } { src 10.0.0.0/8 }",
        Guards::Closed,
    );
    assert_eq!(routes.last().map(String::as_str), Some(APP));
}

#[test]
fn deny_rules_on_normalized_paths_are_converted() {
    for rule in [
        " http-request deny if { path_beg /admin }",
        " http-request deny if { path_sub /. }",
        " http-request deny if { path_end .php }",
        " http-request deny if { path_reg ^/[^/]+/admin }",
        " http-request deny if { path_reg -i \\.(php|sql)$ }",
        " http-request deny unless { path_beg /api }",
        " http-request deny unless { path_reg ^/(api|static)/ }",
        " http-request set-header X-A 1 if { path_reg [^a-z/] }",
    ] {
        assert!(!is_closed(rule), "{rule}");
    }
}

#[test]
fn deny_rules_on_query_parameters_refuse() {
    for condition in [
        "{ url_param(k) v }",
        "!{ url_param(k) -m sub v }",
        "!{ url_param(k) a;b }",
        "{ urlp(k) -m found }",
        "{ url_param(k) -m sub %2e }",
    ] {
        let rule = format!(" http-request deny if {condition}");
        assert!(is_closed(&rule), "{rule}");
    }
    for rule in [
        " http-request deny unless { url_param(token) secret }",
        " use_backend other if { url_param(k) v }",
    ] {
        assert!(!is_closed(rule), "{rule}");
    }
}
