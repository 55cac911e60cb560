//! Merging of results, and rejection of results that do not belong together.

use crate::report::reported_options::ShardRow;
use crate::report::rows::SecondRow;

use super::*;
use crate::pace::wall_clock::ClockRow;
use crate::record::incomplete_waits::IncompleteWaits;

/// Part that began at `began` and measured `values` (in microseconds), one in each hundredth of a second.
fn part(name: &str, began: f64, values: impl IntoIterator<Item = u64>) -> Part {
    let mut times = Times::default();
    for value in values {
        for kind in [
            Kind::Response,
            Kind::Service,
            Kind::SendLag,
            Kind::FirstByte,
        ] {
            times.of_mut(kind).record(value * 1000);
        }
    }
    let requests = times.of(Kind::Response).count();
    let seconds = (1..=requests.div_ceil(100)).map(|second| {
        let end = (second as f64).min(requests as f64 / 100.0);
        let in_row = (end * 100.0).round() as u64 - (second - 1) * 100;
        SecondRow {
            t: end,
            connections: 10,
            requests: in_row,
            errors: 1,
            bytes_per_s: 500.0,
            ttlb_us: Some(5.0),
            ..SecondRow::default()
        }
    });
    let mut report = Report {
        target: "http://a/".to_owned(),
        requests,
        errors: 2,
        bytes: requests * 5,
        duration_s: requests as f64 / 100.0,
        measured_s: requests as f64 / 100.0,
        rps: 100.0,
        bytes_per_s: 500.0,
        statuses: [("200".to_owned(), requests)].into(),
        errors_by_kind: [("reset".to_owned(), 2)].into(),
        latency_us: Latency::of(times.of(Kind::Response)),
        cpu_us_per_request: Some(4.0),
        seconds: seconds.collect(),
        began_unix_s: Some(began),
        histograms: Some(Histograms::of(&times, &IncompleteWaits::default())),
        ..Report::default()
    };
    report.options.connections = 10;
    report.options.threads = 1;
    Part {
        name: name.to_owned(),
        report,
    }
}

fn refusal(parts: &[Part]) -> String {
    merge(parts).map(|_| ()).expect_err("it is refused")
}

#[test]
fn copied_result_is_rejected() {
    let one = part("a", 1000.0, 1..=100);
    let copy = Part {
        name: "b".to_owned(),
        report: Report::from_json(&one.report.to_json()).expect("what was written"),
    };
    let other = part("c", 1000.2, 1..=100);
    let sum = merge(&[one.clone(), other.clone()]).expect("they are two");
    assert_eq!(sum.parts.len(), 2);
    let sum = Part {
        name: "sum".to_owned(),
        report: Report::from_json(&sum.to_json()).expect("what was written"),
    };
    let third = part("d", 1000.3, 1..=100);
    for same in [&one, &other] {
        let said = refusal(&[third.clone(), sum.clone(), same.clone()]);
        let begins = format!("sum and {} cannot be merged: they are the same", same.name);
        assert!(said.starts_with(&begins), "{said}");
    }
    let all = merge(&[sum.clone(), third.clone()]).expect("each is there once");
    assert_eq!((all.parts.len(), all.requests), (3, 300));
    let again = Part {
        name: "all".to_owned(),
        report: all,
    };
    assert!(refusal(&[again, sum]).contains("share a part"));
    let said = refusal(&[one.clone(), other.clone(), copy]);
    assert!(
        said.starts_with("a and b cannot be merged: they are the same"),
        "{said}"
    );
    assert!(merge(&[one, other]).is_ok());
}

#[test]
fn merged_halves_equal_whole() {
    let whole = part("whole", 1000.0, 1..=1000);
    let halves = [
        part("low", 1000.0, 1..=500),
        part("high", 1000.0, 501..=1000),
    ];
    let report = merge(&halves).unwrap();
    assert_eq!(report.latency_us, whole.report.latency_us);
    assert_eq!(report.histograms, whole.report.histograms);
    assert_eq!(
        (report.requests, report.errors, report.bytes),
        (1000, 4, 5000)
    );
    assert_eq!(report.statuses, whole.report.statuses);
    assert_eq!(report.errors_by_kind["reset"], 4);
    assert_eq!((report.duration_s, report.rps), (5.0, 200.0));
    assert_eq!((report.measured_s, report.bytes_per_s), (5.0, 1000.0));
    assert_eq!(report.options.connections, 20);
    assert_eq!(report.cpu_us_per_request, Some(4.0));
    assert_eq!(report.verdict.state, State::Valid);
    let (percentile, median) = &report.latency_us.percentiles[0];
    assert_eq!(percentile, "50");
    assert!((median - 500.0).abs() < 1.0, "{median}");
}

#[test]
fn merge_is_commutative_and_associative() {
    let parts = [
        part("a", 1000.0, 1..=300),
        part("b", 1000.4, 200..=500),
        part("c", 1001.2, 5..=205),
    ];
    let [a, b, c] = parts.clone();
    let at_once = merge(&parts).unwrap();
    let turned = merge(&[c.clone(), a.clone(), b.clone()]).unwrap();
    let pair = Part {
        name: "a and b".to_owned(),
        report: merge(&[a, b]).unwrap(),
    };
    let in_groups = merge(&[pair, c]).unwrap();
    for other in [turned, in_groups] {
        assert_eq!(other.histograms, at_once.histograms);
        assert_eq!(other.requests, at_once.requests);
        assert_eq!(other.latency_us.percentiles, at_once.latency_us.percentiles);
        assert_eq!(other.latency_us.intervals, at_once.latency_us.intervals);
        assert_eq!(other.duration_s, at_once.duration_s);
    }
}

#[test]
fn seconds_are_aligned_by_clock() {
    let parts = [
        part("early", 1000.0, 1..=400),
        part("late", 1001.9, 1..=350),
    ];
    let rows = merge(&parts).unwrap().seconds;
    let requests: Vec<u64> = rows.iter().map(|row| row.requests).collect();
    // The rows of the parts are almost a whole second apart.
    assert_eq!(requests, [100, 100, 200, 200, 100, 50]);
    assert_eq!(rows.iter().map(|row| row.errors).sum::<u64>(), 8);
    assert_eq!(rows[2].connections, 20);
    assert_eq!(rows[2].ttlb_us, Some(5.0));
    assert!((rows[5].t - 5.4).abs() < 0.001, "{:?}", rows[5]);
}

#[test]
fn merged_verdict_identifies_generator() {
    let mut parts = [part("a", 1000.0, 1..=300), part("b", 1000.1, 1..=300)];
    parts[1].report.verdict = Verdict::from(vec![Reason {
        state: State::Invalid,
        what: "something".to_owned(),
        measured: String::new(),
        bound: String::new(),
        remedy: String::new(),
    }]);
    let verdict = merge(&parts).unwrap().verdict;
    assert_eq!(verdict.state, State::Invalid);
    assert_eq!(verdict.reasons[0].what, "b: something");
}

#[test]
fn partial_overlap_is_suspect() {
    let parts = [part("a", 1000.0, 1..=300), part("b", 1001.0, 1..=300)];
    let verdict = merge(&parts).unwrap().verdict;
    assert_eq!(verdict.state, State::Suspect);
    assert!(
        verdict.reasons[0]
            .what
            .contains("did not run at the same time throughout"),
        "{verdict}"
    );
}

#[test]
fn each_shard_is_required_once() {
    let of_run = |which: &[(u64, u64)]| {
        let parts: Vec<Part> = which
            .iter()
            .map(|&(number, of)| {
                let mut part = part(&format!("{number}.json"), 1000.0, 1..=300);
                part.report.options.shard = Some(ShardRow { part: number, of });
                part
            })
            .collect();
        merge(&parts)
    };
    let whole = of_run(&[(2, 3), (1, 3), (3, 3)]).unwrap();
    assert_eq!(whole.verdict.state, State::Valid);
    assert_eq!(whole.options.shard, None);
    let most = of_run(&[(1, 3), (3, 3)]).unwrap().verdict;
    assert_eq!(most.state, State::Suspect);
    let reason = most.reasons[0].to_string();
    assert!(
        reason.contains("1 of 3") && reason.contains("--shard 2/3"),
        "{reason}"
    );
    let twice = of_run(&[(1, 3), (1, 3)]).unwrap_err();
    assert!(twice.contains("both contain part 1 of 3"), "{twice}");
    // A merged result contains its parts.
    let pair = Part {
        name: "pair".to_owned(),
        report: of_run(&[(1, 3), (3, 3)]).unwrap(),
    };
    let with = |number| {
        let mut part = part("x", 1000.1, 1..=300);
        part.report.options.shard = Some(ShardRow {
            part: number,
            of: 3,
        });
        merge(&[pair.clone(), part])
    };
    assert_eq!(with(2).unwrap().parts.len(), 3);
    assert!(with(3).unwrap_err().contains("both contain part 3 of 3"));
    let different = of_run(&[(1, 3), (2, 2)]).unwrap_err();
    assert!(
        different.contains("a part of 3, the other of 2"),
        "{different}"
    );
}

#[test]
fn unsynchronized_clocks_are_suspect() {
    let with = |ids: [&str; 2], synchronized| {
        let mut parts = [part("a", 1000.0, 1..=300), part("b", 1000.002, 1..=300)];
        for (part, id) in parts.iter_mut().zip(ids) {
            part.report.clock = ClockRow {
                synchronized: Some(synchronized),
                error_max_us: Some(id.len() as f64),
                id: Some(id.to_owned()),
                ..ClockRow::default()
            };
        }
        merge(&parts).unwrap()
    };
    let kept = with(["x", "why"], true);
    assert_eq!(kept.verdict.state, State::Valid);
    assert_eq!(kept.clock.spread_us, Some(2000.0));
    assert_eq!((kept.clock.id, kept.clock.error_max_us), (None, Some(3.0)));
    // Parts on one machine have the same clock, so its error does not matter.
    assert_eq!(with(["x", "x"], false).verdict.state, State::Valid);
    let free = with(["x", "y"], false).verdict;
    assert_eq!(free.state, State::Suspect);
    assert!(free.reasons[0].measured.contains("a, b"), "{free}");
}

#[test]
fn different_loads_are_rejected() {
    let changed = |change: fn(&mut Report)| {
        let mut parts = [part("a", 1000.0, 1..=300), part("b", 1000.0, 1..=300)];
        change(&mut parts[1].report);
        refusal(&parts)
    };
    type Change = fn(&mut Report);
    let cases: [(Change, &str); 10] = [
        (
            |r| r.target = "http://b/".to_owned(),
            "targets differ (http://a/ and http://b/)",
        ),
        (|r| r.options.method = "PUT".to_owned(), "methods differ"),
        (
            |r| r.options.headers.push("A: b".to_owned()),
            "fields differ",
        ),
        (|r| r.options.rate = Some(5), "a closed loop and a set rate"),
        (|r| r.options.pipeline = 9, "pipelines differ"),
        (|r| r.options.streams = Some(9), "streams differ"),
        (
            |r| r.memcached.get_or_insert_default().datagrams = Some(Default::default()),
            "carriers differ (connections and UDP)",
        ),
        (
            |r| r.began_unix_s = None,
            "b cannot be merged: it has no start time",
        ),
        (
            |r| r.began_unix_s = Some(2000.0),
            "one run ended before another began",
        ),
        (
            |r| r.histograms = None,
            "b cannot be merged: it has no histograms",
        ),
    ];
    for (change, part) in cases {
        let refused = changed(change);
        assert!(refused.contains(part), "{refused}");
    }
    let broken = changed(|report| {
        report.histograms.get_or_insert_default().service = "?".to_owned();
    });
    assert!(broken.contains("histograms.service"), "{broken}");
    assert!(refusal(&[]).contains("nothing to merge"));
}
