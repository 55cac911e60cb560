//! `Cache-Control` of responses (RFC 9111).

/// `Cache-Control` for some of a route's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// Ranges of statuses, inclusive; never empty. 206 and 304 count as 200 (RFC 9110, sections 15.3.7 and 15.4.5).
    pub statuses: Vec<(u16, u16)>,
    /// Media types in lower case, without parameters; `text/*` is a wildcard. `None` for every response, also without a
    /// type; never an empty list.
    pub types: Option<Vec<String>>,
    /// Valid directives.
    pub value: String,
    /// Treatment of the server's own `Cache-Control`.
    pub server_field: ServerCacheControl,
}

impl CacheRule {
    /// Whether the directives forbid transforming responses (`no-transform`; RFC 9111, section 5.2.2.6).
    pub fn forbids_encoding(&self) -> bool {
        let mut directives = self.value.split(',').map(str::trim);
        directives.any(|directive| directive.eq_ignore_ascii_case("no-transform"))
    }
}

/// Treatment of `Cache-Control` in a server's response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerCacheControl {
    /// The server's field is kept, and nothing is added.
    #[default]
    Keep,
    /// The server's field is replaced.
    Replace,
}
