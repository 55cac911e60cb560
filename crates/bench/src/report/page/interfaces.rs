//! Traffic of each interface in a trial, second by second.

use std::collections::BTreeMap;

use onrush_chart::{
    Axis, Line, LineChart, Scale, Size, Stack, escape, figure, legend_mark, linear_ticks,
    plain_number,
};
use onrush_measure::units;

use super::curves::time_axis;
use super::window::{seconds_text, span, title};
use crate::limits::INTERFACES_DRAWN_MAX;
use crate::outcome::{InterfaceUse, Sample, Trial, VariantOutcome};

/// Charts of packets and bytes by interface, if there were any.
pub(super) fn charts(variant: &VariantOutcome, trial: &Trial, figures: &mut String) {
    let packets = Counted {
        name: "Packets",
        received: |used| used.rx_packets,
        sent: |used| used.tx_packets,
        text: |rate| format!("{} packets/s", plain_number(rate.round())),
    };
    let bytes = Counted {
        name: "Bytes",
        received: |used| used.rx_bytes,
        sent: |used| used.tx_bytes,
        text: |rate| format!("{}/s", units::bytes(rate)),
    };
    for counted in [packets, bytes] {
        figures.push_str(&chart(variant, trial, &counted).unwrap_or_default());
    }
}

struct Counted {
    name: &'static str,
    received: fn(&InterfaceUse) -> f64,
    sent: fn(&InterfaceUse) -> f64,
    text: fn(f64) -> String,
}

fn chart(variant: &VariantOutcome, trial: &Trial, counted: &Counted) -> Option<String> {
    let lines = lines(trial, counted);
    let points = lines.iter().flat_map(|line| line.segments.iter().flatten());
    let largest = points.map(|point| point.1).fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let ticks = linear_ticks(largest * 1.02, 4);
    let name = counted.name.to_lowercase();
    let legend = legend(&lines);
    let plot = LineChart {
        title: title(variant, trial, &format!("{name} per second")),
        description: format!("{name}: at most {}{}", (counted.text)(largest), lost(trial)),
        x: time_axis(trial.window_s, 1),
        y: Axis {
            label: String::new(),
            scale: Scale::Linear(0.0, ticks.last().copied().unwrap_or(1.0)),
            ticks: ticks
                .iter()
                .map(|tick| (*tick, plain_number(*tick)))
                .collect(),
        },
        lines,
        stack: Stack::default(),
        rules: Vec::new(),
        size: Size::Full,
        x_text: seconds_text,
        y_text: counted.text,
    };
    Some(figure(
        &format!("{} per second", counted.name),
        &format!("by interface{}", lost(trial)),
        &format!("{legend}{}", plot.svg()),
    ))
}

/// Two lines for each interface: received, and sent (dashed).
fn lines(trial: &Trial, counted: &Counted) -> Vec<Line> {
    const CLASSES: [&str; INTERFACES_DRAWN_MAX] = ["o1", "t1", "o2", "t2"];
    let mut lines = Vec::new();
    for (name, class) in busiest(trial).into_iter().zip(CLASSES) {
        // Samples of other machines do not have this interface; they must not count as zeros.
        let mut with_it = trial.samples.iter();
        let host = with_it.find(|sample| sample.interfaces.contains_key(name));
        let host = host.map(Sample::host);
        for (way, pick) in [("received", counted.received), ("sent", counted.sent)] {
            let point = |sample: &Sample| {
                let (from, to) = span(trial, sample).filter(|_| Some(sample.host()) == host)?;
                let used = sample.interfaces.get(name);
                Some(((from + to) / 2.0, used.map_or(0.0, pick)))
            };
            lines.push(Line {
                name: format!("{name} {way}"),
                class: class.into(),
                is_dashed: way == "sent",
                segments: vec![trial.samples.iter().filter_map(point).collect()],
                ranges: Vec::new(),
            });
        }
    }
    lines
}

fn legend(lines: &[Line]) -> String {
    let entry = |line: &Line| {
        let mark = match line.is_dashed {
            true => format!("<i class=\"dash {}\"></i>", line.class),
            false => legend_mark(&line.class),
        };
        format!("<li>{mark}{}</li>", escape(&line.name))
    };
    let entries: String = lines.iter().map(entry).collect();
    format!("<ul class=\"legend\">{entries}</ul>")
}

/// The interfaces with the most packets.
fn busiest(trial: &Trial) -> Vec<&str> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, used) in trial.samples.iter().flat_map(|sample| &sample.interfaces) {
        *sums.entry(name).or_default() += used.rx_packets + used.tx_packets;
    }
    let mut names: Vec<(&str, f64)> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.truncate(INTERFACES_DRAWN_MAX);
    names.into_iter().map(|(name, _)| name).collect()
}

fn lost(trial: &Trial) -> String {
    let of =
        |used: &InterfaceUse| used.rx_errors + used.tx_errors + used.rx_dropped + used.tx_dropped;
    let all = trial.samples.iter();
    let all = all.flat_map(|sample| {
        sample
            .interfaces
            .values()
            .map(|used| of(used) * sample.span_s)
    });
    match all.sum::<f64>().round() as u64 {
        0 => String::new(),
        count => format!(", {} damaged or dropped", units::count(count)),
    }
}
