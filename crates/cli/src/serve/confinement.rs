//! Directories to which a server is confined by Landlock, if configured, and the errors about other directories.
//!
//! A process cannot extend its rights later. So a reload and an upgrade first open each directory of their plan; a
//! directory that the user may open and the process may not is refused by name. No list of allowed directories is kept:
//! it could be wrong about a replaced directory.

use std::env;
use std::path::{Path, PathBuf};

use onrush_config::Plan;
use onrush_config::plan::Landlock;
use onrush_engine::{AccessRules, Address, Claim};
use onrush_serve::{DeniedPaths, PlanIssue, UsedPaths, used};

use super::config_files::WatchedPath;
use super::config_source::ConfigSource;

/// Read by every server: name resolution, certificate authorities, and facts on CPUs, memory and this process.
const SYSTEM_READ: &[&str] = &["/etc", "/proc", "/sys"];

/// Directories of programs that an upgrade may start, and of their libraries.
const SYSTEM_EXECUTE: &[&str] = &["/usr", "/bin", "/lib", "/lib64"];

/// Devices that are opened later: the null device and the terminal.
const SYSTEM_WRITE: &[&str] = &["/dev/null", "/dev/tty"];

/// Sources of random numbers on kernels without getrandom(2).
const SYSTEM_DEVICES: &[&str] = &["/dev/random", "/dev/urandom"];

/// System files that may be links to elsewhere: name resolution, and certificate authorities on common systems.
const SYSTEM_FILES: &[&str] = &[
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/certs/ca-bundle.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// Environment variables with other locations of certificate authorities: a file, and directories separated by colons.
const AUTHORITIES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Advice for directories outside the confinement.
const CONFINEMENT_ADVICE: &str = "Landlock confines it to the directories of its start; restart the server, and to allow such a change in a reload, set a parent directory in [process]";

/// Directories that a configuration uses.
pub(super) fn of_configuration(
    plan: &Plan,
    written: Option<&ConfigSource>,
    admin: Option<&Claim>,
) -> UsedPaths {
    let mut all = used(plan);
    all.read.extend(of_files(written).read);
    let [file, directories] = AUTHORITIES.map(env::var_os);
    if let Some(file) = file {
        all.reads(Path::new(&file));
    }
    let directories = directories.iter().flat_map(env::split_paths);
    all.read.extend(directories);
    if let Some(Address::Unix(path)) = admin.map(Claim::address) {
        all.writes(path);
    }
    all
}

/// Files and directories that the configuration is read from.
pub(super) fn of_files(written: Option<&ConfigSource>) -> UsedPaths {
    let mut all = UsedPaths::default();
    for (looked, _) in written.into_iter().flat_map(ConfigSource::looked) {
        match looked {
            WatchedPath::File(file) => all.reads(file),
            WatchedPath::Pattern(directory, _) => drop(all.read.insert(directory.clone())),
        }
    }
    all
}

/// Warnings about directories before a process is confined to them.
pub(super) fn warnings(used: &UsedPaths, landlock: &Landlock) -> Vec<PlanIssue> {
    let warning = |message| PlanIssue {
        place: None,
        message,
    };
    let is_root = |path: &&PathBuf| {
        path.canonicalize()
            .is_ok_and(|whole| whole == Path::new("/"))
    };
    let whole = used.read.iter().chain(&used.write).filter(is_root);
    let whole = whole.map(|path| {
        warning(format!(
            "{} is the root directory, so Landlock restricts nothing below it",
            path.display()
        ))
    });
    let named = landlock.read.iter().chain(&landlock.write);
    let absent = named.filter(|path| !path.exists());
    let absent = absent.map(|path| {
        warning(format!(
            "{} of [process] landlock_read or landlock_write does not exist: it will be inaccessible even if it is created later; set its parent directory instead",
            path.display()
        ))
    });
    whole.chain(absent).collect()
}

/// Adds the system's directories and that of `program`, which an upgrade starts.
pub(super) fn with_system(configuration: UsedPaths, program: &Path) -> AccessRules {
    let mut all = configuration;
    for file in SYSTEM_FILES {
        all.reads(Path::new(file));
    }
    let of_program = program.parent().map(Path::to_path_buf);
    let end = program.canonicalize().ok();
    let end = end.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let paths = |named: &[&str]| -> Vec<PathBuf> { named.iter().map(PathBuf::from).collect() };
    AccessRules {
        read: all
            .read
            .into_iter()
            .chain(paths(SYSTEM_READ))
            .chain(paths(SYSTEM_DEVICES))
            .collect(),
        execute: of_program
            .into_iter()
            .chain(end)
            .chain(paths(SYSTEM_EXECUTE))
            .collect(),
        write: all.write.into_iter().chain(paths(SYSTEM_WRITE)).collect(),
    }
}

/// Errors for directories of the next configuration that this process may not use.
pub(super) fn errors_of(closed: DeniedPaths) -> Vec<PlanIssue> {
    let trouble = |directory: PathBuf, what: &str, key: &str| PlanIssue {
        place: None,
        message: format!(
            "this process may not {what} {}: {CONFINEMENT_ADVICE} {key}",
            directory.display()
        ),
    };
    let read = closed.read.into_iter();
    let read = read.map(|directory| trouble(directory, "read", "landlock_read"));
    let write = closed.write.into_iter();
    let write = write.map(|directory| trouble(directory, "make files in", "landlock_write"));
    read.chain(write).collect()
}
