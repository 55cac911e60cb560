//! `Cache-Control` of a route's responses, by status and media type (RFC 9111).

use onrush_config::plan::{CacheRule, ServerCacheControl};
use onrush_http::{Header, header_is};

use crate::rules::compress::matches_media_type;

/// The prepared rules of a route.
#[derive(Debug)]
pub(crate) struct CacheControl(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    statuses: Vec<(u16, u16)>,
    types: Option<Vec<String>>,
    line: Vec<u8>,
    of_server: ServerCacheControl,
}

/// The relevant fields of a response so far.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CacheFields<'h> {
    content_type: Option<&'h [u8]>,
    is_of_caches: bool,
}

/// The result for one response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheControlValue<'a> {
    /// The line to add; may be empty.
    pub(crate) line: &'a [u8],
    /// Whether existing fields stay or are replaced.
    pub(crate) of_server: ServerCacheControl,
}

/// Media type of a response.
enum Content<'m> {
    Typed(&'m [u8]),
    /// No type, and no content.
    NoType,
    /// No type, but it stands for a response that may have a type.
    UnknownType,
}

impl<'h> CacheFields<'h> {
    pub(crate) fn field(&mut self, name: &str, value: &'h [u8]) {
        match name.len() {
            12 if header_is(name, "content-type") => self.content_type = Some(value),
            6 | 7 | 13 if is_cache_field(name) => self.is_of_caches = true,
            _ => {}
        }
    }

    pub(crate) fn of(headers: &[Header<'h>]) -> CacheFields<'h> {
        let mut said = CacheFields::default();
        for header in headers {
            said.field(header.name, header.value);
        }
        said
    }

    /// Reads a generated head.
    pub(crate) fn of_head(head: &'h [u8]) -> CacheFields<'h> {
        let mut said = CacheFields::default();
        // The status line cannot match a field name: a colon in it comes after a space.
        said.lines(head);
        said
    }

    pub(crate) fn lines(&mut self, lines: &'h [u8]) {
        for line in lines.split(|byte| *byte == b'\n') {
            let Some(colon) = memchr::memchr(b':', line) else {
                continue;
            };
            let (name, value) = line.split_at(colon);
            let name = str::from_utf8(name).unwrap_or_default();
            self.field(name, value[1..].trim_ascii());
        }
    }
}

/// Whether a field controls caching (RFC 9111 5.2, 5.3, 5.4).
pub(crate) fn is_cache_field(name: &str) -> bool {
    ["cache-control", "expires", "pragma"]
        .iter()
        .any(|known| header_is(name, known))
}

impl CacheControl {
    /// `None` for an empty list of rules.
    pub(crate) fn new(rules: &[CacheRule]) -> Option<Self> {
        let rule = |rule: &CacheRule| Rule {
            statuses: rule.statuses.clone(),
            types: rule.types.clone(),
            line: format!("Cache-Control: {}\r\n", rule.value).into_bytes(),
            of_server: rule.server_field,
        };
        (!rules.is_empty()).then(|| Self(rules.iter().map(rule).collect()))
    }

    /// Whether any rule applies to this status.
    pub(crate) fn are_for(&self, status: u16) -> bool {
        self.0
            .iter()
            .any(|rule| rule.is_for(represented_status(status)))
    }

    /// Applies the rules to a response with the fields `said`; `media` is its type if the head does not have it.
    pub(crate) fn value_for(
        &self,
        status: u16,
        media: Option<&str>,
        said: CacheFields<'_>,
    ) -> CacheControlValue<'_> {
        let content = match (media, said.content_type) {
            (Some(media), _) => Content::Typed(media.as_bytes()),
            (None, Some(parts))
                if status == 206 && matches_media_type(parts, "multipart/byteranges") =>
            {
                Content::UnknownType
            }
            (None, Some(media)) => Content::Typed(media),
            (None, None) if matches!(status, 206 | 304) => Content::UnknownType,
            (None, None) => Content::NoType,
        };
        let status = represented_status(status);
        let mut rules = self.0.iter().filter(|rule| rule.is_for(status));
        let found = rules.find(|rule| rule.types.is_none() || rule.may_be_of(&content));
        let nothing = CacheControlValue {
            line: b"",
            of_server: ServerCacheControl::Keep,
        };
        let Some(rule) = found else {
            return nothing;
        };
        if said.is_of_caches && rule.of_server == ServerCacheControl::Keep {
            return nothing;
        }
        CacheControlValue {
            // A stored response keeps its own value (RFC 9111 3.2) if the type is not known here.
            line: match (&rule.types, content) {
                (Some(_), Content::UnknownType) => b"",
                _ => &rule.line,
            },
            of_server: rule.of_server,
        }
    }
}

impl Rule {
    fn is_for(&self, status: u16) -> bool {
        let mut statuses = self.statuses.iter();
        statuses.any(|(first, last)| (*first..=*last).contains(&status))
    }

    fn may_be_of(&self, content: &Content<'_>) -> bool {
        match content {
            Content::Typed(media) => self
                .types
                .iter()
                .flatten()
                .any(|known| matches_media_type(media, known)),
            Content::NoType => false,
            Content::UnknownType => true,
        }
    }
}

/// A part of a response (206) and 304 have the value of the whole response (RFC 9110 15.3.7, 15.4.5).
fn represented_status(status: u16) -> u16 {
    match status {
        206 | 304 => 200,
        status => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Statuses, types, value, and what happens to the server's fields.
    type Written<'a> = (&'a [(u16, u16)], &'a [&'a str], &'a str, ServerCacheControl);

    fn rules(written: &[Written<'_>]) -> CacheControl {
        let rule = |(statuses, types, value, of_server): &Written<'_>| CacheRule {
            statuses: statuses.to_vec(),
            types: (!types.is_empty())
                .then(|| types.iter().map(|known| (*known).to_owned()).collect()),
            value: (*value).to_owned(),
            server_field: *of_server,
        };
        let rules: Vec<_> = written.iter().map(rule).collect();
        CacheControl::new(&rules).expect("there are some")
    }

    /// The value added to a response with these lines, and whether it replaces others.
    fn saying(rules: &CacheControl, status: u16, lines: &str) -> (String, bool) {
        let head = format!("HTTP/1.1 {status} x\r\n{lines}\r\n");
        let saying = rules.value_for(status, None, CacheFields::of_head(head.as_bytes()));
        let line = String::from_utf8_lossy(saying.line);
        let value = line.trim_end().trim_start_matches("Cache-Control: ");
        (
            value.to_owned(),
            saying.of_server == ServerCacheControl::Replace,
        )
    }

    const OK: &[(u16, u16)] = &[(200, 299)];

    #[test]
    fn first_matching_rule_applies() {
        let rules = rules(&[
            (
                &[(404, 404), (410, 410)],
                &[],
                "no-store",
                ServerCacheControl::Keep,
            ),
            (OK, &["text/html"], "no-cache", ServerCacheControl::Keep),
            (
                OK,
                &["image/*", "font/*"],
                "max-age=9",
                ServerCacheControl::Keep,
            ),
            (OK, &[], "max-age=1", ServerCacheControl::Keep),
        ]);
        for (status, lines, expected) in [
            (404, "Content-Type: image/png\r\n", "no-store"),
            (410, "", "no-store"),
            (403, "", ""),
            (
                200,
                "content-type:Text/HTML ; charset=utf-8\r\n",
                "no-cache",
            ),
            (206, "Content-Type: image/png\r\n", "max-age=9"),
            (
                200,
                "X: y\r\nContent-Type: FONT/woff2\r\nZ: z\r\n",
                "max-age=9",
            ),
            (200, "Content-Type: text/css\r\n", "max-age=1"),
            (200, "", "max-age=1"),
            (204, "", "max-age=1"),
            (301, "", ""),
        ] {
            assert_eq!(
                saying(&rules, status, lines),
                (expected.into(), false),
                "{status} {lines}"
            );
        }
        assert!(rules.are_for(304) && rules.are_for(404) && !rules.are_for(403));
    }

    #[test]
    fn partial_and_304_responses_use_file_content_type() {
        let typed = rules(&[
            (OK, &["text/html"], "no-cache", ServerCacheControl::Keep),
            (OK, &[], "max-age=1", ServerCacheControl::Keep),
        ]);
        let parts = "Content-Type: multipart/byteranges; boundary=x\r\n";
        assert_eq!(saying(&typed, 304, "ETag: \"x\"\r\n").0, "");
        assert_eq!(saying(&typed, 206, parts).0, "");
        assert_eq!(
            saying(&typed, 304, "Content-Type: text/css\r\n").0,
            "max-age=1"
        );
        let of_page = typed.value_for(
            304,
            Some("text/html; charset=utf-8"),
            CacheFields::default(),
        );
        assert_eq!(of_page.line, b"Cache-Control: no-cache\r\n");
        let of_parts = typed.value_for(
            206,
            Some("text/css"),
            CacheFields::of_head(parts.as_bytes()),
        );
        assert_eq!(of_parts.line, b"Cache-Control: max-age=1\r\n");
        let any = rules(&[(OK, &[], "max-age=1", ServerCacheControl::Keep)]);
        assert_eq!(saying(&any, 304, "").0, "max-age=1");
    }

    #[test]
    fn existing_cache_fields_are_kept_or_replaced() {
        let stays = rules(&[(OK, &[], "max-age=1", ServerCacheControl::Keep)]);
        let replaced = rules(&[
            (OK, &["text/html"], "no-cache", ServerCacheControl::Replace),
            (OK, &[], "max-age=1", ServerCacheControl::Replace),
        ]);
        for said in [
            "CACHE-CONTROL: private\r\n",
            "Expires: 0\r\n",
            "Pragma: no-cache\r\n",
        ] {
            assert_eq!(saying(&stays, 200, said), (String::new(), false), "{said}");
            assert_eq!(
                saying(&replaced, 200, said),
                ("max-age=1".into(), true),
                "{said}"
            );
            // The type is unknown, so neither value is sent.
            assert_eq!(
                saying(&replaced, 304, said),
                (String::new(), true),
                "{said}"
            );
            assert_eq!(
                saying(&replaced, 404, said),
                (String::new(), false),
                "{said}"
            );
        }
        assert_eq!(
            saying(&stays, 200, "Age: 5\r\nX-Pragma: x\r\n").0,
            "max-age=1"
        );
    }
}
