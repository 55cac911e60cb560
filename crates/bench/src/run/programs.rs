//! Checks whether the programs of an experiment are installed, with hints for missing ones.

use std::collections::BTreeMap;
use std::path::Path;

use super::child::file_of;
use super::network;
use super::remote::Hosts;
use crate::error::Error;
use crate::scenario::{Experiment, Launch, Program, Variant, render};

#[derive(Debug, Default)]
pub(super) struct Missing {
    /// The missing executable and a hint, by program name.
    pub(super) programs: BTreeMap<String, String>,
    /// Why network namespaces cannot be created, if variants need them.
    pub(super) hosts: Option<String>,
    /// Reasons by host and program name; an empty program name means that the host was not reached.
    pub(super) remote: BTreeMap<(String, String), String>,
}

impl Missing {
    pub(super) fn sentences(&self) -> Vec<String> {
        let programs = self.programs.iter();
        let programs =
            programs.map(|(name, why)| format!("variants with the program `{name}`: {why}"));
        let hosts = self.hosts.iter();
        let hosts = hosts.map(|why| format!("variants with network namespaces as hosts: {why}"));
        let remote = self.remote.values();
        let remote = remote.map(|why| format!("variants that need it: {why}"));
        programs.chain(hosts).chain(remote).collect()
    }
}

/// Checks all programs before the first round, so that variants with missing ones are left out from the beginning.
///
/// # Errors
/// If `taskset` is missing, or nothing could be measured.
pub(super) fn check_programs(
    experiment: &Experiment,
    onrush: &Path,
    hosts: &Hosts,
) -> Result<Missing, Error> {
    let mut variants = experiment.works.iter().flat_map(|work| &work.variants);
    let is_local = |variant: &Variant| variant.remote.is_none();
    if variants.any(is_local) && file_of("taskset").is_none() {
        let remedy = "taskset, which pins programs to CPUs: apt-get install util-linux";
        return Err(Error::Missing(vec![remedy.into()]));
    }
    let mut missing = Missing::default();
    let mut variants = experiment.works.iter().flat_map(|work| &work.variants);
    if variants.any(|variant| variant.network.is_some()) {
        missing.hosts = network::unavailable_reason();
    }
    let is_needed_here = |name: &String| {
        let mut variants = experiment.works.iter().flat_map(|work| &work.variants);
        variants.any(|variant| is_local(variant) && variant.roles.values().any(|of| of == name))
    };
    for (name, program) in &experiment.programs {
        if !is_needed_here(name) {
            continue;
        }
        let Some(file) = file(experiment, program, onrush) else {
            continue;
        };
        if file_of(&file).is_none() {
            missing.programs.insert(
                name.clone(),
                format!("{file} is not installed: {}", remedy(program)),
            );
        }
    }
    missing.remote = missing_on_hosts(experiment, hosts);
    let mut variants = experiment.works.iter().flat_map(|work| &work.variants);
    if variants.any(|variant| missing_of(variant, &missing).is_none()) {
        return Ok(missing);
    }
    let programs = missing.programs.iter();
    let programs = programs.map(|(name, why)| format!("program `{name}`: {why}"));
    let hosts = missing.hosts.iter().map(|why| format!("hosts: {why}"));
    let remote = missing.remote.values().cloned();
    Err(Error::Missing(
        programs.chain(hosts).chain(remote).collect(),
    ))
}

/// Missing programs of other machines, and machines that were not reached.
fn missing_on_hosts(experiment: &Experiment, hosts: &Hosts) -> BTreeMap<(String, String), String> {
    let mut missing = BTreeMap::new();
    for (name, why) in &hosts.unreachable {
        let said = format!("host `{name}` cannot be used: {why}");
        missing.insert((name.clone(), String::new()), said);
    }
    let variants = experiment.works.iter().flat_map(|work| &work.variants);
    let pairs = variants.flat_map(|variant| {
        let remote = variant.remote.iter();
        remote.flat_map(|remote| {
            let roles = variant.roles.iter();
            roles.filter_map(|(role, name)| Some((remote.host(*role)?, name)))
        })
    });
    for (host, name) in pairs {
        let key = (host.name.clone(), name.clone());
        let program = &experiment.programs[name];
        let Launch::Command(command) = &program.launch else {
            continue;
        };
        if missing.contains_key(&key) || hosts.unreachable.contains_key(&host.name) {
            continue;
        }
        for command in [command[0].as_str(), "taskset"] {
            if let Err(why) = hosts.find(host, command) {
                let remedy = match command {
                    "taskset" => "apt-get install util-linux there".to_owned(),
                    _ => remedy(program),
                };
                missing.insert(
                    key.clone(),
                    format!("program `{name}`: {command} is missing: {why}; {remedy}"),
                );
            }
        }
    }
    missing
}

pub(super) fn file(experiment: &Experiment, program: &Program, onrush: &Path) -> Option<String> {
    match &program.launch {
        Launch::Command(command) => Some(with_program_paths(&command[0], experiment, onrush)),
        Launch::Onrush(_) | Launch::Idle(_) => None,
    }
}

/// Why a variant cannot be measured because of a missing program.
pub(super) fn missing_of(variant: &Variant, missing: &Missing) -> Option<String> {
    if let Some(remote) = &variant.remote {
        let mut roles = variant.roles.iter();
        return roles.find_map(|(role, program)| {
            let host = remote.host(*role)?.name.clone();
            let reached = missing.remote.get(&(host.clone(), String::new()));
            let found = || missing.remote.get(&(host, program.clone()));
            reached.or_else(found).cloned()
        });
    }
    let mut names = variant.roles.values();
    let program = names.find_map(|name| missing.programs.get(name));
    let hosts = || missing.hosts.as_ref().filter(|_| variant.network.is_some());
    program.or_else(hosts).cloned()
}

fn remedy(program: &Program) -> String {
    match (&program.package, &program.hint) {
        (_, Some(hint)) => hint.clone(),
        (Some(package), None) => format!("apt-get install {package}"),
        (None, None) => "install it, or remove it from the experiment".into(),
    }
}

/// Replaces the directories known only to the run in a program's path.
pub(super) fn with_program_paths(template: &str, experiment: &Experiment, onrush: &Path) -> String {
    let bin_dir = onrush.parent().unwrap_or(Path::new("."));
    let values = [
        ("onrush", onrush),
        ("bin_dir", bin_dir),
        ("experiment_dir", experiment.directory.as_path()),
    ];
    let values = values.map(|(name, path)| (name.to_owned(), path.display().to_string()));
    render(template, &values.into())
}
