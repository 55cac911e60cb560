//! Files that a process gives up for good (Landlock, landlock(7)): whoever has taken it over opens what lies in the directories
//! that it works with, and nothing else.
//!
//! A directory is meant, not its name: one that is made later under the same name is another one. What the process has open
//! already stays so, and a connection to a Unix socket opens no file.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, make_bitflags, path_beneath_rules,
};

/// The rights that are given up where the kernel knows them: those of Linux 6.10, which are all that there are for files.
const KNOWN: ABI = ABI::V5;

/// What a process goes on using. What lies beneath a directory is meant with it; one that is not there is left out.
#[derive(Clone, Debug, Default)]
pub struct Directories {
    /// Files are read there.
    pub read: Vec<PathBuf>,
    /// They are read there, and programs started.
    pub execute: Vec<PathBuf>,
    /// They are read, made, written and removed there, sockets among them.
    pub write: Vec<PathBuf>,
}

/// What a process is confined to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// The directories, by the rights that this version of Landlock knows (its ABI).
    Directories {
        /// The number that the kernel gives its version of Landlock.
        abi: i32,
    },
    /// Nothing: this kernel has no Landlock, or it is switched off (`lsm=`).
    None,
}

/// Why a process is not confined. It may be by half, and is to end.
#[derive(Debug)]
pub enum LandlockError {
    /// The kernel refuses a step.
    Refused(RulesetError),
    /// All steps were done, and it can still make files in the root directory.
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

/// Gives up all files but those in `directories`, for this thread and those that it starts. Others cannot be opened from then
/// on (EACCES). Programs gain nothing by being started any more (PR_SET_NO_NEW_PRIVS).
///
/// # Errors
/// When the kernel has Landlock and does not do it.
pub fn confine(directories: &Directories) -> Result<Confinement, LandlockError> {
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

/// Whether the root directory cannot be read, which everyone may read; not known where it is one of `directories`.
fn is_in_force(directories: &Directories) -> bool {
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

    /// On a thread of its own: there is no way back.
    #[test]
    fn what_is_named_can_be_used_and_the_rest_is_refused() {
        let scratch = std::env::temp_dir().join(format!("onrush-landlock-{}", std::process::id()));
        for name in ["read", "write", "other"] {
            fs::create_dir_all(scratch.join(name)).expect("a directory");
            fs::write(scratch.join(name).join("file"), name).expect("a file");
        }
        let directories = Directories {
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
            // A link leads no further than its end does.
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
