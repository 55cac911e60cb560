//! Socket options without a function in rustix.

use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

pub(crate) fn set_option(
    descriptor: impl AsFd,
    level: c_int,
    option: c_int,
    value: c_int,
) -> Result<(), Errno> {
    // SAFETY: the kernel reads the given number of bytes of `value` before the call returns.
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
