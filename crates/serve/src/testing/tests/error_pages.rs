//! Error pages, problem details, and interception of server errors.

use crate::testing::harness::{
    Step, configured, exchange_text, forward_with, on_every_driver, send,
};
use onrush_config::Plan;
use onrush_config::plan::{ErrorPage, ErrorPages, PageContent};
use std::time::Duration;

fn get(plan: &Plan, target: &str, fields: &str) -> String {
    exchange_text(
        plan,
        &format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"),
    )
}

fn body(response: &str) -> &str {
    response.split_once("\r\n\r\n").expect("a head").1
}

const JSON: &str = "Accept: application/json\r\n";

#[test]
fn route_page_overrides_global_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("404.html");
    std::fs::write(&file, "<h1>Nothing</h1>").expect("it can be written");
    let plan = configured(&format!(
        r#"
        error_pages = {{ 404 = {file:?}, 4xx = {{ body = "client" }}, "500-599" = {{ body = "server", content_type = "text/plain" }} }}
        [[route]]
        path = "/files/"
        files = {{ root = {:?} }}
        error_pages = {{ 405 = {{ body = "read only" }}, 4xx = {{ body = "of the route" }} }}
        [[route]]
        path = "/denied"
        respond = {{ status = 200 }}
        deny = "127.0.0.0/8"
        [[route]]
        path = "/fixed"
        respond = {{ status = 404, body = "mine" }}
        "#,
        directory.path()
    ));
    for (target, status, content_type, said) in [
        ("/none", 404, "text/html; charset=utf-8", "<h1>Nothing</h1>"),
        ("/denied", 403, "text/html; charset=utf-8", "client"),
        ("/files/x", 404, "text/html; charset=utf-8", "of the route"),
        ("/fixed", 404, "text/plain; charset=utf-8", "mine"),
        ("/%", 400, "text/html; charset=utf-8", "client"),
    ] {
        let response = get(&plan, target, "");
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{target}: {response}"
        );
        assert!(
            response.contains(&format!("\r\nContent-Type: {content_type}\r\n")),
            "{target}: {response}"
        );
        let length = said.len();
        assert!(response.contains(&format!("\r\nContent-Length: {length}\r\n")));
        assert_eq!(body(&response), said, "{target}");
    }
    let wrong = exchange_text(&plan, "DELETE /files/x HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(body(&wrong), "read only");
    assert!(
        wrong.contains("\r\nAllow: GET, HEAD, OPTIONS\r\n"),
        "{wrong}"
    );
    let malformed = exchange_text(&plan, "GET / HTTP/1.1\r\n\r\n");
    assert_eq!(body(&malformed), "client");
    let head = exchange_text(&plan, "HEAD /none HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(head.contains("\r\nContent-Length: 16\r\n") && body(&head).is_empty());
}

#[test]
fn json_clients_get_problem_details() {
    let plan = configured(
        r#"
        error_pages = { 404 = { body = "<h1>", retry_after = "90s" }, 403 = { body = "{}", content_type = "application/json" } }
        [[route]]
        path = "/denied"
        deny = "127.0.0.0/8"
        synthetic = true
        [[route]]
        path = "/limited"
        rate_limit = { requests = "1/h", burst = 0, key = "route" }
        respond = { status = 200 }
        "#,
    );
    let response = get(&plan, "/none", JSON);
    assert!(response.contains("\r\nContent-Type: application/problem+json\r\n"));
    assert!(response.contains("\r\nVary: Accept\r\n"), "{response}");
    assert!(response.contains("\r\nRetry-After: 90\r\n"), "{response}");
    assert_eq!(
        body(&response),
        "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,\"detail\":\"no route matches\"}\n"
    );
    let page = get(&plan, "/none", "Accept: text/html\r\n");
    assert_eq!(body(&page), "<h1>");
    assert!(page.contains("\r\nVary: Accept\r\n"), "{page}");
    // A JSON page also serves clients that prefer JSON.
    let json = get(&plan, "/denied", JSON);
    assert_eq!(body(&json), "{}");
    assert!(!json.contains("\r\nVary:"), "{json}");
    let line = exchange_text(&plan, "DELETE /%zz HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(
        line.contains("text/plain") && line.contains("\r\nVary: Accept\r\n"),
        "{line}"
    );
    let head = exchange_text(
        &plan,
        "HEAD /none HTTP/1.1\r\nHost: h\r\nAccept: application/json\r\n\r\n",
    );
    assert!(head.contains("application/problem+json") && body(&head).is_empty());
    let limited = exchange_text(
        &plan,
        &format!("GET /limited HTTP/1.1\r\nHost: h\r\n{JSON}\r\n").repeat(2),
    );
    assert!(limited.contains("\"status\":429"), "{limited}");
    assert!(limited.contains("\r\nRetry-After: "), "{limited}");
}

#[test]
fn retry_after_is_added_to_default_error_body() {
    let change = |plan: &mut Plan| {
        plan.routes[0].error_pages.pages = vec![ErrorPage {
            statuses: (500, 599),
            content: None,
            retry_after: Some(Duration::from_secs(120)),
        }];
    };
    let outcome = forward_with(
        &change,
        &[&[Step::Read]],
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    assert!(outcome.response.starts_with("HTTP/1.1 502 "), "{outcome:?}");
    assert!(
        outcome.response.contains("\nRetry-After: 120\n"),
        "{outcome:?}"
    );
    assert!(
        outcome.response.contains("502 Bad Gateway: "),
        "{outcome:?}"
    );
}

/// Forwards everything, with a page for errors from 400.
fn paged(intercept: bool) -> impl Fn(&mut Plan) {
    move |plan| {
        plan.routes[0].error_pages = ErrorPages {
            pages: vec![ErrorPage {
                statuses: (400, 599),
                content: Some(PageContent::Body {
                    text: "page".to_owned(),
                    content_type: "text/html".to_owned(),
                }),
                retry_after: None,
            }],
            intercept,
        };
    }
}

#[test]
fn intercept_replaces_server_error() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\n";
    for (status, intercept, fields, replaced) in [
        (404, true, "", true),
        (500, true, "", true),
        (404, false, "", false),
        (200, true, "", false),
        (304, true, "", false),
        // Its `WWW-Authenticate` field is needed.
        (401, true, "", false),
        // The server's own error is better for a client that prefers JSON.
        (404, true, JSON, false),
    ] {
        let response = format!("HTTP/1.1 {status} X\r\nX-Own: 1\r\nContent-Length: 3\r\n\r\nown");
        let response = match status {
            304 => "HTTP/1.1 304 X\r\nX-Own: 1\r\n\r\n".to_owned(),
            _ => response,
        };
        let script = [Step::Read, send(&response), Step::WaitForEnd];
        let outcome = forward_with(
            &paged(intercept),
            &[&script],
            &format!("{request}{fields}\r\n"),
        );
        let status_line = format!("HTTP/1.1 {status} ");
        assert!(outcome.response.starts_with(&status_line), "{outcome:?}");
        let case = format!("{status} {intercept} {fields:?}: {outcome:?}");
        assert_eq!(outcome.response.ends_with("\n\npage"), replaced, "{case}");
        assert_eq!(outcome.response.contains("X-Own"), !replaced, "{case}");
        let varies = replaced || fields == JSON;
        assert_eq!(
            outcome.response.contains("\nVary: Accept\n"),
            varies,
            "{case}"
        );
        let failures: u64 = outcome.totals.failures.iter().sum();
        assert_eq!(failures, 0, "the server has responded: {case}");
    }
}

#[test]
fn intercepted_error_keeps_connection() {
    let error = "HTTP/1.1 500 X\r\nContent-Length: 3\r\n\r\nown";
    let scripts: [&[Step]; 2] = [
        &[Step::Read, send(error), Step::WaitForEnd],
        &[Step::Read, Step::Echo],
    ];
    let requests = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody\
                    GET /next HTTP/1.1\r\nHost: h\r\n\r\n";
    let outcome = forward_with(&paged(true), &scripts, requests);
    assert!(outcome.response.starts_with("HTTP/1.1 500 "), "{outcome:?}");
    assert!(outcome.response.ends_with("\n\n/next"), "{outcome:?}");
    // Retries take precedence.
    let change = |plan: &mut Plan| {
        paged(true)(plan);
        plan.upstreams[0].retries.statuses = vec![500];
        let again = plan.upstreams[0].servers[0].clone();
        plan.upstreams[0].servers.push(again);
    };
    let outcome = forward_with(&change, &scripts, "GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
    assert!(outcome.response.ends_with("\n\n/next"), "{outcome:?}");
}

#[test]
fn gateway_errors_are_sent_as_json() {
    for body in [
        "Content-Length: 0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
    ] {
        on_every_driver(move |site| async move {
            let upstream = site.upstream(&[&[Step::ReadHead]]);
            let address = site.serve(&upstream.plan());
            let mut client = site.connect(&address).await;
            let request = format!("POST / HTTP/1.1\r\nHost: h\r\n{JSON}{body}");
            client.send(request.as_bytes()).await;
            let response = client.receive_text().await;
            assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
            assert!(response.contains("{\"type\":\"about:blank\""), "{response}");
        });
    }
}

#[test]
fn missing_error_page_file_fails_startup() {
    let plan =
        configured("error_pages = { 404 = \"/nowhere/404.html\" }\n[[route]]\nsynthetic = true");
    let Err(crate::site::check::PlanErrors(wrong)) = crate::site::check::read(&plan) else {
        panic!("it can be served");
    };
    let message = wrong[0].to_string();
    assert!(
        message.starts_with("cannot read the error page /nowhere/404.html: "),
        "{message}"
    );
    assert!(wrong[0].place.is_some());
}
