//! The plan at every boot: settings in a drop-in file, the rest by a systemd unit that applies it again.
//!
//! Interrupts and masks cannot be written down by their values: numbers change with every boot. So the unit plans anew.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::advise::{Goal, Plan, Queues, Request, Role, Target};

/// The first line of every file that is written here: only such files are replaced and removed.
const MARK: &str =
    "# Written by onrush tune apply --persist; onrush tune revert --persist removes it.";

const SETTINGS: &str = "etc/sysctl.d/90-onrush.conf";
const UNIT: &str = "etc/systemd/system/onrush-tune.service";
const WANTS: &str = "etc/systemd/system/multi-user.target.wants/onrush-tune.service";

/// Writes the files below a root and returns their paths. A file of somebody else by that name is an error, and nothing
/// is written.
pub fn persist(
    root: &Path,
    plan: &Plan,
    settings: &[(String, String)],
    program: &Path,
) -> Result<Vec<PathBuf>, Error> {
    for file in [SETTINGS, UNIT] {
        let path = root.join(file);
        if path.exists() && !is_ours(&path) {
            return Err(Error::Request(format!(
                "{} is there and was not written by onrush: it is left alone, and nothing was written",
                path.display()
            )));
        }
    }
    let mut text = format!("{MARK}\n");
    for (file, value) in merged(plan, settings) {
        text.push_str(&format!("{} = {value}\n", file.replace('/', ".")));
    }
    let mut written = Vec::new();
    write(&root.join(SETTINGS), &text, &mut written)?;
    write(
        &root.join(UNIT),
        &unit(&plan.request, program),
        &mut written,
    )?;
    let wants = root.join(WANTS);
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

/// Settings in force already and those of the plan, each once.
fn merged(plan: &Plan, settings: &[(String, String)]) -> Vec<(String, String)> {
    let mut all = settings.to_vec();
    for action in &plan.actions {
        if let Target::Setting { file } = &action.target {
            all.retain(|(known, _)| known != file);
            all.push((file.clone(), action.proposed.clone()));
        }
    }
    all
}

fn write(path: &Path, text: &str, written: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error: io::Error| Error::Write(path.to_owned(), error);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::write(path, text).map_err(failed)?;
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
        // A percent sign means something to systemd, and may stand in a name.
        arguments.push_str(&format!(" --interface {}", interface.replace('%', "%%")));
    }
    if request.queues == Queues::Keep {
        arguments.push_str(" --keep-queues");
    }
    let program = program.display();
    format!(
        "{MARK}\n[Unit]\nDescription=CPUs and settings for network servers\nAfter=network-online.target\n\
         Wants=network-online.target\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart={program} tune apply {arguments}\nExecStop={program} tune revert\n\n\
         [Install]\nWantedBy=multi-user.target\n"
    )
}

/// The files that are there and were written here.
pub fn persisted(root: &Path) -> Vec<PathBuf> {
    let files = [SETTINGS, UNIT].map(|file| root.join(file));
    let mut ours: Vec<PathBuf> = files.into_iter().filter(|path| is_ours(path)).collect();
    let wants = root.join(WANTS);
    if fs::read_link(&wants).is_ok_and(|target| target == Path::new("../onrush-tune.service")) {
        ours.push(wants);
    }
    ours
}

/// Removes them and returns their paths. Files of somebody else are left alone.
pub fn unpersist(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = persisted(root);
    for path in &files {
        fs::remove_file(path).map_err(|error| Error::Write(path.clone(), error))?;
    }
    Ok(files)
}

fn is_ours(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.starts_with(MARK))
}
