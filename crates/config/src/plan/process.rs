//! User and Landlock restriction of the process once it is ready.

use std::fmt;
use std::path::PathBuf;

/// Settings applied once the process listens and has read the files that only root may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// User and group to switch to; `None` keeps the user and group with which the process was started.
    pub run_as: Option<RunAs>,
    /// Whether unneeded system calls are blocked (seccomp(2)).
    pub seccomp: bool,
    /// Directories that stay accessible when Landlock limits access to files of the configuration (landlock(7)); `None`
    /// for no Landlock.
    pub landlock: Option<Landlock>,
}

/// Directories that stay accessible in addition, for files that a later configuration may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Landlock {
    /// Directories for reading.
    pub read: Vec<PathBuf>,
    /// Directories for reading and writing.
    pub write: Vec<PathBuf>,
}

/// User and group of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAs {
    /// User; never UID 0. Its existence is not checked here.
    pub user: Account,
    /// Group; `None` for the user's primary group.
    pub group: Option<Account>,
}

/// User or group of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Account {
    /// Name in `/etc/passwd` or `/etc/group`.
    Name(String),
    /// UID or GID.
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
