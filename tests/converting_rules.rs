//! HAProxy rules in order, and their conversion for Onrush: both get the same requests on the same port. Onrush refuses
//! every request that HAProxy refuses, including requests refused by rules that could not be converted.

use std::fs;
use std::path::Path;

use crate::application::Application;
use crate::converting::{Asked, ask, compare, free_port, wait_for};
use crate::peer::peer;
use crate::program::{Program, Serve, run_onrush};

const START: &str = r"
defaults
    mode http
    timeout connect 1s
    timeout client 60s
    timeout server 60s
frontend front
    bind 127.0.0.1:$PORT
";

const END: &str = r"
backend a
    server a $A
";

/// Rules that are converted exactly.
const CARRIED: &str = r#"
    http-request redirect code 301 prefix /new drop-query append-slash if { path_beg /slash }
    http-request del-header X-Seen
    http-request set-header X-Seen yes if { path_beg /pub }
    http-request deny if { path_beg /adm } !{ hdr(X-Seen) yes }
    http-request replace-path ^/v1/(.*) /\1
    http-request deny if { path_beg /secret }
    http-request set-path /fixed if { path_beg /any }
    http-request deny if { path /fixed } { hdr(X-No) -m found }
    http-request set-header Host "${OTHER-other}.example" if { path_beg /host }
    http-request deny if { hdr(host) -i other.example } { hdr(x-block) 1 }
    http-request deny if { hdr_beg(user-agent) curl }
    http-response set-header X-A no if { path_beg / }
    tcp-request connection reject if { src 127.9.0.0/16 }
    default_backend a
"#;

/// Starts HAProxy with these rules.
fn haproxy(directory: &Path, rules: &str, port: u16, application: &Application) -> Program {
    let text = format!("{START}{rules}{END}");
    let text = text.replace("$PORT", &port.to_string());
    let text = text.replace("$A", &application.address);
    let conf = directory.join("conf");
    fs::write(&conf, text).expect("it is ours");
    let arguments = ["-db", "-f", &conf.display().to_string()];
    Program::start(&mut peer("haproxy", &arguments))
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn conditions_see_edited_requests() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port, application) = (free_port(), Application::start("a"));
    let program = haproxy(directory.path(), CARRIED, port, &application);
    let requests: &[Asked] = &[
        ("GET /", &["X-Seen: yes"]),
        ("GET /pub", &[]),
        ("GET /adm", &["X-Seen: yes"]),
        ("GET /v1/x", &[]),
        ("GET /v1/secret/x", &[]),
        ("GET /secret", &[]),
        ("GET /v1/adm", &["X-Seen: yes"]),
        ("GET /any/x?q", &[]),
        ("GET /any/x", &["X-No: 1"]),
        ("GET /fixed", &["X-No: 1"]),
        ("GET /fixed", &[]),
        ("GET /host", &["X-Block: 1"]),
        ("GET /host", &[]),
        ("GET /", &["X-Block: 1"]),
        ("GET /", &["Host: other.example", "X-Block: 1"]),
        ("GET /", &["User-Agent: x, curl"]),
        ("GET /", &["User-Agent: x-curl"]),
        ("GET /slash", &[]),
        ("GET /slash/?x", &[]),
    ];
    // HAProxy checks /adm before it replaces the path.
    let edits = ["\"/v1/\""; 2];
    compare(program, (port, "haproxy"), &directory, requests, &edits);
}

/// Rules that refuse requests and that Onrush cannot express.
const GUARDS: [&str; 6] = [
    "http-request deny if { path_beg /x } { nbsrv(a) lt 5 }",
    "http-request deny unless { req.hdr(x-key),sha1,hex -m str A }",
    "http-request set-path %[path,regsub(^/x,/y)]%[str()]\n http-request deny if { path_beg /y }",
    "http-request deny if { url_sub admin }",
    "http-request redirect location /login unless { req.hdr(x-key),length gt 3 }",
    "http-request auth unless { http_auth_group(u) admins }",
];

#[test]
#[ignore = "foreign programs: make test-all"]
fn converted_rules_refuse_same_requests_as_haproxy() {
    for guard in GUARDS {
        let directory = tempfile::tempdir().expect("a directory");
        let (port, application) = (free_port(), Application::start("a"));
        let rules = format!(
            " {guard}\n default_backend a\nuserlist u\n group admins users eve\n user eve password $6$k6y3o.eP$PBB.tfeKmQRT5Xl/drYaLsOKR8cBcdOOeaq7JYq7eJWgGHSNlC/M/GdNHKlBiA17WQ1tWOULAGr76LPTfQgB5.\n"
        );
        let mut program = haproxy(directory.path(), &rules, port, &application);
        wait_for(&mut program, port);
        let requests: [Asked; 4] = [
            ("GET /x/1", &[]),
            ("GET /y", &[]),
            ("GET /z?admin", &["X-Key: 1"]),
            ("GET /admin", &["X-Key: 1234"]),
        ];
        let is_let_in = |port, asked: &Asked| ask(port, *asked).starts_with('2');
        let before = requests.each_ref().map(|asked| is_let_in(port, asked));
        drop(program);
        let conf = directory.path().join("conf").display().to_string();
        let closed = run_onrush(&["convert", "haproxy", &conf]);
        let open = run_onrush(&["convert", "haproxy", &conf, "--open-guards"]);
        assert_eq!(closed.code == Some(0), closed.out == open.out, "{closed:?}");
        let result = directory.path().join("onrush.toml");
        fs::write(&result, &closed.out).expect("it is ours");
        let serve = Serve::start(&["--config", &result.display().to_string()]);
        assert_eq!(serve.address, format!("127.0.0.1:{port}"));
        for (asked, was_let_in) in requests.iter().zip(before) {
            let is_refused = !is_let_in(port, asked);
            assert!(
                was_let_in || is_refused,
                "{guard}: {asked:?} of\n{}",
                closed.out
            );
        }
    }
}
