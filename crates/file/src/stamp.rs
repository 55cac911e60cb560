//! Whether files have changed since they were read.
//!
//! A file's stamp follows the links that certbot and Kubernetes swap, and tells of changes on file systems that report none.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp(Found);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// When it was changed, its length, and which file it is.
    File(i64, i64, u64, u64),
    Nothing,
    /// This process may not look, as one that has become another user since it read the file.
    Denied,
}

/// The stamp of `file` at this moment.
pub fn stamp(file: &Path) -> Stamp {
    Stamp(match fs::metadata(file) {
        Ok(found) => Found::File(found.mtime(), found.mtime_nsec(), found.len(), found.ino()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Found::Denied,
        Err(_) => Found::Nothing,
    })
}

/// What has been seen of a set of files.
pub struct Look {
    read: Vec<Stamp>,
    last: Vec<Stamp>,
}

impl Look {
    /// Of files that were `read` with these stamps.
    pub fn new(read: Vec<Stamp>) -> Look {
        Look {
            last: read.clone(),
            read,
        }
    }

    /// Whether the files are others than those that were read, and were so the last time already. Of one that may not be
    /// looked at nothing is known, and nothing has changed.
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

    #[test]
    fn files_are_read_again_once_and_only_when_they_have_settled() {
        let stamp = |second| {
            let file = Found::File(second, 0, 1, 1);
            vec![Stamp(file), Stamp(Found::Nothing)]
        };
        let mut look = Look::new(stamp(1));
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
    fn what_may_not_be_looked_at_has_not_changed() {
        let file = |second| Stamp(Found::File(second, 0, 1, 1));
        let denied = Stamp(Found::Denied);
        let mut look = Look::new(vec![file(1), file(1)]);
        for (now, changed) in [
            (vec![denied, file(1)], false),
            (vec![denied, file(1)], false),
            (vec![denied, file(2)], false),
            (vec![denied, file(2)], true),
            (vec![file(1), file(2)], false),
            (vec![file(1), file(2)], false),
        ] {
            assert_eq!(look.has_changed(now.clone()), changed, "{now:?}");
        }
    }
}
