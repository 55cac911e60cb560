//! Results of ring operations and of io_uring_enter.

use rustix::io::Errno;

pub(super) fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// Result of a completion: a count or descriptor, or a negated error number.
pub(super) fn outcome(result: i32) -> Result<i32, Errno> {
    if result < 0 {
        Err(Errno::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}
