//! Cross-origin resource sharing (the Fetch standard, "CORS protocol").

use onrush_config::plan;
use onrush_http::request::RequestHead;
use onrush_http::{Header, Method, header_is};

/// The prepared CORS settings of a route.
#[derive(Debug)]
pub(crate) struct Cors {
    /// Allowed origins; `None` for all.
    origins: Option<Vec<String>>,
    /// Lines of every response for an allowed origin, except the origin itself.
    allowed: Vec<u8>,
    /// Additional lines of the response to a preflight request.
    preflight: Vec<u8>,
}

impl Cors {
    pub(crate) fn new(plan: &plan::Cors) -> Self {
        let mut allowed = String::new();
        if plan.credentials {
            allowed += "Access-Control-Allow-Credentials: true\r\n";
        }
        if !plan.expose.is_empty() {
            let names = plan.expose.join(", ");
            allowed += &format!("Access-Control-Expose-Headers: {names}\r\n");
        }
        let methods = plan.methods.join(", ");
        let mut preflight = format!("Access-Control-Allow-Methods: {methods}\r\n");
        if !plan.headers.is_empty() {
            let names = plan.headers.join(", ");
            preflight += &format!("Access-Control-Allow-Headers: {names}\r\n");
        }
        if let Some(age) = plan.age_max {
            preflight += &format!("Access-Control-Max-Age: {}\r\n", age.as_secs());
        }
        Self {
            origins: plan.origins.clone(),
            allowed: allowed.into_bytes(),
            preflight: preflight.into_bytes(),
        }
    }

    /// Appends the lines for every response to a request with these fields.
    pub(crate) fn render(&self, headers: &[Header<'_>], lines: &mut Vec<u8>) {
        let Some(origins) = &self.origins else {
            lines.extend_from_slice(b"Access-Control-Allow-Origin: *\r\n");
            lines.extend_from_slice(&self.allowed);
            return;
        };
        lines.extend_from_slice(b"Vary: Origin\r\n");
        if let Some(origin) = known(origins, headers) {
            lines.extend_from_slice(b"Access-Control-Allow-Origin: ");
            lines.extend_from_slice(origin.as_bytes());
            lines.extend_from_slice(b"\r\n");
            lines.extend_from_slice(&self.allowed);
        }
    }

    pub(crate) fn is_preflight(head: &RequestHead<'_, '_>) -> bool {
        let has = |name| {
            head.headers
                .iter()
                .any(|header| header_is(header.name, name))
        };
        head.method == Method::Options && has("origin") && has("access-control-request-method")
    }

    /// Additional lines of the response to a preflight request; none for other origins.
    pub(crate) fn preflight(&self, headers: &[Header<'_>]) -> &[u8] {
        let is_known = match &self.origins {
            None => true,
            Some(origins) => known(origins, headers).is_some(),
        };
        if is_known { &self.preflight } else { &[] }
    }
}

/// The origin of a request, if it is one of `origins`; `None` if the field occurs twice.
fn known<'o>(origins: &'o [String], headers: &[Header<'_>]) -> Option<&'o String> {
    let mut said = headers
        .iter()
        .filter(|header| header_is(header.name, "origin"));
    let origin = said.next().filter(|_| said.next().is_none())?;
    let is_it = |known: &&String| known.as_bytes().eq_ignore_ascii_case(origin.value);
    origins.iter().find(is_it)
}
