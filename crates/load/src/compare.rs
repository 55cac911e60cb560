//! Two results beside each other: how far each percentile has moved, and whether that is more than chance. Pure.
//!
//! Each percentile of each run has an interval from order statistics. With both at 97.5 % the difference lies between
//! the differences of their ends with 95 % at least (Bonferroni), whatever the distributions. The requests of one run
//! are not quite independent, and two runs differ by more than their requests do: what is called a difference here is
//! at least one between these two runs.

use std::fmt;

use onrush_measure::histogram::Histogram;
use onrush_measure::{percentile, units};
use serde::Serialize;

use crate::figures::Kind;
use crate::limits::SHIFT_SHARE_MIN;
use crate::merge::{Part, times_of};
use crate::report::{Report, SecondRow};
use crate::verdict::State;

/// Of each side, so that both hold together with 95 %.
const SIDE_CONFIDENCE: f64 = 0.975;

/// Two results beside each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The name of the first.
    pub a: String,
    /// The name of the second.
    pub b: String,
    /// The response times, percentile by percentile, as far as both counts support them.
    pub response_us: Vec<Shift>,
    /// The service times.
    pub service_us: Vec<Shift>,
    /// Requests per second, by the medians of the seconds; none with fewer than seven whole seconds in either.
    pub rps: Option<Shift>,
    /// What one must know before believing any of it.
    pub cautions: Vec<String>,
}

/// One figure of both runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Shift {
    /// What it is, such as `99.9`.
    pub of: String,
    /// In the first run.
    pub a: f64,
    /// In the second.
    pub b: f64,
    /// `b / a - 1`.
    pub change: f64,
    /// The true change lies from here …
    pub low: f64,
    /// … to here, with 95 %.
    pub high: f64,
    /// What may be said of it.
    pub finding: Finding,
}

/// What may be said of two figures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// The second is lower.
    Lower,
    /// The second is higher.
    Higher,
    /// Nothing: chance, or the width of a bin, would explain it.
    Same,
}

impl Shift {
    /// `a` and `b`, each a figure with its interval.
    fn of(of: &str, a: (f64, [f64; 2]), b: (f64, [f64; 2])) -> Option<Shift> {
        let ((a, [a_low, a_high]), (b, [b_low, b_high])) = (a, b);
        if a <= 0.0 || a_low <= 0.0 {
            return None;
        }
        let (low, high) = (b_low / a_high - 1.0, b_high / a_low - 1.0);
        let change = b / a - 1.0;
        let finding = match change.abs() >= SHIFT_SHARE_MIN {
            true if low > 0.0 => Finding::Higher,
            true if high < 0.0 => Finding::Lower,
            _ => Finding::Same,
        };
        Some(Shift {
            of: of.to_owned(),
            a,
            b,
            change,
            low,
            high,
            finding,
        })
    }
}

/// Sets `b` beside `a`.
///
/// # Errors
/// When one of them has no histograms.
pub fn compare(a: &Part, b: &Part) -> Result<Comparison, String> {
    let times = |part: &Part| {
        times_of(&part.report)
            .map_err(|reason| format!("{} cannot be compared: {reason}", part.name))
    };
    let (a_times, b_times) = (times(a)?, times(b)?);
    let of = |kind| shifts(a_times.of(kind), b_times.of(kind));
    Ok(Comparison {
        a: a.name.clone(),
        b: b.name.clone(),
        response_us: of(Kind::Response),
        service_us: of(Kind::Service),
        rps: rps(&a.report.seconds, &b.report.seconds),
        cautions: cautions(a, b),
    })
}

fn shifts(a: &Histogram, b: &Histogram) -> Vec<Shift> {
    percentile::supported(a.count().min(b.count()))
        .filter_map(|percentile| {
            let figure = |times: &Histogram| {
                let (low, high) = times.interval(percentile, SIDE_CONFIDENCE)?;
                let us = units::microseconds;
                Some((us(times.value_at(percentile)), [us(low), us(high)]))
            };
            Shift::of(&units::percentile(percentile), figure(a)?, figure(b)?)
        })
        .collect()
}

/// The seconds of each run as repeated measurements of its rate: their medians, with intervals. The first and the last
/// are not whole.
fn rps(a: &[SecondRow], b: &[SecondRow]) -> Option<Shift> {
    let median = |rows: &[SecondRow]| {
        let whole = rows.get(1..rows.len().checked_sub(1)?)?;
        let mut rates: Vec<f64> = whole.iter().map(|row| row.rps).collect();
        rates.sort_by(f64::total_cmp);
        let count = rates.len() as u64;
        let (low, high) = percentile::interval_ranks(count, 50.0, SIDE_CONFIDENCE)?;
        let at = |rank: u64| rates[rank as usize - 1];
        Some((at(percentile::rank(count, 50.0)), [at(low), at(high)]))
    };
    Shift::of("rps", median(a)?, median(b)?)
}

fn cautions(a: &Part, b: &Part) -> Vec<String> {
    let mut cautions = Vec::new();
    for part in [a, b] {
        let verdict = &part.report.verdict;
        if verdict.state != State::Valid {
            let reasons: Vec<&str> = verdict
                .reasons
                .iter()
                .map(|reason| &reason.what[..])
                .collect();
            cautions.push(format!(
                "{} is {}: {}",
                part.name,
                verdict.state,
                reasons.join("; ")
            ));
        }
        let tried = part.report.requests + part.report.errors;
        if part.report.errors > 0 {
            cautions.push(format!(
                "{} had {} errors in {} requests, whose times are not among the percentiles",
                part.name,
                units::count(part.report.errors),
                units::count(tried)
            ));
        }
    }
    cautions.extend(differences(&a.report, &b.report));
    cautions
}

/// What was asked for differently, which the figures then show, too.
fn differences(a: &Report, b: &Report) -> Vec<String> {
    let rate = |report: &Report| match report.options.rate {
        Some(rate) => format!("{} requests per second", units::count(rate)),
        None => "a closed loop".to_owned(),
    };
    let pairs = [
        ("target", a.target.clone(), b.target.clone()),
        (
            "connections",
            a.options.connections.to_string(),
            b.options.connections.to_string(),
        ),
        (
            "threads",
            a.options.threads.to_string(),
            b.options.threads.to_string(),
        ),
        ("pace", rate(a), rate(b)),
        ("method", a.options.method.clone(), b.options.method.clone()),
        (
            "pipeline",
            a.options.pipeline.to_string(),
            b.options.pipeline.to_string(),
        ),
        ("driver", a.options.io.clone(), b.options.io.clone()),
    ];
    pairs
        .into_iter()
        .filter(|(_, one, other)| one != other)
        .map(|(what, one, other)| {
            format!("they were asked for different things: {what} {one} and {other}")
        })
        .collect()
}

impl Comparison {
    /// Whether anything differs.
    pub fn is_same(&self) -> bool {
        let shifts = self
            .response_us
            .iter()
            .chain(&self.service_us)
            .chain(&self.rps);
        shifts
            .into_iter()
            .all(|shift| shift.finding == Finding::Same)
    }

    /// The comparison as JSON: the fields, by their names.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers, strings and lists")
    }
}

/// Columns of the picture of both curves.
const WIDTH: usize = 44;

impl fmt::Display for Comparison {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "A {}\nB {}", self.a, self.b)?;
        for caution in &self.cautions {
            writeln!(out, "caution: {caution}")?;
        }
        for (title, shifts) in [
            ("response", &self.response_us),
            ("service", &self.service_us),
        ] {
            if shifts.is_empty() {
                writeln!(out, "\n{title}: too few answers for any percentile")?;
                continue;
            }
            writeln!(
                out,
                "\n{title:<12} {:>9} {:>9} {:>9}  95 % interval",
                "A", "B", "change"
            )?;
            for shift in shifts {
                let time = |us: f64| units::nanoseconds(us * 1000.0);
                write_shift(
                    out,
                    &format!("{} %", shift.of),
                    &time(shift.a),
                    &time(shift.b),
                    shift,
                )?;
            }
        }
        if let Some(shift) = &self.rps {
            writeln!(out)?;
            write_shift(
                out,
                "rate",
                &units::rate(shift.a),
                &units::rate(shift.b),
                shift,
            )?;
        }
        draw(out, &self.response_us)?;
        let finding = match self.is_same() {
            true => "no difference: nothing here is more than chance would explain",
            false => {
                "the figures marked with a direction differ by more than chance between these two runs; repeat both to see whether it stays"
            }
        };
        writeln!(out, "\n{finding}")
    }
}

fn write_shift(
    out: &mut fmt::Formatter<'_>,
    of: &str,
    a: &str,
    b: &str,
    shift: &Shift,
) -> fmt::Result {
    let percent = |share: f64| format!("{:+.1} %", share * 100.0);
    let finding = match shift.finding {
        Finding::Lower => "lower",
        Finding::Higher => "higher",
        Finding::Same => "no difference",
    };
    let interval = format!("{} to {}", percent(shift.low), percent(shift.high));
    writeln!(
        out,
        "{of:>12} {a:>9} {b:>9} {:>9}  {interval:<20} {finding}",
        percent(shift.change)
    )
}

/// Both curves: a line for each percentile, time to the right on a logarithmic axis.
fn draw(out: &mut fmt::Formatter<'_>, shifts: &[Shift]) -> fmt::Result {
    let values = || shifts.iter().flat_map(|shift| [shift.a, shift.b]);
    let (low, high) = values().fold((f64::INFINITY, 0.0_f64), |(low, high), us| {
        (low.min(us), high.max(us))
    });
    if shifts.len() < 2 || low <= 0.0 || high <= low {
        return Ok(());
    }
    let place =
        |us: f64| ((us / low).ln() / (high / low).ln() * (WIDTH - 1) as f64).round() as usize;
    writeln!(out)?;
    for shift in shifts {
        let mut line = vec![' '; WIDTH];
        let (a, b) = (place(shift.a), place(shift.b));
        line[a.min(b)..=a.max(b)].fill('-');
        line[b] = 'B';
        line[a] = if a == b { '=' } else { 'A' };
        let line: String = line.into_iter().collect();
        writeln!(out, "{:>10} % |{}", shift.of, line.trim_end())?;
    }
    let ends = [low, high].map(|us| units::nanoseconds(us * 1000.0));
    writeln!(
        out,
        "{:>12}  {:<w$}{:>r$}  (=: both)",
        "",
        ends[0],
        ends[1],
        w = WIDTH - 12,
        r = 12
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Histograms, Latency};
    use crate::times::Times;
    use crate::unanswered::Unanswered;

    /// A run whose times are those of `count` ranks of an exponential distribution with this mean, in nanoseconds,
    /// and whose seconds had these rates.
    fn run(name: &str, count: u32, mean: f64, rates: &[f64]) -> Part {
        let mut times = Times::default();
        for rank in 0..count {
            let share = (f64::from(rank) + 0.5) / f64::from(count);
            let ns = (-(1.0 - share).ln() * mean) as u64;
            times.of_mut(Kind::Response).record(ns);
            times.of_mut(Kind::Service).record(ns / 2);
        }
        let row = |rps: &f64| SecondRow {
            rps: *rps,
            ..SecondRow::default()
        };
        let report = Report {
            requests: u64::from(count),
            latency_us: Latency::of(times.of(Kind::Response)),
            histograms: Some(Histograms::of(&times, &Unanswered::default())),
            seconds: rates.iter().map(row).collect(),
            ..Report::default()
        };
        Part {
            name: name.to_owned(),
            report,
        }
    }

    fn findings(shifts: &[Shift]) -> Vec<(&str, Finding)> {
        shifts
            .iter()
            .map(|shift| (&shift.of[..], shift.finding))
            .collect()
    }

    const STEADY: [f64; 12] = [
        0.0, 100.0, 101.0, 99.0, 102.0, 98.0, 100.5, 99.5, 100.2, 99.8, 100.0, 3.0,
    ];

    #[test]
    fn a_run_does_not_differ_from_itself() {
        let run = run("a", 10_000, 1e6, &STEADY);
        let comparison = compare(&run, &run).unwrap();
        assert!(comparison.is_same());
        assert_eq!(comparison.response_us.len(), 6, "up to 99.9");
        assert!(
            comparison
                .response_us
                .iter()
                .all(|shift| shift.low <= 0.0 && shift.high >= 0.0)
        );
        let text = comparison.to_string();
        assert!(text.contains("no difference: nothing here"), "{text}");
        assert!(text.contains(" |=\n"), "{text}");
    }

    #[test]
    fn a_shift_beyond_chance_is_found_in_every_percentile() {
        let (a, b) = (
            run("a", 100_000, 1e6, &STEADY),
            run("b", 100_000, 1.5e6, &STEADY),
        );
        let comparison = compare(&a, &b).unwrap();
        assert!(
            comparison
                .response_us
                .iter()
                .all(|shift| shift.finding == Finding::Higher)
        );
        for shift in &comparison.response_us {
            assert!((shift.change - 0.5).abs() < 0.01, "{shift:?}");
            assert!(shift.low < 0.5 && 0.5 < shift.high, "{shift:?}");
        }
        let back = compare(&b, &a).unwrap();
        assert!(
            back.response_us
                .iter()
                .all(|shift| shift.finding == Finding::Lower)
        );
        assert_eq!(comparison.rps.unwrap().finding, Finding::Same);
    }

    #[test]
    fn a_small_shift_shows_where_the_count_suffices_and_not_in_the_tail() {
        let (a, b) = (run("a", 20_000, 1e6, &[]), run("b", 20_000, 1.06e6, &[]));
        let comparison = compare(&a, &b).unwrap();
        let findings = findings(&comparison.response_us);
        assert_eq!(findings[0], ("50", Finding::Higher));
        assert_eq!(findings[findings.len() - 1], ("99.9", Finding::Same));
    }

    #[test]
    fn less_than_bins_can_tell_is_no_difference() {
        let (a, b) = (run("a", 100_000, 1e6, &[]), run("b", 100_000, 1.001e6, &[]));
        let comparison = compare(&a, &b).unwrap();
        assert!(comparison.is_same(), "{comparison}");
    }

    #[test]
    fn rates_are_compared_by_whole_seconds() {
        let faster: Vec<f64> = STEADY.iter().map(|rps| rps * 1.2).collect();
        let (a, b) = (run("a", 100, 1e6, &STEADY), run("b", 100, 1e6, &faster));
        let shift = compare(&a, &b).unwrap().rps.unwrap();
        assert_eq!(shift.finding, Finding::Higher);
        assert!((shift.change - 0.2).abs() < 0.01);
        let few = run("few", 100, 1e6, &STEADY[..6]);
        assert_eq!(compare(&a, &few).unwrap().rps, None);
    }

    #[test]
    fn what_makes_a_comparison_doubtful_is_said() {
        let a = run("a", 1000, 1e6, &[]);
        let mut b = run("b", 1000, 1e6, &[]);
        b.report.errors = 3;
        b.report.options.connections = 7;
        let cautions = compare(&a, &b).unwrap().cautions;
        assert_eq!(cautions.len(), 2, "{cautions:?}");
        assert!(cautions[0].contains("b had 3 errors in 1,003 requests"));
        assert!(cautions[1].contains("connections 0 and 7"));
        b.report.histograms = None;
        assert!(
            compare(&a, &b)
                .unwrap_err()
                .contains("b cannot be compared")
        );
    }
}
