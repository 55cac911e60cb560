//! Whether standard output was open when the program began.
//!
//! Rust's runtime opens /dev/null in the place of a standard stream that is closed, before `main`
//! (`sanitize_standard_fds` in std's sys/pal/unix): what is written there is lost, and no error says so. The
//! initialisers of a program come before that.

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds addresses of functions of this type, which the C runtime calls once each (System V ABI,
// "Initialization and Termination Functions"); this one uses nothing that has to be set up before.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: F_GETFD takes no third argument and touches no memory of ours; the descriptor may be closed.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    WAS_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// Whether standard output was closed when the program began: nothing that is written to it goes anywhere.
pub fn was_output_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}
