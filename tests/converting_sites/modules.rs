//! Modules that most builds of nginx lack, so that results are not compared with it: access checks by such modules
//! refuse, and their content is never a file.

use super::*;

/// Lines of a server, and its status.
const GUARDS: [(&str, &str); 7] = [
    (
        "auth_jwt realm; auth_jwt_key_file keys; root $FILES/www;",
        "501",
    ),
    ("auth_pam realm; root $FILES/www;", "501"),
    ("auth_digest realm; root $FILES/www;", "501"),
    (
        "if ($geoip_country_code = XX) { return 403; } root $FILES/www;",
        "403",
    ),
    (
        "if ($geoip_city_country_code !~ DE) { return 302 /no; } root $FILES/www;",
        "403",
    ),
    (
        "if ($geoip2_data_country_code = XX) { set $no 1; } if ($no) { return 444; } root $FILES/www;",
        "403",
    ),
    ("if ($barred) { return 451; } root $FILES/www;", "451"),
];

const HANDLERS: [&str; 7] = [
    "location / { js_content main.hello; root $FILES/www; }",
    "location / { echo hello; root $FILES/www; }",
    "location / { echo_duplicate 3 x; root $FILES/www; }",
    "location / { perl hello::handler; root $FILES/www; }",
    "location / { content_by_lua_block { ngx.say(1) } root $FILES/www; }",
    "location / { redis2_pass 127.0.0.1:1; root $FILES/www; }",
    "root $FILES/www; location ~ html$ { echo hello; }",
];

fn statuses(directory: &Path, port: u16, words: &[&str]) -> Vec<String> {
    let conf = directory.join("conf").display().to_string();
    let converted = run_onrush(&[&["convert", "nginx", &conf], words].concat());
    assert_eq!(converted.code, Some(2), "{converted:?}");
    let result = directory.join("onrush.toml");
    fs::write(&result, &converted.out).expect("it is ours");
    let serve = Serve::start(&["--config", &result.display().to_string()]);
    assert_eq!(serve.address, format!("127.0.0.1:{port}"));
    let sites = 0..GUARDS.len() + HANDLERS.len();
    let asked = sites.map(|at| ask(port, &name(at), "GET /a.html", &[]).status);
    asked.collect()
}

#[test]
fn sites_with_unknown_modules_refuse_requests() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = free_port();
    let sites = GUARDS.iter().map(|(lines, _)| *lines).chain(HANDLERS);
    let servers = sites.enumerate().map(|(at, lines)| {
        format!(
            "server {{ listen 127.0.0.1:{port}; server_name {}; {lines} }}\n",
            name(at)
        )
    });
    let servers: String = servers.collect();
    let text = format!("map $geoip_country_code $barred {{ default 0; XX 1; }}\n{servers}");
    write_nginx(directory.path(), &text);
    let handlers = HANDLERS.map(|_| "501");
    let closed = GUARDS.map(|(_, status)| status);
    assert_eq!(
        statuses(directory.path(), port, &[]),
        [&closed[..], &handlers].concat()
    );
    let open = GUARDS.map(|_| "200");
    assert_eq!(
        statuses(directory.path(), port, &["--open-guards"]),
        [&open[..], &handlers].concat()
    );
}
