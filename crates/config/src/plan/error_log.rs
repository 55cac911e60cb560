//! What is said on standard error while the server runs.

/// The log of what happens to the server itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ErrorLog {
    /// What its lines look like.
    pub format: ErrorFormat,
    /// The least that is worth a line.
    pub level: LogLevel,
}

/// What a line of the error log looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ErrorFormat {
    /// Time, level and a sentence.
    #[default]
    Text,
    /// An object with these, and what the sentence is about by name.
    Json,
}

/// How much something matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LogLevel {
    /// Something does not work, and somebody has to look after it.
    Error,
    /// Something is not as it should be.
    Warn,
    /// Something has changed.
    #[default]
    Info,
    /// What is of use to find out why.
    Debug,
}

impl LogLevel {
    /// All of them with their names, what matters most first.
    pub const ALL: [(&'static str, LogLevel); 4] = [
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
    ];

    /// The one with this name.
    pub fn named(name: &str) -> Option<LogLevel> {
        let mut all = LogLevel::ALL.into_iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, level)| level)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
        }
    }
}
