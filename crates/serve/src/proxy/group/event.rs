//! What the log and the list of events say of servers whose state has changed.

use std::fmt;

use super::Group;

/// What has become of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Active checks have succeeded again.
    Up,
    /// They have failed.
    Down,
    /// It was taken out for the outcome of its requests.
    Ejected,
    /// It is in again after that.
    Back,
    /// An administrator wants something else of it.
    Set,
}

impl Group {
    /// Says what has become of a server; `how` goes on behind its name.
    pub(crate) fn tell(&self, server: u32, event: Event, how: &dyn fmt::Display) {
        let server = self.server(server);
        let (group, label) = (self.plan.name.as_str(), server.label());
        let name = server.name.as_str();
        let address = server.address().map(|address| address.to_string());
        let address = address.as_deref();
        macro_rules! say {
            ($level:ident, $event:literal) => {
                tracing::$level!(
                    event = $event,
                    group,
                    server = name,
                    address,
                    "server {label} of {group} {how}"
                )
            };
        }
        match event {
            Event::Up => say!(info, "server_up"),
            Event::Down => say!(warn, "server_down"),
            Event::Ejected => say!(warn, "server_ejected"),
            Event::Back => say!(info, "server_back"),
            Event::Set => say!(info, "server_set"),
        }
    }
}
