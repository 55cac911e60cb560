//! Cross-origin access to a route's responses (the Fetch standard, "CORS protocol").

use std::time::Duration;

/// CORS settings of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// Origins that may read responses, in lower case; `None` for every origin. Never an empty list.
    pub origins: Option<Vec<String>>,
    /// Allowed methods.
    pub methods: Vec<String>,
    /// Allowed request fields, in addition to safelisted ones.
    pub headers: Vec<String>,
    /// Response fields that scripts may read, in addition to safelisted ones.
    pub expose: Vec<String>,
    /// Whether requests may carry credentials such as cookies; only with a list of origins.
    pub credentials: bool,
    /// How long browsers may cache the response to a preflight request.
    pub age_max: Option<Duration>,
}
