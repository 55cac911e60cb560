//! A trial second by second: CPUs as areas and as rows of a heat map with their interrupts, and the traffic of
//! interfaces.

use std::collections::BTreeMap;
use std::fmt::Write;

use onrush_chart::{
    Axis, Column, Heat, HeatCell, HeatGroup, HeatRow, LineChart, Scale, Size, Stack, escape, figure,
};
use onrush_measure::units;

use super::cores::{PARTS, legend, parts};
use super::curves::time_axis;
use super::interfaces;
use super::palette::Palette;
use super::window::{seconds_text, span, title};
use crate::environment::cpu_list;
use crate::limits::{
    CPUS_DRAWN_MAX, CPUS_OF_HOST_MAX, HEAT_ROWS_COMBINED_MAX, HEAT_ROWS_MAX, ROUNDS_DRAWN_MAX,
    TRIALS_DRAWN_MAX,
};
use crate::outcome::{CpuUse, Sample, Trial, VariantOutcome, WorkOutcome};
use crate::scenario::Role;

/// Number of trials that still fit on the page.
pub(super) struct TrialBudget(usize);

impl TrialBudget {
    pub(super) fn of_page() -> TrialBudget {
        TrialBudget(TRIALS_DRAWN_MAX)
    }

    fn take(&mut self) -> bool {
        let has_some = self.0 > 0;
        self.0 = self.0.saturating_sub(1);
        has_some
    }
}

/// Charts of each variant's trials; empty without samples, or if the page is full.
pub(super) fn section(work: &WorkOutcome, palette: &Palette, room: &mut TrialBudget) -> String {
    let mut body = String::new();
    let mut skipped = 0;
    for variant in &work.variants {
        for trial in drawn(variant) {
            let charts = charts(variant, trial);
            if charts.is_empty() {
                continue;
            }
            if !room.take() {
                skipped += 1;
                continue;
            }
            let _ = writeln!(
                body,
                "<h3 class=\"trial\"><i class=\"{}\"></i>{}, round {}</h3>\n<div class=\"grid3\">\n{charts}</div>",
                palette.class(&variant.name),
                escape(&variant.name),
                trial.round
            );
        }
    }
    if skipped > 0 {
        let trials = units::plural(skipped, "trial");
        let _ = writeln!(
            body,
            "<p class=\"about\">{trials} more: see samples.csv.</p>"
        );
    }
    if body.is_empty() {
        return body;
    }
    format!(
        "<details><summary>Second by second: CPUs, interrupts, interfaces</summary>\n\
         <ul class=\"legend\">{}</ul>\n{body}</details>\n",
        legend()
    )
}

/// All trials of a variant with few of them, otherwise the one with the median rate.
fn drawn(variant: &VariantOutcome) -> Vec<&Trial> {
    match variant.trials.len() {
        ..=ROUNDS_DRAWN_MAX => variant
            .trials
            .iter()
            .filter(|trial| trial.has_metrics())
            .collect(),
        _ => variant.median_trial().into_iter().collect(),
    }
}

fn charts(variant: &VariantOutcome, trial: &Trial) -> String {
    let mut figures = String::new();
    for cpu in fullest(trial, CPUS_DRAWN_MAX) {
        figures.push_str(&areas(variant, trial, cpu));
    }
    interfaces::charts(variant, trial, &mut figures);
    figures.push_str(&heat(variant, trial));
    figures
}

fn fullest(trial: &Trial, most: usize) -> Vec<usize> {
    let mut sums: BTreeMap<usize, f64> = BTreeMap::new();
    for cpu in trial.samples.iter().flat_map(|sample| &sample.cpus) {
        *sums.entry(cpu.cpu).or_default() += cpu.busy();
    }
    let mut cpus: Vec<(usize, f64)> = sums.into_iter().collect();
    cpus.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut cpus: Vec<usize> = cpus.into_iter().take(most).map(|(cpu, _)| cpu).collect();
    cpus.sort_unstable();
    cpus
}

fn areas(variant: &VariantOutcome, trial: &Trial, number: usize) -> String {
    let column = |sample: &Sample| {
        let (from, to) = span(trial, sample)?;
        let cpu = sample.cpus.iter().find(|cpu| cpu.cpu == number)?;
        Some(Column {
            from,
            to,
            parts: parts(cpu),
        })
    };
    let columns: Vec<Column> = trial.samples.iter().filter_map(column).collect();
    let sums = columns.iter().flat_map(|column| &column.parts);
    let busy = sums.sum::<f64>() / columns.len().max(1) as f64;
    let roles = variant.placement.roles_on(number);
    let roles: Vec<&str> = roles.into_iter().map(Role::name).collect();
    let what = match roles.is_empty() {
        true => cpu_name(number),
        false => format!("{} · {}", cpu_name(number), roles.join(", ")),
    };
    let busy = format!("{:.0} % busy", busy * 100.0);
    let plot = LineChart {
        title: title(variant, trial, &what),
        description: format!("{busy} on average"),
        x: Axis {
            label: String::new(),
            ..time_axis(trial.window_s, 1)
        },
        y: Axis {
            label: String::new(),
            scale: Scale::Linear(0.0, 1.0),
            ticks: [0.0, 0.5, 1.0].map(|tick| (tick, percent(tick))).into(),
        },
        lines: Vec::new(),
        stack: Stack {
            parts: PARTS.into(),
            columns,
        },
        rules: Vec::new(),
        size: Size::Small,
        x_text: seconds_text,
        y_text: percent,
    };
    figure(&what, &busy, &plot.svg())
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// At most five characters, to fit at the end of a row.
fn events_text(rate: f64) -> String {
    match rate {
        ..1e3 => format!("{rate:.0}/s"),
        ..1e4 => format!("{:.1}k/s", rate / 1e3),
        ..1e6 => format!("{:.0}k/s", rate / 1e3),
        _ => format!("{:.1}M/s", rate / 1e6),
    }
}

/// Heat map with rows of CPU use, interrupts, and interrupt lines of network devices: one map, or one for each kind if
/// there are many rows.
fn heat(variant: &VariantOutcome, trial: &Trial) -> String {
    let cpus = fullest(trial, HEAT_ROWS_MAX);
    let groups = groups(trial, &cpus);
    let all = trial.samples.iter().map(|sample| sample.cpus.len()).max();
    let subtitle = match all {
        Some(all) if all > cpus.len() => format!("the {} busiest of {all} CPUs", cpus.len()),
        Some(_) | None => {
            "the stronger the color, the higher the value; the maximum is at the end of a row"
                .to_owned()
        }
    };
    let rows: usize = groups.iter().map(|group| group.rows.len()).sum();
    let maps: Vec<Vec<HeatGroup>> = match rows > HEAT_ROWS_COMBINED_MAX {
        true => groups.into_iter().map(|group| vec![group]).collect(),
        false => vec![groups],
    };
    let mut figures = String::new();
    if maps.len() > 1 {
        // A new row of the grid, because heat maps are higher than charts.
        figures.push_str("</div>\n<div class=\"grid3\">\n");
    }
    for map in maps.into_iter().filter(|map| !map.is_empty()) {
        let names: Vec<&str> = map.iter().map(|group| group.name.as_str()).collect();
        let names = names.join(", ");
        let heat = Heat {
            title: title(variant, trial, &format!("{names} by second")),
            description:
                "a row for each CPU or interrupt line; the stronger the color, the higher the value"
                    .into(),
            x: time_axis(trial.window_s, 1),
            groups: map,
            x_text: seconds_text,
        };
        figures.push_str(&figure("CPUs and interrupts", &subtitle, &heat.svg()));
    }
    figures
}

fn groups(trial: &Trial, cpus: &[usize]) -> Vec<HeatGroup> {
    let of_cpu = |value: fn(&Sample, usize) -> f64| {
        let row = |cpu: &usize| {
            let host = cpu / CPUS_OF_HOST_MAX;
            row(trial, cpu_name(*cpu), |sample| {
                (sample.host() == host).then(|| value(sample, *cpu))
            })
        };
        cpus.iter().map(row).collect::<Vec<HeatRow>>()
    };
    let busy = HeatGroup {
        name: "busy".into(),
        end: 1.0,
        rows: of_cpu(busy),
        text: percent,
    };
    if busy.rows.iter().all(|row| row.cells.is_empty()) {
        return Vec::new();
    }
    let counted = [
        events("interrupts", of_cpu(interrupts)),
        events("softirqs for received packets", of_cpu(received)),
        events("interrupts of network devices", device_rows(trial)),
    ];
    let counted = counted.into_iter().flatten();
    [busy].into_iter().chain(counted).collect()
}

/// Rows with non-zero values, scaled to the largest; `None` if there are none.
fn events(name: &str, mut rows: Vec<HeatRow>) -> Option<HeatGroup> {
    let most = |row: &HeatRow| row.cells.iter().map(|cell| cell.value).fold(0.0, f64::max);
    rows.retain(|row| most(row) > 0.0);
    let end = rows.iter().map(most).fold(0.0, f64::max);
    (end > 0.0).then(|| HeatGroup {
        name: name.into(),
        end,
        rows,
        text: events_text,
    })
}

fn cpu_name(number: usize) -> String {
    format!("CPU {}", cpu_list(&[number]))
}

/// A cell for each sample with a value; samples of other machines have none.
fn row(trial: &Trial, name: String, value: impl Fn(&Sample) -> Option<f64>) -> HeatRow {
    let cell = |sample: &Sample| {
        let (from, to) = span(trial, sample)?;
        let value = value(sample)?;
        Some(HeatCell { from, to, value })
    };
    HeatRow {
        name,
        cells: trial.samples.iter().filter_map(cell).collect(),
    }
}

fn busy(sample: &Sample, number: usize) -> f64 {
    let cpu = sample.cpus.iter().find(|cpu| cpu.cpu == number);
    cpu.map_or(0.0, CpuUse::busy)
}

/// All interrupts of a CPU: inter-processor, timer, and network devices of this machine.
fn interrupts(sample: &Sample, number: usize) -> f64 {
    let own = sample.counters.get(&format!("cpu{number}"));
    let own = own.into_iter().flatten();
    let own = own.filter(|(measure, _)| measure.starts_with("interrupts_"));
    let key = format!("cpu{number}_per_s");
    let lines = sample.counters.iter();
    let lines = lines.filter(|(subject, _)| subject.starts_with("irq "));
    let lines = lines.filter_map(|(_, measures)| measures.get(&key));
    own.map(|(_, value)| value).chain(lines).sum()
}

fn received(sample: &Sample, number: usize) -> f64 {
    let cpu = sample.counters.get(&format!("cpu{number}"));
    let rate = cpu.and_then(|measures| measures.get("net_rx_softirqs_per_s"));
    rate.copied().unwrap_or(0.0)
}

/// The busiest interrupt lines of network devices over all CPUs.
fn device_rows(trial: &Trial) -> Vec<HeatRow> {
    let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
    for (subject, measures) in trial.samples.iter().flat_map(|sample| &sample.counters) {
        if device(subject).is_some() {
            *sums.entry(subject).or_default() += measures.values().sum::<f64>();
        }
    }
    let mut lines: Vec<(&str, f64)> = sums.into_iter().collect();
    lines.sort_by(|a, b| b.1.total_cmp(&a.1));
    lines.truncate(HEAT_ROWS_MAX);
    let of_line = |(subject, _): (&str, f64)| {
        let name = device(subject).unwrap_or_default();
        let mut with_it = trial.samples.iter();
        let host = with_it.find(|sample| sample.counters.contains_key(subject));
        let host = host.map(Sample::host);
        row(trial, name, |sample| {
            let measures = sample.counters.get(subject).into_iter();
            (Some(sample.host()) == host).then(|| measures.flat_map(BTreeMap::values).sum())
        })
    };
    lines.into_iter().map(of_line).collect()
}

/// Short form of `irq 38 eth0 queue 0 (virtio2-input.0)`: `eth0 queue 0`, with the host as prefix if there is one.
fn device(subject: &str) -> Option<String> {
    let (host, line) = match subject.split_once(":irq ") {
        Some((host, line)) => (format!("{host}:"), line),
        None => (String::new(), subject.strip_prefix("irq ")?),
    };
    let (number, rest) = line.split_once(' ').unwrap_or((line, ""));
    let name = rest.split(" (").next().unwrap_or_default();
    Some(match name.is_empty() {
        true => format!("{host}irq {number}"),
        false => format!("{host}{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::InterfaceUse;
    use crate::report::sample::outcome;

    fn drawn_of(change: fn(&mut Trial)) -> String {
        let mut outcome = outcome();
        let palette = Palette::of(&outcome);
        for variant in &mut outcome.works[0].variants {
            variant.trials.iter_mut().for_each(change);
        }
        section(&outcome.works[0], &palette, &mut TrialBudget::of_page())
    }

    #[test]
    fn trial_charts_cpus_interrupts_and_interfaces() {
        let html = drawn_of(|trial| {
            for sample in &mut trial.samples {
                let lo = InterfaceUse {
                    rx_packets: 5e4,
                    tx_packets: 5e4,
                    rx_bytes: 4e6,
                    tx_bytes: 4e6,
                    rx_dropped: 2.0,
                    ..InterfaceUse::default()
                };
                sample.interfaces.insert("lo".into(), lo);
                let line = [("cpu1_per_s".to_owned(), 700.0)].into();
                sample
                    .counters
                    .insert("irq 38 eth0 queue 0 (x)".into(), line);
            }
        });
        for said in [
            "CPU 1 · server",
            "class=\"area softirq\"",
            "interrupts of network devices",
            ">eth0 queue 0<",
            ">712/s<",
            "softirqs for received packets",
            "lo received",
            "Bytes per second",
            "6 damaged or dropped",
        ] {
            assert!(html.contains(said), "{said} in {html}");
        }
        assert_eq!(html.matches("<h3").count(), 3, "one round of each variant");
    }

    #[test]
    fn unsampled_metrics_have_no_chart() {
        assert_eq!(drawn_of(|trial| trial.samples.clear()), "");
        let html = drawn_of(|trial| {
            for sample in &mut trial.samples {
                sample.counters.clear();
            }
        });
        assert!(
            html.contains("busy") && !html.contains("interrupts of"),
            "{html}"
        );
    }

    #[test]
    fn many_rows_become_heat_maps() {
        let maps = |html: &str| html.matches("class=\"chart heat\"").count();
        assert_eq!(maps(&drawn_of(|_| ())), 3, "one for each variant");
        let many = drawn_of(|trial| {
            for sample in &mut trial.samples {
                let first = sample.cpus[0];
                sample.cpus = (0..40).map(|cpu| CpuUse { cpu, ..first }).collect();
            }
        });
        assert!(maps(&many) == 9 && many.contains("CPU 39"), "{many}");
    }

    #[test]
    fn page_limits_number_of_trials() {
        let outcome = outcome();
        let palette = Palette::of(&outcome);
        let two = section(&outcome.works[0], &palette, &mut TrialBudget(2));
        assert_eq!(two.matches("<h3").count(), 2);
        assert!(two.contains("1 trial more: see samples.csv"), "{two}");
    }

    #[test]
    fn interrupts_are_labelled_by_device_queue() {
        for (subject, name) in [
            (
                "irq 38 eth0 queue 0 (virtio2-input.0)",
                Some("eth0 queue 0"),
            ),
            ("left:irq 38 eth0 queue 0 (x)", Some("left:eth0 queue 0")),
            ("irq 38", Some("irq 38")),
            ("tcp", None),
        ] {
            assert_eq!(device(subject).as_deref(), name);
        }
    }
}
