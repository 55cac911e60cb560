//! Interface to the main thread, which carries out commands.

use onrush_engine::Promise;
use serde_json::Value;

/// Command for the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// Reload the configuration.
    Reload,
    /// Start the program again to replace this process.
    Upgrade,
    /// Stop gracefully.
    Stop,
}

/// Result of a command: facts about it, or why nothing was done.
pub type CommandResult = Result<Value, String>;

/// Owner of the server, which carries out commands.
pub trait Operator: Send {
    /// Carries out the command and resolves `outcome`. Dropping `outcome` means that the server is stopping.
    fn execute(&self, order: Command, outcome: Promise<CommandResult>);

    /// How the configuration in force handles a request. `asked` has the form given in `openapi.json`; the error
    /// reports what is wrong with it. Takes as long as a password check.
    fn explain(&self, asked: &Value) -> CommandResult;

    /// The configuration in force without secrets, and its source.
    fn configuration(&self) -> Value;

    /// Paths of the listening Unix sockets whose file has been removed, so that clients cannot connect.
    fn removed_sockets(&self) -> Vec<String>;

    /// Level of the error log.
    fn log_level(&self) -> &'static str;

    /// Sets the level of the error log until the next reload.
    ///
    /// # Errors
    /// If there is no such level; lists the valid ones.
    fn set_log_level(&self, name: &str) -> Result<(), String>;
}
