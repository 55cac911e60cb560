//! What a plan is asked for.

use serde::{Deserialize, Serialize};

/// What matters more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// As many requests as possible.
    #[default]
    Throughput,
    /// As short a wait as possible, at the price of CPUs that look busy.
    Latency,
}

/// What the application does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts connections.
    #[default]
    Server,
    /// Accepts and makes them.
    Proxy,
    /// Makes them.
    Client,
}

/// What is wished for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// What matters more.
    pub goal: Goal,
    /// What the application does.
    pub role: Role,
    /// Interfaces to plan for; a bond or VLAN stands for its devices. None are all devices that are up.
    pub interfaces: Vec<String>,
    /// Whether numbers of queues may change, which resets the interface for a moment.
    pub queues: Queues,
}

/// Whether numbers of queues may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// They may, where the driver says how many there can be.
    #[default]
    Change,
    /// They stay.
    Keep,
}
