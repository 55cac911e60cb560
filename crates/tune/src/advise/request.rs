//! Request for a plan.

use serde::{Deserialize, Serialize};

/// Optimization goal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Goal {
    /// Maximum number of requests.
    #[default]
    Throughput,
    /// Minimum latency, at the price of CPUs that look busy.
    Latency,
}

/// Role of the application.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Accepts connections.
    #[default]
    Server,
    /// Accepts and opens connections.
    Proxy,
    /// Opens connections.
    Client,
}

/// Request for a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Optimization goal.
    pub goal: Goal,
    /// Role of the application.
    pub role: Role,
    /// Interfaces to plan for; a bond or VLAN means its devices. Empty means all devices that are up.
    pub interfaces: Vec<String>,
    /// Whether numbers of queues may change, which resets the interface briefly.
    pub queues: Queues,
}

/// Whether numbers of queues may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// Yes, if the driver reports the maximum.
    #[default]
    Change,
    /// No.
    Keep,
}
