//! Request methods and their properties (RFC 9110 9, RFC 5789).

/// Request method; names are case-sensitive (RFC 9110 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Transfer a representation.
    Get,
    /// GET without the content.
    Head,
    /// Process the request's content.
    Post,
    /// Replace the target.
    Put,
    /// Remove the target.
    Delete,
    /// Open a tunnel.
    Connect,
    /// Describe the communication options.
    Options,
    /// Return the message to the client.
    Trace,
    /// Modify the target in part (RFC 5789).
    Patch,
    /// Any other token; its text is in the head.
    Other,
}

impl Method {
    /// Method with the name `text`.
    #[inline]
    pub fn of(text: &str) -> Method {
        match text.as_bytes() {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"CONNECT" => Method::Connect,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            _ => Method::Other,
        }
    }

    /// Whether the method is safe, i.e. requests no change of state (RFC 9110 9.2.1).
    pub fn is_safe(self) -> bool {
        match self {
            Method::Get | Method::Head | Method::Options | Method::Trace => true,
            Method::Post
            | Method::Put
            | Method::Delete
            | Method::Connect
            | Method::Patch
            | Method::Other => false,
        }
    }

    /// Whether repeating the request has no further effect, so that it may be retried (RFC 9110 9.2.2).
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

#[cfg(test)]
mod tests {
    use super::Method;

    #[test]
    fn method_names_are_case_sensitive() {
        assert_eq!(Method::of("GET"), Method::Get);
        assert_eq!(Method::of("get"), Method::Other);
        assert_eq!(Method::of("PURGE"), Method::Other);
    }

    #[test]
    fn unknown_methods_and_post_are_not_idempotent() {
        assert!(
            !Method::Other.is_idempotent()
                && !Method::Post.is_idempotent()
                && !Method::Patch.is_idempotent()
        );
        assert!(Method::Put.is_idempotent() && !Method::Put.is_safe());
        assert!(Method::Get.is_idempotent() && Method::Get.is_safe());
    }
}
