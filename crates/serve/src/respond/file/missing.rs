//! Why there is no file to send.

use onrush_engine::{Errno, Error, Kind};

/// Why there is no file to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Missing {
    NotFound,
    /// A directory, named without its slash.
    Directory,
    /// A directory without an index file.
    NoIndex,
    /// This process may not read it.
    Forbidden(Error),
    /// We lack what it takes to open it, for the moment.
    Busy(Error),
    /// It exists but cannot be read.
    Broken(Error),
    /// A link that leads out of the root.
    Outside,
}

impl Missing {
    /// Whether nothing lies there that could be served.
    pub(super) fn is_nothing_found(&self) -> bool {
        match self {
            Missing::NotFound | Missing::NoIndex | Missing::Outside => true,
            Missing::Directory | Missing::Forbidden(_) | Missing::Busy(_) | Missing::Broken(_) => {
                false
            }
        }
    }

    /// Of a file that is open.
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
            // NXIO: a socket in the file system.
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::NAMETOOLONG
            | Errno::LOOP
            | Errno::NXIO
            | Errno::NODEV => Missing::NotFound,
            Errno::XDEV => Missing::Outside,
            Errno::ACCESS | Errno::PERM => Missing::Forbidden(error),
            // AGAIN: renames without end along the path, or a lease that its holder has yet to give up.
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => Missing::Busy(error),
            _ => Missing::Broken(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_to_open_has_its_meaning() {
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
