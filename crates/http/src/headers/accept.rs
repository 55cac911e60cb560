//! Accept (RFC 9110 12.5.1): whether a client prefers JSON to text.

use crate::field::{self, Header, header_is};
use crate::headers::encoding::{WEIGHT_MAX, Weight, weight};

/// Preference: weight, then specificity, then order.
type Rank = (Weight, u8, std::cmp::Reverse<usize>);

/// Whether the Accept fields prefer JSON (`application/json` or `+json`) to text of any kind. At equal weight the more
/// specific range wins, then the earlier one. Malformed members are skipped; without any member, text is preferred.
pub fn prefers_json(headers: &[Header<'_>]) -> bool {
    let fields = headers
        .iter()
        .filter(|header| header_is(header.name, "accept"));
    let (mut json, mut text): (Option<Rank>, Option<Rank>) = (None, None);
    let members = fields.flat_map(|header| field::split_unquoted(header.value, b','));
    for (place, member) in members.enumerate() {
        let Some((kind, subtype, weight)) = range(field::trim(member)) else {
            continue;
        };
        let is_any = |text: &[u8]| text == b"*";
        let is = |text: &[u8], name: &[u8]| text.eq_ignore_ascii_case(name);
        let exactness = match (is_any(kind), is_any(subtype)) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        let rank = Some((weight, exactness, std::cmp::Reverse(place)));
        let ends_as_json = subtype.len() > 5 && is(&subtype[subtype.len() - 5..], b"+json");
        if is_any(kind)
            || is(kind, b"application") && (is_any(subtype) || is(subtype, b"json"))
            || ends_as_json
        {
            json = json.max(rank);
        }
        if is_any(kind) || is(kind, b"text") {
            text = text.max(rank);
        }
    }
    json.is_some_and(|(weight, ..)| weight > 0) && json > text
}

/// Parses `type/subtype *( ; parameter )` with its weight; `None` if malformed.
fn range(text: &[u8]) -> Option<(&[u8], &[u8], Weight)> {
    let mut parts = field::split_unquoted(text, b';');
    let name = field::trim(parts.next()?);
    let slash = memchr::memchr(b'/', name)?;
    let (kind, subtype) = (&name[..slash], &name[slash + 1..]);
    let mut found = WEIGHT_MAX;
    for parameter in parts {
        if let (b"q=" | b"Q=", value) = field::trim(parameter).split_at_checked(2)? {
            found = weight(value)?;
        }
    }
    (field::is_token(kind) && field::is_token(subtype)).then_some((kind, subtype, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_requires_higher_accept_weight_than_text() {
        for (accept, is_json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/problem+json", true),
            ("application/vnd.api+json;q=0.5, text/html;q=0.4", true),
            // Default of some client libraries.
            ("application/json, text/plain, */*", true),
            ("application/*", true),
            ("application/json;q=0, */*", false),
            ("application/json;q=0.5, text/plain", false),
            ("text/plain, application/json", false),
            ("application/json, text/plain", true),
            // Browsers.
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8",
                false,
            ),
            ("*/*", false),
            ("image/png", false),
            ("application/json;q=2, text/plain", false),
            ("json", false),
            ("/json", false),
            ("application/json;q", false),
            ("", false),
        ] {
            let headers = [Header {
                name: "Accept",
                value: accept.as_bytes(),
            }];
            assert_eq!(prefers_json(&headers), is_json, "{accept}");
        }
        assert!(!prefers_json(&[]));
    }
}
