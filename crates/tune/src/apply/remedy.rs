//! Remedies for a state directory (/run) in which the journal cannot be written.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use crate::Error;

/// User who changes the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Effective UID 0: more privileges do not help.
    Root,
    /// Any other user.
    Other,
}

/// Remedy for a journal that could not be opened, read or written, by errno; `None` if obvious or unknown.
pub fn remedy(error: &Error, user: User) -> Option<String> {
    let (Error::Read(path, source) | Error::Write(path, source)) = error else {
        return None;
    };
    let directory = path.parent().unwrap_or(Path::new("/")).display();
    let path = path.display();
    Some(match (Errno::from_io_error(source)?, user) {
        (Errno::PERM | Errno::ACCESS, User::Other) => {
            "changing the machine needs root (CAP_NET_ADMIN for queues and network settings, root for interrupts); a \
             plan does not"
                .to_owned()
        }
        (Errno::PERM | Errno::ACCESS, User::Root) => format!(
            "root itself is refused: check for an immutable {path} (lsattr), a missing capability (CAP_DAC_OVERRIDE), \
             and log messages of a security module"
        ),
        (Errno::ROFS, _) => format!(
            "{directory} is mounted read-only, as in some containers: mount a writable tmpfs there, or run this on the \
             host"
        ),
        (Errno::NOSPC | Errno::DQUOT | Errno::FBIG, _) => {
            format!("free some space in {directory}")
        }
        (Errno::LOOP, _) => format!("{path} is a symbolic link, which is not followed: remove it"),
        (Errno::ISDIR, _) => format!("{path} must be a file: remove that directory"),
        (Errno::NOTDIR | Errno::NOENT | Errno::EXIST, _) => {
            format!("{directory} must be a directory: create it")
        }
        _ => return other(source, &directory.to_string()),
    })
}

fn other(source: &io::Error, directory: &str) -> Option<String> {
    match Errno::from_io_error(source)? {
        Errno::MFILE | Errno::NFILE => Some("too many files are open: raise the limit".to_owned()),
        Errno::IO => Some(format!(
            "the disk of {directory} reports I/O errors: see dmesg"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errno: Errno, user: User) -> String {
        let error = Error::Write("/run/j".into(), errno.into());
        remedy(&error, user).expect("it is known")
    }

    #[test]
    fn needs_root_is_not_suggested_to_root() {
        for errno in [Errno::PERM, Errno::ACCESS] {
            assert!(told(errno, User::Other).contains("needs root"));
            assert!(told(errno, User::Root).contains("root itself is refused"));
        }
        for errno in [Errno::ROFS, Errno::NOSPC, Errno::LOOP, Errno::NOTDIR] {
            for user in [User::Root, User::Other] {
                let words = told(errno, user);
                assert!(
                    !words.contains("needs root") && words.contains("/run"),
                    "{words}"
                );
            }
        }
        assert!(told(Errno::ROFS, User::Root).contains("mounted read-only"));
        assert!(told(Errno::NOSPC, User::Root).contains("free some space in /run"));
        assert_eq!(remedy(&Error::Facts("none".to_owned()), User::Root), None);
    }
}
