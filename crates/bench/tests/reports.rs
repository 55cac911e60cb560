//! Parses captured reports of clients. Malformed ones are errors with a reason, and nothing panics. `reports/README.md`
//! lists the origin of the reports.

use std::fs;
use std::path::{Path, PathBuf};

use onrush_bench::collect::client::{ClientReport, read};
use onrush_bench::scenario::Results;
use proptest::prelude::*;

#[path = "support/report_checks.rs"]
mod report_checks;

/// Valid reports with their parsed figures and warnings.
const READ: &[(&str, &str, &str)] = &[
    (
        "oha/good.json",
        "109767 requests failed 0 in 1.0175 rps 107879.9114 B/s 539399.557 \
         mean 90.1576 max 49852.255 [10=54.21 99.99=36231.042 of 9] rows 0",
        "",
    ),
    (
        "oha/refused.json",
        "0 requests failed 20 in 0.0007 rps 0 B/s 0 \
         mean - max - [] rows 0",
        "20 times: Connection refused (os error 111)",
    ),
    (
        "oha/server-died.json",
        "469 requests failed 517 in 2.0029 rps 234.1635 B/s 1170.8177 \
         mean 978.4325 max 44318.874 [10=28.904 99.99=44318.874 of 9] rows 0",
        "513 times: Connection refused (os error 111) | 4 times: connection error",
    ),
    (
        "oha/status-500.json",
        "500 requests failed 500 in 0.0208 rps 24019.7054 B/s 48039.4108 \
         mean 118.3009 max 7910.584 [10=26.012 99.99=7910.584 of 9] rows 0",
        "500 responses had status 500",
    ),
    (
        "ab/good.txt",
        "2000 requests failed 0 in 0.015 rps 135318 B/s 21466666.6667 \
         mean 30 max 1000 [50=0 66=0 75=0 80=0 90=0 95=0 98=0 99=0] rows 0",
        "",
    ),
    (
        "ab/server-died-r.txt",
        "359270 requests failed 506279 in 3 rps 119753.91 B/s 8412679.3333 \
         mean 33 max 14000 [50=0 66=0 75=0 80=0 90=0 95=0 98=0 99=0] rows 0",
        "Failed requests: 506279 | (Connect: 0, Receive: 202511, Length: 202512, Exceptions: 101256)",
    ),
    (
        "ab/status-500.txt",
        "213590 requests failed 213590 in 2 rps 106794.89 B/s 18902715 \
         mean 37 max 144000 [50=0 66=0 75=0 80=0 90=0 95=0 98=0 99=0] rows 0",
        "Non-2xx responses: 213590",
    ),
    (
        "fortio/good.json",
        "2000 requests failed 0 in 2.0009 rps 999.5322 B/s 136935.9133 \
         mean 239.1564 max 21845.71 [50=526.243 75=784.2806 90=939.1031 99=3866.6667 99.9=20922.855] rows 0",
        "",
    ),
    (
        "fortio/printed.txt",
        "115456 requests failed 0 in 1.0001 rps 115441.4186 B/s 15815474.3474 \
         mean 34.4841 max 6101.173 [50=31.7571 99=89.9718 99.9=559.65] rows 0",
        "",
    ),
    (
        "fortio/refused.json",
        "0 requests failed 100 in 1.0008 rps 99.9212 B/s 0 \
         mean 784.4611 max 29836.718 [50=534.9138 75=799.1673 90=957.7194 99=25000 99.9=29353.0462] rows 0",
        "100 times: code -1",
    ),
    (
        "fortio/server-died.json",
        "1484 requests failed 1516 in 3.001 rps 999.6544 B/s 67745.9099 \
         mean 162.8883 max 55018.942 [50=508.163 75=757.5732 90=907.2194 99=997.0071 99.9=13000] rows 0",
        "1,516 times: code -1",
    ),
    (
        "fortio/status-500.json",
        "2000 requests failed 2000 in 0.1021 rps 19592.4306 B/s 2997641.8844 \
         mean 200.7877 max 5240.088 [50=145.8757 75=210.2871 90=313.3333 99=1666.6667 99.9=5120.044] rows 0",
        "2,000 times: code 500",
    ),
    (
        "h1load/long.txt",
        "288339 requests failed 0 in 2 rps 144165.5 B/s 19750673.5 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "h1load/longer.txt",
        "127267 requests failed 0 in 2 rps 63629.5 B/s 8717241.5 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "h1load/ours.txt",
        "222180 requests failed 0 in 2 rps 111090 B/s 15219330 \
         mean - max - [10=24.671 99.9999=6713.34 of 64] rows 2",
        "",
    ),
    (
        "h1load/percentiles.txt",
        "2000 requests failed 0 in 1 rps 2000 B/s 274019 \
         mean - max - [10=17 99.9999=643 of 64] rows 1",
        "",
    ),
    (
        "h1load/refused.txt",
        "0 requests failed 4 in 1 rps 0 B/s 0 \
         mean - max - [] rows 1",
        "",
    ),
    (
        "h1load/server-died.txt",
        "164800 requests failed 4 in 2 rps 82400 B/s 11288526 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "h1load/status-500.txt",
        "287733 requests failed 287733 in 2 rps 143862.5 B/s 22010962.5 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "h1load/statuses.txt",
        "175277 requests failed 0 in 2 rps 87634.5 B/s 12005926.5 \
         mean - max - [10=21 99.9999=8272 of 64] rows 2",
        "",
    ),
    (
        "h2load/good.txt",
        "2000 requests failed 0 in 0.0431 rps 46416.64 B/s 6354370.56 \
         mean 79 max 3820 [] rows 0",
        "",
    ),
    (
        "h2load/refused.txt",
        "0 requests failed 200 in 0.0029 rps 0 B/s 0 \
         mean - max - [] rows 0",
        "requests: 200 total, 0 started, 0 done, 0 succeeded, 200 failed, 200 errored, 0 timeout",
    ),
    (
        "h2load/server-died.txt",
        "193816 requests failed 0 in 3 rps 64605.33 B/s 8849981.44 \
         mean 30 max 15860 [] rows 0",
        "",
    ),
    (
        "h2load/status-500.txt",
        "228971 requests failed 228971 in 2.02 rps 114485.5 B/s 17511219.2 \
         mean 33 max 37260 [] rows 0",
        "228,971 responses had status 5xx",
    ),
    (
        "iperf3/both-ways.json",
        "2783379403 bytes failed 0 in 1.0015 rps 2779246663.2118 B/s 2779246663.2118 \
         mean - max - [] rows 1",
        "",
    ),
    (
        "iperf3/reverse.json",
        "4594532087 bytes failed 0 in 2.0008 rps 2296379640.9586 B/s 2296379640.9586 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "iperf3/tcp.json",
        "5549195264 bytes failed 0 in 2.0021 rps 2771709510.6899 B/s 2771709510.6899 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "iperf3/udp-lost.json",
        "204665 datagrams failed 431305 in 1.0002 rps 204630.8267 B/s 13096372.9057 \
         mean - max - [] rows 1",
        "",
    ),
    (
        "iperf3/udp.json",
        "382 datagrams failed 0 in 2.0002 rps 190.9837 B/s 6258152.9279 \
         mean - max - [] rows 2",
        "",
    ),
    (
        "k6/export.json",
        "4000 requests failed 3 in 2.0008 rps 1999.2 B/s 273890.4 \
         mean 500 max 9500 [50=400 90=800 95=1100] rows 0",
        "http_req_failed: 3 of 4000",
    ),
    (
        "k6/handle-summary.json",
        "4000 requests failed 0 in 2.0008 rps 1999.2 B/s 273890.4 \
         mean 500 max - [99.9=9100] rows 0",
        "",
    ),
    (
        "k6/machine-readable.json",
        "4000 requests failed 1000 in 2 rps 2000 B/s - \
         mean 500 max 9500 [50=400 99=2500] rows 0",
        "http_req_failed: 1000 of 4000",
    ),
    (
        "memcaslap/good.txt",
        "327435 requests failed 0 in 2 rps 163350 B/s 163311525.5587 \
         mean - max - [] rows 0",
        "",
    ),
    (
        "memcaslap/server-died.txt",
        "104930 requests failed 0 in 3 rps 34902 B/s 34893176.2103 \
         mean - max - [] rows 0",
        "",
    ),
    (
        "memcaslap/statistics.txt",
        "450127 requests failed 0 in 3 rps 149559 B/s 149525295.59 \
         mean 53 max 10762 [] rows 3",
        "",
    ),
    (
        "oha/in-flight.json",
        "1000 requests failed 13 in 2 rps 500 B/s 2000 \
         mean 82 max 5000 [50=70 99.9=2500] rows 0",
        "10 responses had status 503 | 3 times: connection refused",
    ),
    (
        "onrush/statuses.json",
        "1000 requests failed 9 in 2 rps 500 B/s 64000 \
         mean 80.5 max 900 [9=1 50=70 99.9=300] rows 1",
        "the generator was the limit | 7 responses had status 404",
    ),
    (
        "sockperf/full-rtt.txt",
        "120698 messages failed 0 in 1 rps 120698 B/s - \
         mean 7.028 max 8023.844 [25=3.576 50=3.779 75=4.313 90=4.383 99=38.558 99.9=112.048 99.99=3576.474 99.999=5460.645] rows 0",
        "",
    ),
    (
        "sockperf/ping-pong.txt",
        "5002 messages failed 0 in 1 rps 5002 B/s - \
         mean 14.951 max 2036.824 [25=2.237 50=2.518 75=22.636 90=26.434 99=41.842 99.9=1438.644 99.99=2036.824 99.999=2036.824] rows 0",
        "",
    ),
    (
        "sockperf/throughput.txt",
        "682709 messages failed 0 in 1 rps 682388 B/s 9553575.936 \
         mean - max - [] rows 0",
        "",
    ),
    (
        "sockperf/under-load.txt",
        "2494 messages failed 2381 in 1 rps 2494 B/s - \
         mean 129.665 max 1975.377 [25=2.019 50=2.039 75=2.078 90=262.807 99=1925.783 99.9=1974.425 99.99=1975.377 99.999=1975.377] rows 0",
        "# dropped messages = 2381; # duplicated messages = 0; # out-of-order messages = 0",
    ),
    (
        "vegeta/good.json",
        "2000 requests failed 0 in 2.0079 rps 996.0665 B/s 4980.3325 \
         mean 692.95 max 19988.212 [50=150.172 90=1448.134 95=4009.05 99=10994.585] rows 0",
        "",
    ),
    (
        "vegeta/refused.json",
        "0 requests failed 50 in 0.9805 rps 0 B/s 0 \
         mean 266.815 max 2289.94 [50=129.613 90=459.694 95=1171.464 99=2289.94] rows 0",
        "Get \"http://127.0.0.1:25999/\": dial tcp 0.0.0.0:0->127.0.0.1:25999: connect: connection refused",
    ),
    (
        "vegeta/server-died.json",
        "748 requests failed 752 in 2.9985 rps 249.4552 B/s 1247.2761 \
         mean 198.423 max 9990.133 [50=167.67 90=235.162 95=274.244 99=961.876] rows 0",
        "Get \"http://127.0.0.1:25608/\": dial tcp 0.0.0.0:0->127.0.0.1:25608: connect: connection refused",
    ),
    (
        "vegeta/status-500.json",
        "2000 requests failed 2000 in 1.999 rps 0 B/s 2001.0355 \
         mean 493.2 max 15994.998 [50=178.628 90=560.109 95=2318.909 99=7110.205] rows 0",
        "2,000 responses had status 500 | 500 Internal Server Error",
    ),
    (
        "wrk/good.txt",
        "289196 requests failed 0 in 2 rps 144512.95 B/s 19807600.64 \
         mean 296.22 max 12810 [50=47 75=52 90=395 99=4720] rows 0",
        "",
    ),
    (
        "wrk/server-died.txt",
        "184739 requests failed 233145 in 3.02 rps 61102.15 B/s 8381663.7881 \
         mean 185.41 max 16090 [50=23 75=25 90=37 99=3920] rows 0",
        "Socket errors: connect 0, read 4, write 233141, timeout 0",
    ),
    (
        "wrk/status-500.txt",
        "216776 requests failed 216776 in 2.04 rps 106482.29 B/s 16258068.0784 \
         mean 1790 max 32160 [50=48 75=269 90=5620 99=24720] rows 0",
        "Non-2xx or 3xx responses: 216776",
    ),
    (
        "wrk2/good.txt",
        "3947 requests failed 0 in 2 rps 1978.39 B/s 270371.84 \
         mean 1810 max 23140 [50=1100 75=1610 90=4300 99=12640 99.9=16530 99.99=23150 99.999=23150] rows 0",
        "",
    ),
    (
        "wrk2/ours.txt",
        "2000 requests failed 0 in 2 rps 999.97 B/s 137000.96 \
         mean 2820 max 46690 [50=165.12 75=2670 90=6710 99=34730 99.9=44760 99.99=46690 99.999=46690] rows 0",
        "",
    ),
    (
        "wrk2/server-died.txt",
        "1485 requests failed 272052 in 4.03 rps 368.94 B/s 50483.4541 \
         mean 1120 max 5950 [50=1070 75=1360 90=1590 99=4090 99.9=5950 99.99=5950 99.999=5950] rows 0",
        "Socket errors: connect 0, read 4, write 272048, timeout 0",
    ),
    (
        "wrk2/status-500.txt",
        "3958 requests failed 3958 in 2 rps 1978.49 B/s 302786.56 \
         mean 4780 max 50820 [50=1900 75=6240 90=11250 99=40990 99.9=50400 99.99=50850 99.999=50850] rows 0",
        "Non-2xx or 3xx responses: 3958",
    ),
];

/// Reports without usable figures, with the reason for which they are refused.
const REFUSED: &[(&str, &str)] = &[
    ("ab/refused.txt", "no line begins with `Complete requests:`"),
    (
        "ab/server-died.txt",
        "no line begins with `Complete requests:`",
    ),
    (
        "fortio/refused.txt",
        "its JSON: missing field `ActualQPS` at line 1 column 307",
    ),
    (
        "iperf3/refused.json",
        "iperf3 reports: unable to connect to server: Connection refused",
    ),
    (
        "iperf3/server-died.json",
        "iperf3 reports: unable to write to stream socket: Broken pipe",
    ),
    ("iperf3/text.txt", "no JSON object found"),
    ("memcaslap/refused.txt", "no line begins with `Run time:`"),
    ("sockperf/nobody.txt", "no line begins with `[Total Run]`"),
    ("sockperf/refused.txt", "no line begins with `[Total Run]`"),
    (
        "sockperf/server-died.txt",
        "no line begins with `[Total Run]`",
    ),
    ("wrk/refused.txt", "its totals are missing"),
    ("wrk2/refused.txt", "its totals are missing"),
];

fn text_of(file: &str) -> String {
    let path = folder().join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reports")
}

/// The client that wrote a report, from its folder.
fn results_of(file: &str) -> Results {
    let client = file.split('/').next().expect("it has a folder");
    Results::parse(client).expect("folders have the names of clients")
}

fn report_of(file: &str) -> Result<ClientReport, String> {
    read(results_of(file), &text_of(file))
}

/// All figures in one line, truncated to four decimals; `-` for missing ones.
fn line(report: &ClientReport) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let latency = report.latency.as_ref();
    let percentiles = latency.map_or(&[][..], |latency| &latency.percentiles);
    let names: Vec<String> = percentiles
        .iter()
        .map(|value| format!("{}={}", value.percentile, short(value.us)))
        .collect();
    let some = match names.len() {
        0..=8 => names,
        many => vec![
            names[0].clone(),
            names[many - 1].clone(),
            format!("of {many}"),
        ],
    };
    format!(
        "{} {} failed {} in {} rps {} B/s {} mean {} max {} [{}] rows {}",
        report.requests,
        report.counted.plural(),
        report.errors,
        short(report.duration_s),
        short(report.rps),
        number(report.bytes_per_s),
        number(latency.and_then(|latency| latency.mean)),
        number(latency.and_then(|latency| latency.max)),
        some.join(" "),
        report.seconds.len()
    )
}

fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[test]
fn reports_match_client_counts() {
    for (file, numbers, warnings) in READ {
        let report = report_of(file).unwrap_or_else(|why| panic!("{file}: {why}"));
        assert_eq!(line(&report), *numbers, "{file}");
        assert_eq!(report.warnings.join(" | "), *warnings, "{file}");
    }
}

#[test]
fn invalid_report_is_refused_with_reason() {
    for (file, part) in REFUSED {
        let why = report_of(file).expect_err(file);
        let form = format!("expected {}; ", results_of(file).form());
        assert!(
            why.starts_with(&form) && why.contains(part),
            "{file}: {why}"
        );
    }
    for results in Results::ALL {
        for text in ["", "\n", "{}", "{}\n", "Segmentation fault\n", "[1, 2]\n"] {
            assert!(read(results, text).is_err(), "{results:?} of {text:?}");
        }
    }
}

#[test]
fn captured_reports_have_expectations() {
    let read = READ.iter().map(|(file, ..)| *file);
    let refused = REFUSED.iter().map(|(file, _)| *file);
    let mut listed: Vec<&str> = read.chain(refused).collect();
    listed.sort_unstable();
    assert_eq!(listed, all());
}

#[test]
fn unusual_figures_have_warnings() {
    for (file, part) in [
        ("ab/server-died-r.txt", "includes failed requests"),
        ("fortio/good.json", "are interpolated"),
        ("h1load/long.txt", "does not report the statuses"),
        ("iperf3/tcp.json", "retransmitted segments: 1"),
        ("iperf3/udp-lost.json", "counts datagrams"),
        ("memcaslap/server-died.txt", "nor lost connections"),
        ("sockperf/ping-pong.txt", "half round trips"),
        ("sockperf/full-rtt.txt", "are round trips"),
        ("sockperf/throughput.txt", "whether they were received"),
        ("wrk2/good.txt", "coordinated omission"),
    ] {
        let notes = report_of(file).expect(file).notes;
        let found = notes.iter().any(|note| note.contains(part));
        assert!(found, "{file}: {notes:?}");
    }
}

#[test]
fn per_second_rows_match_client_output() {
    let rows = |file: &str| {
        let report = report_of(file).expect(file);
        let rows = report.seconds.iter();
        rows.map(|row| (row.t, row.rps, row.errors))
            .collect::<Vec<_>>()
    };
    // -l prints seconds since 1970.
    assert_eq!(
        rows("h1load/long.txt"),
        [(1.0, 140_752.0, 0), (2.0, 147_579.0, 0)]
    );
    assert_eq!(rows("h1load/server-died.txt")[1], (2.0, 19_645.0, 4));
    let memcaslap = rows("memcaslap/statistics.txt");
    assert_eq!(memcaslap[1], (2.0, 165_988.0, 0));
    let iperf3 = rows("iperf3/udp.json");
    assert_eq!(iperf3[0].0, 1.000_111);
    assert_eq!(iperf3[0].1.round(), 191.0);
}

/// A killed client leaves an incomplete report.
#[test]
fn truncated_report_is_refused_or_unchanged() {
    for (file, numbers, _) in READ {
        let text = text_of(file);
        // The rows of h1load may end anywhere, and the spectrum of wrk2 is not read.
        if file.starts_with("h1load/") || text.len() > 5_000 {
            continue;
        }
        let totals = |line: &str| line.split(" mean ").next().map(str::to_owned);
        let cuts = (0..text.len()).filter(|at| text.is_char_boundary(*at));
        for at in cuts {
            if let Ok(report) = read(results_of(file), &text[..at]) {
                let cut = line(&report);
                assert_eq!(totals(&cut), totals(numbers), "{file} cut at {at}");
            }
        }
    }
}

#[test]
fn reports_are_not_confused_between_clients() {
    for (file, ..) in READ {
        for results in Results::ALL
            .into_iter()
            .filter(|other| *other != results_of(file))
        {
            // The same format, from which other latencies are read.
            if results.is_ours() && results_of(file).is_ours() {
                continue;
            }
            // The output of wrk2 contains that of wrk.
            if results == Results::Wrk2 && results_of(file) == Results::Wrk {
                continue;
            }
            assert!(
                read(results, &text_of(file)).is_err(),
                "{file} as {results:?}"
            );
        }
    }
}

#[test]
fn impossible_numbers_are_refused() {
    for (file, from, to) in [
        (
            "vegeta/good.json",
            "\"throughput\":996",
            "\"throughput\":-996",
        ),
        ("wrk/good.txt", "Requests/sec: ", "Requests/sec: -"),
        (
            "sockperf/throughput.txt",
            "Message Rate is 682388",
            "Message Rate is nan",
        ),
        ("h2load/good.txt", "46416.64 req/s", "1e999 req/s"),
        (
            "iperf3/udp.json",
            "\"seconds\":\t2.000171",
            "\"seconds\":\t-2",
        ),
    ] {
        let text = text_of(file);
        assert!(text.contains(from), "{file} has {from}");
        let report = read(results_of(file), &text.replace(from, to));
        assert!(report.is_err(), "{file}: {report:?}");
    }
}

#[test]
fn fuzz_regressions() {
    let crashes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/crashes/client_report");
    // A fuzz target without failures has no directory.
    for entry in fs::read_dir(crashes).into_iter().flatten().flatten() {
        eprintln!("{}", entry.path().display());
        report_checks::any(&fs::read(entry.path()).expect("what is listed can be read"));
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        report_checks::any(&bytes);
    }

    #[test]
    fn damaged_reports_do_not_panic(
        file in 0..READ.len(),
        at in any::<prop::sample::Index>(),
        length in 0..40_usize,
        instead in proptest::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = text_of(READ[file].0).into_bytes();
        let start = at.index(bytes.len());
        let end = bytes.len().min(start + length);
        bytes.splice(start..end, instead);
        report_checks::any(&bytes);
    }

    #[test]
    fn altered_numbers_do_not_panic(
        file in 0..READ.len(),
        at in any::<prop::sample::Index>(),
        number in prop_oneof![
            any::<u64>().prop_map(|number| number.to_string()),
            any::<f64>().prop_map(|number| number.to_string()),
            Just("18446744073709551615".to_owned()),
            Just("1e308".to_owned()),
            Just("-0".to_owned()),
        ],
    ) {
        let text = text_of(READ[file].0);
        let digit = |letter: char| letter.is_ascii_digit();
        let starts: Vec<usize> = text.match_indices(digit).map(|(at, _)| at).collect();
        let start = starts[at.index(starts.len())];
        let rest = &text[start..];
        let length = rest.find(|letter| !digit(letter)).unwrap_or(rest.len());
        let other = format!("{}{number}{}", &text[..start], &rest[length..]);
        report_checks::any(other.as_bytes());
    }
}

fn all() -> Vec<String> {
    let mut files = Vec::new();
    for client in fs::read_dir(folder()).expect("it is ours").flatten() {
        for file in fs::read_dir(client.path()).into_iter().flatten().flatten() {
            let name = |path: PathBuf| {
                path.file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            };
            files.push(format!("{}/{}", name(client.path()), name(file.path())));
        }
    }
    files.sort();
    files
}
