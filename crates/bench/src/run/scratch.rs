//! Temporary directory for the programs' files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};

use super::leftover_processes;

pub(super) struct Scratch {
    pub(super) path: PathBuf,
    /// Locked during the run, because process ids are meaningless to another container that shares the directory.
    _lock: File,
}

/// Prefix of agents' directories on their hosts.
pub(super) const AGENT_PREFIX: &str = "onrush-agent-";
/// Prefix of a run's directory; the process id follows.
const PREFIX: &str = "onrush-bench-";

impl Scratch {
    /// Creates a directory. Removes directories of killed runs, and kills their remaining processes.
    pub(super) fn create() -> io::Result<Scratch> {
        remove_stale(&std::env::temp_dir(), PREFIX, |_| ());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = format!("{PREFIX}{}-{}", std::process::id(), now.as_nanos());
        let path = std::env::temp_dir().join(name);
        // Not create_dir_all: an existing directory may belong to another user.
        fs::create_dir(&path)?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Scratch { path, _lock: lock })
    }
}

/// Removes directories of this user with the prefix whose process has ended, after calling `first` on them. Errors are
/// ignored.
pub(super) fn remove_stale(temporary: &Path, prefix: &str, first: impl Fn(&Path)) {
    let user = rustix::process::geteuid().as_raw();
    let entries = fs::read_dir(temporary).into_iter().flatten().flatten();
    for entry in entries {
        let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == user;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_stale(&name, prefix)
            && entry.metadata().is_ok_and(is_ours)
            && is_unlocked(&entry.path())
        {
            leftover_processes::end(|run| run == name);
            first(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_unlocked(directory: &Path) -> bool {
    let opened = File::open(directory);
    opened.is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok())
}

/// Shell expression with the value of [`machine`]; it contains no single quotes.
pub(super) const MACHINE_IN_SHELL: &str =
    "$(cut -c 1-8 /proc/sys/kernel/random/boot_id)$(readlink /proc/self/ns/pid | tr -dc 0-9)";

/// Scope in which process ids are unique: this boot of the kernel and this PID namespace. Machines and containers may
/// share a temporary directory.
fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot: String = boot.chars().take(8).collect();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let namespace = namespace.to_string_lossy().into_owned();
    let digits = namespace.chars().filter(char::is_ascii_digit);
    boot + &digits.collect::<String>()
}

/// Whether the name belongs to an ended process of this machine.
fn is_stale(name: &str, prefix: &str) -> bool {
    let process: Option<u32> = name.strip_prefix(prefix).and_then(|rest| {
        let mut parts = rest.split('-');
        let process = parts.next()?.parse().ok()?;
        parts.next()?.parse::<u128>().ok()?;
        match (parts.next(), parts.next()) {
            (None, _) => Some(process),
            (Some(machine), None) => (machine == self::machine()).then_some(process),
            (Some(_), Some(_)) => None,
        }
    });
    process.is_some_and(|process| !Path::new(&format!("/proc/{process}")).exists())
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_and_program_use_same_machine_name() {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("echo \"{MACHINE_IN_SHELL}\"")])
            .output()
            .expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), machine());
    }

    #[test]
    fn leftovers_of_killed_run_are_removed() {
        let temporary = tempfile::tempdir().expect("a directory");
        // Above the largest process id (PID_MAX_LIMIT, 2^22).
        let gone = "onrush-bench-4000000000-1";
        let gone_here = format!("onrush-bench-4000000000-1-{}", machine());
        let others = [
            "onrush-bench-4000000000-1-0badf00d4026531836".into(),
            format!("onrush-bench-{}-1", std::process::id()),
            "onrush-bench-chain-20260101-000000".into(),
            "onrush-bench-4000000000".into(),
        ];
        for name in others.iter().map(String::as_str).chain([gone, &gone_here]) {
            fs::create_dir(temporary.path().join(name)).expect("a new name");
        }
        remove_stale(temporary.path(), PREFIX, |_| ());
        assert!(!temporary.path().join(gone).exists());
        assert!(!temporary.path().join(gone_here).exists());
        for name in others {
            assert!(temporary.path().join(&name).exists(), "{name}");
        }
    }
}
