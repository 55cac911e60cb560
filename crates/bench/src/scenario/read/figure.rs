//! `[[work.figure]]`: comparisons.

use toml::de::DeTable;

use super::variant::variant_exists;
use crate::scenario::section::{At, Read, Section, Source, plain, unknown};
use crate::scenario::{Bound, Figure, Metric, ResponseRule, Variant};

const FIGURE_KEYS: &[&str] = &[
    "metric",
    "ours",
    "theirs",
    "above",
    "at_most",
    "at_least",
    "responses",
];

pub(super) fn figures(work: &Section<'_>, variants: &[Variant]) -> Read<Vec<Figure>> {
    work.tables("figure")?
        .into_iter()
        .map(|table| figure(work.source, table, variants))
        .collect()
}

fn figure(source: Source<'_>, table: At<&DeTable<'_>>, variants: &[Variant]) -> Read<Figure> {
    let section = Section::open(source, table.value, table.span.clone(), FIGURE_KEYS)?;
    let ours = section
        .texts("ours")?
        .filter(|ours| !ours.is_empty())
        .ok_or_else(|| section.missing("ours", "expected the names of the judged variants"))?;
    for name in &ours {
        variant_exists(source, name, variants)?;
    }
    let theirs = section.text("theirs")?;
    if let Some(name) = &theirs {
        variant_exists(source, name, variants)?;
    }
    let above = section.texts_by_name("above")?;
    for name in above.iter().flat_map(|(name, base)| [name, base]) {
        if !variants.iter().any(|variant| variant.name == *name) {
            let names: Vec<_> = variants.iter().map(|variant| &*variant.name).collect();
            let span = section
                .table("above")?
                .map_or(table.span, |table| table.span);
            return Err(source.mistake(span, unknown("variant", name, &names)));
        }
    }
    let metric = metric(&section)?;
    let compared = ours.iter().chain(&theirs);
    for name in compared {
        let mut with_name = variants.iter().filter(|variant| variant.name == name.value);
        let role = metric.role();
        let lacks = |variant: &Variant| role.is_some_and(|role| !variant.roles.contains_key(&role));
        if with_name.any(lacks) {
            let role = role.map_or("role", |role| role.name());
            let said = format!(
                "variant `{}` has no {role}, which `{}` measures",
                name.value,
                metric.name()
            );
            return Err(source.mistake(name.span.clone(), said));
        }
    }
    if let Some(itself) = ours
        .iter()
        .find(|name| Some(&name.value) == theirs.as_ref().map(|name| &name.value))
    {
        let said = "a variant cannot be compared with itself: the ratio is always 1";
        return Err(source.mistake(itself.span.clone(), said));
    }
    Ok(Figure {
        metric,
        above,
        ours: plain(ours),
        theirs: theirs.map(|name| name.value),
        bound: bound(&section)?,
        responses: responses(&section)?,
    })
}

fn metric(section: &Section<'_>) -> Read<Metric> {
    let text = section
        .text("metric")?
        .ok_or_else(|| section.missing("metric", "expected a metric such as \"rps\""))?;
    Metric::parse(&text.value).ok_or_else(|| {
        let names = [
            "rps",
            "client.cpu_us_per_request",
            "proxy.cpu_us_per_request",
            "server.cpu_us_per_request",
            "server.memory_per_connection",
            "proxy.memory_per_connection",
            "latency.mean",
            "latency.p50",
            "latency.p99",
            "control.latency.mean",
            "control.latency.p99",
            "server.user_us_per_request",
            "server.system_us_per_request",
            "server.softirq_us_per_request",
            "server.rps_per_cpu_used",
            "server.rps_per_cpu_given",
            "server.wait_us_per_request",
            "server.voluntary_switches_per_request",
            "server.involuntary_switches_per_request",
            "machine.user_us_per_request",
            "machine.system_us_per_request",
            "machine.softirq_us_per_request",
            "packets_per_request",
            "context_switches_per_request",
            "tcp.RetransSegs",
            "tcp.ListenOverflows",
            "tcp.ListenDrops",
            "softnet.dropped",
            "softnet.time_squeeze",
            "collector.cpu_share",
        ];
        section
            .source
            .mistake(text.span, unknown("metric", &text.value, &names))
    })
}

fn responses(section: &Section<'_>) -> Read<ResponseRule> {
    let Some(word) = section.text("responses")? else {
        return Ok(ResponseRule::default());
    };
    match &*word.value {
        "same" => Ok(ResponseRule::NotDiffer),
        "differ" => Ok(ResponseRule::Differ),
        other => Err(section
            .source
            .mistake(word.span, unknown("value", other, &["same", "differ"]))),
    }
}

fn bound(section: &Section<'_>) -> Read<Option<Bound>> {
    let at_most = section.number("at_most")?;
    let at_least = section.number("at_least")?;
    match (at_most, at_least) {
        (Some(limit), None) => Ok(Some(Bound::AtMost(limit.value))),
        (None, Some(limit)) => Ok(Some(Bound::AtLeast(limit.value))),
        (None, None) => Ok(None),
        (Some(_), Some(limit)) => Err(section.source.mistake(
            limit.span,
            "a figure has one target: `at_most` or `at_least`",
        )),
    }
}
