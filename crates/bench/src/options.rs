//! What a run is asked for.

use std::path::PathBuf;

/// What `onrush bench` was asked to do.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The experiment to run; `None` runs the chain that ships with the program.
    pub experiment: Option<PathBuf>,
    /// Where results are written; `None` makes a directory named after the experiment and the time.
    pub out: Option<PathBuf>,
    /// Few rounds and short windows: checks that an experiment works, proves nothing.
    pub quick: bool,
    /// A CPU profile of each role, whatever the experiment says.
    pub profile: bool,
    /// The program that takes the roles written as `onrush = [...]`; `None` is the running program itself.
    pub onrush: Option<PathBuf>,
}
