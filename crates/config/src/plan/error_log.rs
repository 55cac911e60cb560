//! Log of the server itself, on standard error.

/// Format and level of the error log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ErrorLog {
    /// Format of a line.
    pub format: ErrorFormat,
    /// Minimum level.
    pub level: LogLevel,
}

/// Format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorFormat {
    /// Time, level and message.
    #[default]
    Text,
    /// A JSON object with these and the fields of the event.
    Json,
}

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Something does not work and needs attention.
    Error,
    /// Something is not as it should be.
    Warn,
    /// A change of state.
    #[default]
    Info,
    /// Details for troubleshooting.
    Debug,
}

impl LogLevel {
    /// Names of all levels, the most severe first.
    pub const ALL: [(&'static str, LogLevel); 4] = [
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
    ];

    /// Level with this name.
    pub fn named(name: &str) -> Option<LogLevel> {
        let mut all = LogLevel::ALL.into_iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, level)| level)
    }

    /// Name of the level.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}
