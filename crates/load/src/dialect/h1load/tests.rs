//! Tests of h1load's format.

use super::*;

const SECOND: Second = Second {
    time_s: 2.0,
    connections_open: 4,
    connections: 4,
    requests: 97_754,
    bytes: 13_392_298,
    errors: 0,
    connections_per_s: 2.0,
    rps: 77_027.0,
    bytes_per_s: 10_552_699.0,
    first_byte_us: Some(36.0),
    last_byte_us: Some(135.5),
    send_lag_us: Some(0.5),
    statuses: [0, 77_027, 0, 12, 0],
};

fn shown(form: LineFormat) -> OutputOptions {
    OutputOptions {
        form,
        ..OutputOptions::default()
    }
}

fn line(shown: OutputOptions, second: &Second) -> String {
    LineFormatter::new(shown).line(second, 1_795_325_163)
}

#[test]
fn each_line_format_has_its_columns() {
    for (form, header, row) in [
        (
            LineFormat::Brief,
            "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  bps   ttfb",
            "         2     4        4    97754       13392298      0 2.00 77k0 84M4 35.50u ",
        ),
        (
            LineFormat::Long,
            "#     time conns tot_conn  tot_req      tot_bytes    err  cps  rps  Bps  bps   ttfb   ttlb",
            "1795325163     4        4    97754       13392298      0 2.00 77k0 10M5 84M4 35.50u 135.0u ",
        ),
        (
            LineFormat::Raw,
            "#_____time conns tot_conn  tot_req      tot_bytes    err thr cps rps Bps bps ttfb(us) ttlb(us)",
            "1795325163     4        4    97754       13392298      0 100 2.0 77027.0 10552699.0 84421592.0 35.5 135.0 ",
        ),
    ] {
        assert_eq!(LineFormatter::new(shown(form)).header(), header);
        assert_eq!(line(shown(form), &SECOND), row);
        let with_statuses = OutputOptions {
            statuses: true,
            ..shown(form)
        };
        let lines = LineFormatter::new(with_statuses);
        assert_eq!(lines.header(), format!("{header} 1xx 2xx 3xx 4xx 5xx"));
        let statuses = "  0 77027   0  12   0 ";
        assert_eq!(line(with_statuses, &SECOND), format!("{row}{statuses}"));
    }
}

#[test]
fn idle_second_has_no_latencies() {
    let idle = Second {
        rps: 0.0,
        first_byte_us: None,
        last_byte_us: None,
        send_lag_us: None,
        ..SECOND
    };
    let long = line(shown(LineFormat::Long), &idle);
    assert!(long.ends_with(" 84M4    -      -   "), "{long:?}");
    let raw = line(shown(LineFormat::Raw), &idle);
    assert!(raw.ends_with(" 84421592.0 - - "), "{raw:?}");
}

#[test]
fn small_rates_use_milli_and_micro_suffixes() {
    for (value, text) in [
        (0.0, "0.00"),
        (0.5, "500m"),
        (0.0179, "17m9"),
        (0.000_002, "2u00"),
        (1.0, "1.00"),
        (17_900.0, "17k9"),
    ] {
        assert_eq!(format_rate(value), text);
    }
}

#[test]
fn throttle_rises_in_ten_steps() {
    let lines = LineFormatter::new(OutputOptions {
        soft_start: Duration::from_secs(10),
        ..OutputOptions::default()
    });
    let reached = [0.0, 0.125, 0.25, 0.99, 1.125, 9.9, 10.0, 60.0].map(|at| lines.throttle(at));
    assert_eq!(reached, [0, 5, 10, 10, 15, 100, 100, 100]);
    let at_once = LineFormatter::new(OutputOptions::default());
    assert_eq!([0.0, 1.0].map(|at| at_once.throttle(at)), [100, 100]);
}

#[test]
fn overhead_is_added_per_packet() {
    let overhead = |extra, payload| OutputOptions {
        overhead: Some(Overhead { extra, payload }),
        ..shown(LineFormat::Raw)
    };
    let bytes_per_s = |shown| {
        let line = line(shown, &SECOND);
        let rate = line.split(' ').filter(|word| !word.is_empty()).nth(9);
        rate.expect("a column").parse::<f64>().expect("a number")
    };
    // 13392298 bytes in packets of 1000 are fewer packets than requests.
    assert_eq!(
        bytes_per_s(overhead(10, 1000)),
        10_552_699.0 + 97_754.0 * 10.0 / 2.0
    );
    assert_eq!(
        bytes_per_s(overhead(10, 100)),
        10_552_699.0 + 133_923.0 * 10.0 / 2.0
    );
}

#[test]
fn percentile_table_matches_h1load() {
    let shares = shares();
    assert_eq!(shares.len(), 64);
    let text: Vec<String> = shares.iter().map(|share| format_g(share * 100.0)).collect();
    assert_eq!(text[..6], ["10", "20", "30", "40", "50", "55"]);
    // Rounded, h1load's sum stays just below 0.9995, so 99.96 follows 99.95.
    let odd = text.iter().position(|share| share == "99.96");
    assert_eq!(text[odd.expect("it is there") + 1], "99.965");
    assert_eq!(text[62..], ["99.9995", "99.9999"]);
}

#[test]
fn rows_have_times_and_counts() {
    let mut report = Report::default();
    for us in 1..=1000 {
        report.times.first_byte.record(us * 1000);
        report.times.service.record(us * 2000);
    }
    let table = percentiles(&report);
    let median = table.lines().find(|line| line.starts_with("50 "));
    let median = median.expect("a row").split_whitespace();
    let median: Vec<&str> = median.collect();
    assert_eq!(median[..4], ["50", "50", "2", "499"]);
    assert_eq!(median[5], "499");
    let ms: f64 = median[4].parse().expect("a number");
    assert!((0.5..0.5005).contains(&ms), "{ms}");
    let last = table.lines().last().expect("rows");
    assert!(
        last.starts_with("99.9999 0.0001 1000000       999 "),
        "{last}"
    );
    // A run without responses prints all rows too.
    assert_eq!(percentiles(&Report::default()).lines().count(), 4 + 64);
}

#[test]
fn format_g_matches_printf() {
    for (value, text) in [
        (0.0, "0"),
        (10.0, "10"),
        (99.9965, "99.9965"),
        (0.000_1, "0.0001"),
        (0.000_012_345_678, "1.23457e-05"),
        (0.215, "0.215"),
        (1_234.567_89, "1234.57"),
        (999_999.6, "1e+06"),
        (123_456.7, "123457"),
    ] {
        assert_eq!(format_g(value), text);
    }
}
