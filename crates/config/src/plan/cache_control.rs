//! What responses say of being kept by caches (RFC 9111).

/// `Cache-Control` of some of a route's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// Statuses, in ranges with both ends included; never empty. 206 and 304 count as the 200 that they stand for (RFC 9110,
    /// sections 15.3.7 and 15.4.5).
    pub statuses: Vec<(u16, u16)>,
    /// Media types, lower case, without parameters; `text/*` stands for all of its kind. None for every response, also
    /// without a type; never an empty list.
    pub types: Option<Vec<String>>,
    /// What they say: directives, each of which is valid.
    pub value: String,
    /// What becomes of what a server has said of that itself.
    pub of_server: OfServer,
}

impl CacheRule {
    /// Whether responses must stay as they are (RFC 9111, section 5.2.2.6).
    pub fn forbids_encoding(&self) -> bool {
        let mut directives = self.value.split(',').map(str::trim);
        directives.any(|directive| directive.eq_ignore_ascii_case("no-transform"))
    }
}

/// What becomes of what a server says of caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OfServer {
    /// It stays, and nothing is added.
    #[default]
    Stays,
    /// It goes.
    Replaced,
}
