//! Keys of an experiment about rounds, windows and CPUs that scales may override.

use std::time::Duration;

use crate::limits::{BUDGET_MAX, ROUNDS_MAX, WINDOW_MAX};
use crate::scenario::WarmUp;
use crate::scenario::section::{Read, Section};

pub(super) struct RunLimits {
    pub(super) rounds: Option<u32>,
    pub(super) budget: Option<Duration>,
    pub(super) precision: Option<f64>,
    pub(super) warm_up: WarmUp,
    pub(super) measure: Option<Duration>,
    pub(super) cpus_per_role: Option<usize>,
}

/// Reads each key from the section that `at` returns for it.
pub(super) fn ends<'s, 'a: 's>(at: impl Fn(&str) -> &'s Section<'a>) -> Read<RunLimits> {
    let cpus_per_role = at("cpus_per_role").count("cpus_per_role", 1..4097)?;
    Ok(RunLimits {
        rounds: rounds(at("rounds"))?,
        budget: budget(at("budget"))?,
        precision: precision(at("precision"))?,
        warm_up: warm_up(at("warm_up"))?,
        measure: measure(at("measure"))?,
        cpus_per_role: cpus_per_role.map(|count| count as usize),
    })
}

pub(super) fn rounds(section: &Section<'_>) -> Read<Option<u32>> {
    let rounds = section.count("rounds", 1..u64::from(ROUNDS_MAX) + 1)?;
    Ok(rounds.map(|rounds| rounds as u32))
}

fn budget(section: &Section<'_>) -> Read<Option<Duration>> {
    let budget = section.duration("budget", BUDGET_MAX)?;
    match section.value("budget") {
        Some(value) if budget == Some(Duration::ZERO) => Err(section.source.mistake(
            value.span(),
            "a budget of 0 leaves no time for a round: expected a duration such as \"20m\"",
        )),
        Some(_) | None => Ok(budget),
    }
}

fn precision(section: &Section<'_>) -> Read<Option<f64>> {
    let Some(share) = section.share("precision")? else {
        return Ok(None);
    };
    if share.value > 0.0 && share.value < 1.0 {
        return Ok(Some(share.value));
    }
    Err(section.source.mistake(
        share.span,
        "expected a share of the value, above 0 and below 1: 0.02 is 2 % in both directions",
    ))
}

/// A fixed duration, or `until_steady` with its maximum.
fn warm_up(section: &Section<'_>) -> Read<WarmUp> {
    let is_table =
        |value: &toml::Spanned<_>| toml::de::DeValue::as_table(value.get_ref()).is_some();
    if !section.value("warm_up").is_some_and(is_table) {
        let length = section.duration("warm_up", WINDOW_MAX)?;
        return Ok(WarmUp::Fixed(length.unwrap_or(Duration::from_secs(1))));
    }
    let table = section
        .table("warm_up")?
        .ok_or_else(|| section.missing("warm_up", "a table"))?;
    let section = Section::open(section.source, table.value, table.span, &["until_steady"])?;
    let longest = section
        .duration("until_steady", WINDOW_MAX)?
        .ok_or_else(|| section.missing("until_steady", "how long it may take, such as \"20s\""))?;
    Ok(WarmUp::UntilSteady(longest))
}

/// At least one second, because wrk and others accept only whole seconds.
pub(super) fn measure(section: &Section<'_>) -> Read<Option<Duration>> {
    let Some(measure) = section.duration("measure", WINDOW_MAX)? else {
        return Ok(None);
    };
    if measure >= Duration::from_secs(1) {
        return Ok(Some(measure));
    }
    let span = section.value("measure").map_or(0..0, toml::Spanned::span);
    Err(section
        .source
        .mistake(span, "a measured window lasts at least \"1s\""))
}
