//! Reports changes of a server's state in the log and the list of events.

use std::fmt;

use super::Group;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event {
    /// Active checks succeed again.
    Up,
    /// Active checks have failed.
    Down,
    /// The server was ejected because of request outcomes.
    Ejected,
    /// The server is back after an ejection.
    Back,
    /// An administrator has changed it.
    Set,
}

impl Group {
    /// Logs an event of a server; `how` follows its name in the message.
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
