//! Giving up access to files for good (Landlock, landlock(7)), except in the directories that a process works with.
//!
//! A rule applies to a directory, not to its name: a directory created later with the same name is not included. Open
//! files stay open, and a connection to a Unix socket opens no file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags, path_beneath_rules,
};

/// The access rights to restrict: all rights on files of Linux 6.10, as far as the kernel knows them.
const KNOWN: ABI = ABI::V5;

/// The directories that a process may still use, with everything beneath them. Missing ones are ignored.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    /// Files may be read.
    pub read: Vec<PathBuf>,
    /// Files may be read and executed.
    pub execute: Vec<PathBuf>,
    /// Files and sockets may be read, created, written and removed.
    pub write: Vec<PathBuf>,
}

/// How far Landlock restricts this process's file access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Access is restricted to the permitted paths, with the access rights of this Landlock version.
    Directories {
        /// The kernel's Landlock ABI version.
        abi: i32,
    },
    /// Access is not restricted: this kernel has no Landlock, or it is disabled (`lsm=`).
    None,
}

/// Why Landlock does not restrict the process as required. Some restrictions may be in force; the process should exit.
#[derive(Debug)]
pub enum LandlockError {
    /// The kernel refused a step.
    Refused(RulesetError),
    /// All steps succeeded, but the process can still read the root directory.
    NotInForce,
}

impl fmt::Display for LandlockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LandlockError::Refused(why) => write!(f, "the kernel refuses Landlock: {why}"),
            LandlockError::NotInForce => f.write_str("Landlock is not in force"),
        }
    }
}

impl std::error::Error for LandlockError {}

/// Gives up all files except those in `directories`, for this thread and threads that it starts. Opening others then
/// fails (EACCES). Started programs cannot gain rights (PR_SET_NO_NEW_PRIVS).
///
/// # Errors
/// When the kernel has Landlock and a step fails.
pub fn confine(directories: &AccessRules) -> Result<Confinement, LandlockError> {
    let all = AccessFs::from_all(KNOWN);
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let execute = read | AccessFs::Execute;
    let write = read
        | make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | MakeSock | RemoveFile | Refer});
    let rules =
        |paths: &[PathBuf], access: BitFlags<AccessFs>| path_beneath_rules(paths.to_vec(), access);
    let confine = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .create()?
            .add_rules(rules(&directories.read, read))?
            .add_rules(rules(&directories.execute, execute))?
            .add_rules(rules(&directories.write, write))?
            .restrict_self()
    };
    let status = confine().map_err(LandlockError::Refused)?;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Ok(Confinement::None);
    };
    match status.ruleset {
        RulesetStatus::NotEnforced => Ok(Confinement::None),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced
            if is_in_force(directories) =>
        {
            Ok(Confinement::Directories {
                abi: effective_abi as i32,
            })
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => {
            Err(LandlockError::NotInForce)
        }
    }
}

/// Whether reading the root directory is refused; assumed if it is one of `directories`.
fn is_in_force(directories: &AccessRules) -> bool {
    let root = Path::new("/");
    let all = [&directories.read, &directories.execute, &directories.write];
    let has_root = all.into_iter().flatten().any(|path| {
        let whole = path.canonicalize();
        whole.is_ok_and(|whole| whole == root)
    });
    has_root || fs::read_dir(root).is_err()
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;

    use super::*;

    /// On a separate thread, because the restriction is permanent.
    #[test]
    fn unlisted_directories_are_refused() {
        let scratch = std::env::temp_dir().join(format!("onrush-landlock-{}", std::process::id()));
        for name in ["read", "write", "other"] {
            fs::create_dir_all(scratch.join(name)).expect("a directory");
            fs::write(scratch.join(name).join("file"), name).expect("a file");
        }
        let directories = AccessRules {
            read: vec![scratch.join("read"), scratch.join("absent")],
            execute: ["/usr", "/bin", "/lib", "/lib64"]
                .map(PathBuf::from)
                .to_vec(),
            write: vec![scratch.join("write"), "/dev".into()],
        };
        let inside = scratch.clone();
        let thread = std::thread::spawn(move || {
            match confine(&directories).expect("the kernel does it or has no Landlock") {
                Confinement::None => return eprintln!("skipped: this kernel has no Landlock"),
                Confinement::Directories { abi } => assert!(abi > 0),
            }
            let refused = |outcome: std::io::Result<()>| {
                let error = outcome.expect_err("it is refused");
                assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            };
            assert_eq!(fs::read(inside.join("read/file")).expect("read"), b"read");
            refused(fs::write(inside.join("read/file"), "x"));
            refused(fs::write(inside.join("read/new"), "x"));
            refused(fs::read(inside.join("other/file")).map(drop));
            fs::write(inside.join("write/new"), "x").expect("made");
            fs::rename(inside.join("write/new"), inside.join("write/file")).expect("replaced");
            fs::remove_file(inside.join("write/file")).expect("removed");
            // Symbolic links cannot be created.
            std::os::unix::fs::symlink("/etc/passwd", inside.join("write/link"))
                .expect_err("links are not made");
            let started = std::process::Command::new("true").status();
            assert!(started.expect("programs start").success());
        });
        let outcome = thread.join();
        fs::remove_dir_all(&scratch).expect("removed");
        outcome.expect("nothing of this panics");
    }
}
