//! `onrush load` over HTTP/2: our counts equal the logs of foreign servers.

use crate::encryption::{RSA, write_certificate};
use crate::loading::{load, number};
use crate::peer::Peer;
use crate::program::{drivers, run_onrush};

#[test]
#[ignore = "foreign programs: make test-all"]
fn stream_counts_match_nginx() {
    for io in drivers() {
        let nginx = Peer::nginx_with_http2(1_000_000, "");
        let url = nginx.url("/");
        let mut requests = 0;
        for arguments in [
            &["-n", "1000", "-c", "4", "-m", "16"][..],
            &["-n", "1000", "-c", "4", "-m", "16", "-t", "2"],
            &["-n", "500", "-c", "2"],
            &["-n", "300", "-c", "2", "-m", "8", "-R", "2000"],
            &[
                "-n",
                "300",
                "-c",
                "2",
                "-m",
                "8",
                "-R",
                "2k",
                "--spacing",
                "exponential",
            ],
            &["-n", "300", "-c", "2", "-m", "4", "-r", "7"],
            &[
                "-n",
                "200",
                "-m",
                "4",
                "-X",
                "POST",
                "--body",
                "n={{counter}}",
            ],
        ] {
            let arguments = [arguments, &["--http2=h2c", "--io", io]].concat();
            let (code, result) = load(&url, &arguments);
            assert_eq!(code, Some(0), "{arguments:?}: {result}");
            let count: u64 = arguments[1].parse().unwrap();
            requests += count;
            assert_eq!(number(&result, "errors"), 0, "{arguments:?}: {result}");
            assert_eq!(number(&result["statuses"], "200"), count, "{arguments:?}");
            assert_eq!(result["options"]["pipeline"], 1, "{arguments:?}");
            assert!(result["options"]["streams"].is_u64(), "{arguments:?}");
        }
        let log = nginx.log();
        assert_eq!(log.lines().count() as u64, requests);
        assert!(log.lines().all(|line| line.ends_with(" HTTP/2.0")), "{log}");
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn goaway_and_stream_limit_lose_no_request() {
    for io in drivers() {
        let nginx = Peer::nginx_with_http2(50, "http2_max_concurrent_streams 3;");
        let arguments = ["-n", "2000", "-c", "3", "-m", "9", "--http2", "--io", io];
        let (_, result) = load(&nginx.url("/"), &arguments);
        assert_eq!(number(&result, "errors"), 0, "{result}");
        assert_eq!(number(&result["statuses"], "200"), 2000, "{result}");
        assert!(number(&result, "connections") >= 2000 / 50, "{result}");
        assert_eq!(nginx.log().lines().count(), 2000);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn counts_match_h2o() {
    for io in drivers() {
        let Some(h2o) = Peer::h2o() else { return };
        h2o.write("small", b"hello");
        h2o.write("large", &vec![b'x'; 200_000]);
        for (path, count) in [("small", "3000"), ("large", "300")] {
            let url = h2o.url(&format!("/files/{path}"));
            // More than the 100 concurrent streams that h2o allows.
            let arguments = ["-n", count, "-c", "2", "-m", "150", "--http2", "--io", io];
            let (code, result) = load(&url, &arguments);
            assert_eq!(code, Some(0), "{result}");
            let requests = number(&result["statuses"], "200");
            assert_eq!(requests.to_string(), count, "{result}");
        }
        assert_eq!(h2o.log().lines().count(), 3300);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn h2load_command_lines_are_accepted() {
    let nginx = Peer::nginx_with_http2(1_000_000, "");
    let url = nginx.url("/");
    let line = [
        "load", "--as", "h2load", "-n", "2k", "-c", "4", "-t2", "-m16", &url,
    ];
    let finished = run_onrush(&line);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for expected in [
        "spawning thread #1: 2 total client(s). 1000 total requests\n",
        "Application protocol: h2c\n",
        "\nrequests: 2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout\n",
        "\nstatus codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx\n",
        "\ntime for request: ",
    ] {
        assert!(finished.out.contains(expected), "{expected}: {finished:?}");
    }
    assert_eq!(nginx.log().lines().count(), 2000);
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn large_responses_and_statuses_work_over_tls() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "nginx", RSA);
    for io in drivers() {
        let nginx = Peer::nginx_with_http2_and_tls(&certificate, &key);
        nginx.write("large", &vec![b'x'; 300_000]);
        let url = |path: &str| format!("https://{}", nginx.url(path));
        let arguments = [
            "--http2", "-k", "-n", "200", "-c", "2", "-m", "5", "--io", io,
        ];
        let (code, result) = load(&url("/files/large"), &arguments);
        assert_eq!(code, Some(0), "{result}");
        assert_eq!(number(&result["statuses"], "200"), 200, "{result}");
        assert!(number(&result, "bytes") >= 200 * 300_000, "{result}");
        let (code, result) = load(&url("/files/none"), &arguments);
        assert_eq!(number(&result["statuses"], "404"), 200, "{code:?} {result}");
        let lines = nginx.log();
        assert_eq!(lines.matches("GET /files/large HTTP/2.0").count(), 200);
        assert_eq!(lines.matches("GET /files/none HTTP/2.0").count(), 200);
    }
}

#[test]
#[ignore = "foreign programs: make test-all"]
fn server_without_alpn_h2_gets_no_request() {
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, key) = write_certificate(directory.path(), "nginx", RSA);
    let nginx = Peer::nginx_with_tls(&certificate, &key, "TLSv1.3");
    let url = format!("https://{}", nginx.url("/"));
    let finished = run_onrush(&["load", &url, "--http2", "-k", "-n", "10"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(
        finished.err.contains("no application protocol") || finished.err.contains("(ALPN)"),
        "{finished:?}"
    );
    assert_eq!(nginx.log(), "");
}

#[test]
fn flags_incompatible_with_http2_are_refused() {
    for (arguments, expected) in [
        (
            &["http://a/", "--http2=h2"][..],
            "use https://, or --http2=h2c",
        ),
        (&["https://a/", "--http2=h2c"], "use http://, or --http2=h2"),
        (
            &["memcached://a", "--http2"],
            "is only for HTTP, and memcached://a",
        ),
        (&["http://a/", "-m", "4"], "--http2"),
        (
            &["http://a/", "--http2", "--pipeline", "4"],
            "use --streams",
        ),
        (&["http://a/", "--http2", "-m", "0"], "expected 1 to 65536"),
        (
            &[
                "http://a/",
                "--http2",
                "-m",
                "4",
                "--rate-per-connection",
                "5",
            ],
            "use -R, or leave --streams out",
        ),
    ] {
        let finished = run_onrush(&[&["load"], arguments].concat());
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert!(finished.err.contains(expected), "{finished:?}");
    }
}
