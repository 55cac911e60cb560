//! Which other sites' scripts may read a route's responses (the Fetch standard, "CORS protocol").

use std::time::Duration;

/// What browsers are told about requests of other origins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cors {
    /// Origins that may read responses, in lower case; none for every origin. Never an empty list.
    pub origins: Option<Vec<String>>,
    /// Methods that they may use.
    pub methods: Vec<String>,
    /// Fields that their requests may have beyond those that need no leave.
    pub headers: Vec<String>,
    /// Fields of responses that they may read beyond those that need no leave.
    pub expose: Vec<String>,
    /// Whether cookies and the like come along; only with a list of origins.
    pub credentials: bool,
    /// How long a browser may remember what it was told before a request.
    pub age_max: Option<Duration>,
}
