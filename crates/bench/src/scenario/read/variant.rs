//! `[[work.variant]]`: who does it, and whether every value that its programs name is there.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::limits::VARIANTS_MAX;
use crate::scenario::section::{At, Read, Section, Source, name, unknown};
use crate::scenario::template::first_unknown;
use crate::scenario::{Launch, Program, Rate, Role, Variant};

const VARIANT_KEYS: &[&str] = &["name", "client", "proxy", "server", "control", "set"];
/// Values every program may use, and those some may.
const VALUES: &[&str] = &[
    "onrush",
    "bin_dir",
    "experiment_dir",
    "dir",
    "cpus",
    "threads",
    "connections",
    "duration",
    "seconds",
];

pub(super) fn variant_exists(
    source: Source<'_>,
    name: &At<String>,
    variants: &[Variant],
) -> Read<()> {
    if variants.iter().any(|variant| variant.name == name.value) {
        return Ok(());
    }
    let names: Vec<_> = variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    Err(source.mistake(name.span.clone(), unknown("variant", &name.value, &names)))
}

pub(super) fn variants(
    work: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    rate: Option<&Rate>,
) -> Read<Vec<Variant>> {
    let tables = work.tables("variant")?;
    if tables.is_empty() || tables.len() > VARIANTS_MAX {
        return Err(work.source.mistake(
            work.span.clone(),
            format!("a work has 1 to {VARIANTS_MAX} variants, written as [[work.variant]]"),
        ));
    }
    let mut variants: Vec<Variant> = Vec::new();
    for table in tables {
        let section = Section::open(work.source, table.value, table.span, VARIANT_KEYS)?;
        let name = name(&section, "who does it")?;
        if variants.iter().any(|variant| variant.name == name.value) {
            return Err(section
                .source
                .mistake(name.span, "another variant of this work has this name"));
        }
        let mut set = work.texts_by_name("set")?;
        set.extend(section.texts_by_name("set")?);
        let variant = Variant {
            name: name.value,
            roles: roles(work, &section, programs)?,
            set,
        };
        check_templates(&section, &variant, programs, rate)?;
        variants.push(variant);
    }
    Ok(variants)
}

/// A role named by the variant, else by its work.
fn roles(
    work: &Section<'_>,
    variant: &Section<'_>,
    programs: &BTreeMap<String, Program>,
) -> Read<BTreeMap<Role, String>> {
    let mut roles = BTreeMap::new();
    for role in Role::ALL {
        let given = match variant.text(role.name())? {
            Some(name) => Some(name),
            None => work.text(role.name())?,
        };
        // An empty name takes back what the work says: a variant without a proxy or a control client.
        let Some(name) = given.filter(|name| !name.value.is_empty()) else {
            continue;
        };
        let Some(program) = programs.get(&name.value) else {
            let names: Vec<_> = programs.keys().map(String::as_str).collect();
            return Err(work
                .source
                .mistake(name.span, unknown("program", &name.value, &names)));
        };
        if matches!(program.launch, Launch::Idle(_)) && role != Role::Client {
            return Err(work.source.mistake(
                name.span,
                "idle connections can only take the role `client`",
            ));
        }
        roles.insert(role, name.value);
    }
    for role in [Role::Client, Role::Server] {
        if !roles.contains_key(&role) {
            return Err(variant.missing(role.name(), "every variant needs a client and a server"));
        }
    }
    Ok(roles)
}

/// Every `{name}` of every program of a variant must have a value.
fn check_templates(
    section: &Section<'_>,
    variant: &Variant,
    programs: &BTreeMap<String, Program>,
    rate: Option<&Rate>,
) -> Read<()> {
    for (role, name) in &variant.roles {
        let known = value_names(*role, variant, rate);
        let program = &programs[name];
        let arguments = match &program.launch {
            Launch::Onrush(arguments) | Launch::Command(arguments) => arguments.as_slice(),
            Launch::Idle(_) => &[],
        };
        for template in arguments.iter().chain(program.files.values()) {
            let Some(stranger) =
                first_unknown(template, |name| known.iter().any(|known| known == name))
            else {
                continue;
            };
            let names: Vec<_> = known.iter().map(String::as_str).collect();
            return Err(section.source.mistake(
                place_of(section.source.text, stranger).unwrap_or(section.span.clone()),
                format!(
                    "program `{name}` as {} of variant `{}`: {}",
                    role.name(),
                    variant.name,
                    unknown("value", &format!("{{{stranger}}}"), &names)
                ),
            ));
        }
    }
    Ok(())
}

fn place_of(text: &str, name: &str) -> Option<Range<usize>> {
    let start = text.find(&format!("{{{name}}}"))?;
    Some(start..start + name.len() + 2)
}

/// The names a program in this role may use. The run fills exactly these.
fn value_names(role: Role, variant: &Variant, rate: Option<&Rate>) -> Vec<String> {
    let mut names: Vec<String> = VALUES.iter().map(|name| (*name).to_owned()).collect();
    match role {
        Role::Server => names.push("port".into()),
        Role::Proxy => names.extend(["port", "target"].map(String::from)),
        Role::Client | Role::Control => names.extend(["json", "target"].map(String::from)),
    }
    if rate.is_some() {
        names.push("rate".into());
    }
    for listener in [Role::Proxy, Role::Server] {
        if variant.roles.contains_key(&listener) {
            names.push(format!("{}.port", listener.name()));
        }
    }
    names.extend(variant.set.keys().cloned());
    names
}
