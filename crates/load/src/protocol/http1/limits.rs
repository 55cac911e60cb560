//! Bounds of responses, each with its reason.

use onrush_http::{Codings, Limits};

/// Bounds of a response. Servers send heads larger than a proxy takes: cookies, policies (CSP) and tickets of a single sign-on make
/// 20 to 40 KiB; curl takes 100 KiB in a field and 300 KiB in all. Trailers are read as whole lines from a receive buffer, which
/// 15 KiB fit. A client needs no transfer coding decoded to find the end of a body.
pub(crate) const RESPONSE_LIMITS: Limits = Limits {
    head_bytes_max: 64 * 1024,
    headers_max: 256,
    trailer_bytes_max: 15 * 1024,
    trailers_max: 256,
    codings: Codings::Any,
    ..Limits::DEFAULT
};
