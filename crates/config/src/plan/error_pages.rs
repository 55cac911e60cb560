//! What stands in the place of a line of reason where a request gets an error.

use std::time::Duration;

use super::file::FilePath;

/// The error pages of a route, or of requests without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// The first that is for a status counts: those of the route come before those of the whole configuration, and those for
    /// few statuses before those for many.
    pub pages: Vec<ErrorPage>,
    /// Whether they are sent in the place of servers' responses, too.
    pub intercept: bool,
}

/// What is sent with some statuses. It has content, or something to say in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// The first and the last of the statuses, between 400 and 599.
    pub statuses: (u16, u16),
    /// The body; without one it is a line of reason.
    pub content: Option<PageContent>,
    /// When clients should come again (RFC 9110, section 10.2.3); at least a second.
    pub retry_after: Option<Duration>,
}

/// Where a page comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageContent {
    /// The configuration itself.
    Body {
        /// The page.
        text: String,
        /// What it is.
        content_type: String,
    },
    /// A file.
    File {
        /// Where it is.
        file: FilePath,
        /// What it is, if its name does not say it.
        content_type: Option<String>,
    },
}

impl ErrorPages {
    /// These, and where they have nothing for a status those of the whole configuration.
    pub(crate) fn before(mut self, whole: &ErrorPages) -> ErrorPages {
        self.pages.extend(whole.pages.iter().cloned());
        self
    }
}
