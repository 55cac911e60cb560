//! Files of a configuration on the disk, with the stamps that reveal a change.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use onrush_config::IncludeReader;
use onrush_config::limits::TEXT_MAX;
use onrush_file::{Stamp, is_pattern, matching, names, stamp};

/// A file or pattern that is watched.
#[derive(Clone)]
pub(super) enum WatchedPath {
    File(PathBuf),
    /// A directory, and a pattern for files in it.
    Pattern(PathBuf, String),
}

impl WatchedPath {
    /// Current stamps; `None` for a pattern whose directories this process may not list.
    pub(super) fn stamps(&self) -> Option<Vec<Stamp>> {
        match self {
            WatchedPath::File(path) => Some(vec![stamp(path)]),
            WatchedPath::Pattern(directory, pattern) => match found(directory, pattern) {
                Ok(paths) => Some(paths.iter().map(|path| stamp(path)).collect()),
                Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
                Err(_) => Some(Vec::new()),
            },
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        match self {
            WatchedPath::File(path) => path.clone(),
            WatchedPath::Pattern(directory, pattern) => directory.join(pattern),
        }
    }
}

/// The disk, and the files that were looked at, with their stamps before they were read.
#[derive(Default)]
pub(super) struct Disk {
    pub(super) looked: Vec<(WatchedPath, Vec<Stamp>)>,
}

impl Disk {
    /// Records the stamp of a file that is about to be read.
    fn look(&mut self, path: &Path) {
        self.looked
            .push((WatchedPath::File(path.to_owned()), vec![stamp(path)]));
    }
}

impl IncludeReader for Disk {
    fn find(&mut self, directory: &Path, name: &str) -> Result<Vec<PathBuf>, String> {
        if !is_pattern(name) {
            return Ok(vec![directory.join(name)]);
        }
        let paths = found(directory, name);
        let looked = WatchedPath::Pattern(directory.to_owned(), name.to_owned());
        let stamps = paths.iter().flatten().map(|path| stamp(path)).collect();
        // Also when it cannot be listed: that may change.
        self.looked.push((looked, stamps));
        paths.map_err(|error| {
            let shown = directory.join(name);
            format!("cannot list {}: {error}", shown.display())
        })
    }

    fn missing_directory(&mut self, directory: &Path, name: &str) -> Option<PathBuf> {
        let fixed = Path::new(name).components();
        let fixed = fixed.take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy()));
        let path = directory.join(fixed.collect::<PathBuf>());
        let found = fs::metadata(if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            &path
        });
        found.is_err_and(|error| is_none(&error)).then_some(path)
    }

    fn identity(&mut self, path: &Path) -> PathBuf {
        // A missing file is reported when it is read.
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }

    fn read(&mut self, path: &Path) -> Result<String, String> {
        // A running server must not wait for a writer: it could not handle signals.
        let kind = fs::metadata(path).map(|metadata| metadata.file_type());
        if kind.as_ref().is_ok_and(FileTypeExt::is_fifo) {
            self.look(path);
            return Err("it is a pipe: expected a file".to_owned());
        }
        if kind.is_ok_and(|kind| kind.is_dir()) {
            self.look(path);
            return Err(
                "it is a directory: expected a file, or a pattern such as \"conf.d/*.toml\""
                    .to_owned(),
            );
        }
        self.read_any(path)
    }
}

impl Disk {
    /// Reads a file, or a pipe until its writer closes it.
    pub(super) fn read_any(&mut self, path: &Path) -> Result<String, String> {
        self.look(path);
        onrush_file::read_text(path, TEXT_MAX as u64).map_err(|error| error.to_string())
    }
}

/// Files that match a pattern; none if the directory does not exist.
fn found(directory: &Path, pattern: &str) -> io::Result<Vec<PathBuf>> {
    let list = |directory: &Path| match names(directory) {
        Ok(names) => Ok(names),
        Err(error) if is_none(&error) => Ok(Vec::<OsString>::new()),
        Err(error) => Err(error),
    };
    let mut paths = matching(directory, pattern, list)?;
    paths.retain(|path| fs::symlink_metadata(path).is_ok());
    Ok(paths)
}

/// Whether the directory does not exist; a pattern such as `*/a.toml` also matches files.
fn is_none(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}
