//! Directories that the files of a plan are in, for a server that is confined to them (Landlock), and whether it still is
//! where the files of the next plan are: the kernel is asked, by opening them.
//!
//! The kernel allows what lies beneath a directory, not a name. A file is replaced by another one under its name, so the
//! directory that it is in is meant, and the one in which it is when links have been followed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use onrush_config::Plan;
use onrush_config::plan::{Action, Address, Admin, LogTarget};
use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::Errno;

use crate::permissions::{directory_of, tls_files};

/// Directories of a plan.
#[derive(Debug, Default)]
pub struct Used {
    /// Files are read there.
    pub read: BTreeSet<PathBuf>,
    /// Files and sockets are made there.
    pub write: BTreeSet<PathBuf>,
}

/// Where this thread may not go although its user may.
#[derive(Debug, Default)]
pub struct Closed {
    /// Directories that it may not read.
    pub read: Vec<PathBuf>,
    /// Directories that it may not make files in.
    pub write: Vec<PathBuf>,
}

/// The directories that a server works with by a plan.
pub fn used(plan: &Plan) -> Used {
    let mut used = Used::default();
    for file in tls_files(plan).chain(plan.files_read()) {
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

impl Used {
    /// With a file that is read.
    pub fn reads(&mut self, file: &Path) {
        self.read.extend(directories_of(file));
    }

    /// With a file or a socket that is made and removed.
    pub fn writes(&mut self, file: &Path) {
        self.write.extend(directories_of(file));
    }

    /// Those of them where this thread may not go although its user may.
    pub fn closed(&self) -> Closed {
        let closed = |directories: &BTreeSet<PathBuf>, how: Access, flags: OFlags| {
            let closed = directories
                .iter()
                .filter(|directory| is_closed(directory, how, flags));
            closed.cloned().collect()
        };
        Closed {
            read: closed(&self.read, Access::READ_OK, OFlags::DIRECTORY),
            // A file without a name, which is gone when it is closed.
            write: closed(
                &self.write,
                Access::WRITE_OK.union(Access::EXEC_OK),
                OFlags::TMPFILE.union(OFlags::WRONLY),
            ),
        }
    }
}

impl Closed {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// What access(2) says is about the user alone; opening is what Landlock refuses.
fn is_closed(directory: &Path, how: Access, flags: OFlags) -> bool {
    let mode = Mode::RUSR.union(Mode::WUSR);
    let opened = open(directory, flags.union(OFlags::CLOEXEC), mode);
    opened.err() == Some(Errno::ACCESS) && access(directory, how).is_ok()
}

/// The directory of a file by its name, and that in which it is when links have been followed.
fn directories_of(file: &Path) -> BTreeSet<PathBuf> {
    let end = file.canonicalize().ok();
    let end = end.as_deref().map(|end| directory_of(end).to_path_buf());
    [Some(directory_of(file).to_path_buf()), end]
        .into_iter()
        .flatten()
        .collect()
}
