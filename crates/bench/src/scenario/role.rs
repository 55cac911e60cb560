//! The parts programs take in an experiment.

use serde::{Deserialize, Serialize};

/// A part in an experiment. The order is that of the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Makes the load that is counted.
    Client,
    /// Stands between client and server.
    Proxy,
    /// Responds.
    Server,
    /// A client at a low rate beside the load, straight to the server: what the machine itself adds.
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
