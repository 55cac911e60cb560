//! Chart of the distribution of response times.

use onrush_chart::{
    Axis, Column, LineChart, Scale, Size, Stack, figure, linear_ticks, log_ticks, plain_number,
    time_tick,
};

use super::count_axis;
use crate::record::figures::Kind;
use crate::record::times::Times;
use crate::report::html::time::time;

/// Ticks on the time axis, limited by the width of their labels.
const TIME_TICKS_MAX: usize = 7;

/// Columns per decade of the distribution: each a third wider than the one before.
const COLUMNS_PER_DECADE: f64 = 8.0;

pub(super) fn distribution(times: &Times) -> Option<String> {
    let response = times.of(Kind::Response);
    let step = |ns: u64| (ns.max(1) as f64 / 1000.0).log10() * COLUMNS_PER_DECADE;
    let edge = |at: i32| 10_f64.powf(f64::from(at) / COLUMNS_PER_DECADE);
    let first = step(response.min()).floor() as i32;
    let count = (step(response.max()).floor() as i32 - first + 1).max(0) as usize;
    let mut shares = vec![0.0; count];
    for (ns, many) in response.recorded() {
        let at = (step(ns).floor() as i32 - first).max(0) as usize;
        shares[at.min(count - 1)] += many as f64 * 100.0 / response.count() as f64;
    }
    let columns: Vec<Column> = (first..)
        .zip(&shares)
        .map(|(at, share)| Column {
            from: edge(at),
            to: edge(at + 1),
            parts: vec![*share],
        })
        .collect();
    let largest = shares.iter().copied().fold(0.0, f64::max);
    let (from, to) = (columns.first()?.from, columns.last()?.to);
    if response.count() == 0 {
        return None;
    }
    let mut ticks = log_ticks(from, to);
    ticks.retain(|tick| (from..=to).contains(tick));
    if ticks.len() > TIME_TICKS_MAX {
        ticks.retain(|tick| tick.log10().fract().abs() < 1e-9);
    }
    let plot = LineChart {
        title: "Distribution of response times".into(),
        description: format!("from {} to {}", time(from), time(to)),
        x: Axis {
            label: "response time".into(),
            scale: Scale::Log(from, to),
            ticks: ticks
                .into_iter()
                .map(|tick| (tick, time_tick(tick)))
                .collect(),
        },
        y: Axis {
            ticks: linear_ticks(largest * 1.02, 4)
                .into_iter()
                .map(|tick| (tick, format!("{} %", plain_number(tick))))
                .collect(),
            ..count_axis(largest)
        },
        lines: Vec::new(),
        stack: Stack {
            parts: vec![("responses", "o1")],
            columns,
        },
        rules: Vec::new(),
        size: Size::Full,
        x_text: |us| format!("up to {}", time(us)),
        y_text: |percent| format!("{percent:.2} %"),
    };
    let svg = plot.svg();
    Some(figure(
        "Distribution",
        "share of responses, time logarithmic",
        &svg,
    ))
}
