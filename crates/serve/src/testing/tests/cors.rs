//! CORS: fields of responses, and preflight requests.

use crate::testing::harness::{Step, configured, exchange_text, forward_with, send};
use onrush_config::Plan;

fn plan(keys: &str) -> Plan {
    configured(&format!(
        "[[route]]\nrespond = {{ status = 200, body = \"ok\", headers = {{ Access-Control-Allow-Origin = \"http://mine\" }} }}\n{keys}"
    ))
}

const LIST: &str = "cors = { origins = [\"https://a.example\", \"http://B.example:8080\"], methods = [\"GET\", \"PUT\"], headers = [\"X-A\"], expose = [\"X-B\"], credentials = true, age_max = \"10m\" }";

fn ask(plan: &Plan, method: &str, fields: &str) -> String {
    let request = format!("{method} / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    exchange_text(plan, &request)
}

/// The CORS and Vary fields, sorted.
fn said(response: &str) -> Vec<&str> {
    let head = response.split("\r\n\r\n").next().unwrap_or_default();
    let is_about = |line: &&str| line.starts_with("Access-Control-") || line.starts_with("Vary:");
    let mut lines: Vec<&str> = head.split("\r\n").filter(is_about).collect();
    lines.sort_unstable();
    lines
}

const OF_A: [&str; 4] = [
    "Access-Control-Allow-Credentials: true",
    "Access-Control-Allow-Origin: https://a.example",
    "Access-Control-Expose-Headers: X-B",
    "Vary: Origin",
];

#[test]
fn allowed_origin_may_read_responses() {
    let plan = plan(LIST);
    for method in ["GET", "HEAD", "POST"] {
        let response = ask(&plan, method, "Origin: https://a.example\r\n");
        assert_eq!(said(&response), OF_A, "{response}");
    }
    for fields in [
        "",
        "Origin: https://evil.example\r\n",
        "Origin: https://a.example.evil\r\n",
        "Origin: null\r\n",
        "Origin: https://a.example\r\nOrigin: https://a.example\r\n",
    ] {
        assert_eq!(
            said(&ask(&plan, "GET", fields)),
            ["Vary: Origin"],
            "{fields}"
        );
    }
    let other = ask(&plan, "GET", "Origin: http://b.example:8080\r\n");
    assert!(
        other.contains("Allow-Origin: http://b.example:8080\r\n"),
        "{other}"
    );
}

#[test]
fn cors_preflight_needs_no_authentication() {
    let question = "Access-Control-Request-Method: PUT\r\nOrigin: ";
    let auth = "basic_auth = { realm = \"x\", users = { ann = \"$2y$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy\" } }";
    let plan = plan(&format!("{LIST}\n{auth}"));
    let response = ask(
        &plan,
        "OPTIONS",
        &format!("{question}https://a.example\r\n"),
    );
    assert!(response.starts_with("HTTP/1.1 204 "), "{response}");
    let of_preflight = [
        "Access-Control-Allow-Headers: X-A",
        "Access-Control-Allow-Methods: GET, PUT",
        "Access-Control-Max-Age: 600",
    ];
    let mut expected = [&OF_A[..], &of_preflight].concat();
    expected.sort_unstable();
    assert_eq!(said(&response), expected, "{response}");
    let response = ask(&plan, "OPTIONS", &format!("{question}https://evil\r\n"));
    assert!(response.starts_with("HTTP/1.1 204 "), "{response}");
    assert_eq!(said(&response), ["Vary: Origin"]);
    // A request that is not a preflight needs a login, and a script may read the 401.
    let response = ask(&plan, "OPTIONS", "Origin: https://a.example\r\n");
    assert!(response.starts_with("HTTP/1.1 401 "), "{response}");
    let expected = [&OF_A[..3], &["Vary: Accept"], &OF_A[3..]].concat();
    assert_eq!(said(&response), expected);
}

#[test]
fn wildcard_origin_allows_all_origins() {
    let plan = plan("cors = { origins = \"*\" }");
    for fields in ["", "Origin: https://a.example\r\n"] {
        let response = ask(&plan, "GET", fields);
        assert_eq!(said(&response), ["Access-Control-Allow-Origin: *"]);
    }
    let question = "Origin: x\r\nAccess-Control-Request-Method: PUT\r\n";
    let response = ask(&plan, "OPTIONS", question);
    assert!(said(&response).contains(&"Access-Control-Allow-Methods: GET, HEAD, POST"));
}

#[test]
fn server_cors_fields_are_replaced() {
    let cors = configured(&format!(
        "[[route]]\nforward = \"http://10.0.0.1\"\n{LIST}\nresponse_headers = {{ set = {{ X-Set = \"{{path}}\" }} }}"
    ));
    let change = |plan: &mut Plan| {
        plan.routes[0].cors = cors.routes[0].cors.clone();
        plan.routes[0].edits = cors.routes[0].edits.clone();
    };
    let own = "HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nVary: Accept\r\nContent-Length: 2\r\n\r\nok";
    let request = "GET /p HTTP/1.1\r\nHost: h\r\nOrigin: https://a.example\r\n\r\n";
    let outcome = forward_with(&change, &[&[Step::Read, send(own)]], request);
    let response = outcome.response.replace('\n', "\r\n");
    let expected = [&OF_A[..3], &["Vary: Accept"], &OF_A[3..]].concat();
    assert_eq!(said(&response), expected, "{response}");
    assert!(response.contains("\r\nX-Set: /p\r\n"), "{response}");
    // No server responds: the script may read the generated error, which the route's edits do not apply to.
    let outcome = forward_with(&change, &[&[Step::Read]], request);
    let response = outcome.response.replace('\n', "\r\n");
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert_eq!(said(&response), expected, "{response}");
    assert!(!response.contains("X-Set"), "{response}");
}
