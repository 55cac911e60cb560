//! `[[work.variant]]`: programs of the roles, and a check that every value in their templates exists.

use std::collections::BTreeMap;
use std::ops::Range;

use super::given::{WorkContext, collect};
use super::remote::check_sharded_client;
use crate::limits::VARIANTS_MAX;
use crate::scenario::section::{At, Read, Section, Source, name, unknown};
use crate::scenario::template::{first_unknown, is_named};
use crate::scenario::{Launch, Point, Program, Rate, Role, Variant, Work, target};

const VARIANT_KEYS: &[&str] = &[
    "name", "client", "proxy", "server", "control", "set", "collect", "hosts", "subject",
];
/// Values available to every program. Without `rate`, `json` and others that depend on the role.
const VALUES: &[&str] = &[
    "onrush",
    "bin_dir",
    "experiment_dir",
    "dir",
    "cpus",
    "threads",
    "address",
    "connections",
    "duration",
    "seconds",
];

/// Whether only the run sets this value.
pub(super) fn is_reserved(name: &str) -> bool {
    let of_roles = ["port", "target", "json", "shard", "start_at"];
    let ports = Role::ALL.map(|role| format!("{}.port", role.name()));
    if name == "targets" || name.starts_with("target.") {
        return true;
    }
    let is_own = VALUES.contains(&name) && name != "connections";
    is_own || of_roles.contains(&name) || ports.iter().any(|port| port == name)
}

/// Whether the run sets this value for every program.
pub(super) fn is_own_value(name: &str) -> bool {
    VALUES.contains(&name)
}

/// Parameters with a meaning of their own, whether or not a template contains them.
fn has_own_meaning(parameter: &str) -> bool {
    parameter == "cpus_per_role" || Role::ALL.iter().any(|role| role.name() == parameter)
}

/// Whether variants have different hosts or links at points with different values of the parameter.
fn changes_networks(works: &[Work], parameter: &str) -> bool {
    let networks = |work: &Work| -> Vec<_> {
        let variants = work.variants.iter();
        variants
            .map(|variant| (variant.network.clone(), variant.remote.clone()))
            .collect()
    };
    works.first().is_some_and(|first| {
        works.iter().any(|work| {
            work.point.value(parameter) != first.point.value(parameter)
                && networks(work) != networks(first)
        })
    })
}

/// Rejects parameters that no program uses, since points would differ only by noise.
pub(super) fn check_use(
    section: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    works: &[Work],
    at: Range<usize>,
) -> Read<()> {
    let Some(first) = works.first() else {
        return Ok(());
    };
    for setting in first.point.settings() {
        let parameter = &setting.parameter;
        if has_own_meaning(parameter) || changes_networks(works, parameter) {
            continue;
        }
        let variants = works.iter().flat_map(|work| &work.variants);
        let mut used = variants.flat_map(|variant| variant.roles.values());
        if used.any(|name| {
            programs[name]
                .templates()
                .any(|text| is_named(text, parameter))
        }) {
            continue;
        }
        return Err(section.source.mistake(
            at,
            format!("no program of this work uses {{{parameter}}}: sweeping it has no effect"),
        ));
    }
    Ok(())
}

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

pub(super) fn variants<'a>(
    work: &Section<'a>,
    given: &WorkContext<'a>,
    rate: Option<&Rate>,
    point: &At<Point>,
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
        let name = name(&section, "expected the name of the variant")?;
        if variants.iter().any(|variant| variant.name == name.value) {
            return Err(section
                .source
                .mistake(name.span, "another variant of this work has this name"));
        }
        let mut set = work.texts_by_name("set")?;
        set.extend(section.texts_by_name("set")?);
        set.extend(given.scale.set.clone());
        if let Some(reserved) = set.keys().find(|name| is_reserved(name)) {
            return Err(work.source.mistake(
                section.span.clone(),
                format!("`{{{reserved}}}` in `set` is filled in by the run: expected another name"),
            ));
        }
        for setting in point.value.settings() {
            if set.contains_key(&setting.parameter) {
                return Err(work.source.mistake(
                    point.span.clone(),
                    format!(
                        "`{}` is swept and also in `set`: expected one of them",
                        setting.parameter
                    ),
                ));
            }
        }
        let swept = point.value.settings().iter();
        set.extend(swept.map(|setting| (setting.parameter.clone(), setting.value.clone())));
        let mut variant = Variant {
            name: name.value,
            roles: roles(work, &section, &given.programs, point)?,
            network: None,
            remote: None,
            collect: collect(&section)?
                .or(collect(work)?)
                .unwrap_or(given.collect),
            set,
            subject: section.flag("subject")?,
        };
        let located = given.networks.of_variant(work, &section, &variant)?;
        (variant.network, variant.remote) = (located.network, located.remote);
        check_sharded_client(&section, &variant, &given.programs)?;
        check_idle(&section, &variant, given)?;
        check_templates(&section, &variant, &given.programs, rate)?;
        variants.push(variant);
    }
    Ok(variants)
}

/// Rejects idle connections in variants with hosts: they are opened only on this machine.
fn check_idle(section: &Section<'_>, variant: &Variant, given: &WorkContext<'_>) -> Read<()> {
    let is_idle = |name: &String| matches!(programs_of(given, name), Some(Launch::Idle(_)));
    let has_hosts = variant.network.is_some() || variant.remote.is_some();
    if has_hosts && variant.roles.values().any(is_idle) {
        return Err(section.source.mistake(
            section.span.clone(),
            "idle connections are opened on this machine, and this variant has `hosts`: use another client",
        ));
    }
    Ok(())
}

fn programs_of<'p>(given: &'p WorkContext<'_>, name: &str) -> Option<&'p Launch> {
    given.programs.get(name).map(|program| &program.launch)
}

/// The program of each role, set by the point or the variant, otherwise by the work.
fn roles(
    work: &Section<'_>,
    variant: &Section<'_>,
    programs: &BTreeMap<String, Program>,
    point: &At<Point>,
) -> Read<BTreeMap<Role, String>> {
    let mut roles = BTreeMap::new();
    for role in Role::ALL {
        let given = match (point.value.value(role.name()), variant.text(role.name())?) {
            (Some(_), Some(name)) => {
                return Err(work.source.mistake(
                    name.span,
                    format!(
                        "the work is swept over its `{}`: a variant cannot have its own",
                        role.name()
                    ),
                ));
            }
            (Some(name), None) => Some(At {
                value: name.to_owned(),
                span: point.span.clone(),
            }),
            (None, Some(name)) => Some(name),
            (None, None) => work.text(role.name())?,
        };
        // An empty name removes a role of the work: a variant without a proxy or a control client.
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

/// Checks that every `{name}` in the programs of a variant has a value.
fn check_templates(
    section: &Section<'_>,
    variant: &Variant,
    programs: &BTreeMap<String, Program>,
    rate: Option<&Rate>,
) -> Read<()> {
    for (role, name) in &variant.roles {
        let known = value_names(*role, variant, rate);
        for template in programs[name].templates() {
            let is_known = |name: &str| known.iter().any(|known| known == name);
            let of_run = |name: &str| is_known(name) && !variant.set.contains_key(name);
            let mut named = variant.set.iter();
            let stranger = first_unknown(template, is_known).or_else(|| {
                named.find_map(|(name, text)| {
                    let is_used = is_named(template, name);
                    is_used.then(|| first_unknown(text, of_run)).flatten()
                })
            });
            let Some(stranger) = stranger else {
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

/// Names that a program in this role may use; the run sets exactly these.
fn value_names(role: Role, variant: &Variant, rate: Option<&Rate>) -> Vec<String> {
    let mut names: Vec<String> = VALUES.iter().map(|name| (*name).to_owned()).collect();
    match role {
        Role::Server => names.push("port".into()),
        Role::Proxy => names.extend(["port", "target", "targets"].map(String::from)),
        Role::Client | Role::Control => {
            names.extend(["json", "target", "targets"].map(String::from));
        }
    }
    if rate.is_some() {
        names.push("rate".into());
    }
    if let Some(network) = &variant.network {
        let asked = target(role, || variant.roles.contains_key(&Role::Proxy));
        let ways = network.path_count(role, asked);
        names.extend((0..ways).map(|way| format!("target.{way}")));
    }
    if variant.remote.is_some() {
        names.push("target.0".into());
        if role == Role::Client {
            names.extend(["shard", "start_at"].map(String::from));
        }
    }
    for listener in [Role::Proxy, Role::Server] {
        if variant.roles.contains_key(&listener) {
            names.push(format!("{}.port", listener.name()));
        }
    }
    names.extend(variant.set.keys().cloned());
    names
}
