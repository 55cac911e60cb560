//! Applies a plan at every boot: settings by a sysctl.d file, the rest by a systemd unit.
//!
//! Interrupts and masks cannot be stored, since numbers change with every boot. So the unit plans again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onrush_file::Output;

use crate::Error;
use crate::advise::{Goal, Plan, Queues, Request, Role, Target};
use crate::facts::Facts;
use crate::tree::below::resolve_below;

/// First line of each file written here. Only such files are replaced and removed.
const MARK: &str =
    "# Written by onrush tune apply --persist; onrush tune revert --persist removes it.";

const SETTINGS: &str = "etc/sysctl.d/90-onrush.conf";
const UNIT: &str = "etc/systemd/system/onrush-tune.service";
const WANTS: &str = "etc/systemd/system/multi-user.target.wants/onrush-tune.service";

/// Units that bring interfaces up (systemd-networkd, NetworkManager, ifupdown), since a device has its interrupts only
/// then, and irqbalance, which the plan stops only if it runs.
const AFTER: &str = "systemd-networkd-wait-online.service NetworkManager-wait-online.service networking.service \
                     irqbalance.service";

/// Servers that may start before the network is up. Units with `After=network-online.target` start later anyway.
const SERVERS: &str = "onrush.service nginx.service apache2.service httpd.service haproxy.service envoy.service \
                       caddy.service lighttpd.service traefik.service varnish.service squid.service memcached.service \
                       kubelet.service docker.service";

/// Checks whether [`persist`] may write its files; call it before changing the machine. A foreign file with one of the
/// names is an error.
pub fn check_persist(root: &Path) -> Result<(), Error> {
    for file in [SETTINGS, UNIT] {
        let path = resolve_below(root, file)?;
        if path.symlink_metadata().is_ok() && !is_ours(&path) {
            return Err(Error::Request(format!(
                "{} exists and was not written by onrush: it is left unchanged, and nothing was written",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes the files below a root and returns their paths. Fails without writing if [`check_persist`] does. Settings in
/// an existing file of ours are kept, since they are in force since boot and so not in the plan.
pub fn persist(
    root: &Path,
    plan: &Plan,
    settings: &[(String, String)],
    program: &Path,
) -> Result<Vec<PathBuf>, Error> {
    check_persist(root)?;
    let path = resolve_below(root, SETTINGS)?;
    let mut text = format!("{MARK}\n");
    for (name, value) in merged(written_before(&path), settings, plan) {
        text.push_str(&format!("{name} = {value}\n"));
    }
    let mut written = Vec::new();
    write(&path, &text, &mut written)?;
    write(
        &resolve_below(root, UNIT)?,
        &unit(&plan.request, program),
        &mut written,
    )?;
    let wants = resolve_below(root, WANTS)?;
    let failed = |error: io::Error| Error::Write(wants.clone(), error);
    if let Some(directory) = wants.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    if wants.symlink_metadata().is_err() {
        std::os::unix::fs::symlink("../onrush-tune.service", &wants).map_err(failed)?;
    }
    written.push(wants);
    Ok(written)
}

fn written_before(path: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(" = "));
    lines
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Merges the settings of the existing file, the current ones and the plan's; the last value of each name counts.
fn merged(
    mut all: Vec<(String, String)>,
    settings: &[(String, String)],
    plan: &Plan,
) -> Vec<(String, String)> {
    let planned = plan
        .actions
        .iter()
        .filter_map(|action| match &action.target {
            Target::Setting { file } => Some((file, &action.proposed)),
            _ => None,
        });
    let in_force = settings.iter().map(|(file, value)| (file, value));
    for (file, value) in in_force.chain(planned) {
        let name = file.replace('/', ".");
        all.retain(|(known, _)| *known != name);
        all.push((name, value.clone()));
    }
    all
}

/// Warnings about our settings that a later file overrides (sysctl.d(5): files are sorted by name, and the last line
/// for a key counts; `sysctl --system` reads /etc/sysctl.conf last).
pub fn overridden(facts: &Facts) -> Vec<String> {
    let own = format!("/{SETTINGS}");
    let is_later =
        |file: &str| file == "/etc/sysctl.conf" || file.rsplit('/').next() > own.rsplit('/').next();
    let configured = || facts.system.configured.iter();
    let last: BTreeMap<&str, (&str, &str)> = configured()
        .filter(|(file, ..)| is_later(file))
        .map(|(file, key, value)| (&key[..], (&file[..], &value[..])))
        .collect();
    let ours = configured().filter(|(file, ..)| *file == own);
    let warnings = ours.filter_map(|(_, key, wished)| {
        let (file, value) = last.get(&key[..])?;
        let is_same = value.split_whitespace().eq(wished.split_whitespace());
        let key = key.replace('/', ".");
        (!is_same).then(|| {
            format!(
                "{file} is read after {own} and sets {key} to {value} instead of {wished}, at boot and with sysctl --system: \
                 remove the line, or give it this value"
            )
        })
    });
    warnings.collect()
}

fn write(path: &Path, text: &str, written: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Write(path.to_owned(), error);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let file = Output::new(path).map_err(failed)?;
    file.write(|out| out.write_all(text.as_bytes()))
        .map_err(failed)?;
    written.push(path.to_owned());
    Ok(())
}

fn unit(request: &Request, program: &Path) -> String {
    let mut arguments = [
        match request.goal {
            Goal::Throughput => "--goal throughput",
            Goal::Latency => "--goal latency",
        },
        match request.role {
            Role::Server => "--role server",
            Role::Proxy => "--role proxy",
            Role::Client => "--role client",
        },
    ]
    .join(" ");
    for interface in &request.interfaces {
        // A dollar sign starts a variable, except in the path of the program.
        let name = word(&interface.replace('$', "$$"));
        arguments.push_str(&format!(" --interface {name}"));
    }
    if request.queues == Queues::Keep {
        arguments.push_str(" --keep-queues");
    }
    let program = word(&program.display().to_string());
    format!(
        "{MARK}\n[Unit]\nDescription=CPUs and settings for network servers\nAfter={AFTER}\n\
         Wants=network-online.target\nBefore=network-online.target {SERVERS}\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart={program} tune apply {arguments}\nExecStop={program} tune revert\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

/// Quotes a word of a unit's command line (systemd.service(5)) if necessary. `%` starts a specifier.
fn word(text: &str) -> String {
    let text = text.replace('%', "%%");
    let is_special = |letter: char| letter.is_whitespace() || "\"'\\;".contains(letter);
    match text.contains(is_special) {
        true => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        false => text,
    }
}

/// Existing files written here.
pub fn persisted(root: &Path) -> Vec<PathBuf> {
    let is_link = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|target| target == Path::new("../onrush-tune.service"))
    };
    // Nothing was written through a link that leads out of the root.
    let files = [SETTINGS, UNIT].map(|file| resolve_below(root, file));
    let files = files.into_iter().flatten().filter(|path| is_ours(path));
    let wants = resolve_below(root, WANTS).into_iter().filter(is_link);
    files.chain(wants).collect()
}

/// Removes the files written here and returns their paths.
pub fn unpersist(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = persisted(root);
    for path in &files {
        fs::remove_file(path).map_err(|error| Error::Write(path.clone(), error))?;
    }
    Ok(files)
}

/// Whether we wrote the file. A link never is ours.
fn is_ours(path: &Path) -> bool {
    !path.is_symlink() && fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK))
}
