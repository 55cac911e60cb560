//! Metrics as text: the format of Prometheus (version 0.0.4) and OpenMetrics 1.0.

use std::fmt::Write;

use super::family::{Buckets, Family, Kind, Labels, Value};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TextFormat {
    Prometheus,
    OpenMetrics,
}

pub(super) fn write(families: &[Family<'_>], dialect: TextFormat) -> String {
    let mut text = String::new();
    for family in families {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        // In OpenMetrics, the family of a counter lacks the `_total` of its samples.
        let name = match dialect {
            TextFormat::OpenMetrics => family.name.strip_suffix("_total").unwrap_or(&family.name),
            TextFormat::Prometheus => &family.name,
        };
        // Writing to a `String` cannot fail, here and below.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", family.help);
        for (labels, value) in &family.series {
            match value {
                Value::Number(number) => line(&mut text, (&family.name, ""), labels, None, *number),
                Value::Histogram(all) => histogram(&mut text, &family.name, labels, all),
            }
        }
    }
    if dialect == TextFormat::OpenMetrics {
        text += "# EOF\n";
    }
    text
}

fn histogram(text: &mut String, name: &str, labels: &Labels<'_>, all: &Buckets<'_>) {
    for (bound, count) in &all.buckets {
        let bound = format!("{bound:?}");
        line(text, (name, "_bucket"), labels, Some(&bound), *count as f64);
    }
    let count = all.count as f64;
    line(text, (name, "_bucket"), labels, Some("+Inf"), count);
    line(text, (name, "_sum"), labels, None, all.sum);
    line(text, (name, "_count"), labels, None, count);
}

/// Writes one sample; `bound` is the `le` label of a bucket.
fn line(
    text: &mut String,
    (name, end): (&str, &str),
    labels: &Labels<'_>,
    bound: Option<&str>,
    value: f64,
) {
    *text += name;
    *text += end;
    let labels = labels.iter().map(|(label, text)| (*label, &**text));
    let mut before = '{';
    for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
        let _ = write!(text, "{before}{label}=\"");
        for letter in value.chars() {
            match letter {
                '\\' => *text += "\\\\",
                '"' => *text += "\\\"",
                '\n' => *text += "\\n",
                letter => text.push(letter),
            }
        }
        text.push('"');
        before = ',';
    }
    if before == ',' {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}
