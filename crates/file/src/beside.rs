//! A new file under a name of its own, until it is whole and takes its place.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::limits::NAMES_TRIED_MAX;

/// A new file beside the place that it is made for; it goes when it has not taken that.
#[derive(Debug)]
pub struct Beside {
    file: File,
    path: PathBuf,
}

impl Beside {
    /// Creates it in the directory of `place`, empty, with permissions of which the umask takes some away.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create(place: &Path, mode: u32) -> io::Result<Beside> {
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let process = std::process::id();
        let mut number = 0;
        loop {
            let own = format!(".{process}.{number}.part");
            // A name of 255 bytes leaves no room for more.
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
                Ok(file) => return Ok(Beside { file, path }),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES_TRIED_MAX =>
                {
                    number += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The name of the place and the id of the process, from the name of such a file. A killed process leaves its file.
    pub fn parse(name: &str) -> Option<(&str, u32)> {
        let mut parts = name
            .strip_prefix('.')?
            .strip_suffix(".part")?
            .rsplitn(3, '.');
        let _number: u32 = parts.next()?.parse().ok()?;
        let process = parts.next()?.parse().ok()?;
        Some((parts.next()?, process))
    }

    /// The file, to be filled: what is written is added at its end.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Becomes the file at `place`; one that stood there has lost its name.
    ///
    /// # Errors
    /// Those of the system.
    pub fn take_place_of(self, place: &Path) -> io::Result<File> {
        fs::rename(&self.path, place)?;
        self.file.try_clone()
    }

    /// Becomes the file at `place`, where none may stand.
    ///
    /// # Errors
    /// Those of the system; `AlreadyExists` when something stands there.
    pub fn take_free_place(self, place: &Path) -> io::Result<File> {
        // rename(2) that replaces nothing is not known to every file system; link(2) replaces nothing on any.
        fs::hard_link(&self.path, place)?;
        self.file.try_clone()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Gone already when it has taken its place.
        let _ = fs::remove_file(&self.path);
    }
}

/// The bytes of a file's name that Linux's file systems take (NAME_MAX, limits.h).
const NAME_BYTES_MAX: usize = 255;

fn prefix(name: &OsStr, length: usize) -> &OsStr {
    OsStr::from_bytes(&name.as_bytes()[..length.min(name.len())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn name_tells_place_and_process() {
        let directory = tempfile::tempdir().expect("a directory");
        let beside = Beside::create(&directory.path().join("a.b"), 0o600).expect("created");
        let name = beside.path.file_name().and_then(OsStr::to_str);
        let parsed = Beside::parse(name.expect("a name"));
        assert_eq!(parsed, Some(("a.b", std::process::id())));
        for name in ["a.b", ".a.b.part", ".a.1.x.part", "a.1.2.part", ".1.2.part"] {
            assert_eq!(Beside::parse(name), None, "{name}");
        }
    }

    #[test]
    fn a_free_place_is_taken_and_one_that_is_not_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("file");
        for (text, is_free) in [("first", true), ("second", false)] {
            let beside = Beside::create(&place, 0o600).expect("created");
            beside.file().write_all(text.as_bytes()).expect("written");
            assert_eq!(beside.take_free_place(&place).is_ok(), is_free);
            assert_eq!(fs::read(&place).expect("read"), b"first");
        }
        let left = fs::read_dir(directory.path()).expect("a directory").count();
        assert_eq!(left, 1, "no other name is left");
    }
}
