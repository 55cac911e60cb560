//! Limits of HTTP/1 responses.

use onrush_http::{Codings, Limits};

/// Limits of a response. Servers send larger heads than a proxy accepts: cookies, Content-Security-Policy and single
/// sign-on tickets take 20 to 40 KiB; curl accepts 100 KiB in a field and 300 KiB in total. Trailers are read as whole
/// lines from a receive buffer, which holds 15 KiB of them. A client finds the end of a body without decoding its
/// transfer codings.
pub(crate) const RESPONSE_LIMITS: Limits = Limits {
    head_bytes_max: 64 * 1024,
    headers_max: 256,
    trailer_bytes_max: 15 * 1024,
    trailers_max: 256,
    codings: Codings::Any,
    ..Limits::DEFAULT
};
