//! Pages for errors, instead of a line with the reason.

use std::time::Duration;

use super::file::FilePath;

/// The error pages of a route, or of requests without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPages {
    /// The first page that matches the status is used. Pages of the route come before pages of the whole configuration,
    /// and narrower ranges of statuses before wider ones.
    pub pages: Vec<ErrorPage>,
    /// Whether they also replace error responses of servers.
    pub intercept: bool,
}

/// Page for a range of statuses. Has content or `retry_after`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPage {
    /// First and last status, between 400 and 599.
    pub statuses: (u16, u16),
    /// Body; `None` for a line with the reason.
    pub content: Option<PageContent>,
    /// Value of `Retry-After` (RFC 9110, section 10.2.3); at least a second.
    pub retry_after: Option<Duration>,
}

/// Source of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageContent {
    /// Text in the configuration.
    Body {
        /// Body.
        text: String,
        /// Media type.
        content_type: String,
    },
    /// A file.
    File {
        /// Path.
        file: FilePath,
        /// Media type; `None` to derive it from the name.
        content_type: Option<String>,
    },
}

impl ErrorPages {
    /// Appends the pages of the whole configuration.
    pub(crate) fn before(mut self, whole: &ErrorPages) -> ErrorPages {
        self.pages.extend(whole.pages.iter().cloned());
        self
    }
}
