//! `[[work]]`: connections, rate, variants and figures of each measurement.

use onrush_measure::amount;

use super::figure::figures;
use super::given::WorkContext;
use super::sweep::{labels, points};
use super::variant::{check_use, variant_exists, variants};
use crate::limits::WORKS_MAX;
use crate::scenario::section::{At, Read, Section, name, unknown};
use crate::scenario::{Point, Rate, Role, Sharing, Variant, Work};

const WORK_KEYS: &[&str] = &[
    "name",
    "about",
    "under_test",
    "connections",
    "rate",
    "client",
    "proxy",
    "server",
    "control",
    "set",
    "collect",
    "placement",
    "hosts",
    "sweep",
    "point",
    "road",
    "variant",
    "figure",
];
const RATE_KEYS: &[&str] = &["share", "work", "variant"];

pub(super) fn works<'a>(section: &Section<'a>, given: &WorkContext<'a>) -> Read<Vec<Work>> {
    let tables = section.tables("work")?;
    if tables.is_empty() || tables.len() > WORKS_MAX {
        return Err(section.source.mistake(
            0..0,
            format!("an experiment has 1 to {WORKS_MAX} works, written as [[work]]"),
        ));
    }
    let mut works: Vec<Work> = Vec::new();
    for table in tables {
        let section = Section::open(section.source, table.value, table.span, WORK_KEYS)?;
        let name = name(&section, "expected the name of the work")?;
        if works.iter().any(|work| work.name == name.value) {
            return Err(section
                .source
                .mistake(name.span, "another work has this name"));
        }
        let (points, at) = points(&section, &given.scale)?;
        check_road(&section, points.len())?;
        let mut own = Vec::new();
        for point in points {
            let point = At {
                value: point,
                span: at.clone(),
            };
            own.push(work(&section, given, &works, &name.value, point)?);
        }
        let labels = labels(&section, &given.scale)?;
        for work in &mut own {
            work.labels.clone_from(&labels);
        }
        check_use(&section, &given.programs, &own, at)?;
        works.extend(own);
    }
    Ok(works)
}

/// Rejects `road` with fewer than two points.
fn check_road(section: &Section<'_>, points: usize) -> Read<()> {
    match section.value("road") {
        Some(road) if points < 2 && section.flag("road")? == Some(true) => Err(section.source.mistake(
            road.span(),
            "a road has steps: expected two or more [[work.point]], or a `sweep` of two or more values",
        )),
        Some(_) | None => Ok(()),
    }
}

fn work<'a>(
    section: &Section<'a>,
    given: &WorkContext<'a>,
    before: &[Work],
    name: &str,
    point: At<Point>,
) -> Read<Work> {
    let rate = rate(section, before, &point)?;
    let variants = variants(section, given, rate.as_ref(), &point)?;
    let figures = figures(section, &variants)?;
    let connections = section.count("connections", 1..100_001)?;
    let swept = swept_count(section, &point, "connections", 100_000)?;
    let cpus_per_role = swept_count(section, &point, "cpus_per_role", 4_096)?;
    Ok(Work {
        name: name.to_owned(),
        about: section
            .text("about")?
            .map(|about| about.value)
            .unwrap_or_default(),
        under_test: under_test(section, &variants)?,
        connections: swept
            .or(connections)
            .or(given.scale.connections)
            .unwrap_or(100) as u32,
        rate,
        cpus_per_role: cpus_per_role.map(|count| count as usize),
        sharing: sharing(section)?,
        variants,
        figures,
        point: point.value,
        has_steps: section.flag("road")?.unwrap_or(false),
        labels: Vec::new(),
    })
}

fn sharing(section: &Section<'_>) -> Read<Sharing> {
    let Some(text) = section.text("placement")? else {
        return Ok(Sharing::default());
    };
    match text.value.as_str() {
        "apart" => Ok(Sharing::Apart),
        "together" => Ok(Sharing::Together),
        other => {
            let said = unknown("placement", other, &["apart", "together"]);
            Err(section.source.mistake(text.span, said))
        }
    }
}

/// The value of a numeric parameter at a point. It is an error if the work has the key as well.
fn swept_count(
    section: &Section<'_>,
    point: &At<Point>,
    parameter: &str,
    max: u64,
) -> Read<Option<u64>> {
    let Some(value) = point.value.value(parameter) else {
        return Ok(None);
    };
    check_given_once(section, point, parameter)?;
    let count = amount::count(value)
        .ok()
        .filter(|count| (1..=max).contains(count));
    count.map(Some).ok_or_else(|| {
        let said =
            format!("expected a whole number from 1 to {max} as `{parameter}`, found `{value}`");
        section.source.mistake(point.span.clone(), said)
    })
}

fn check_given_once(section: &Section<'_>, point: &At<Point>, key: &str) -> Read<()> {
    if section.value(key).is_none() {
        return Ok(());
    }
    Err(section.source.mistake(
        point.span.clone(),
        format!("`{key}` is swept and also set by the work: expected one of them"),
    ))
}

fn under_test(section: &Section<'_>, variants: &[Variant]) -> Read<Option<Role>> {
    let Some(text) = section.text("under_test")? else {
        return Ok(None);
    };
    let names: Vec<_> = Role::ALL.iter().map(|role| role.name()).collect();
    let role = Role::ALL
        .into_iter()
        .find(|role| role.name() == text.value)
        .ok_or_else(|| {
            section
                .source
                .mistake(text.span.clone(), unknown("role", &text.value, &names))
        })?;
    let taken = variants
        .iter()
        .all(|variant| variant.roles.contains_key(&role));
    if taken {
        return Ok(Some(role));
    }
    Err(section.source.mistake(
        text.span,
        format!("not every variant of this work has a {}", role.name()),
    ))
}

fn rate(section: &Section<'_>, before: &[Work], point: &At<Point>) -> Read<Option<Rate>> {
    if let Some(text) = point.value.value("rate") {
        check_given_once(section, point, "rate")?;
        let said =
            || format!("expected a whole number of requests per second as `rate`, found `{text}`");
        let rate = fixed_rate(text);
        let rate = rate.ok_or_else(|| section.source.mistake(point.span.clone(), said()))?;
        return Ok(Some(rate));
    }
    let Some(value) = section.value("rate") else {
        return Ok(None);
    };
    if value.get_ref().as_table().is_none() {
        let rate = section
            .single("rate")?
            .and_then(|text| fixed_rate(&text.value));
        let said = "expected a whole number of requests per second, or { share = 0.6, work = \"…\", variant = \"…\" }";
        return rate
            .map(Some)
            .ok_or_else(|| section.source.mistake(value.span(), said));
    }
    let table = section
        .table("rate")?
        .ok_or_else(|| section.missing("rate", "a table"))?;
    let section = Section::open(section.source, table.value, table.span, RATE_KEYS)?;
    let share = section
        .share("share")?
        .ok_or_else(|| section.missing("share", "expected a number above 0 and at most 1"))?;
    if !(share.value > 0.0 && share.value <= 1.0) {
        return Err(section
            .source
            .mistake(share.span, "expected a share above 0 and at most 1"));
    }
    let work = section
        .text("work")?
        .ok_or_else(|| section.missing("work", "expected the work that reached the rate"))?;
    let variant = section
        .text("variant")?
        .ok_or_else(|| section.missing("variant", "expected the variant that reached the rate"))?;
    let earlier = point_of(&section, before, &work, &point.value)?;
    variant_exists(section.source, &variant, &earlier.variants)?;
    Ok(Some(Rate::Share {
        share: share.value,
        work: work.value,
        point: earlier.point.clone(),
        variant: variant.value,
    }))
}

/// An integer of at least 1 request per second, because most clients accept nothing else: `5000`, `"10k"`, `"6k/m"`.
fn fixed_rate(text: &str) -> Option<Rate> {
    let rate = match amount::rate(text) {
        Ok(rate) => (rate.seconds == 1).then_some(rate.count as f64),
        // TOML also allows large numbers as 1e6.
        Err(_) => text.parse().ok(),
    };
    let is_whole = |rate: &f64| rate.is_finite() && *rate >= 1.0 && rate.fract() == 0.0;
    rate.filter(is_whole).map(Rate::Fixed)
}

/// The earlier work `name` at the point with the same values as `point`.
fn point_of<'w>(
    section: &Section<'_>,
    before: &'w [Work],
    name: &At<String>,
    point: &Point,
) -> Read<&'w Work> {
    let mut names: Vec<_> = before.iter().map(|work| work.name.as_str()).collect();
    names.dedup();
    if !names.contains(&name.value.as_str()) {
        return Err(section.source.mistake(
            name.span.clone(),
            unknown("earlier work", &name.value, &names),
        ));
    }
    let same = |work: &&Work| work.name == name.value && work.point.agrees_with(point);
    let found: Vec<&Work> = before.iter().filter(same).collect();
    match found[..] {
        [only] => Ok(only),
        _ => Err(section.source.mistake(
            name.span.clone(),
            format!(
                "`{}` has {} points for one point of this work: sweep both over the same values, or do not sweep the other work",
                name.value,
                found.len()
            ),
        )),
    }
}
