//! `[[work]]`: what is measured, and at which rate.

use std::collections::BTreeMap;

use super::figure::figures;
use super::variant::{variant_exists, variants};
use crate::limits::WORKS_MAX;
use crate::scenario::section::{Read, Section, name, unknown};
use crate::scenario::{Program, Rate, Role, Variant, Work};

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
    "variant",
    "figure",
];
const RATE_KEYS: &[&str] = &["share", "work", "variant"];

pub(super) fn works(
    section: &Section<'_>,
    programs: &BTreeMap<String, Program>,
) -> Read<Vec<Work>> {
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
        let work = work(&section, programs, &works)?;
        works.push(work);
    }
    Ok(works)
}

fn work(
    section: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    before: &[Work],
) -> Read<Work> {
    let name = name(section, "what is measured")?;
    if before.iter().any(|work| work.name == name.value) {
        return Err(section
            .source
            .mistake(name.span, "another work has this name"));
    }
    let rate = rate(section, before)?;
    let variants = variants(section, programs, rate.as_ref())?;
    let figures = figures(section, &variants)?;
    Ok(Work {
        name: name.value,
        about: section
            .text("about")?
            .map(|about| about.value)
            .unwrap_or_default(),
        under_test: under_test(section, &variants)?,
        connections: section.count("connections", 1..100_001)?.unwrap_or(100) as u32,
        rate,
        variants,
        figures,
    })
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
        format!("not every variant here has a {}", role.name()),
    ))
}

fn rate(section: &Section<'_>, before: &[Work]) -> Read<Option<Rate>> {
    let Some(value) = section.value("rate") else {
        return Ok(None);
    };
    if value.get_ref().as_table().is_none() {
        let number = section.number("rate")?;
        return match number {
            Some(number) if number.value >= 1.0 => Ok(Some(Rate::Fixed(number.value))),
            _ => Err(section.source.mistake(
                value.span(),
                "expected requests per second, 1 or more, or { share = 0.6, work = \"…\", variant = \"…\" }",
            )),
        };
    }
    let table = section
        .table("rate")?
        .ok_or_else(|| section.missing("rate", "a table"))?;
    let section = Section::open(section.source, table.value, table.span, RATE_KEYS)?;
    let share = section
        .number("share")?
        .ok_or_else(|| section.missing("share", "a number from 0 to 1"))?;
    if !(share.value > 0.0 && share.value <= 1.0) {
        return Err(section
            .source
            .mistake(share.span, "expected a share above 0 and at most 1"));
    }
    let work = section
        .text("work")?
        .ok_or_else(|| section.missing("work", "the work whose rate is meant"))?;
    let variant = section
        .text("variant")?
        .ok_or_else(|| section.missing("variant", "the variant whose rate is meant"))?;
    let names: Vec<_> = before.iter().map(|work| work.name.as_str()).collect();
    let Some(earlier) = before.iter().find(|earlier| earlier.name == work.value) else {
        return Err(section
            .source
            .mistake(work.span, unknown("earlier work", &work.value, &names)));
    };
    variant_exists(section.source, &variant, &earlier.variants)?;
    Ok(Some(Rate::Share {
        share: share.value,
        work: work.value,
        variant: variant.value,
    }))
}
