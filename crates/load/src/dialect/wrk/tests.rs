//! Tests of wrk's and wrk2's output.

use super::*;

fn shown(tool: Tool) -> OutputOptions {
    OutputOptions {
        tool,
        url: "http://a/".to_owned(),
        duration: Duration::from_secs(2),
        threads: 2,
        connections: 10,
        latency: true,
        uncorrected: true,
        timeout: Duration::from_secs(2),
    }
}

/// Returns the report of a run with these times (us), and one second in which two threads have these rates.
fn text(shown: OutputOptions, rates: [f64; 2], times_us: impl Iterator<Item = u64>) -> String {
    let mut report = Report {
        requests: 315_629,
        duration_s: 2.1,
        rps: 150_283.06,
        bytes: 43_242_373,
        bytes_per_s: 20_583_547.0,
        ..Report::default()
    };
    for us in times_us {
        report.times.service.record(us * 1000);
        report.times.response.record(us * 2000);
    }
    let mut text = SummaryFormatter::new(shown);
    assert_eq!(second(&mut text, 1.0, rates), None);
    text.report(&report)
}

fn second(text: &mut SummaryFormatter, time_s: f64, rates: [f64; 2]) -> Option<String> {
    let of = |rps: f64| Second {
        rps,
        time_s,
        last_byte_us: Some(rps),
        statuses: [0, 1, 0, 0, 0],
        ..Second::between(
            &Default::default(),
            Duration::ZERO,
            &Default::default(),
            Duration::ZERO,
        )
    };
    text.record_second(time_s, &rates.map(of))
}

#[test]
fn output_matches_wrk() {
    assert_eq!(
        SummaryFormatter::new(shown(Tool::Wrk)).head(),
        "Running 2s test @ http://a/\n  2 threads and 10 connections\n"
    );
    let expected = "  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    50.50us   28.87us 100.00us   58.00%
    Req/Sec    75.00k     7.07k   80.00k   100.00%
  Latency Distribution
     50%   50.01us
     75%   75.01us
     90%   90.05us
     99%   99.01us
  315629 requests in 2.10s, 41.24MB read
Requests/sec: 150283.06
Transfer/sec:     19.63MB
";
    let text = text(shown(Tool::Wrk), [70_000.0, 80_000.5], 1..=100);
    let digits = |text: &str| text.replace(|letter: char| letter.is_ascii_digit(), "0");
    assert_eq!(digits(&text), digits(expected), "{text}");
    for (line, expected) in text.lines().zip(expected.lines()) {
        let is_binned = line.contains("us ") || line.ends_with("us");
        assert!(
            is_binned || line == expected,
            "{line:?} is not {expected:?}"
        );
    }
}

#[test]
fn wrk2_prints_both_latency_spectrums() {
    let text = text(shown(Tool::Wrk2), [500.0, 500.0], 1..=1000);
    for part in [
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    1.00ms\n",
        "\n100.000%    2.00ms\n\n  Detailed Percentile spectrum:\n       Value   Percentile   TotalCount 1/(1-Percentile)\n\n",
        "\n       0.002     0.000000            1         1.00\n",
        "     1.000000         1000          inf\n#[Mean    =        1.001, StdDeviation   =        0.57",
        "]\n#[Max     =        2.000, Total count    =         1000]\n#[Buckets =           32, SubBuckets     =         2048]\n-----",
        "-----\n\n  Latency Distribution (HdrHistogram - Uncorrected Latency (measured without taking delayed starts into account))\n",
        "#[Max     =        1.000, ",
        "-----\n  315629 requests in",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    let mut without = shown(Tool::Wrk2);
    (without.latency, without.uncorrected) = (false, false);
    let text = super::tests::text(without, [1.0, 1.0], 1..=10);
    assert_eq!(text.lines().count(), 6, "{text}");
}

#[test]
fn wrk2_prints_calibration() {
    let mut text = SummaryFormatter::new(OutputOptions {
        duration: Duration::from_secs(30),
        ..shown(Tool::Wrk2)
    });
    for time in 1..10 {
        assert_eq!(second(&mut text, f64::from(time), [1000.0, 2000.0]), None);
    }
    let said = second(&mut text, 10.0, [1000.0, 3000.0]).expect("ten seconds");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [1.0, 2.1].map(|ms| format!(
            "  Thread calibration: mean lat.: {ms:.3}ms, rate sampling interval: 1000ms"
        ))
    );
    assert_eq!(text.rates.seen, 0);
    assert_eq!(second(&mut text, 11.0, [1000.0, 2000.0]), None);
    // The interval is too short for a rate; then a thread has no responses.
    second(&mut text, 11.01, [9.0, 9.0]);
    second(&mut text, 12.0, [0.0, 500.0]);
    assert_eq!(text.rates.kept, [1000.0, 2000.0, 500.0]);
}

#[test]
fn error_counts_match_wrk() {
    let mut report = Report {
        errors_by_kind: [
            ("connect_refused", 1),
            ("tls_handshake", 2),
            ("reset", 4),
            ("early_close", 8),
        ]
        .map(|(kind, count)| (kind.to_owned(), count))
        .into(),
        resent: 48,
        // HTTP errors on intact connections.
        refused: 32,
        statuses: [("200", 5), ("399", 1), ("404", 2), ("500", 3)]
            .map(|(status, count)| (status.to_owned(), count))
            .into(),
        ..Report::default()
    };
    for ms in [1, 1999, 2100, 60_000] {
        report.times.service.record(ms * 1_000_000);
    }
    let text = SummaryFormatter::new(shown(Tool::Wrk)).report(&report);
    let expected =
        "  Socket errors: connect 3, read 28, write 0, timeout 2\n  Non-2xx or 3xx responses: 5\n";
    assert!(text.contains(expected), "{text}");
    let text = SummaryFormatter::new(shown(Tool::Wrk)).report(&Report::default());
    assert!(
        !text.contains("Socket") && !text.contains("Non-2xx"),
        "{text}"
    );
}

#[test]
fn units_match_wrk() {
    for (us, text) in [
        (0.0, "0.00us"),
        (849.9, "849.90us"),
        (850.0, "0.85ms"),
        (999_999.0, "1000.00ms"),
        (1_000_000.0, "1.00s"),
        (51_000_000.0, "0.85m"),
        (7_200_000_000.0, "120.00m"),
    ] {
        assert_eq!(time(us), text);
    }
    for (seconds, text) in [(10.0, "10s"), (50.0, "50s"), (60.0, "1m"), (3600.0, "60m")] {
        assert_eq!(scaled(seconds, &SECONDS, 0), text);
    }
    assert_eq!(scaled(1024.0 * 1024.0, &BINARY, 2), "1.00M");
    assert_eq!(scaled(535.28, &METRIC, 2), "535.28");
}

#[test]
fn table_cells_align_digits() {
    for (text, cell_) in [
        ("75.65k", "  75.65k "),
        ("62.88us", "  62.88us"),
        ("535.28", " 535.28  "),
        ("1.00s", "   1.00s "),
    ] {
        assert_eq!(cell(text, 9), cell_, "{text}");
    }
}

#[test]
fn equal_times_are_within_deviation() {
    let mut times = Histogram::new();
    (0..9).for_each(|_| times.record(1_234_567));
    let spread = Spread::of(&times);
    assert_eq!((spread.deviation, spread.within), (0.0, 100.0));
}

#[test]
fn rate_samples_are_bounded() {
    let mut samples = Samples::default();
    for sample in 0..5 * RATE_SAMPLES_MAX {
        samples.add((sample % 101) as f64);
    }
    assert!(samples.kept.len() <= RATE_SAMPLES_MAX);
    let spread = samples.spread();
    assert!((49.5..50.5).contains(&spread.mean), "{spread:?}");
    assert_eq!(Samples::default().spread(), Spread::default());
}
