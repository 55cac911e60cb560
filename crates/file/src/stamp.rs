//! Detects changed files by polling their metadata.
//!
//! A stamp follows symbolic links, which certbot and Kubernetes swap, and also detects changes on file systems without
//! notifications.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Identifies one version of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp(Found);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    File(State),
    Nothing,
    /// Permission denied, for example after the process changed its user.
    Denied,
}

/// Metadata that changes with the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct State {
    file: (u64, u64),
    length: u64,
    /// mtime. The user can set it back (`cp -p`, `rsync -t`, `touch -d`).
    modified: (i64, i64),
    /// ctime, which only the kernel sets.
    changed: (i64, i64),
}

impl Stamp {
    /// Whether the process lacks permission to look at the file, for example because it changed its user after reading
    /// it.
    pub fn is_denied(self) -> bool {
        self.0 == Found::Denied
    }
}

/// Takes the stamp of `file`.
pub fn stamp(file: &Path) -> Stamp {
    Stamp(match fs::metadata(file) {
        Ok(found) => Found::File(State {
            file: (found.dev(), found.ino()),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Found::Denied,
        Err(_) => Found::Nothing,
    })
}

/// Watches a set of files for changes.
pub struct ChangeDetector {
    read: Vec<Stamp>,
    last: Vec<Stamp>,
}

impl ChangeDetector {
    /// Starts with the stamps that the files had when they were read.
    pub fn new(read: Vec<Stamp>) -> ChangeDetector {
        ChangeDetector {
            last: read.clone(),
            read,
        }
    }

    /// Whether the files differ from those last read and have not changed since the previous call. A file without
    /// permission counts as unchanged.
    pub fn has_changed(&mut self, mut now: Vec<Stamp>) -> bool {
        if now.len() == self.read.len() {
            for (now, read) in now.iter_mut().zip(&self.read) {
                if now.0 == Found::Denied {
                    *now = *read;
                }
            }
        }
        let is_settled = now == self.last;
        self.last = now;
        if !is_settled || self.last == self.read {
            return false;
        }
        self.read.clone_from(&self.last);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::FileTimes;

    fn at(second: i64) -> Stamp {
        Stamp(Found::File(State {
            file: (1, 1),
            length: 1,
            modified: (second, 0),
            changed: (second, 0),
        }))
    }

    #[test]
    fn change_with_same_size_and_mtime_is_detected() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        fs::write(&path, "one").expect("it is ours");
        let before = stamp(&path);
        assert_eq!(stamp(&path), before);
        let modified = fs::metadata(&path).and_then(|found| found.modified());
        let modified = modified.expect("it is there");
        // The kernel's file times advance with its timer tick.
        while stamp(&path) == before {
            fs::write(&path, "two").expect("it is ours");
            let file = fs::File::options().write(true).open(&path);
            let file = file.expect("it is ours");
            let times = FileTimes::new().set_modified(modified);
            file.set_times(times).expect("it is ours");
        }
        let found = fs::metadata(&path).expect("it is there");
        assert_eq!(
            (found.len(), found.modified().expect("a time")),
            (3, modified)
        );
    }

    #[test]
    fn change_is_reported_once_after_settling() {
        let stamp = |second| vec![at(second), Stamp(Found::Nothing)];
        let mut look = ChangeDetector::new(stamp(1));
        for (now, changed) in [
            (stamp(1), false),
            (stamp(2), false),
            (stamp(3), false),
            (stamp(3), true),
            (stamp(3), false),
            (stamp(4), false),
            (stamp(3), false),
            (stamp(3), false),
        ] {
            assert_eq!(look.has_changed(now.clone()), changed, "{now:?}");
        }
    }

    #[test]
    fn permission_denied_is_not_a_change() {
        let denied = Stamp(Found::Denied);
        assert!(denied.is_denied() && !at(1).is_denied());
        let mut look = ChangeDetector::new(vec![at(1), at(1)]);
        for (now, changed) in [
            (vec![denied, at(1)], false),
            (vec![denied, at(1)], false),
            (vec![denied, at(2)], false),
            (vec![denied, at(2)], true),
            (vec![at(1), at(2)], false),
            (vec![at(1), at(2)], false),
        ] {
            assert_eq!(look.has_changed(now.clone()), changed, "{now:?}");
        }
    }
}
