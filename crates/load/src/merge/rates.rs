//! Rates of a merged result, over the time in which its parts measured. Pure.

use super::part::Part;
use super::span::{Span, round_to_thousandths};
use crate::report::Report;
use crate::report::rows::SecondRow;

/// Rates over the common time of the parts.
pub(super) struct MeasuredRates {
    /// Seconds from the earliest start to the latest end of the windows; without [`silent_s`](Self::silent_s) in a
    /// closed loop.
    pub(super) time_s: f64,
    pub(super) rps: f64,
    pub(super) bytes_per_s: f64,
    /// Time of the last response to any part, since the first start, if all parts were without responses at their end.
    pub(super) answered_until_s: Option<f64>,
    /// Time before that in which no part had responses, and some had errors.
    pub(super) silent_s: f64,
}

/// Window of one part's rates, by the clock.
struct Window {
    from: f64,
    to: f64,
    /// Length without the time that the part's rates exclude.
    time_s: f64,
}

impl Window {
    fn of(report: &Report, began: f64) -> Window {
        let evidence = &report.evidence;
        let to = evidence.answered_until_s.unwrap_or(report.duration_s);
        // Results of earlier versions have rates over the whole run.
        let time_s = match report.measured_s {
            0.0 if report.rps > 0.0 => report.duration_s,
            measured => measured,
        };
        let from = (to - left_out_s(report, evidence.silent_s) - time_s).max(0.0);
        Window {
            from: began + from,
            to: began + to,
            time_s,
        }
    }
}

impl MeasuredRates {
    pub(super) fn of(parts: &[Part], rows: &[SecondRow], span: &Span) -> MeasuredRates {
        let began = |part: &Part| part.report.began_unix_s.unwrap_or(span.began);
        let all: Vec<(&Report, Window)> = parts
            .iter()
            .map(|part| (&part.report, Window::of(&part.report, began(part))))
            .collect();
        let counted = |rate: fn(&Report) -> f64| -> f64 {
            let counts = all
                .iter()
                .map(|(report, window)| rate(report) * window.time_s);
            counts.sum()
        };
        // Parts that measured nothing do not extend the window.
        let measured = || {
            let windows = all.iter().map(|(_, window)| window);
            windows.filter(|window| window.time_s > 0.0)
        };
        let from = measured().map(|window| window.from).reduce(f64::min);
        let to = measured().map(|window| window.to).reduce(f64::max);
        let silent_s = silent_s(parts, rows);
        let time_s = match (from, to) {
            (Some(from), Some(to)) => {
                // All parts have the same kind of pace.
                let left_out = left_out_s(&parts[0].report, silent_s);
                (to - from - left_out).max(0.0)
            }
            _ => 0.0,
        };
        let per_second = |count: f64| match time_s > 0.0 {
            true => round_to_thousandths(count / time_s),
            false => 0.0,
        };
        MeasuredRates {
            time_s: round_to_thousandths(time_s),
            rps: per_second(counted(|report| report.rps)),
            bytes_per_s: per_second(counted(|report| report.bytes_per_s)),
            answered_until_s: answered_until_s(parts, &all, span),
            silent_s,
        }
    }
}

/// Silent time that rates exclude: none in an open loop, because requests due in it were sent afterwards.
fn left_out_s(report: &Report, silent_s: f64) -> f64 {
    match report.evidence.rate_asked {
        Some(_) => 0.0,
        None => silent_s,
    }
}

fn answered_until_s(parts: &[Part], all: &[(&Report, Window)], span: &Span) -> Option<f64> {
    let mut evidence = parts.iter().map(|part| &part.report.evidence);
    let is_dead = evidence.all(|evidence| evidence.answered_until_s.is_some());
    let last = all.iter().map(|(_, window)| window.to).reduce(f64::max)?;
    is_dead.then(|| round_to_thousandths(last - span.began))
}

/// Length of merged rows with only errors, between rows with responses; at most the shortest silence of any part.
fn silent_s(parts: &[Part], rows: &[SecondRow]) -> f64 {
    let has_responses = |row: &SecondRow| row.requests > 0;
    let (Some(first), Some(last)) = (
        rows.iter().position(has_responses),
        rows.iter().rposition(has_responses),
    ) else {
        return 0.0;
    };
    let between = rows[first..=last].windows(2);
    let silent: f64 = between
        .filter(|pair| !has_responses(&pair[1]) && pair[1].errors > 0)
        .map(|pair| pair[1].t - pair[0].t)
        .sum();
    let of_parts = parts.iter().map(|part| part.report.evidence.silent_s);
    round_to_thousandths(of_parts.fold(silent, f64::min))
}

#[cfg(test)]
mod tests {
    use super::super::merge;
    use super::*;
    use crate::record::incomplete_waits::IncompleteWaits;
    use crate::record::times::Times;
    use crate::report::histograms::Histograms;

    /// Part that began at `began`, with a warm-up and then 100 responses of 5 bytes in each second of `measured_s`.
    fn part(name: &str, began: f64, warm_up_s: f64, measured_s: f64) -> Part {
        let report = Report {
            target: "http://a/".to_owned(),
            requests: (100.0 * (warm_up_s + measured_s)) as u64,
            duration_s: warm_up_s + measured_s,
            measured_s,
            rps: 100.0,
            bytes_per_s: 500.0,
            // Makes every digest unique.
            bytes: name.len() as u64 + u64::from(name.as_bytes()[0]),
            began_unix_s: Some(began),
            histograms: Some(Histograms::of(
                &Times::default(),
                &IncompleteWaits::default(),
            )),
            ..Report::default()
        };
        Part {
            name: name.to_owned(),
            report,
        }
    }

    fn rates(parts: &[Part]) -> [f64; 3] {
        let sum = merge(parts).expect("they are one run");
        [sum.measured_s, sum.rps, sum.bytes_per_s]
    }

    #[test]
    fn merged_rates_exclude_warm_up() {
        let parts = [part("a", 1000.0, 2.0, 10.0), part("b", 1000.0, 2.0, 10.0)];
        assert_eq!(rates(&parts), [10.0, 200.0, 1000.0]);
    }

    #[test]
    fn merged_rate_spans_first_start_to_last_end() {
        let parts = [part("a", 1000.0, 0.0, 10.0), part("b", 1006.0, 2.0, 10.0)];
        // From 1000 to 1018.
        assert_eq!(rates(&parts), [18.0, 111.111, 555.556]);
    }

    #[test]
    fn nested_merge_yields_same_rates() {
        let [a, b, c] = [
            part("a", 1000.0, 2.0, 10.0),
            part("b", 1001.0, 1.0, 11.0),
            part("c", 1000.5, 3.0, 9.0),
        ];
        let pair = Part {
            name: "a and b".to_owned(),
            report: merge(&[a.clone(), b.clone()]).expect("they are one run"),
        };
        let (at_once, in_groups) = (rates(&[a, b, c.clone()]), rates(&[pair, c]));
        assert_eq!(at_once[0], in_groups[0]);
        assert!((at_once[1] - in_groups[1]).abs() < 0.01);
    }

    #[test]
    fn merged_rates_end_at_last_response() {
        let mut parts = [part("a", 1000.0, 1.0, 5.0), part("b", 1000.0, 1.0, 6.0)];
        for part in &mut parts {
            part.report.evidence.answered_until_s = Some(part.report.duration_s);
            part.report.duration_s = 20.0;
        }
        assert_eq!(rates(&parts), [6.0, 183.333, 916.667]);
        let sum = merge(&parts).expect("they are one run");
        assert_eq!(sum.evidence.answered_until_s, Some(7.0));
        parts[1].report.evidence.answered_until_s = None;
        parts[1].report.measured_s = 19.0;
        assert_eq!(rates(&parts)[0], 19.0);
    }

    #[test]
    fn merged_rates_exclude_common_silence() {
        let mut parts = [part("a", 1000.0, 0.0, 2.0), part("b", 1000.0, 0.0, 2.0)];
        for part in &mut parts {
            let row = |(t, requests, errors): (u32, u64, u64)| SecondRow {
                t: f64::from(t),
                requests,
                errors,
                ..SecondRow::default()
            };
            part.report.duration_s = 4.0;
            part.report.evidence.silent_s = 2.0;
            part.report.seconds = [(1, 100, 0), (2, 0, 9), (3, 0, 9), (4, 100, 0)]
                .map(row)
                .into();
        }
        assert_eq!(rates(&parts), [2.0, 200.0, 1000.0]);
        // In an open loop the rates of the parts include them.
        let mut paced = parts.clone();
        for part in &mut paced {
            part.report.evidence.rate_asked = Some(50.0);
            (part.report.measured_s, part.report.rps) = (4.0, 50.0);
            part.report.bytes_per_s = 250.0;
        }
        assert_eq!(rates(&paced), [4.0, 100.0, 500.0]);
        // One part got responses in that time, so the target was not silent.
        parts[1].report.evidence.silent_s = 0.0;
        parts[1].report.measured_s = 4.0;
        parts[1].report.seconds[1].requests = 100;
        parts[1].report.seconds[2].requests = 100;
        assert_eq!(rates(&parts), [4.0, 150.0, 750.0]);
    }

    #[test]
    fn parts_without_measured_time_use_duration() {
        let mut parts = [part("a", 1000.0, 0.0, 10.0), part("b", 1000.0, 0.0, 10.0)];
        parts[1].report.measured_s = 0.0;
        assert_eq!(rates(&parts), [10.0, 200.0, 1000.0]);
    }

    #[test]
    fn unmeasured_parts_have_no_rate() {
        let mut parts = [part("a", 1000.0, 9.0, 0.0), part("b", 1000.1, 9.0, 0.0)];
        for part in &mut parts {
            (part.report.rps, part.report.bytes_per_s) = (0.0, 0.0);
        }
        assert_eq!(rates(&parts), [0.0, 0.0, 0.0]);
    }
}
