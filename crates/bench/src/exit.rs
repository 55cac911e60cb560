//! How a run ended, for people and for the shell.

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything was measured and every figure with a target reached it.
    Done,
    /// Everything was measured; at least one figure missed its target.
    Missed,
    /// At least one figure could not be judged: programs failed, errors occurred, or the client was the limit.
    Invalid,
    /// A disk was full before every trial was made; what had been measured until then was written where there was room.
    NoRoom,
    /// Stopped by a signal; what had been measured until then was written.
    Interrupted,
}

impl Exit {
    /// The exit code of the process: a missed target is a result, not a failure of the program.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done | Exit::Missed => 0,
            Exit::NoRoom => 1,
            Exit::Invalid => 3,
            Exit::Interrupted => 130,
        }
    }
}
