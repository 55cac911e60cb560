//! What a service manager is told of the server (sd_notify(3)): when it serves, when it reads its configuration again, which
//! process it is, and when it ends. Who was not started by one tells nobody.

use sd_notify::{NotifyState, notify};

/// It serves.
pub(super) fn ready() {
    tell(&[
        // Another one than was started, behind an upgrade.
        NotifyState::MainPid(std::process::id()),
        NotifyState::Ready,
    ]);
}

/// All of it goes on.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// It reads its configuration again, until it is [ready] once more, whatever comes of it.
pub(super) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// It ends, and nobody takes its place.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // It says so of itself when it hears nothing (TimeoutStartSec).
    let _ = notify(states);
}
