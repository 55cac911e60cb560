//! The Location of a redirect: a template of a URI reference (RFC 3986 4.1), expanded for a request.
//!
//! The literal text of a template determines scheme and host, or that there are none and the location is on this host.
//! Variables cannot change that: two slashes at the start of a reference introduce a host (RFC 3986 4.2), browsers
//! treat a backslash as a slash, and `https://example.com` followed by `.evil.example` is another host. The host may
//! consist of variables if the template has them there, as in `https://{host}{uri}`; it must then be a valid host.

use onrush_config::plan::{Piece, Template, Variable};
use onrush_http::is_authority;

use crate::limits::LOCATION_BYTES_MAX;
use crate::routing::variables::{SERVER_PLACEHOLDER, VariableValues};

/// A location that depends on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    /// `None` for a location on this host.
    base: Option<SchemeAndAuthority>,
    /// Path, query and fragment.
    rest: Template,
}

/// Scheme and authority.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SchemeAndAuthority {
    /// Without the colon; empty for the scheme of the request.
    scheme: Template,
    authority: Template,
}

/// Why a request has no location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetError {
    /// The location exceeds [`LOCATION_BYTES_MAX`] bytes.
    TooLong,
    /// The location's scheme or host is invalid.
    NoHost,
}

/// Possible contents of a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VariableContent {
    /// A part of a host; no character that ends one.
    Host,
    /// A path or a query, with any characters.
    Path,
    /// Either, with any characters.
    Anything,
}

impl VariableContent {
    fn of(variable: &Variable) -> Self {
        match variable {
            Variable::Path | Variable::PathRest | Variable::Query | Variable::Uri => {
                VariableContent::Path
            }
            Variable::Header(_) | Variable::Method | Variable::TlsClientSubject => {
                VariableContent::Anything
            }
            Variable::ClientAddress
            | Variable::ClientPort
            | Variable::Scheme
            | Variable::Host
            | Variable::HostName
            | Variable::TlsVersion
            | Variable::TlsCipher
            | Variable::TlsServerName
            | Variable::Upstream
            | Variable::Server
            | Variable::RequestId => VariableContent::Host,
        }
    }
}

impl Location {
    pub(crate) fn new(template: &Template) -> Self {
        match split_scheme(&template.0) {
            Some((scheme, behind)) => {
                let (authority, rest) = split_authority(&behind);
                let [scheme, authority, rest] = [scheme, authority, rest].map(Template);
                Self {
                    base: Some(SchemeAndAuthority { scheme, authority }),
                    rest,
                }
            }
            None => Self {
                base: None,
                rest: template.clone(),
            },
        }
    }

    /// The location for a request with these facts.
    ///
    /// # Errors
    /// If it is too long or has no valid host.
    pub(crate) fn render(&self, facts: &VariableValues<'_>) -> Result<String, TargetError> {
        let mut location = match &self.base {
            Some(base) => base.render(facts)?,
            None => String::new(),
        };
        let rest_at = location.len();
        put(&self.rest, facts, &mut location);
        let rest = &location[rest_at..];
        let slashes = rest.len() - rest.trim_start_matches(['/', '\\']).len();
        if self.base.is_none() {
            location.replace_range(..slashes, "/");
        } else if !rest.is_empty() && !rest.starts_with(['/', '?', '#']) {
            // End the host, regardless of the rest.
            location.insert(rest_at, '/');
        }
        match location.len() <= LOCATION_BYTES_MAX {
            true => Ok(location),
            false => Err(TargetError::TooLong),
        }
    }
}

impl SchemeAndAuthority {
    fn render(&self, facts: &VariableValues<'_>) -> Result<String, TargetError> {
        let mut base = String::new();
        put(&self.scheme, facts, &mut base);
        let is_http = ["http", "https"]
            .iter()
            .any(|http| base.eq_ignore_ascii_case(http));
        if self.scheme.as_text().is_none() && !is_http {
            return Err(TargetError::NoHost);
        }
        base.push_str(if base.is_empty() { "//" } else { "://" });
        let authority_at = base.len();
        put(&self.authority, facts, &mut base);
        let authority = &base[authority_at..];
        // The placeholder of the responding server's name, which the configuration determines.
        let is_ours = self.authority.as_text().is_some() || authority.contains('\0');
        match !authority.is_empty() && (is_ours || is_authority(authority.as_bytes())) {
            true => Ok(base),
            false => Err(TargetError::NoHost),
        }
    }
}

/// Appends the expanded `template`.
fn put(template: &Template, facts: &VariableValues<'_>, location: &mut String) {
    facts.render(template, &mut |bytes| {
        // Checked before appending, because a template may use the same field several times.
        if location.len() <= LOCATION_BYTES_MAX {
            bytes.iter().for_each(|&byte| push(byte, location));
        }
    });
}

/// Appends a byte, percent-encoded if it is not allowed in a URI (RFC 3986 2). Existing encodings stay. Browsers remove
/// tabs and line ends anywhere, so none may be left.
fn push(byte: u8, location: &mut String) {
    if byte.is_ascii_graphic() || byte == SERVER_PLACEHOLDER[0] {
        return location.push(char::from(byte));
    }
    let digit = |value: u8| char::from(b"0123456789ABCDEF"[usize::from(value)]);
    location.extend(['%', digit(byte >> 4), digit(byte & 0xf)]);
}

/// The scheme (empty before a mere `//`) and the part after the two slashes; `None` for a location on this host.
fn split_scheme(pieces: &[Piece]) -> Option<(Vec<Piece>, Vec<Piece>)> {
    let is_of_scheme = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    };
    let behind = |text: &str, at: usize| [text_piece(text), pieces[at + 1..].to_vec()].concat();
    let mut scheme = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Variable(variable) if VariableContent::of(variable) == VariableContent::Path => {
                return None;
            }
            Piece::Variable(_) => scheme.push(piece.clone()),
            Piece::Text(text) => {
                if at == 0
                    && let Some(after) = text.strip_prefix("//")
                {
                    return Some((scheme, behind(after, at)));
                }
                match text.split_once("://") {
                    Some((before, after)) if is_of_scheme(before) => {
                        scheme.extend(text_piece(before));
                        return (!scheme.is_empty()).then(|| (scheme, behind(after, at)));
                    }
                    None if is_of_scheme(text) => scheme.push(piece.clone()),
                    Some(_) | None => return None,
                }
            }
        }
    }
    None
}

/// The authority at the start of `pieces`, and the rest (RFC 3986 3.2).
fn split_authority(pieces: &[Piece]) -> (Vec<Piece>, Vec<Piece>) {
    let mut authority = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                if let Some(end) = text.find(AUTHORITY_ENDS) {
                    authority.extend(text_piece(&text[..end]));
                    let rest = [text_piece(&text[end..]), pieces[at + 1..].to_vec()];
                    return (authority, rest.concat());
                }
            }
            Piece::Variable(variable) => {
                let ends = match VariableContent::of(variable) {
                    VariableContent::Host => false,
                    VariableContent::Path => true,
                    VariableContent::Anything => {
                        is_host_complete(&authority) && ends_host(&pieces[at + 1..])
                    }
                };
                if ends {
                    return (authority, pieces[at..].to_vec());
                }
            }
        }
        authority.push(piece.clone());
    }
    (authority, Vec::new())
}

/// Characters that end an authority; browsers treat a backslash as a slash.
const AUTHORITY_ENDS: [char; 4] = ['/', '?', '#', '\\'];

/// Whether the host in a template is complete: not empty, and not waiting for a port.
fn is_host_complete(authority: &[Piece]) -> bool {
    match authority.last() {
        None => false,
        Some(Piece::Text(text)) => !text.ends_with(':'),
        Some(Piece::Variable(_)) => true,
    }
}

/// Whether the following text does not continue the host, as it does in `https://{header:X-Tenant}.example.com/`.
fn ends_host(behind: &[Piece]) -> bool {
    for piece in behind {
        match piece {
            Piece::Text(text) => return text.starts_with(AUTHORITY_ENDS),
            Piece::Variable(variable) if VariableContent::of(variable) == VariableContent::Path => {
                return true;
            }
            Piece::Variable(_) => {}
        }
    }
    true
}

fn text_piece(text: &str) -> Vec<Piece> {
    let is_something = !text.is_empty();
    let piece = is_something.then(|| Piece::Text(text.to_owned()));
    piece.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::value::parse_template;

    /// Scheme, authority and rest of a template, separated by `|`.
    fn split(template: &str) -> String {
        let text = |template: &Template| {
            let piece = |piece: &Piece| match piece {
                Piece::Text(text) => text.clone(),
                Piece::Variable(Variable::Header(name)) => format!("{{{name}}}"),
                Piece::Variable(variable) => format!("{{{variable:?}}}"),
            };
            template.0.iter().map(piece).collect::<String>()
        };
        let location = Location::new(&parse_template(template).expect(template));
        let rest = text(&location.rest);
        match &location.base {
            Some(base) => format!("{}|{}|{rest}", text(&base.scheme), text(&base.authority)),
            None => rest,
        }
    }

    #[test]
    fn location_template_host_is_detected() {
        for (template, parts) in [
            ("/new{uri}", "/new{Uri}"),
            ("{path}", "{Path}"),
            ("{query}://x/", "{Query}://x/"),
            ("{path}?from=https://a/", "{Path}?from=https://a/"),
            ("/?to=https://a/{path}", "/?to=https://a/{Path}"),
            ("://a/", "://a/"),
            ("//cdn.example{uri}", "|cdn.example|{Uri}"),
            ("https://a.example", "https|a.example|"),
            ("https://{host}{uri}", "https|{Host}|{Uri}"),
            ("{scheme}://{host}/{query}", "{Scheme}|{Host}|/{Query}"),
            ("{header:P}://a/", "{P}|a|/"),
            ("http{header:S}://a/", "http{S}|a|/"),
            ("https://a.example{path.rest}", "https|a.example|{PathRest}"),
            ("https://a.example{header:X}", "https|a.example|{X}"),
            ("https://a.example{header:X}?q", "https|a.example|{X}?q"),
            ("https://{host}{header:X}{uri}", "https|{Host}|{X}{Uri}"),
            ("https://{header:X}.example/", "https|{X}.example|/"),
            ("https://t-{header:X}.example", "https|t-{X}.example|"),
            ("https://{header:X}{uri}", "https|{X}|{Uri}"),
            ("https://a:{header:X}/", "https|a:{X}|/"),
            ("https://a?{query}", "https|a|?{Query}"),
            ("https://a\\{path}", "https|a|\\{Path}"),
            ("https://{path}.example/", "https||{Path}.example/"),
        ] {
            assert_eq!(split(template), parts, "{template}");
        }
    }
}
