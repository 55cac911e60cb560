//! A temporary file that is renamed to its final name when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::limits::NAMES_TRIED_MAX;

/// A new file in the directory of its target, under a temporary name. Dropping it removes that name.
#[derive(Debug)]
pub struct TempFile {
    file: File,
    path: PathBuf,
}

impl TempFile {
    /// Creates an empty file next to `place`. The umask applies to `mode`.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn create(place: &Path, mode: u32) -> io::Result<TempFile> {
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let process = std::process::id();
        let mut number = 0;
        loop {
            let own = format!(".{process}.{number}.part");
            // The temporary name must not exceed NAME_MAX either, so the target's name is truncated.
            let kept = NAME_BYTES_MAX - 1 - own.len();
            let mut beside = OsString::new();
            beside.push(".");
            beside.push(prefix(name, kept));
            beside.push(own);
            let path = place.with_file_name(beside);
            match OpenOptions::new()
                .read(true)
                .append(true)
                .create_new(true)
                .mode(mode)
                .open(&path)
            {
                Ok(file) => return Ok(TempFile { file, path }),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_TRIED_MAX =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Parses a temporary name into the target's name and the id of the process that created it. A killed process
    /// leaves its file.
    pub fn parse(name: &str) -> Option<(&str, u32)> {
        let mut parts = name
            .strip_prefix('.')?
            .strip_suffix(".part")?
            .rsplitn(3, '.');
        let _number: u32 = parts.next()?.parse().ok()?;
        let process = parts.next()?.parse().ok()?;
        Some((parts.next()?, process))
    }

    /// The file, opened for appending.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Renames the file to `place` and replaces a file there.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn persist(self, place: &Path) -> io::Result<File> {
        fs::rename(&self.path, place)?;
        self.file.try_clone()
    }

    /// Links the file to `place`, which must be free.
    ///
    /// # Errors
    /// Returns the system's error; `AlreadyExists` if `place` exists.
    pub fn persist_noclobber(self, place: &Path) -> io::Result<File> {
        // Not every file system supports RENAME_NOREPLACE (rename(2)); link(2) never replaces a file.
        fs::hard_link(&self.path, place)?;
        self.file.try_clone()
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        // Fails if the file was renamed; that is fine.
        let _ = fs::remove_file(&self.path);
    }
}

/// Maximum length of a file name on Linux in bytes (NAME_MAX, limits.h).
const NAME_BYTES_MAX: usize = 255;

fn prefix(name: &OsStr, length: usize) -> &OsStr {
    OsStr::from_bytes(&name.as_bytes()[..length.min(name.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn temp_file_name_has_target_and_pid() {
        let directory = tempfile::tempdir().expect("a directory");
        let beside = TempFile::create(&directory.path().join("a.b"), 0o600).expect("created");
        let name = beside.path.file_name().and_then(OsStr::to_str);
        let parsed = TempFile::parse(name.expect("a name"));
        assert_eq!(parsed, Some(("a.b", std::process::id())));
        for name in ["a.b", ".a.b.part", ".a.1.x.part", "a.1.2.part", ".1.2.part"] {
            assert_eq!(TempFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn persist_noclobber_keeps_existing_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("file");
        for (text, is_free) in [("first", true), ("second", false)] {
            let beside = TempFile::create(&place, 0o600).expect("created");
            beside.file().write_all(text.as_bytes()).expect("written");
            assert_eq!(beside.persist_noclobber(&place).is_ok(), is_free);
            assert_eq!(fs::read(&place).expect("read"), b"first");
        }
        let left = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 1, "no other name is left");
    }
}
