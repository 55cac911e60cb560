//! What an admin interface needs to know.

use std::time::Duration;

use onrush_engine::Claim;
use onrush_serve::Inspector;

use crate::authority::CurrentToken;
use crate::desk::journal::Journal;
use crate::desk::operator::Operator;
use crate::desk::readiness::Readiness;

/// What is always true of a process.
#[derive(Clone, Debug)]
pub struct Facts {
    /// That of the program.
    pub version: &'static str,
    /// When it began to serve, since 1970.
    pub started: Duration,
    /// How it talks to the kernel.
    pub driver: String,
    /// The CPU of each core; `None` for those that are not pinned.
    pub cpus: Vec<Option<usize>>,
    /// What the process may do: an object of the status.
    pub privileges: serde_json::Value,
}

/// What an admin interface needs.
pub struct Setup {
    /// Where it is.
    pub claim: Claim,
    /// What TCP clients must have; Unix sockets need none.
    pub token: Option<CurrentToken>,
    /// Of the process.
    pub facts: Facts,
    /// Connections of clients at a time. Who comes then is told to come again.
    pub connections_max: usize,
    /// What the server is doing.
    pub readiness: Readiness,
    /// What looks at the server.
    pub inspector: Inspector,
    /// What happens to it.
    pub journal: Journal,
    /// Who runs it.
    pub operator: Box<dyn Operator>,
}
