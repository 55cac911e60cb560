//! Reports of each client are read, and what is none is refused.

use super::read;
use crate::scenario::Results;

#[test]
fn load_report_is_read_and_bad_statuses_are_errors() {
    let text = r#"{ "requests": 1000, "errors": 2, "duration_s": 2.0, "rps": 500.0, "bytes_per_s": 64000,
        "statuses": { "200": 990, "404": 7, "301": 3 }, "cpu_us_per_request": 4.2, "new_key": [],
        "latency_us": { "mean": 80.5, "max": 900, "percentiles": { "99.9": 300, "50": 70, "9": 1, "99.99": null } },
        "seconds": [ { "t": 1, "connections": 4, "requests": 500, "errors": 0, "rps": 500, "ttfb_us": 3 } ],
        "warnings": ["the generator was the limit"] }"#;
    let report = read(Results::Onrush, text).expect("a report");
    assert_eq!((report.requests, report.errors), (1000, 9));
    let latency = report.latency.expect("latency");
    let order: Vec<_> = latency
        .percentiles
        .iter()
        .map(|value| value.percentile.as_str())
        .collect();
    assert_eq!(order, ["9", "50", "99.9"]);
    assert_eq!(latency.at("99.9"), Some(300.0));
    assert_eq!(report.seconds[0].rps, 500.0);
    assert_eq!(
        report.warnings,
        ["the generator was the limit", "7 responses had status 404"]
    );
}

#[test]
fn wrk_text_is_read() {
    let text = "Running 5s test @ http://127.0.0.1:8080/\n  1 threads and 100 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
        Latency   512.03us  100.00us   1.20ms   90.00%\n    Req/Sec   190.00k     1.00k  195.00k    70.00%\n  \
        Latency Distribution\n     50%  500.00us\n     99%    1.00ms\n  \
        950000 requests in 5.00s, 64.00MB read\n  Socket errors: connect 0, read 1, write 2, timeout 3\n  \
        Non-2xx or 3xx responses: 4\nRequests/sec: 190000.00\nTransfer/sec:     12.80MB\n";
    let report = read(Results::Wrk, text).expect("a report");
    assert_eq!((report.requests, report.errors), (950_000, 10));
    assert_eq!((report.rps, report.duration_s), (190_000.0, 5.0));
    let latency = report.latency.expect("latency");
    assert!((latency.mean - 512.03).abs() < 1e-6);
    assert!((latency.at("99").expect("99 %") - 1_000.0).abs() < 1e-6);
}

#[test]
fn oha_json_is_read_and_what_was_in_flight_at_the_end_is_no_error() {
    let text = r#"{ "summary": { "successRate": 1.0, "total": 2.0, "slowest": 0.005, "fastest": 9e-6, "average": 0.000082,
        "requestsPerSec": 500.0, "totalData": 4000, "sizePerRequest": 4, "sizePerSec": 2000.0 },
        "latencyPercentiles": { "p50": 0.00007, "p99.9": 0.0025, "p99.99": null },
        "statusCodeDistribution": { "200": 990, "503": 10 },
        "errorDistribution": { "aborted due to deadline": 100, "connection refused": 3 } }"#;
    let report = read(Results::Oha, text).expect("a report");
    assert_eq!((report.requests, report.errors), (1000, 13));
    assert_eq!((report.rps, report.bytes_per_s), (500.0, 2000.0));
    let latency = report.latency.expect("latency");
    assert!((latency.mean - 82.0).abs() < 1e-6);
    assert!((latency.at("99.9").expect("99.9 %") - 2500.0).abs() < 1e-6);
}

#[test]
fn what_is_no_report_is_refused() {
    assert!(read(Results::Wrk, "unable to connect").is_err());
    assert!(read(Results::Onrush, "").is_err());
    assert!(read(Results::Oha, "").is_err());
    assert!(read(Results::Oha, "{}").is_err());
    assert!(read(Results::Onrush, "{}").is_err());
}
