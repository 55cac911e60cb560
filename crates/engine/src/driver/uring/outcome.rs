//! How operations of a ring, and calls to it, have ended.

use rustix::io::Errno;

/// The number of an error of the ring itself.
pub(super) fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// A completion's result: a count or descriptor, or a negated error number.
pub(super) fn outcome(result: i32) -> Result<i32, Errno> {
    if result < 0 {
        Err(Errno::from_raw_os_error(-result))
    } else {
        Ok(result)
    }
}
