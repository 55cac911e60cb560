//! Who the server is to the system once it is ready.

use std::fmt;
use std::path::PathBuf;

/// What a process is once it listens and has read what only root may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Whose rights it has; none for those that it was started with.
    pub run_as: Option<RunAs>,
    /// Whether system calls that no server needs are given up (seccomp(2)).
    pub seccomp: bool,
    /// Whether files are given up that nothing of the configuration is about (landlock(7)).
    pub landlock: Option<Landlock>,
}

/// What is kept of the file system beyond what the configuration names: what a later one may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landlock {
    /// Directories that are read.
    pub read: Vec<PathBuf>,
    /// Directories that are written, too.
    pub write: Vec<PathBuf>,
}

/// The rights of a user of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// Never root by its number. Whether there is such a user is not known here.
    pub user: Account,
    /// None for the primary group of the user.
    pub group: Option<Account>,
}

/// A user or a group of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// By its name in `/etc/passwd` or `/etc/group`.
    Name(String),
    /// By its number (UID, GID).
    Number(u32),
}

impl fmt::Display for Account {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Account::Name(name) => out.write_str(name),
            Account::Number(number) => number.fmt(out),
        }
    }
}
