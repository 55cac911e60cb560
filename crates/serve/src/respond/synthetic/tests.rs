//! Synthetic responses over real connections, on every driver.

use onrush_config::Plan;
use onrush_config::plan::OneLiner;

use super::*;
use crate::testing::harness::{exchange, exchange_text, on_simulated_cores};

fn plan() -> Plan {
    Plan::one_liner(OneLiner::Synthetic, Vec::new())
}

fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

fn get(target: &str) -> String {
    exchange_text(&plan(), &request("GET", target, ""))
}

fn split(response: &str) -> (&str, &str) {
    response.split_once("\r\n\r\n").unwrap()
}

fn field<'a>(response: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = split(response);
    head.split("\r\n")
        .filter_map(|line| line.split_once(": "))
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

fn lines(length: usize) -> Vec<u8> {
    pattern::LINES
        .iter()
        .copied()
        .cycle()
        .take(length)
        .collect()
}

#[test]
fn default_response_has_empty_body_and_report_field() {
    let dashes = "-".repeat(29);
    let target = request("GET", "/", "");
    assert_eq!(
        get("/"),
        format!(
            "HTTP/1.1 200 OK\r\nServer: onrush\r\nDate: {dashes}\r\nContent-Length: 0\r\n\
             X-req: size={}, time=0 ms\r\n\
             X-rsp: id=onrush, code=200, cache=1, size=0, time=0 ms (0 real)\r\n\r\n",
            target.len()
        )
    );
}

#[test]
fn body_has_requested_size() {
    for (text, length) in [
        ("0", 0),
        ("1", 1),
        ("100", 100),
        ("1k", 1024),
        ("4k", 4096),
        ("20k", 20_480),
        ("64000", 64_000),
        ("64001", 64_001),
        ("1m", 1 << 20),
    ] {
        let target = format!("/?s={text}");
        let response = exchange(&plan(), request("GET", &target, "").repeat(2).as_bytes());
        let at = memchr::memmem::find(&response, b"\r\n\r\n").unwrap() + 4;
        let once = [&response[..at], &lines(length)].concat();
        assert!(response == once.repeat(2), "{text}");
        let head = str::from_utf8(&response[..at]).unwrap();
        assert_eq!(
            field(head, "Content-Length"),
            Some(length.to_string().as_str())
        );
    }
}

#[test]
fn head_has_content_length_of_get() {
    for target in ["/?s=1k", "/?s=10m", "/?s=1k&k=1", "/?s=1k&p=10", "/?h"] {
        let response = exchange_text(&plan(), &request("HEAD", target, ""));
        let (head, body) = split(&response);
        assert_eq!(body, "", "{target}");
        let length = ["1024", "10485760"]
            .iter()
            .any(|length| head.contains(&format!("Content-Length: {length}")));
        let chunked = head.contains("Transfer-Encoding: chunked");
        assert!(length || chunked || target == "/?h", "{target}: {head}");
    }
}

#[test]
fn status_is_as_requested() {
    for (status, line) in [
        (404, "HTTP/1.1 404 Not Found"),
        (503, "HTTP/1.1 503 Service Unavailable"),
        (299, "HTTP/1.1 299 "),
    ] {
        let response = get(&format!("/?r={status}&s=3"));
        assert!(response.starts_with(&format!("{line}\r\n")), "{response}");
        assert_eq!(split(&response).1, ".12");
    }
    assert!(get("/?r=100").starts_with("HTTP/1.1 400 "));
}

#[test]
fn bodiless_statuses_have_no_body() {
    for status in [204, 205, 304] {
        for more in ["", "&k=1", "&b=5", "&b=0", "&p=1"] {
            let target = format!("/?s=10&r={status}{more}");
            let response = exchange_text(&plan(), &request("GET", &target, "").repeat(2));
            assert_eq!(response.matches("\r\n\r\n").count(), 2, "{target}");
            assert!(response.ends_with("\r\n\r\n"), "{target}");
        }
    }
}

#[test]
fn response_fields_follow_query_parameters() {
    let response = get("/?c=0");
    assert_eq!(field(&response, "Cache-Control"), Some("no-cache"));
    assert!(field(&response, "X-rsp").unwrap().contains("cache=0"));
    assert_eq!(field(&get("/?c=1"), "Cache-Control"), None);
    assert_eq!(field(&get("/?v=0"), "X-rsp"), None);
    let etag = |target| field(&get(target), "ETag").map(str::to_owned);
    assert_eq!(etag("/"), None);
    assert_eq!(etag("/?e=0"), None);
    assert_eq!(etag("/?e=1"), etag("/?e=1"));
    assert_ne!(etag("/?e=1"), etag("/?e=2"));
    assert_ne!(etag("/?e=1"), etag("/x?e=1"));
    let tag = etag("/?e=1").unwrap();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2);
}

#[test]
fn connection_field_is_respected() {
    let close = "Connection: close\r\n";
    for (target, fields, responses) in [
        ("/?s=1", "", 2),
        ("/?s=1", close, 1),
        ("/?s=1&C=1", "", 1),
        ("/?s=1&C=0", "", 2),
        ("/?s=1&K=0", "", 1),
        ("/?s=1&K=1", close, 2),
        ("/?s=1&C=1&K=1", "", 2),
        ("/?s=1&b=-1", "", 2),
        ("/?s=1&b=1", "", 2),
        ("/?s=1&b=0", "", 1),
        ("/?s=1&b=0&K=1", "", 1),
        ("/?s=1&b=7", "", 1),
        ("/?s=1&b=7&K=1", "", 2),
        ("/?s=1&k=1&b=7", "", 2),
    ] {
        let response = exchange_text(&plan(), &request("GET", target, fields).repeat(2));
        assert_eq!(
            response.matches("HTTP/1.1 200 OK").count(),
            responses,
            "{target}: {response}"
        );
        let closes = field(&response, "Connection") == Some("close");
        assert_eq!(closes, responses == 1, "{target}");
    }
    let old = "GET /?s=1 HTTP/1.0\r\n\r\n";
    assert_eq!(
        field(&exchange_text(&plan(), old), "Connection"),
        Some("close")
    );
    let old = "GET /?s=1&K=1 HTTP/1.0\r\n\r\n";
    assert_eq!(
        field(&exchange_text(&plan(), old), "Connection"),
        Some("keep-alive")
    );
}

#[test]
fn content_length_may_differ_from_body() {
    for (target, announced) in [
        ("/?s=10&b=100", Some("100")),
        ("/?s=10&b=1", Some("1")),
        ("/?s=10&b=1k", Some("1024")),
        ("/?s=10&b=-1", Some("10")),
        ("/?s=10&b=0", None),
    ] {
        let response = get(target);
        assert_eq!(field(&response, "Content-Length"), announced, "{target}");
        assert_eq!(split(&response).1, ".123456789", "{target}");
    }
}

#[test]
fn chunked_body_has_one_byte_per_chunk() {
    let response = get("/?s=12&k=1");
    assert_eq!(field(&response, "Transfer-Encoding"), Some("chunked"));
    assert_eq!(field(&response, "Content-Length"), None);
    assert!(
        field(&response, "X-rsp")
            .unwrap()
            .contains(", chunked, size=12")
    );
    let chunks: String = ".123456789.1"
        .chars()
        .map(|byte| format!("1\r\n{byte}\r\n"))
        .collect();
    assert_eq!(split(&response).1, format!("{chunks}0\r\n\r\n"));
    // Longer than the pattern.
    let response = get("/?s=30k&k=1");
    assert_eq!(split(&response).1.len(), 30 * 1024 * 6 + 5);
    assert!(response.ends_with("\r\n0\r\n\r\n"));
    // An empty body, and an HTTP/1.0 client, which does not support chunks.
    assert_eq!(split(&get("/?k=1")).1, "0\r\n\r\n");
    let response = exchange_text(&plan(), "GET /?s=3&k=1 HTTP/1.0\r\n\r\n");
    assert_eq!(field(&response, "Content-Length"), Some("3"));
    assert_eq!(split(&response).1, ".12");
}

#[test]
fn random_and_paced_bodies_have_requested_size() {
    for (target, length) in [
        ("/?s=1000&R=1", 1000),
        ("/?s=100k&R=1", 102_400),
        ("/?s=1000&p=7", 1000),
        ("/?s=100k&p=10k", 102_400),
        ("/?s=10&p=1g", 10),
    ] {
        let response = exchange(&plan(), request("GET", target, "").as_bytes());
        let at = memchr::memmem::find(&response, b"\r\n\r\n").unwrap() + 4;
        assert_eq!(response.len() - at, length, "{target}");
        let is_random = target.contains("R=1");
        assert_eq!(response[at..] == lines(length), !is_random, "{target}");
    }
    let response = get("/?s=12&k=1&p=5");
    assert_eq!(split(&response).1.len(), 12 * 6 + 5);
}

#[test]
fn help_is_sent() {
    for target in ["/?", "/?h", "/any/path?help"] {
        let response = get(target);
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{target}");
        assert_eq!(split(&response).1, HELP);
    }
}

#[test]
fn request_body_is_read_before_response() {
    let body = "Content-Length: 5\r\n\r\nhello";
    let chunked = "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for target in [
        "/?s=1",
        "/?s=1&A=1",
        "/?s=1&B=2",
        "/?s=1&B=0",
        "/?s=1&t=1&v=0",
    ] {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "GET"] {
            for body in [body, chunked] {
                let once = format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{body}");
                let response = exchange_text(&plan(), &once.repeat(3));
                assert_eq!(
                    response.matches("HTTP/1.1 200 OK").count(),
                    3,
                    "{method} {target}: {response}"
                );
            }
        }
    }
}

#[test]
fn expect_continue_is_answered_before_response() {
    let expecting = |target: &str| {
        request(
            "POST",
            target,
            "Content-Length: 5\r\nExpect: 100-continue\r\n",
        )
    };
    let continued = exchange_text(
        &plan(),
        &format!("{}hello{}", expecting("/?s=1"), request("GET", "/", "")),
    );
    assert!(continued.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
    assert_eq!(continued.matches("HTTP/1.1 200 OK").count(), 2);
    for target in ["/?A=1", "/?B=0"] {
        let response = exchange_text(&plan(), &expecting(target));
        assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
        assert_eq!(field(&response, "Connection"), Some("close"));
    }
}

#[test]
fn malformed_or_truncated_request_body_gets_400() {
    let head = "POST /?s=1 HTTP/1.1\r\nHost: h\r\n";
    let response = exchange_text(
        &plan(),
        &format!("{head}Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
    );
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert_eq!(field(&response, "Connection"), Some("close"));
    let response = exchange_text(&plan(), &format!("{head}Content-Length: 10\r\n\r\nhell"));
    assert_eq!(response, "");
}

#[test]
fn missing_body_gets_408() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        let text = request("POST", "/?s=1", "Content-Length: 5\r\n");
        client.send(text.as_bytes()).await;
        let before = site.core.now();
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
        assert!(site.core.now() - before >= plan().timeouts.client_body);
    });
}

#[test]
fn parameter_b_limits_body_bytes_read_before_response() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        let text = request("POST", "/?s=1&B=10", "Content-Length: 20\r\n") + "0123456789";
        client.send(text.as_bytes()).await;
        let response = client.receive_message().await;
        assert!(response.ends_with("\r\n\r\n."));
        // The rest of the body follows, then the next request.
        client.send(b"0123456789").await;
        client.send(request("GET", "/?s=2", "").as_bytes()).await;
        assert!(client.receive_message().await.ends_with("\r\n\r\n.1"));
    });
}

#[test]
fn response_is_delayed_as_requested() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        for (target, least, most) in [
            ("/?t=0", 0, 20),
            ("/?t=500", 500, 520),
            ("/?t=2k", 2048, 2070),
            ("/?t=1000r", 0, 1020),
        ] {
            let before = site.core.now();
            client.send(request("GET", target, "").as_bytes()).await;
            let response = client.receive_message().await;
            let took = (site.core.now() - before).as_millis();
            assert!((least..=most).contains(&took), "{target} took {took} ms");
            if least == 500 {
                let report = field(&response, "X-rsp").unwrap();
                let (_, real) = report.split_once("time=500 ms (").unwrap();
                let real: u128 = real.strip_suffix(" real)").unwrap().parse().unwrap();
                assert!((least..=took).contains(&real), "{report}");
            }
        }
    });
}

#[test]
fn earlier_responses_are_sent_before_delay() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        let both = request("GET", "/?s=1", "") + &request("GET", "/?s=2&t=10000", "");
        let before = site.core.now();
        client.send(both.as_bytes()).await;
        assert!(client.receive_message().await.ends_with("\r\n\r\n."));
        assert!((site.core.now() - before).as_millis() < 100);
        assert!(client.receive_message().await.ends_with("\r\n\r\n.1"));
        assert!((site.core.now() - before).as_millis() >= 10_000);
    });
}

#[test]
fn pause_delays_close() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        let before = site.core.now();
        let text = request("GET", "/?s=1&P=3000&C=1", "");
        client.send(text.as_bytes()).await;
        client.receive_message().await;
        assert!((site.core.now() - before).as_millis() < 100);
        assert!(client.receive_all().await.is_empty());
        assert!((site.core.now() - before).as_millis() >= 3000);
    });
}

#[test]
fn idle_timeout_is_as_requested() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        client.send(request("GET", "/?w=2000", "").as_bytes()).await;
        client.receive_message().await;
        // Before the idle timeout.
        site.core.sleep(Duration::from_millis(1500)).await;
        client.send(request("GET", "/?w=2000", "").as_bytes()).await;
        client.receive_message().await;
        let before = site.core.now();
        assert!(client.receive_all().await.is_empty());
        let idle = (site.core.now() - before).as_millis();
        assert!((1900..2200).contains(&idle), "{idle} ms");
        // Longer than the default idle timeout.
        let mut client = site.connect(&site.serve(&plan())).await;
        client.send(request("GET", "/?w=100k", "").as_bytes()).await;
        client.receive_message().await;
        site.core.sleep(plan().timeouts.client_idle * 5 / 4).await;
        client.send(request("GET", "/?s=1", "").as_bytes()).await;
        assert!(client.receive_message().await.ends_with("\r\n\r\n."));
    });
}

#[test]
fn stop_sends_delayed_response_and_closes() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        client
            .send(request("GET", "/?s=1&t=1000", "").as_bytes())
            .await;
        site.core.sleep(Duration::from_millis(100)).await;
        site.core.stop(Duration::from_secs(100));
        let response = String::from_utf8(client.receive_all().await).unwrap();
        assert_eq!(field(&response, "Connection"), Some("close"));
        assert!(response.ends_with("\r\n\r\n."));
    });
}

#[test]
fn stalled_reader_is_cut_off() {
    on_simulated_cores(|site| async move {
        let mut client = site.connect(&site.serve(&plan())).await;
        client.send(request("GET", "/?s=1m", "").as_bytes()).await;
        site.core.sleep(plan().timeouts.client_send * 2).await;
        assert!(client.receive_all().await.len() < 1 << 20);
    });
}
