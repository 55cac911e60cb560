//! Prepares the programs of a trial: ports, files, and template values.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::failure::{Try, failed};
use super::ports::free_port;
use super::subject::{Context, Subject};
use crate::scenario::{Role, Values, render, target};

/// Value of `{json}`, a file in the program's directory.
pub(super) const REPORT: &str = "report.json";

pub(super) struct PreparedRole {
    pub(super) directory: PathBuf,
    pub(super) values: Values,
}

/// Environment of a program on its machine.
pub(super) struct ProgramEnvironment {
    pub(super) onrush: String,
    pub(super) bin_dir: String,
    pub(super) directory: PathBuf,
    pub(super) cpus: Vec<usize>,
    pub(super) own: IpAddr,
    pub(super) targets: Vec<IpAddr>,
    /// Additional values for other machines.
    pub(super) more: Values,
}

pub(super) fn ports(subject: &Subject<'_>) -> Try<BTreeMap<Role, u16>> {
    let mut ports = BTreeMap::new();
    for role in subject.variant.roles.keys().filter(|role| role.listens()) {
        let taken: Vec<u16> = ports.values().copied().collect();
        ports.insert(*role, free_port(&taken)?);
    }
    Ok(ports)
}

/// Creates the directory, values and files of a role.
pub(super) fn prepare(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
) -> Try<PreparedRole> {
    let directory = context.root.join(role.name());
    let _ = fs::remove_dir_all(&directory);
    create_open_directory(&directory)?;
    let around = around(context, subject, role, &directory);
    let values = values(context, subject, role, ports, length, &around);
    let Some(program) = subject.program(context.experiment, role) else {
        return failed(format!("no program has the role {}", role.name()));
    };
    for (name, template) in &program.files {
        let text = render(template, &values);
        write_file(&directory, name, text.as_bytes())?;
        let key = format!("{} / {}", key(subject, role), name);
        context.environment.files.entry(key).or_insert(text);
    }
    for (name, size) in &program.sized_files {
        write_file(&directory, name, &filling(*size))?;
    }
    Ok(PreparedRole { directory, values })
}

pub(super) fn key(subject: &Subject<'_>, role: Role) -> String {
    format!(
        "{} / {} / {}",
        subject.work.title(),
        subject.variant.name,
        role.name()
    )
}

/// World-readable, because workers of some servers drop their privileges and still need their files.
pub(super) fn create_open_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
}

pub(super) fn write_file(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = directory.join(name);
    if let Some(parent) = path.parent().filter(|parent| *parent != directory) {
        create_open_directory(parent)?;
    }
    fs::write(path, bytes)
}

/// Lines of text: the same on every machine, and compressible like real text.
pub(super) fn filling(size: u64) -> Vec<u8> {
    let line = b"the quick brown fox jumps over the lazy dog 0123456789 and back\n";
    line.iter().copied().cycle().take(size as usize).collect()
}

fn around(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    directory: &Path,
) -> ProgramEnvironment {
    let bin_dir = context.onrush.parent().unwrap_or(Path::new("."));
    let (own, targets) = match subject.network {
        // A server with several interfaces listens on all of them.
        Some(network) => (Ipv4Addr::UNSPECIFIED, network.targets(role)),
        None => (Ipv4Addr::LOCALHOST, vec![Ipv4Addr::LOCALHOST]),
    };
    ProgramEnvironment {
        onrush: context.onrush.display().to_string(),
        bin_dir: bin_dir.display().to_string(),
        directory: directory.to_owned(),
        cpus: subject.placement.of(role).to_vec(),
        own: own.into(),
        targets: targets.into_iter().map(IpAddr::from).collect(),
        more: Values::new(),
    }
}

/// All template values. The parser of experiments knows the same names.
pub(super) fn values(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
    around: &ProgramEnvironment,
) -> Values {
    let (cpus, directory) = (&around.cpus, &around.directory);
    let target = target(role, || ports.contains_key(&Role::Proxy));
    let mut values = around.more.clone();
    let mut set = |name: &str, value: String| {
        values.insert(name.into(), value);
    };
    set("onrush", around.onrush.clone());
    set("bin_dir", around.bin_dir.clone());
    set(
        "experiment_dir",
        context.experiment.directory.display().to_string(),
    );
    set("dir", directory.display().to_string());
    set("json", directory.join(REPORT).display().to_string());
    set("cpus", crate::environment::cpu_list(cpus));
    set("threads", cpus.len().max(1).to_string());
    set("connections", subject.work.connections.to_string());
    set("duration", format!("{}ms", length.as_millis()));
    set(
        "seconds",
        length.as_millis().div_ceil(1_000).max(1).to_string(),
    );
    if let Some(rate) = subject.rate {
        set("rate", format!("{rate:.0}"));
    }
    if let Some(port) = ports.get(&role) {
        set("port", port.to_string());
    }
    if let (Some(port), [first, ..]) = (ports.get(&target), &around.targets[..]) {
        set("target", SocketAddr::new(*first, *port).to_string());
        for (way, address) in around.targets.iter().enumerate() {
            let address = SocketAddr::new(*address, *port);
            set(&format!("target.{way}"), address.to_string());
        }
    }
    set("address", in_brackets(around.own));
    for (listener, port) in ports {
        set(&format!("{}.port", listener.name()), port.to_string());
    }
    // A variable of the experiment may use variables of the run, but does not override them.
    for (name, text) in &subject.variant.set {
        let filled = render(text, &values);
        values.entry(name.clone()).or_insert(filled);
    }
    values
}

/// An address in the form required before a port.
fn in_brackets(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_file_has_requested_size() {
        for size in [0, 1, 63, 64, 65, 1_024] {
            assert_eq!(filling(size).len(), size as usize);
        }
    }
}
