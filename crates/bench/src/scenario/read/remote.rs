//! `ssh`, `slurm` and `local` of a `[host.NAME]`: how to connect to a machine, and its settings.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::ops::Range;

use toml::de::DeTable;

use crate::limits::NODES_MAX;
use crate::scenario::remote::{Access, Remote, Settings, Slurm, Ssh};
use crate::scenario::section::{At, Read, Section, Source, plain};
use crate::scenario::{Program, Role, Variant};

pub(super) const ACCESS_KEYS: [&str; 3] = ["local", "ssh", "slurm"];
pub(super) const SETTING_KEYS: [&str; 3] = ["sysctl", "steering", "tune"];

/// How to connect to a host; `None` if it has none of the keys.
pub(super) fn access(host: &Section<'_>) -> Read<Option<Access>> {
    if host.value("local").is_some() {
        return local(host).map(Some);
    }
    if host.value("ssh").is_some() {
        return ssh(host).map(Some);
    }
    let Some(table) = host.table("slurm")? else {
        return Ok(None);
    };
    slurm(host, &table).map(Some)
}

fn local(host: &Section<'_>) -> Read<Access> {
    let written = "`local = { address = \"10.0.0.1\" }`";
    let Some(table) = host.table("local")? else {
        return Err(host.missing("local", written));
    };
    let section = Section::open(host.source, table.value, table.span, &["address"])?;
    match address(&section)? {
        Some(address) => Ok(Access::Local(address)),
        None => {
            let said = format!(
                "expected the address at which other hosts reach this machine, as in {written}"
            );
            Err(section.missing("address", &said))
        }
    }
}

fn ssh(host: &Section<'_>) -> Read<Access> {
    let is_text = host
        .value("ssh")
        .is_some_and(|value| value.get_ref().as_str().is_some());
    let (to, options, address) = if is_text {
        (host.text("ssh")?, None, None)
    } else {
        let Some(table) = host.table("ssh")? else {
            return Err(host.missing("ssh", "\"user@host\""));
        };
        let keys = ["to", "options", "address"];
        let section = Section::open(host.source, table.value, table.span, &keys)?;
        let address = address(&section)?;
        (section.text("to")?, section.texts("options")?, address)
    };
    let Some(to) = to else {
        return Err(host.missing("to", "expected the destination of ssh, \"user@host\""));
    };
    // ssh would read a leading dash as an option.
    let is_odd = |letter: char| letter.is_whitespace() || letter.is_control();
    if to.value.is_empty() || to.value.starts_with('-') || to.value.contains(is_odd) {
        let said = format!(
            "expected \"user@host\" or a name of ssh_config(5), found `{}`",
            to.value
        );
        return Err(host.source.mistake(to.span, said));
    }
    Ok(Access::Ssh(Ssh {
        to: to.value,
        options: plain(options.unwrap_or_default()),
        address,
    }))
}

fn address(section: &Section<'_>) -> Read<Option<IpAddr>> {
    let Some(text) = section.text("address")? else {
        return Ok(None);
    };
    let address = text.value.parse().map_err(|_| {
        let said = format!(
            "expected an address such as \"10.0.0.2\", found `{}`",
            text.value
        );
        section.source.mistake(text.span, said)
    })?;
    Ok(Some(address))
}

fn slurm(host: &Section<'_>, table: &At<&DeTable<'_>>) -> Read<Access> {
    const NAMED: [&str; 4] = ["partition", "account", "time", "constraint"];
    let keys: Vec<&str> = ["nodes", "options"].into_iter().chain(NAMED).collect();
    let section = Section::open(host.source, table.value, table.span.clone(), &keys)?;
    let nodes = section.count("nodes", 1..u64::from(NODES_MAX) + 1)?;
    let mut options = Vec::new();
    for name in NAMED {
        if let Some(text) = section.single(name)? {
            options.push(format!("--{name}={}", text.value));
        }
    }
    options.extend(plain(section.texts("options")?.unwrap_or_default()));
    Ok(Access::Slurm(Slurm {
        nodes: nodes.map_or(1, |nodes| nodes as u32),
        options,
    }))
}

/// Settings as written: values may contain parameters.
pub(super) fn settings(host: &Section<'_>) -> Read<Settings> {
    let tune = host.text("tune")?.map(|text| text.value);
    Ok(Settings {
        sysctl: named(host, "sysctl")?,
        steering: named(host, "steering")?,
        tune,
    })
}

/// A table of settings. Names become part of a path, so they must not leave its directory; values are single lines.
fn named(host: &Section<'_>, key: &str) -> Read<BTreeMap<String, String>> {
    let Some(table) = host.table(key)? else {
        return Ok(BTreeMap::new());
    };
    let texts = host.texts_by_name(key)?;
    for (name, value) in &texts {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.@:".contains(&byte);
        let is_name = !name.is_empty() && !name.starts_with('.') && !name.contains("..");
        if !is_name || !name.bytes().all(letter) || value.contains('\n') {
            let example = match key {
                "steering" => "an interface such as \"eth0\" with a mask of CPUs",
                _ => "a setting such as \"net.core.somaxconn\" with a value of one line",
            };
            let said = format!("`{name}` cannot be set: expected {example}");
            return Err(host.source.mistake(table.span.clone(), said));
        }
    }
    Ok(texts)
}

/// Whether a string is a mask of CPUs in the kernel's format.
pub(super) fn is_mask(text: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_hexdigit() || letter == ',';
    !text.is_empty() && text.len() <= 1_024 && text.chars().all(letter)
}

pub(super) fn invalid_mask(found: &str) -> String {
    format!("expected a mask of CPUs in hexadecimal digits such as \"fe\", found `{found}`")
}

/// Checks that only clients, whose results can be added up, run on several nodes, and that all Slurm hosts have the
/// same options, because they share one allocation.
pub(super) fn check_nodes(source: &Source<'_>, remote: &Remote, at: &Range<usize>) -> Read<()> {
    let mut options: Option<&Vec<String>> = None;
    for (index, host) in remote.hosts.iter().enumerate() {
        let roles = remote.roles_on(index);
        if let Some(role) = roles.iter().find(|role| **role != Role::Client)
            && host.access.nodes() > 1
        {
            let said = format!(
                "host `{}` has several nodes, and only the client can run on several: the {} needs a host of its own",
                host.name,
                role.name()
            );
            return Err(source.mistake(at.clone(), said));
        }
        let Access::Slurm(slurm) = &host.access else {
            continue;
        };
        if options.is_some_and(|options| *options != slurm.options) {
            let said = "Slurm hosts share one allocation: expected the same partition, account, time and options for all of them";
            return Err(source.mistake(at.clone(), said));
        }
        options = Some(&slurm.options);
    }
    Ok(())
}

/// Checks that clients on several machines divide the load (`--shard`) and report results that can be added up.
pub(super) fn check_sharded_client(
    section: &Section<'_>,
    variant: &Variant,
    programs: &BTreeMap<String, Program>,
) -> Read<()> {
    let host = variant
        .remote
        .as_ref()
        .and_then(|remote| remote.host(Role::Client));
    let Some(host) = host.filter(|host| host.access.nodes() > 1) else {
        return Ok(());
    };
    let name = &variant.roles[&Role::Client];
    let program = &programs[name];
    if program.names("shard") && program.results.is_ours() {
        return Ok(());
    }
    let said = format!(
        "the client runs on {} nodes of `{}`: expected `onrush = [\"load\", …, \"--shard\", \"{{shard}}\"]` as program `{name}`, whose results can be added up",
        host.access.nodes(),
        host.name
    );
    Err(section.source.mistake(section.span.clone(), said))
}
