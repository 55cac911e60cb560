//! Roles of programs in an experiment.

use serde::{Deserialize, Serialize};

/// Role of a program. Declared in the order of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sends the measured load.
    Client,
    /// Forwards requests from the client to the server.
    Proxy,
    /// Responds to requests.
    Server,
    /// A second client that sends directly to the server at a low rate during the load, to measure the latency of the
    /// machine itself.
    Control,
}

impl Role {
    /// All roles, in the order of the chain.
    pub const ALL: [Role; 4] = [Role::Client, Role::Proxy, Role::Server, Role::Control];

    /// The name used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Proxy => "proxy",
            Role::Server => "server",
            Role::Control => "control",
        }
    }

    /// Whether programs in this role listen on a port.
    pub fn listens(self) -> bool {
        match self {
            Role::Proxy | Role::Server => true,
            Role::Client | Role::Control => false,
        }
    }
}
