//! Reasons why a file cannot be sent.

use onrush_engine::{Errno, Error, Kind};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    NotFound,
    /// A directory requested without its trailing slash.
    Directory,
    /// A directory without an index file.
    NoIndex,
    /// The process has no permission to read the file.
    Forbidden(Error),
    /// A temporary lack of resources.
    Busy(Error),
    /// The file exists but cannot be read.
    Broken(Error),
    /// A link that leads out of the root.
    Outside,
}

impl Missing {
    /// Whether there is nothing that could be served.
    pub(super) fn is_nothing_found(&self) -> bool {
        match self {
            Missing::NotFound | Missing::NoIndex | Missing::Outside => true,
            Missing::Directory | Missing::Forbidden(_) | Missing::Busy(_) | Missing::Broken(_) => {
                false
            }
        }
    }

    /// Classifies an error of an open file.
    pub(super) fn of_reading(error: Error) -> Missing {
        match error.is_out_of_descriptors() {
            true => Missing::Busy(error),
            false => Missing::Broken(error),
        }
    }

    pub(super) fn of(error: Error) -> Missing {
        let Kind::Os(errno) = error.kind else {
            return Missing::Broken(error);
        };
        match errno {
            // NXIO: a Unix socket.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::NAMETOOLONG
            | Errno::LOOP
            | Errno::NXIO
            | Errno::NODEV => Missing::NotFound,
            Errno::XDEV => Missing::Outside,
            Errno::ACCESS | Errno::PERM => Missing::Forbidden(error),
            // AGAIN: repeated renames along the path, or a lease that its holder has not released yet.
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Missing::Busy(error),
            _ => Missing::Broken(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_errors_are_classified() {
        let missing = |errno| {
            Missing::of(Error::new(
                onrush_engine::Op::Open,
                onrush_engine::Kind::Os(errno),
            ))
        };
        assert_eq!(missing(Errno::NOENT), Missing::NotFound);
        assert_eq!(missing(Errno::NOTDIR), Missing::NotFound);
        assert_eq!(missing(Errno::NAMETOOLONG), Missing::NotFound);
        assert_eq!(missing(Errno::LOOP), Missing::NotFound);
        assert_eq!(missing(Errno::XDEV), Missing::Outside);
        assert!(matches!(missing(Errno::ACCESS), Missing::Forbidden(_)));
        assert!(matches!(missing(Errno::MFILE), Missing::Busy(_)));
        assert!(matches!(missing(Errno::NFILE), Missing::Busy(_)));
        assert!(matches!(missing(Errno::IO), Missing::Broken(_)));
    }
}
