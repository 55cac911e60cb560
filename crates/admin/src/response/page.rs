//! The status page: what `onrush top` shows, for a browser. It has no data of its own: its script asks for `/v1/live` and
//! `/v1/events`, with the token where there is one.

use crate::response::Response;

/// What the page may load: what this server has. Nobody may frame it, and it sends no form anywhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The document.
pub(crate) fn document() -> Response {
    part("text/html; charset=utf-8", include_str!("page/status.html"))
}

/// What fills it.
pub(crate) fn script() -> Response {
    part(
        "text/javascript; charset=utf-8",
        include_str!("page/status.js"),
    )
}

/// What it looks like.
pub(crate) fn style() -> Response {
    part("text/css; charset=utf-8", include_str!("page/status.css"))
}

fn part(content_type: &'static str, text: &str) -> Response {
    Response::of(200, content_type, text.into())
        .with("Content-Security-Policy", POLICY)
        .with("X-Frame-Options", "DENY")
        .with("Referrer-Policy", "no-referrer")
}
