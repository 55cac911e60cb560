//! `[scales.NAME]`: values of the same experiment for a smaller or a larger machine.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeTable;

use super::ends::ends;
use crate::scenario::section::{At, Read, Section, check_named, unknown};

const SCALE_KEYS: &[&str] = &[
    "about",
    "rounds",
    "budget",
    "precision",
    "warm_up",
    "measure",
    "cpus_per_role",
    "connections",
    "sweep",
    "set",
    "cpus",
];

/// Values of the chosen scale, which override the rest of the file.
#[derive(Default)]
pub(super) struct Scale<'a> {
    section: Option<Section<'a>>,
    /// Values of swept parameters.
    pub(super) sweep: BTreeMap<String, Vec<At<String>>>,
    /// Values for templates.
    pub(super) set: BTreeMap<String, String>,
    /// Default for works.
    pub(super) connections: Option<u64>,
    /// Number of CPUs that the values are meant for.
    pub(super) cpus: Option<u64>,
    /// Description, added to that of the experiment.
    pub(super) about: Option<String>,
}

impl<'a> Scale<'a> {
    /// The scale `asked`, otherwise the experiment's default, otherwise an empty one. Reads all scales, so that a
    /// mistake in any of them is found in every run.
    ///
    /// # Errors
    /// The first mistake, or that there is no such scale.
    pub(super) fn read(experiment: &Section<'a>, asked: Option<&str>) -> Read<Scale<'a>> {
        let usual = experiment.text("scale")?;
        let named = match (asked, &usual) {
            (Some(name), _) => Some((name, 0..0)),
            (None, Some(usual)) => Some((usual.value.as_str(), usual.span.clone())),
            (None, None) => None,
        };
        let mut scales = all(experiment)?;
        let Some((name, span)) = named else {
            return Ok(Scale::default());
        };
        let names: Vec<String> = scales.iter().map(|(name, _)| name.clone()).collect();
        let Some(place) = names.iter().position(|known| known == name) else {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let said = match names.is_empty() {
                true => format!("unknown scale `{name}`: this experiment has none"),
                false => unknown("scale", name, &names),
            };
            return Err(experiment.source.mistake(span, said));
        };
        Ok(scales.swap_remove(place).1)
    }

    /// The section that contains `key`: the scale if it has the key, otherwise the experiment.
    pub(super) fn section_with<'s>(
        &'s self,
        experiment: &'s Section<'a>,
        key: &str,
    ) -> &'s Section<'a> {
        let own = self.section.as_ref();
        own.filter(|section| section.value(key).is_some())
            .unwrap_or(experiment)
    }
}

fn all<'a>(experiment: &Section<'a>) -> Read<Vec<(String, Scale<'a>)>> {
    let mut scales = Vec::new();
    let Some(table) = experiment.table("scales")? else {
        return Ok(scales);
    };
    let source = experiment.source;
    let names = Section::names(table.value);
    let keys: Vec<&str> = names.iter().map(|name| name.value).collect();
    let outer = Section::open(source, table.value, table.span, &keys)?;
    let works = experiment.tables("work")?;
    let swept = swept(&works);
    for name in names {
        let inner = outer
            .table(name.value)?
            .ok_or_else(|| outer.missing(name.value, "a table"))?;
        check_named(source, "scale", &name)?;
        let section = Section::open(source, inner.value, name.span, SCALE_KEYS)?;
        ends(|_| &section)?;
        let mut sweep = BTreeMap::new();
        if let Some(table) = section.table("sweep")? {
            let parameters = Section::names(table.value);
            let keys: Vec<&str> = parameters.iter().map(|name| name.value).collect();
            let values = Section::open(source, table.value, table.span, &keys)?;
            for At {
                value: parameter,
                span,
            } in parameters
            {
                if !swept.contains(&parameter) {
                    return Err(source.mistake(span, not_swept_message(parameter, &swept)));
                }
                sweep.insert(
                    parameter.to_owned(),
                    values.values(parameter)?.unwrap_or_default(),
                );
            }
        }
        let scale = Scale {
            sweep,
            set: section.texts_by_name("set")?,
            connections: section.count("connections", 1..100_001)?,
            cpus: section.count("cpus", 1..10_001)?,
            about: section.text("about")?.map(|about| about.value),
            section: Some(section),
        };
        scales.push((name.value.to_owned(), scale));
    }
    Ok(scales)
}

/// Parameters that any work sweeps; a scale may override only these.
fn swept<'a>(works: &[At<&'a DeTable<'a>>]) -> Vec<&'a str> {
    let sweeps = works.iter().filter_map(|work| work.value.get("sweep"));
    let tables = sweeps.filter_map(|sweep| sweep.get_ref().as_table());
    let names = tables.flat_map(|table| table.keys().map(|key| key.get_ref().as_ref()));
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().collect()
}

/// Error message for values of a parameter that no work sweeps.
fn not_swept_message(parameter: &str, swept: &[&str]) -> String {
    match swept {
        [] => format!(
            "no work has a `sweep`, so values of `{parameter}` have no effect: add one to a work, such as \
             sweep = {{ {parameter} = [100] }}"
        ),
        swept => unknown("parameter of a sweep", parameter, swept),
    }
}
