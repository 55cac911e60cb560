//! Facts about the machine and the programs of a run, as written to `environment.json`.
//!
//! Facts are read, never changed. A fact that cannot be read is `null`.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use onrush_machine::cpus::{self, CpuSet};
use onrush_machine::process;
use serde::Serialize;

use crate::limits::CPUS_OF_HOST_MAX;
use crate::scenario::{Experiment, Launch, Program};

/// Kernel settings that affect results, as paths below `/proc/sys`.
const SETTINGS: &[&str] = &[
    "net/core/somaxconn",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/busy_poll",
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/default_qdisc",
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_tw_reuse",
    "net/ipv4/tcp_fin_timeout",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/ip_local_port_range",
    "fs/file-max",
    "fs/nr_open",
    "kernel/io_uring_disabled",
    "kernel/numa_balancing",
    "kernel/sched_autogroup_enabled",
];

/// Content of `environment.json`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Environment {
    /// Version of the format; within one version keys are only added.
    pub schema: u32,
    /// The machine.
    pub machine: Machine,
    /// Kernel settings that affect results.
    pub settings: BTreeMap<String, Option<String>>,
    /// File and version of each program.
    pub programs: BTreeMap<String, ProgramFacts>,
    /// Every executed command line, by `work / variant / role`.
    pub commands: BTreeMap<String, Vec<String>>,
    /// Every file written for a program, by `work / variant / role / name`.
    pub files: BTreeMap<String, String>,
    /// Text of the experiment file.
    pub experiment: String,
    /// Other machines with roles, by name; omitted if there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hosts: BTreeMap<String, HostFacts>,
}

/// Facts of another machine.
#[derive(Debug, Clone, Serialize)]
pub struct HostFacts {
    /// How it was reached.
    pub access: String,
    /// Address at which other machines reach it.
    pub address: IpAddr,
    /// Offset of its CPU numbers in results.
    pub first_cpu: usize,
    /// The same facts as of the local machine.
    pub machine: serde_json::Value,
    /// Its clock at the start of the run.
    pub clock: ClockOffset,
    /// Its clock at the end of the run; `None` if the host was lost.
    pub clock_at_end: Option<ClockOffset>,
}

/// Offset between two wall clocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockOffset {
    /// Seconds by which the host's clock is ahead of the local one.
    pub ahead_s: f64,
    /// Maximum error in seconds: half of the shortest round trip.
    pub error_s: f64,
}

/// Facts of a machine.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: Option<String>,
    /// The distribution.
    pub system: Option<String>,
    /// Model name of the CPU.
    pub cpu_model: Option<String>,
    /// CPUs available to this process.
    pub cpus: Vec<usize>,
    /// SMT siblings of each core.
    pub cpu_siblings: BTreeMap<usize, String>,
    /// Frequency governor of the first CPU; none in most virtual machines.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clocksource: Option<String>,
    /// Active mitigations of CPU vulnerabilities.
    pub mitigations: BTreeMap<String, String>,
    /// Total memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Whether the CPU reports a hypervisor.
    pub virtual_machine: bool,
    /// Load average at the start of the run, which shows other activity.
    pub load_average: Option<String>,
    /// Soft and hard limit on open files.
    pub open_files_max: Option<String>,
}

/// Facts of a program.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProgramFacts {
    /// Path of the executable.
    pub file: Option<PathBuf>,
    /// First line of output of its version command.
    pub version: Option<String>,
    /// Its Debian package.
    pub package: Option<String>,
}

/// Reads the facts of the machine and the programs. `file_of` finds the executable of a program, `version_of` runs a
/// version command.
pub fn read(
    experiment: &Experiment,
    onrush: &Path,
    file_of: impl Fn(&str) -> Option<PathBuf>,
    version_of: impl Fn(&[String]) -> Option<String>,
) -> Environment {
    let facts = |program: &Program| program_facts(program, onrush, &file_of, &version_of);
    Environment {
        schema: crate::outcome::SCHEMA,
        machine: machine(),
        settings: SETTINGS
            .iter()
            .map(|name| (name.replace('/', "."), fact(&format!("/proc/sys/{name}"))))
            .collect(),
        programs: experiment
            .programs
            .iter()
            .map(|(name, program)| (name.clone(), facts(program)))
            .collect(),
        experiment: experiment.source.clone(),
        ..Environment::default()
    }
}

fn fact(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Facts of this machine as JSON.
pub fn machine_as_json() -> serde_json::Value {
    // Cannot fail: keys are strings and numbers are integers.
    serde_json::to_value(machine()).unwrap_or_else(|error| unreachable!("{error}"))
}

fn machine() -> Machine {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let flags = field("flags").unwrap_or_default();
    Machine {
        kernel: fact("/proc/sys/kernel/osrelease"),
        system: fs::read_to_string("/etc/os-release")
            .ok()
            .and_then(|text| pretty_name(&text)),
        cpu_model: field("model name").or_else(|| field("Model")),
        cpus: usable_cpus(),
        cpu_siblings: siblings(),
        governor: fact("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        clocksource: fact("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        mitigations: mitigations(),
        memory_bytes: memory(),
        virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
        load_average: fact("/proc/loadavg"),
        open_files_max: open_files_max(),
    }
}

fn pretty_name(os_release: &str) -> Option<String> {
    let line = os_release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    process::bytes(&text, "MemTotal:")
}

fn open_files_max() -> Option<String> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let mut words = process::value(&text, "Max open files")?.split_ascii_whitespace();
    Some(format!("{} {}", words.next()?, words.next()?))
}

fn mitigations() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return found;
    };
    for entry in entries.flatten() {
        let Some(state) = fact(&entry.path().display().to_string()) else {
            continue;
        };
        if state.starts_with("Mitigation") {
            found.insert(entry.file_name().to_string_lossy().into_owned(), state);
        }
    }
    found
}

fn siblings() -> BTreeMap<usize, String> {
    let of = |cpu: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        let list = fact(&path).filter(|list| list.contains([',', '-']))?;
        Some((cpu, list))
    };
    usable_cpus().into_iter().filter_map(of).collect()
}

/// CPUs available to this process, with SMT siblings adjacent.
pub fn usable_cpus() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = process::value(&status, "Cpus_allowed_list:").and_then(CpuSet::parse_list);
    let mut cpus: Vec<usize> = list.unwrap_or_default().iter().collect();
    if cpus.is_empty() {
        cpus.push(0);
    }
    let topology = |cpu: usize, name: &str| {
        fact(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}"))
            .and_then(|text| text.parse::<usize>().ok())
            .unwrap_or(cpu)
    };
    cpus.sort_by_key(|cpu| {
        (
            topology(*cpu, "physical_package_id"),
            topology(*cpu, "core_id"),
            *cpu,
        )
    });
    cpus
}

/// Formats CPUs as `0-2,5`, the syntax of taskset and `--cpus`. CPUs of another machine have the number of the host:
/// `0-1 of host 3`.
pub fn cpu_list(cpus: &[usize]) -> String {
    let hosts = cpus.chunk_by(|a, b| a / CPUS_OF_HOST_MAX == b / CPUS_OF_HOST_MAX);
    let words = hosts.map(|cpus| {
        let own: Vec<usize> = cpus.iter().map(|cpu| cpu % CPUS_OF_HOST_MAX).collect();
        match cpus[0] / CPUS_OF_HOST_MAX {
            0 => cpus::ranges(own),
            host => format!("{} of host {host}", cpus::ranges(own)),
        }
    });
    words.collect::<Vec<_>>().join(", ")
}

fn program_facts(
    program: &Program,
    onrush: &Path,
    file_of: impl Fn(&str) -> Option<PathBuf>,
    version_of: impl Fn(&[String]) -> Option<String>,
) -> ProgramFacts {
    let (file, version) = match &program.launch {
        Launch::Onrush(_) => (
            Some(onrush.to_owned()),
            version_of(&[onrush.display().to_string(), "--version".into()]),
        ),
        Launch::Command(command) => (
            file_of(&command[0]),
            program.version.as_deref().and_then(version_of),
        ),
        Launch::Idle(_) => (None, None),
    };
    ProgramFacts {
        file,
        version,
        package: program.package.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_list_groups_cpus_by_host() {
        assert_eq!(
            cpu_list(&[30_000, 30_001, 40_003]),
            "0-1 of host 3, 3 of host 4"
        );
        assert_eq!(cpu_list(&[]), "");
    }

    #[test]
    fn kernel_and_cpu_are_detected() {
        let machine = machine();
        assert!(machine.kernel.is_some() && !machine.cpus.is_empty());
    }
}
