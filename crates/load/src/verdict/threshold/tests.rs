//! Parsing and judging of conditions.

use super::*;

fn threshold(text: &str) -> Threshold {
    Threshold::parse(text).unwrap_or_else(|mistake| panic!("{text}: {mistake}"))
}

/// 10,000 responses, evenly from 1 us to 10 ms, 100 of them with status 503; 30 errors.
fn figures() -> Figures {
    let mut figures = Figures {
        responses: 10_000,
        errors: 30,
        timeouts: 5,
        statuses: [("200".to_owned(), 9_900), ("503".to_owned(), 100)].into(),
        rps: 5_000.0,
        ..Figures::default()
    };
    for value in 1..=10_000 {
        figures.times.of_mut(Kind::Response).record(value * 1000);
        figures.times.of_mut(Kind::Service).record(value * 500);
    }
    figures
}

#[test]
fn conditions_pass_or_fail() {
    use ThresholdOutcome::{Failed, Passed, Undecided};
    for (text, fate, measured) in [
        ("p99 > 5ms", Failed, "9.90 ms"),
        ("p99>9.92ms", Passed, "9.90 ms"),
        ("p99.9 > 1s", Passed, "9.99 ms"),
        (
            "p99.99 > 1s",
            Undecided,
            "this percentile needs 100,000 values and there were 10,000",
        ),
        ("service.p99 > 5ms", Passed, "4.95 ms"),
        ("response.mean < 1ms", Passed, "5.00 ms"),
        ("min <= 1us", Failed, "1 us"),
        ("latency.max >= 10ms", Failed, "10 ms"),
        (
            "connect.p50 > 1ms",
            Undecided,
            "there were no values of the connect",
        ),
        ("errors > 0.1%", Failed, "0.2991 %"),
        ("errors > 0.3 %", Passed, "0.2991 %"),
        ("errors > 30", Passed, "30"),
        ("errors >= 30", Failed, "30"),
        ("timeouts > 0", Failed, "5"),
        ("missed > 0", Passed, "0"),
        ("status.5xx > 1%", Passed, "1.00 %"),
        ("status.503 >= 100", Failed, "100"),
        ("status.404 > 0", Passed, "0"),
        ("rps < 5.1k", Failed, "5 k/s"),
        (" rps < 4000/s ", Passed, "5 k/s"),
    ] {
        let outcome = threshold(text).judge(&figures());
        assert_eq!(
            (outcome.fate, &outcome.measured[..]),
            (fate, measured),
            "{text}"
        );
    }
}

#[test]
fn syntax_errors_report_column() {
    for (text, column, part) in [
        ("", 1, "a condition needs"),
        ("p99", 4, "a condition needs"),
        ("p99 => 5ms", 5, "=> is not a comparison"),
        ("p99 == 5ms", 5, "== is not a comparison"),
        ("> 5ms", 1, "no metric before"),
        ("  q99 > 5ms", 3, "q99 is not a metric"),
        ("wait.p99 > 5ms", 1, "wait.p99 is not a metric"),
        ("p100 > 5ms", 1, "between p0 and p100"),
        ("p99 > 5", 7, "\"5\" is not a duration"),
        ("p99 > ", 7, "\"\" is not a duration"),
        ("p99 > 5min", 7, "\"5min\" is not a duration"),
        ("p99 > 5ks", 7, "\"5ks\" is not a duration"),
        ("errors > 5ms", 10, "\"5ms\" is not a number"),
        ("errors > -1", 10, "\"-1\" is not a number"),
        ("errors > nan", 10, "\"nan\" is not a number"),
        ("missed > 1%", 10, "missed is a count"),
        (
            "status.99 > 1",
            1,
            "99 is not a response status: use one from 200 to 999",
        ),
        ("status.1xx > 1", 1, "1xx is not a response status"),
        ("status.1000 > 1", 1, "1000 is not a response status"),
        ("status.0xx > 1", 1, "0xx is not a response status"),
    ] {
        let mistake = Threshold::parse(text).expect_err(text);
        assert_eq!(mistake.column, column, "{text}: {mistake}");
        assert!(mistake.message.contains(part), "{text}: {mistake}");
    }
}

proptest::proptest! {
    #[test]
    fn arbitrary_conditions_parse_or_report_valid_column(
        text in "[p0-9.a-z_ ]{0,12}[<>=!]{0,3}[ 0-9.kmsu%/µ]{0,8}|.{0,20}"
    ) {
        match Threshold::parse(&text) {
            Ok(threshold) => {
                let again = Threshold::parse(threshold.text());
                proptest::prop_assert_eq!(again, Ok(threshold));
            }
            Err(mistake) => {
                let columns = 1..=text.chars().count() + 1;
                proptest::prop_assert!(columns.contains(&mistake.column), "{}", mistake);
            }
        }
    }
}

#[test]
fn only_errors_and_timeouts_are_error_conditions() {
    for (text, is_it) in [
        ("errors > 1%", true),
        ("timeouts > 3", true),
        ("status.5xx > 1%", false),
        ("p99 > 1ms", false),
    ] {
        assert_eq!(threshold(text).is_about_errors(), is_it, "{text}");
    }
}

#[test]
fn share_condition_without_requests_is_undecided() {
    let outcome = threshold("errors > 1%").judge(&Figures::default());
    assert_eq!(outcome.fate, ThresholdOutcome::Undecided);
    let outcome = threshold("errors > 1").judge(&Figures::default());
    assert_eq!(outcome.fate, ThresholdOutcome::Passed);
}

#[test]
fn incomplete_requests_leave_conditions_undecided() {
    use ThresholdOutcome::{Failed, Passed, Undecided};
    // 23 % of the requests had waited for 60 ms when the run ended.
    let mut figures = figures();
    figures.unanswered.record(60_000_000, 60_000_000, 3_000);
    for (text, fate) in [
        ("p50 > 8ms", Passed),
        ("p99 > 50ms", Failed),
        ("p99 > 70ms", Undecided),
        ("service.p99 > 50ms", Failed),
        ("max > 50ms", Failed),
        ("mean > 500ms", Undecided),
        ("min > 1ms", Passed),
        ("send_lag.p50 > 1s", Undecided),
    ] {
        let outcome = threshold(text).judge(&figures);
        assert_eq!(outcome.fate, fate, "{outcome}");
    }
    let nothing = Figures {
        unfinished: 4,
        ..Figures::default()
    };
    for text in ["errors > 0", "errors > 1%"] {
        assert_eq!(threshold(text).judge(&nothing).fate, Failed, "{text}");
    }
}

#[test]
fn percentile_condition_includes_timeouts() {
    use ThresholdOutcome::{Failed, Passed, Undecided};
    // 9 of 1,000 requests timed out after 500 ms: p99 of all is 99 ms, that of the 991 responses only 9.1 ms.
    let mut figures = Figures::default();
    let times = figures.times.of_mut(Kind::Response);
    times.record_many(9_100_000, 982);
    times.record_many(99_000_000, 9);
    figures.unanswered.record(500_000_000, 500_000_000, 9);
    for (text, fate) in [
        ("p99 > 50ms", Failed),
        ("p99 > 100ms", Passed),
        ("p95 > 10ms", Passed),
        ("p98 > 9ms", Failed),
    ] {
        let outcome = threshold(text).judge(&figures);
        assert_eq!(outcome.fate, fate, "{outcome}");
    }
    figures.unanswered.record(500_000_000, 500_000_000, 9);
    for (text, fate) in [
        ("p99 > 400ms", Failed),
        ("p99 > 600ms", Undecided),
        ("p99 < 400ms", Passed),
    ] {
        let outcome = threshold(text).judge(&figures);
        assert_eq!(outcome.fate, fate, "{outcome}");
    }
}

#[test]
fn inverted_latency_condition_has_hint() {
    let hint = threshold("p99 < 50ms").hint().expect("it has one");
    assert!(hint.contains("\"p99 >= 50ms\""), "{hint}");
    assert!(threshold("p99 > 50ms").hint().is_none());
    assert!(threshold("rps < 20k").hint().is_none());
}

#[test]
fn resent_condition_accepts_count_or_share() {
    let mut figures = figures();
    figures.resent = 20;
    for (text, fate) in [
        ("resent > 0.1%", ThresholdOutcome::Failed),
        ("resent > 1%", ThresholdOutcome::Passed),
        ("resent >= 20", ThresholdOutcome::Failed),
    ] {
        assert_eq!(threshold(text).judge(&figures).fate, fate, "{text}");
    }
}

#[test]
fn inevitable_failure_is_detected_early() {
    // 5,000 of 10,000 responses took longer than 5 ms.
    for (text, requests, hopeless) in [
        ("p99 > 5ms", 100_000, true),
        ("p99 > 5ms", 499_000, true),
        ("p99 > 5ms", 501_000, false),
        ("p99 > 20ms", 10_000, false),
        ("errors > 0.1%", 29_000, true),
        ("errors > 0.1%", 31_000, false),
        ("errors > 29", u64::MAX, true),
        ("max > 9ms", u64::MAX, true),
        ("p99 < 5ms", 10_000, false),
        ("mean > 1us", 10_000, false),
        ("rps < 1m", 10_000, false),
    ] {
        let extent = RunExtent::Requests(requests);
        let found = threshold(text).must_fail(&figures(), extent);
        assert_eq!(found, hopeless, "{text} of {requests}");
    }
}

#[test]
fn early_failure_of_timed_run_assumes_double_rate() {
    let after = |elapsed_s, total_s| RunExtent::Time { elapsed_s, total_s };
    let errors = threshold("errors > 0.1%");
    // 30 errors are 0.1 % of 30,000 requests: 10,030 in the first second, and twice as many in the second.
    assert!(!errors.must_fail(&figures(), after(1.0, 2.0)));
    assert!(errors.must_fail(&figures(), after(1.0, 1.9)));
    assert!(!errors.must_fail(&figures(), RunExtent::Open));
    let few = Figures {
        errors: 1,
        ..Figures::default()
    };
    assert!(
        !errors.must_fail(&few, after(1.0, 2.0)),
        "one is an accident"
    );
}
