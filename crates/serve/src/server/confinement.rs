//! Directories that a plan uses, for Landlock confinement, and a check whether a confined server may still access the
//! files of a new plan. The check opens them.
//!
//! Landlock rules apply to directories, not names. Files are replaced under their name, so both the directory of the
//! name and the directory after following links are included. Devices and files in the root directory are included
//! themselves instead, because their directory would allow too much.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use onrush_config::Plan;
use onrush_config::plan::{Action, Address, Admin, LogTarget};
use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;

use crate::site::permissions::{directory_of, tls_files};

/// Directories that a plan uses, and individual files.
#[derive(Debug, Default)]
pub struct UsedPaths {
    /// Directories of files that are read.
    pub read: BTreeSet<PathBuf>,
    /// Directories in which files and sockets are created.
    pub write: BTreeSet<PathBuf>,
}

/// Directories that the process may not access although its user may.
#[derive(Debug, Default)]
pub struct DeniedPaths {
    /// Unreadable directories.
    pub read: Vec<PathBuf>,
    /// Directories in which no files can be created.
    pub write: Vec<PathBuf>,
}

/// The directories that a server with this plan uses.
pub fn used(plan: &Plan) -> UsedPaths {
    let mut used = UsedPaths::default();
    for file in tls_files(plan).chain(plan.startup_files()) {
        used.reads(file);
    }
    for route in &plan.routes {
        match &route.action {
            Action::RespondFile { file, .. } => used.reads(file),
            Action::Files(files) => drop(used.read.insert(files.root.to_path_buf())),
            _ => {}
        }
    }
    for listen in &plan.listen {
        if let Address::Unix(path) = &listen.address {
            used.writes(path);
        }
    }
    match &plan.admin {
        Admin::Unix(path) => used.writes(path),
        Admin::Tcp { token_file, .. } => used.reads(token_file),
        Admin::Default | Admin::Off => {}
    }
    if let Some(LogTarget::File(path)) = plan.access_log.as_ref().map(|log| &log.to) {
        used.writes(path);
    }
    if let Some(landlock) = &plan.process.landlock {
        used.read.extend(landlock.read.iter().cloned());
        used.write.extend(landlock.write.iter().cloned());
    }
    used
}

impl UsedPaths {
    /// Adds the directories of a file that is read.
    pub fn reads(&mut self, file: &Path) {
        self.read.extend(directories_of(file));
    }

    /// Adds the directories of a file or socket that is created and removed.
    pub fn writes(&mut self, file: &Path) {
        self.write.extend(directories_of(file));
    }

    /// The directories that this thread may not access although its user may.
    pub fn closed(&self) -> DeniedPaths {
        let closed = |directories: &BTreeSet<PathBuf>, how: Access, flags: OFlags| {
            let closed = directories
                .iter()
                .filter(|directory| is_closed(directory, how, flags));
            closed.cloned().collect()
        };
        DeniedPaths {
            // NONBLOCK: do not wait for the other end of a FIFO.
            read: closed(
                &self.read,
                Access::READ_OK,
                OFlags::NONBLOCK.union(OFlags::NOCTTY),
            ),
            // An unnamed file, which disappears when it is closed.
            write: closed(
                &self.write,
                Access::WRITE_OK.union(Access::EXEC_OK),
                OFlags::TMPFILE.union(OFlags::WRONLY),
            ),
        }
    }
}

impl DeniedPaths {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// access(2) checks only the user's permissions; Landlock denies opening.
fn is_closed(directory: &Path, how: Access, flags: OFlags) -> bool {
    let mode = Mode::RUSR.union(Mode::WUSR);
    let opened = open(directory, flags.union(OFlags::CLOEXEC), mode);
    opened.err() == Some(Errno::ACCESS) && access(directory, how).is_ok()
}

/// The directory of a file by its name and the one after following links; or the file itself.
fn directories_of(file: &Path) -> BTreeSet<PathBuf> {
    let end = file.canonicalize().ok();
    let ways = [Some(file), end.as_deref()];
    let kind = fs::metadata(file).map(|found| found.file_type());
    let is_device =
        kind.is_ok_and(|kind| kind.is_char_device() || kind.is_block_device() || kind.is_fifo());
    let meant = |file: &Path| {
        let directory = directory_of(file);
        let is_root = directory
            .canonicalize()
            .is_ok_and(|whole| whole == Path::new("/"));
        match is_root || is_device {
            true => file.to_path_buf(),
            false => directory.to_path_buf(),
        }
    };
    ways.into_iter().flatten().map(meant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landlock_allows_directories_except_root_and_devices() {
        let of = |file: &str| directories_of(Path::new(file));
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
        assert_eq!(of("/etc/passwd"), paths(&["/etc"]));
        assert_eq!(of("/no-such-file"), paths(&["/no-such-file"]));
        assert_eq!(of("/etc/../no-such-file"), paths(&["/etc/../no-such-file"]));
        assert_eq!(of("/dev/null"), paths(&["/dev/null"]));
        assert_eq!(of("onrush.toml"), paths(&["."]));
        let scratch = tempfile::tempdir().expect("a directory");
        let whole = scratch.path().canonicalize().expect("it is there");
        fs::create_dir(whole.join("live")).expect("it is ours");
        fs::create_dir(whole.join("archive")).expect("it is ours");
        fs::write(whole.join("archive/1.pem"), "").expect("it is ours");
        std::os::unix::fs::symlink("../archive/1.pem", whole.join("live/site.pem"))
            .expect("it is ours");
        let found = directories_of(&whole.join("live/site.pem"));
        assert_eq!(found, [whole.join("live"), whole.join("archive")].into());
    }
}
