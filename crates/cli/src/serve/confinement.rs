//! The directories that a server is confined to where it is asked to (Landlock), and what is said of others.

use std::path::{Path, PathBuf};

use onrush_config::Plan;
use onrush_engine::{Address, Claim, Directories};
use onrush_serve::{Closed, Trouble, Used, used};

use super::disk::Looked;
use super::written::Written;

/// What every server reads: names and authorities, what the kernel says of CPUs, memory and this process.
const SYSTEM_READ: &[&str] = &["/etc", "/proc", "/sys"];

/// Where the next program is that an upgrade starts, and the libraries that it needs.
const SYSTEM_EXECUTE: &[&str] = &["/usr", "/bin", "/lib", "/lib64"];

/// Terminals, `/dev/null`, and the socket of the log.
const SYSTEM_WRITE: &[&str] = &["/dev"];

/// Files of the system that may be links to elsewhere.
const SYSTEM_FILES: &[&str] = &["/etc/resolv.conf", "/etc/hosts"];

/// What to do about directories that are closed.
const MEND: &str = "Landlock confines it to the directories that it started with; stop the server and start it, and name a directory above in [process]";

/// The directories of a configuration.
pub(super) fn of_configuration(
    plan: &Plan,
    written: Option<&Written>,
    admin: Option<&Claim>,
) -> Used {
    let mut all = used(plan);
    for (looked, _) in written.into_iter().flat_map(Written::looked) {
        match looked {
            Looked::File(file) => all.reads(file),
            Looked::Pattern(directory, _) => drop(all.read.insert(directory.clone())),
        }
    }
    if let Some(Address::Unix(path)) = admin.map(Claim::address) {
        all.writes(path);
    }
    all
}

/// These with those of the system, and that of `program`, which an upgrade starts.
pub(super) fn with_system(configuration: Used, program: &Path) -> Directories {
    let mut all = configuration;
    for file in SYSTEM_FILES {
        all.reads(Path::new(file));
    }
    let of_program = program.parent().map(Path::to_path_buf);
    let end = program.canonicalize().ok();
    let end = end.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let paths = |named: &[&str]| -> Vec<PathBuf> { named.iter().map(PathBuf::from).collect() };
    Directories {
        read: all.read.into_iter().chain(paths(SYSTEM_READ)).collect(),
        execute: of_program
            .into_iter()
            .chain(end)
            .chain(paths(SYSTEM_EXECUTE))
            .collect(),
        write: all.write.into_iter().chain(paths(SYSTEM_WRITE)).collect(),
    }
}

/// What is wrong with directories of the next configuration.
pub(super) fn troubles(closed: Closed) -> Vec<Trouble> {
    let trouble = |directory: PathBuf, what: &str, key: &str| Trouble {
        place: None,
        message: format!(
            "this process may not {what} {}: {MEND} {key} where such a change is to be possible later",
            directory.display()
        ),
    };
    let read = closed.read.into_iter();
    let read = read.map(|directory| trouble(directory, "read files in", "landlock_read"));
    let write = closed.write.into_iter();
    let write = write.map(|directory| trouble(directory, "make files in", "landlock_write"));
    read.chain(write).collect()
}
