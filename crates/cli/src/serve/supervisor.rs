//! Notifications to the service manager (sd_notify(3)): ready, reloading, stopping, and the main process ID. Without a
//! service manager nothing is sent.

use sd_notify::{NotifyState, notify};

/// The server is ready.
pub(super) fn ready() {
    tell(&[
        // After an upgrade it differs from the process that was started.
        NotifyState::MainPid(std::process::id()),
        NotifyState::Ready,
    ]);
}

/// All cores respond.
pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// The configuration is being read, until [ready] follows, also after a failed reload.
pub(super) fn reloading() {
    if let Ok(now) = NotifyState::monotonic_usec_now() {
        tell(&[NotifyState::Reloading, now]);
    }
}

/// The server stops, without a successor.
pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

fn tell(states: &[NotifyState<'_>]) {
    // The service manager reports a missing notification itself (TimeoutStartSec).
    let _ = notify(states);
}
