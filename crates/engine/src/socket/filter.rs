//! Classic BPF programs that the kernel runs for a socket (socket(7), Linux's Documentation/networking/filter.rst).

use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::io::Errno;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Filters the packets of a socket: returns the number of bytes to keep.
    Packets,
    /// Selects the listener for a connection: returns an index.
    Listener,
}

impl Purpose {
    fn option(self) -> c_int {
        match self {
            Purpose::Packets => libc::SO_ATTACH_FILTER,
            Purpose::Listener => libc::SO_ATTACH_REUSEPORT_CBPF,
        }
    }
}

/// Makes the kernel drop connection requests (SYN) and accept the other packets of unfinished handshakes. The program
/// sees segments from the TCP header on. Fails like [`attach`].
pub(crate) fn drop_syns(socket: &OwnedFd) -> Result<(), Errno> {
    const FLAGS_AT: u32 = 13;
    const SYN: u32 = 2;
    let gives = |bytes| instruction(libc::BPF_RET | libc::BPF_K, bytes, (0, 0));
    let load = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    let has_bits = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    let mut program = [
        instruction(load, FLAGS_AT, (0, 0)),
        instruction(has_bits, SYN, (0, 1)),
        gives(0),
        gives(u32::MAX),
    ];
    attach(socket, Purpose::Packets, &mut program)
}

/// Makes one instruction; `jumps` are the instructions that a jump skips if the condition is true and if it is false.
pub(crate) fn instruction(code: u32, k: u32, jumps: (u8, u8)) -> libc::sock_filter {
    libc::sock_filter {
        // The codes have 16 bits (linux/bpf_common.h); libc has them as `u32`.
        code: code as u16,
        jt: jumps.0,
        jf: jumps.1,
        k,
    }
}

/// Attaches `program` to `socket`, replacing one with the same purpose.
///
/// # Errors
/// `EINVAL` for an invalid program, `ENOMEM` if it is longer than `net.core.optmem_max` allows.
pub(crate) fn attach(
    socket: &OwnedFd,
    purpose: Purpose,
    program: &mut [libc::sock_filter],
) -> Result<(), Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the kernel reads the program that `filter` describes, and both outlive the call; the descriptor is open.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            purpose.option(),
            (&raw const filter).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if outcome == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}
