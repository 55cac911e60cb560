//! The status page: `onrush top` for a browser. Contains no data: its script requests `/v1/live` and `/v1/events`.

use crate::response::Response;

/// Content security policy: the page loads only files of this server, cannot be framed and submits no forms.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) fn document() -> Response {
    static_file("text/html; charset=utf-8", include_str!("page/status.html"))
}

pub(crate) fn script() -> Response {
    static_file(
        "text/javascript; charset=utf-8",
        include_str!("page/status.js"),
    )
}

pub(crate) fn style() -> Response {
    static_file("text/css; charset=utf-8", include_str!("page/status.css"))
}

fn static_file(content_type: &'static str, text: &str) -> Response {
    Response::of(200, content_type, text.into())
        .with("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        .with("X-Frame-Options", "DENY")
        .with("Referrer-Policy", "no-referrer")
}
