//! The process's bound on file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What [`raise`] would have in force, if it is let; `None` means unlimited.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// Raises the soft limit to the hard one and returns what is in force; `None` means unlimited.
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
        // A sandbox may forbid even this; the old limit then stands.
        Err(_) => current,
    }
}
