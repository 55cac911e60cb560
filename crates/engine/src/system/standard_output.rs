//! Whether standard output was open when the program started.
//!
//! Before `main`, Rust's runtime opens /dev/null in place of a closed standard stream (`sanitize_standard_fds` in std's
//! sys/pal/unix): output to it is lost without an error. Initialisers of a program run before that.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds addresses of functions of this type, which the C runtime calls once each (System V ABI,
// "Initialization and Termination Functions"); this one needs nothing that is set up later.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no third argument and touches no memory of ours; the descriptor may be closed.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Whether standard output was closed when the program started, so that output to it is lost.
pub fn was_output_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
