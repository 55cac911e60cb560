//! Whether files have changed since they were read.
//!
//! A file's stamp follows the links that certbot and Kubernetes swap, and tells of changes on file systems that report none.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one state of a file from another: when it was changed, its length, and which file it is; or that there is
/// none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp(Option<(i64, i64, u64, u64)>);

/// The stamp of `file` at this moment.
pub fn stamp(file: &Path) -> Stamp {
    let found = fs::metadata(file).ok();
    Stamp(found.map(|found| (found.mtime(), found.mtime_nsec(), found.len(), found.ino())))
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

    /// Whether the files are others than those that were read, and were so the last time already.
    pub fn has_changed(&mut self, now: Vec<Stamp>) -> bool {
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
            let file = (second, 0, 1, 1);
            vec![Stamp(Some(file)), Stamp(None)]
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
}
