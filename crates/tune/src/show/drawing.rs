//! Diagram of the machine as SVG: a box for each CPU, filled by its load, framed by its work.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{View, Work, devices_at, node_name, unknown};
use crate::diagnose::Load;
use crate::facts::Facts;
use crate::report::one_line;

const BOX: usize = 104;
const ROW: usize = 46;
/// Cores side by side in a node.
const COLUMNS: usize = 16;
/// Characters of 10 pixels that fit into a box.
const LETTERS: usize = 19;
/// Top of the first node, below the title and the legend.
const TOP: usize = 96;
/// Width of the legend.
const WIDTH_MIN: usize = 900;
const FRAMES: [(Option<Work>, &str, &str); 5] = [
    (Some(Work::Interrupts), "#c0392b", "takes interrupts"),
    (Some(Work::Steering), "#e67e22", "steered packets"),
    (Some(Work::Application), "#2980b9", "runs the program"),
    (Some(Work::System), "#7f8c8d", "for the system"),
    (None, "#bbbbbb", "none of these"),
];

/// Draws a title, a legend, and each node with its interfaces. `loads` may be empty.
pub fn svg(facts: &Facts, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let mut body = String::new();
    let mut top = TOP;
    let mut width = WIDTH_MIN;
    let mut nodes: Vec<Option<usize>> = facts
        .topology
        .cores
        .iter()
        .map(|core| core.place.node)
        .collect();
    nodes.dedup();
    for node in nodes {
        let cores: Vec<_> = facts
            .topology
            .cores
            .iter()
            .filter(|core| core.place.node == node)
            .collect();
        let siblings = cores.iter().map(|core| core.cpus.len()).max().unwrap_or(1);
        body.push_str(&head(
            &node_name(node),
            &devices_at(facts, node),
            facts,
            top + 14,
        ));
        top += 22;
        for (at, core) in cores.iter().enumerate() {
            let x = 10 + at % COLUMNS * (BOX + 6);
            width = width.max(x + BOX + 10);
            for (row, cpu) in core.cpus.iter().enumerate() {
                let y = top + at / COLUMNS * (siblings * ROW + 8) + row * ROW;
                body.push_str(&drawn(cpu, x, y, view, loads));
            }
        }
        top += cores.len().div_ceil(COLUMNS) * (siblings * ROW + 8) + 12;
    }
    let unknown = unknown(facts);
    if !unknown.is_empty() {
        body.push_str(&head("node unknown", &unknown, facts, top + 14));
        top += 26;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{top}\" viewBox=\"0 0 {width} {top}\" \
         font-family=\"sans-serif\">\n\
         <title>{TITLE}</title>\n\
         <style>text{{font-size:10px;fill:#222}}.head{{font-size:13px;font-weight:bold}}.title{{font-size:17px;\
         font-weight:bold}}rect{{stroke-width:2}}</style>\n\
         <rect width=\"{width}\" height=\"{top}\" fill=\"#ffffff\" stroke=\"none\"/>\n{}{}{body}</svg>\n",
        title(facts, loads),
        legend(loads)
    )
}

const TITLE: &str = "Network tasks of each CPU";

fn title(facts: &Facts, loads: &BTreeMap<usize, Load>) -> String {
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{count} {one}s"),
    };
    let topology = &facts.topology;
    let load = match loads.is_empty() {
        true => "load not measured",
        false => "load while measuring",
    };
    format!(
        "<text x=\"10\" y=\"24\" class=\"title\">{TITLE}</text>\n<text x=\"10\" y=\"42\">{}, {}, {}, {}; {load}</text>\n",
        counted(topology.online.len(), "CPU"),
        counted(topology.cores.len(), "core"),
        counted(topology.nodes.len(), "node"),
        counted(topology.packages, "socket"),
    )
}

fn legend(loads: &BTreeMap<usize, Load>) -> String {
    let mut out = String::new();
    let mut x = 10;
    for (_, color, words) in FRAMES {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"56\" width=\"16\" height=\"16\" fill=\"#ffffff\" stroke=\"{color}\"/>\
             <text x=\"{}\" y=\"68\">{words}</text>",
            x + 22
        );
        x += 128;
    }
    for percent in [0, 50, 100].into_iter().filter(|_| !loads.is_empty()) {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"56\" width=\"16\" height=\"16\" fill=\"{}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"68\">{percent} % busy</text>",
            fill(f64::from(percent) / 100.0),
            x + 22
        );
        x += 80;
    }
    out
}

/// White when idle, red when full.
fn fill(busy: f64) -> String {
    let rest = (255.0 - busy * 155.0) as u8;
    format!("#ff{rest:02x}{rest:02x}")
}

/// Heading of a node, with its interfaces and their link speeds.
fn head(name: &str, devices: &[String], facts: &Facts, y: usize) -> String {
    let words = |device: &String| {
        let speed = facts.interface(device).and_then(|found| found.speed_mbps);
        match speed {
            Some(speed) if speed >= 1_000 => format!("{device} ({} Gb/s)", speed as f64 / 1_000.0),
            Some(speed) => format!("{device} ({speed} Mb/s)"),
            None => device.clone(),
        }
    };
    let devices: Vec<String> = devices.iter().map(words).collect();
    let beside = match devices.is_empty() {
        true => String::new(),
        false => format!(": {}", devices.join(", ")),
    };
    format!(
        "<text x=\"10\" y=\"{y}\" class=\"head\">{}</text>\n",
        escaped(&format!("{name}{beside}"))
    )
}

fn drawn(cpu: usize, x: usize, y: usize, view: &View, loads: &BTreeMap<usize, Load>) -> String {
    let load = loads.get(&cpu).map(|load| load.busy);
    let work = view.first_work(cpu);
    let frame = FRAMES.iter().find(|(of, ..)| *of == work);
    let frame = frame.map_or("#bbbbbb", |(_, color, _)| color);
    let words = view.words(cpu);
    let shown = match words.len() {
        0..=2 => words.clone(),
        more => vec![words[0].clone(), format!("and {} more", more - 1)],
    };
    let lines = shown.iter().enumerate().map(|(at, word)| {
        format!(
            "<text x=\"{}\" y=\"{}\">{}</text>",
            x + 5,
            y + 25 + at * 12,
            escaped(&short(word))
        )
    });
    let percent = load.map_or(String::new(), |busy| {
        format!(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0} %</text>",
            x + BOX - 5,
            y + 13,
            busy * 100.0
        )
    });
    let busy = load.map_or(String::new(), |busy| {
        format!(", {:.0} % busy", busy * 100.0)
    });
    format!(
        "<g><title>CPU {cpu}{busy}: {}</title>\
         <rect x=\"{x}\" y=\"{y}\" width=\"{BOX}\" height=\"{}\" fill=\"{}\" stroke=\"{frame}\"/>\
         <text x=\"{}\" y=\"{}\">CPU {cpu}</text>{percent}{}</g>\n",
        escaped(&words.join(", ")),
        ROW - 4,
        fill(load.unwrap_or(0.0)),
        x + 5,
        y + 13,
        lines.collect::<String>()
    )
}

/// Truncates a word to the box; the tooltip contains all of it.
fn short(word: &str) -> String {
    match word.chars().count() <= LETTERS {
        true => word.to_owned(),
        false => word.chars().take(LETTERS - 1).chain(['…']).collect(),
    }
}

/// Escapes a name from outside. XML does not allow most control characters (XML 1.0, section 2.2).
fn escaped(text: &str) -> String {
    one_line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
