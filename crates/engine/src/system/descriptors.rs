//! The process's limit on file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The hard limit, which [`raise`] tries to set; `None` means unlimited.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit to the hard one and returns the limit in force; `None` means unlimited.
pub fn raise() -> Option<u64> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return current;
    }
    match setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    ) {
        Ok(()) => maximum,
        // A sandbox may forbid this; the old limit stays.
        Err(_) => current,
    }
}
