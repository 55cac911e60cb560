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
    /// The server fails, and cannot be ejected.
    Failing,
    /// The server is back after an ejection, or failing no more.
    Back,
    /// An administrator has changed it.
    Set,
}

impl Group {
    /// Logs an event of a server; `how` follows its name in the message.
    pub(crate) fn log_event(&self, server: u32, event: Event, how: &dyn fmt::Display) {
        let server = self.server(server);
        let address = server.address().map(|address| address.to_string());
        let of = (&*self.plan.name, &*server.name, address.as_deref());
        report(of, event, how);
    }
}

/// Logs an event of a server, given by group, name and address; `how` follows its name in the message.
pub(crate) fn report(
    (group, name, address): (&str, &str, Option<&str>),
    event: Event,
    how: &dyn fmt::Display,
) {
    let label = match address {
        Some(address) if address != name => format!("{name} ({address})"),
        _ => name.to_owned(),
    };
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
        Event::Failing => say!(warn, "server_failing"),
        Event::Back => say!(info, "server_back"),
        Event::Set => say!(info, "server_set"),
    }
}
