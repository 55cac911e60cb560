//! Whoever runs the server, and what is asked of them.

use onrush_engine::Promise;
use serde_json::Value;

/// What is asked of whoever runs the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The configuration is to be read again.
    Reload,
    /// The program is to be started again, to take the place of this process.
    Upgrade,
    /// The server is to end, in good order.
    Stop,
}

/// What came of an order: facts about it, or why nothing was done.
pub type Outcome = Result<Value, String>;

/// Whoever runs the server.
pub trait Operator: Send {
    /// Has the order carried out, which may take a while; the promise gets what came of it. One that is dropped says that
    /// the server ends.
    fn order(&self, order: Order, outcome: Promise<Outcome>);

    /// What becomes of a request by the configuration in force: `asked` is what `openapi.json` says, and the error what is wrong
    /// with it. It takes as long as a password takes to check.
    fn explain(&self, asked: &Value) -> Outcome;

    /// The configuration in force, secrets left out, and where it comes from.
    fn configuration(&self) -> Value;

    /// Unix sockets that are listened on and whose file is gone, so that nobody reaches the server there.
    fn sockets_gone(&self) -> Vec<String>;

    /// How much the error log says: the name of a level.
    fn log_level(&self) -> &'static str;

    /// Has it say as much as the level of this name, until the configuration is read again.
    ///
    /// # Errors
    /// When there is no such level: what there is.
    fn set_log_level(&self, name: &str) -> Result<(), String>;
}
