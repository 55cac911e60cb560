//! Parameters of an admin interface.

use std::time::Duration;

use onrush_engine::Claim;
use onrush_serve::Inspector;

use crate::authority::CurrentToken;
use crate::context::journal::Journal;
use crate::context::operator::Operator;
use crate::context::readiness::Readiness;

/// Facts that do not change while the process runs.
#[derive(Clone, Debug)]
pub struct ProcessInfo {
    /// Version of the program.
    pub version: &'static str,
    /// Start time, since the Unix epoch.
    pub started: Duration,
    /// Name of the I/O driver.
    pub driver: String,
    /// CPU of each core; `None` if the core is not pinned.
    pub cpus: Vec<Option<usize>>,
    /// Privileges of the process: an object of the status response.
    pub privileges: serde_json::Value,
}

/// Parameters of an admin interface.
pub struct Setup {
    /// Address to listen on.
    pub claim: Claim,
    /// Token for clients of a TCP address; Unix sockets need none.
    pub token: Option<CurrentToken>,
    /// Facts about the process.
    pub facts: ProcessInfo,
    /// Maximum number of client connections. Beyond them, only probes get a regular response; other requests get 503.
    pub connections_max: usize,
    /// Phase of the process.
    pub readiness: Readiness,
    /// Access to the cores.
    pub inspector: Inspector,
    /// Journal of events.
    pub journal: Journal,
    /// Receiver of commands.
    pub operator: Box<dyn Operator>,
}
