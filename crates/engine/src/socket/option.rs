//! Options of sockets that rustix has no function for.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

/// Sets an option whose value is an integer (setsockopt(2)).
pub(crate) fn set_option(
    descriptor: impl AsFd,
    level: c_int,
    option: c_int,
    value: c_int,
) -> Result<(), Errno> {
    // SAFETY: the kernel reads as many bytes of `value` as it is told it has, before the call returns.
    let outcome = unsafe {
        libc::setsockopt(
            descriptor.as_fd().as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<c_int>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}
