//! Choosing the driver, by request and by what this kernel supports.
//!
//! `auto` tries to make a ring with every feature that makes it fast. It uses io_uring if that succeeds and epoll
//! otherwise, and the start-up line gives the reason. If io_uring was requested and is refused, the error names the
//! likely cause: the sysctl `kernel.io_uring_disabled`, a seccomp filter, or an old kernel.

use std::fmt;
use std::fs;

use rustix::io::Errno;

use super::uring::{Ring, RingSupport};

/// The requested driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Io {
    /// The best driver that this machine supports.
    #[default]
    Auto,
    /// epoll(7), edge-triggered.
    Epoll,
    /// io_uring(7); needs Linux 6.1.
    IoUring,
}

/// The chosen driver and the reason, as the start-up line shows them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Never [`Io::Auto`].
    pub io: Io,
    /// One clause, for users.
    pub reason: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.io == Io::IoUring {
            "io_uring"
        } else {
            "epoll"
        };
        write!(f, "{name} ({})", self.reason)
    }
}

/// Chooses a driver by trying what this kernel supports.
///
/// # Errors
/// When io_uring was requested and is refused: a sentence with the likely cause and what to do.
pub fn choose(io: Io) -> Result<Choice, String> {
    match io {
        Io::Epoll => Ok(Choice {
            io,
            reason: "as asked".into(),
        }),
        Io::IoUring => match Ring::probe() {
            Ok(RingSupport::Full | RingSupport::Reduced) => Ok(Choice {
                io,
                reason: "as asked".into(),
            }),
            Err(errno) => Err(format!(
                "io_uring is not available: {}; use --io epoll or --io auto",
                refusal(errno)
            )),
        },
        // BENCHMARKING.md: less CPU per request than epoll in every work measured, and no longer tail. That is with
        // multishot receives; without them a fixed response costs 4.45 us, with epoll 4.0 us.
        Io::Auto => Ok(match Ring::probe() {
            Ok(RingSupport::Full) => Choice {
                io: Io::IoUring,
                reason: "auto: io_uring is available and uses less CPU per request than epoll"
                    .into(),
            },
            Ok(RingSupport::Reduced) => Choice {
                io: Io::Epoll,
                reason: "auto: before Linux 6.17 io_uring uses more CPU per request".into(),
            },
            Err(errno) => Choice {
                io: Io::Epoll,
                reason: format!("auto: io_uring is not available, {}", refusal(errno)),
            },
        }),
    }
}

/// The likely reason for which io_uring_setup(2) was refused.
fn refusal(errno: Errno) -> String {
    let disabled = fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    let disabled = disabled.trim();
    match errno {
        Errno::PERM | Errno::ACCESS if disabled == "1" || disabled == "2" => {
            format!("the sysctl kernel.io_uring_disabled is {disabled}")
        }
        Errno::PERM | Errno::ACCESS | Errno::NOSYS if seccomp_filters() => {
            "a seccomp filter blocks it, as Docker's default profile does".into()
        }
        Errno::NOSYS => "the kernel was built without it".into(),
        Errno::INVAL => "the kernel is older than 6.1".into(),
        Errno::NOMEM => "the limit of locked memory is too low (ulimit -l)".into(),
        errno => std::io::Error::from(errno).to_string(),
    }
}

/// Whether a seccomp filter is in force (proc(5): mode 2).
fn seccomp_filters() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .any(|line| line.starts_with("Seccomp:") && line.trim_end().ends_with('2'))
}
