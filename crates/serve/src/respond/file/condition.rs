//! Conditional requests: detecting and evaluating preconditions (RFC 9110 13).

use std::time::UNIX_EPOCH;

use onrush_http::{Header, header_is};

/// Validators of the current version of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Validators<'e> {
    /// Strong, with quotes.
    pub(crate) etag: &'e str,
    /// Seconds since 1970; `None` if the file's time cannot be sent as a date.
    pub(crate) modified: Option<u64>,
}

/// Result of evaluating the preconditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PreconditionResult {
    /// They hold, or there are none.
    Holds,
    /// 304: the client has this version.
    NotModified,
    /// 412.
    Failed,
}

/// Whether the request has neither preconditions nor a range.
#[inline]
pub(crate) fn is_unconditional(headers: &[Header<'_>]) -> bool {
    headers.iter().all(|header| {
        let wanted = match header.name.len() {
            5 => "range",
            8 if header_is(header.name, "if-range") => return false,
            8 => "if-match",
            13 => "if-none-match",
            17 => "if-modified-since",
            19 => "if-unmodified-since",
            _ => return true,
        };
        !header_is(header.name, wanted)
    })
}

/// Evaluates the preconditions of a GET or HEAD in the order of RFC 9110 13.2.2.
pub(crate) fn evaluate(headers: &[Header<'_>], current: Validators<'_>) -> PreconditionResult {
    let modified_since = |name| Some(current.modified? > date(headers, name)?);
    if let Some(matches) = etag_matches(headers, "if-match", current.etag, Comparison::Strong) {
        if !matches {
            return PreconditionResult::Failed;
        }
    } else if modified_since("if-unmodified-since") == Some(true) {
        return PreconditionResult::Failed;
    }
    let known = match etag_matches(headers, "if-none-match", current.etag, Comparison::Weak) {
        Some(matches) => matches,
        None => modified_since("if-modified-since") == Some(false),
    };
    if known {
        PreconditionResult::NotModified
    } else {
        PreconditionResult::Holds
    }
}

/// Whether `If-Range` allows ranges (RFC 9110 13.1.5). `now` is in seconds since 1970.
pub(crate) fn admits_ranges(headers: &[Header<'_>], current: Validators<'_>, now: u64) -> bool {
    let Some(value) = field(headers, "if-range") else {
        // Absent, or repeated: a repeated field is invalid and matches nothing.
        return !headers
            .iter()
            .any(|header| header_is(header.name, "if-range"));
    };
    if value.starts_with(b"\"") || value.starts_with(b"W/") {
        return value == current.etag.as_bytes();
    }
    // A date is a strong validator only after its second has passed (RFC 9110 8.8.2.2): before that, the file could
    // change again within it.
    current
        .modified
        .is_some_and(|modified| parse_date(value) == Some(modified) && modified < now)
}

/// The value of a singleton field; `None` if it is absent or repeated.
pub(crate) fn field<'b>(headers: &[Header<'b>], name: &str) -> Option<&'b [u8]> {
    let mut found = headers
        .iter()
        .filter(|header| header_is(header.name, name))
        .map(|header| header.value);
    match (found.next(), found.next()) {
        (Some(value), None) => Some(value),
        _ => None,
    }
}

/// A date field; an invalid date counts as absent (RFC 9110 13.1.3, 13.1.4).
fn date(headers: &[Header<'_>], name: &str) -> Option<u64> {
    parse_date(field(headers, name)?)
}

fn parse_date(value: &[u8]) -> Option<u64> {
    let time = httpdate::parse_http_date(str::from_utf8(value).ok()?).ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// RFC 9110 8.8.3.2.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Weak tags never match.
    Strong,
    /// Weak and strong tags compare equal.
    Weak,
}

/// Whether a list of entity tags, across all its lines, contains `etag`; `*` matches any tag. `None` if the field is
/// absent.
fn etag_matches(
    headers: &[Header<'_>],
    name: &str,
    etag: &str,
    comparison: Comparison,
) -> Option<bool> {
    let mut lines = headers
        .iter()
        .filter(|header| header_is(header.name, name))
        .map(|header| header.value)
        .peekable();
    lines.peek()?;
    Some(lines.any(|line| line == b"*" || list_contains(line, etag.as_bytes(), comparison)))
}

/// Tags may contain commas, so the list is parsed quote by quote. A syntax error ends the list.
fn list_contains(mut list: &[u8], etag: &[u8], comparison: Comparison) -> bool {
    loop {
        while let [b' ' | b'\t' | b',', rest @ ..] = list {
            list = rest;
        }
        let weak = list.starts_with(b"W/");
        if weak {
            list = &list[2..];
        }
        let [b'"', opaque @ ..] = list else {
            return false;
        };
        let Some(length) = memchr::memchr(b'"', opaque) else {
            return false;
        };
        let (tag, rest) = list.split_at(length + 2);
        if tag == etag && (comparison == Comparison::Weak || !weak) {
            return true;
        }
        list = rest;
        if !matches!(list, [] | [b' ' | b'\t' | b',', ..]) {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CURRENT: Validators<'static> = Validators {
        etag: "\"xyzzy\"",
        modified: Some(784_111_777),
    };
    const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

    fn with<T>(fields: &[(&str, &str)], test: impl FnOnce(&[Header<'_>]) -> T) -> T {
        let headers: Vec<Header<'_>> = fields
            .iter()
            .map(|(name, value)| Header {
                name,
                value: value.as_bytes(),
            })
            .collect();
        test(&headers)
    }

    #[test]
    fn preconditions_follow_rfc() {
        use PreconditionResult::{Failed, Holds, NotModified};
        let table: &[(&[(&str, &str)], PreconditionResult)] = &[
            (&[], Holds),
            (&[("If-None-Match", "\"xyzzy\"")], NotModified),
            (&[("if-none-match", "W/\"xyzzy\"")], NotModified),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"r2d2\"")], Holds),
            (
                &[("If-None-Match", "\"a,b\", W/\"c\" ,, \"xyzzy\"")],
                NotModified,
            ),
            (&[("If-None-Match", "\"xyzz\"")], Holds),
            (&[("If-None-Match", "xyzzy")], Holds),
            (&[("If-None-Match", "\"r2d2")], Holds),
            (&[("If-None-Match", "\"r2d2\"\"xyzzy\"")], Holds),
            (&[("If-None-Match", "w/\"xyzzy\"")], Holds),
            (&[("If-None-Match", "")], Holds),
            (
                &[("If-None-Match", "\"a\""), ("If-None-Match", "\"xyzzy\"")],
                NotModified,
            ),
            (&[("If-Match", "\"xyzzy\"")], Holds),
            (&[("If-Match", "\"a\", \"xyzzy\"")], Holds),
            (&[("If-Match", "*")], Holds),
            (&[("If-Match", "W/\"xyzzy\"")], Failed),
            (&[("If-Match", "\"r2d2\"")], Failed),
            (&[("If-Match", "nonsense")], Failed),
            (&[("If-Modified-Since", SAME)], NotModified),
            (&[("If-Modified-Since", AFTER)], NotModified),
            (&[("If-Modified-Since", BEFORE)], Holds),
            (
                &[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:37 GMT")],
                NotModified,
            ),
            (
                &[("If-Modified-Since", "Sun Nov  6 08:49:37 1994")],
                NotModified,
            ),
            (&[("If-Modified-Since", "yesterday")], Holds),
            (
                &[("If-Modified-Since", SAME), ("If-Modified-Since", SAME)],
                Holds,
            ),
            (&[("If-Unmodified-Since", SAME)], Holds),
            (&[("If-Unmodified-Since", AFTER)], Holds),
            (&[("If-Unmodified-Since", BEFORE)], Failed),
            (&[("If-Unmodified-Since", "yesterday")], Holds),
            // 13.2.2: tags take precedence over dates, `If-Match` over `If-None-Match`.
            (
                &[("If-None-Match", "\"r2d2\""), ("If-Modified-Since", SAME)],
                Holds,
            ),
            (
                &[
                    ("If-None-Match", "\"xyzzy\""),
                    ("If-Modified-Since", BEFORE),
                ],
                NotModified,
            ),
            (
                &[("If-Match", "\"xyzzy\""), ("If-Unmodified-Since", BEFORE)],
                Holds,
            ),
            (
                &[("If-Match", "\"xyzzy\""), ("If-None-Match", "\"xyzzy\"")],
                NotModified,
            ),
            (
                &[("If-Match", "\"r2d2\""), ("If-None-Match", "\"xyzzy\"")],
                Failed,
            ),
            (
                &[("If-Unmodified-Since", SAME), ("If-Modified-Since", SAME)],
                NotModified,
            ),
        ];
        for (fields, verdict) in table {
            with(fields, |headers| {
                assert_eq!(evaluate(headers, CURRENT), *verdict, "{fields:?}");
                assert_eq!(is_unconditional(headers), fields.is_empty(), "{fields:?}");
            });
        }
    }

    #[test]
    fn file_without_date_ignores_date_conditions() {
        let current = Validators {
            modified: None,
            ..CURRENT
        };
        for name in ["If-Modified-Since", "If-Unmodified-Since"] {
            for date in [BEFORE, AFTER] {
                let verdict = with(&[(name, date)], |headers| evaluate(headers, current));
                assert_eq!(verdict, PreconditionResult::Holds);
            }
        }
    }

    #[test]
    fn if_range_requires_strong_match() {
        let then = CURRENT.modified.unwrap();
        let now = then + 1;
        for (value, now, admits) in [
            ("\"xyzzy\"", now, true),
            ("W/\"xyzzy\"", now, false),
            ("\"r2d2\"", now, false),
            ("xyzzy", now, false),
            (SAME, now, true),
            (SAME, then, false),
            (BEFORE, now, false),
            (AFTER, now, false),
            ("", now, false),
        ] {
            let admitted = with(&[("If-Range", value)], |headers| {
                assert!(!is_unconditional(headers));
                admits_ranges(headers, CURRENT, now)
            });
            assert_eq!(admitted, admits, "{value}");
        }
        assert!(with(&[], |headers| admits_ranges(headers, CURRENT, now)));
        let twice = [("If-Range", "\"xyzzy\""), ("If-Range", "\"xyzzy\"")];
        assert!(!with(&twice, |headers| admits_ranges(
            headers, CURRENT, now
        )));
    }

    #[test]
    fn unrelated_fields_do_not_make_request_conditional() {
        let fields = [
            ("Host", "h"),
            ("Accept", "*/*"),
            ("Range2", "x"),
            ("If-Matcg", "x"),
        ];
        assert!(with(&fields, is_unconditional));
        assert!(!with(&[("RANGE", "bytes=0-")], is_unconditional));
    }

    proptest::proptest! {
        #[test]
        fn etag_list_is_parsed_leniently(
            before in proptest::collection::vec("(W/)?\"[a-z,]{0,5}\"", 0..4),
            nonsense in "[\\x20-\\x7eé]{0,20}",
        ) {
            let etag = b"\"XYZZY\"";
            let list = [before.join(" , ").as_str(), "\"XYZZY\"", nonsense.as_str()].join(",");
            assert!(list_contains(list.as_bytes(), etag, Comparison::Strong));
            let _ = list_contains(nonsense.as_bytes(), etag, Comparison::Weak);
            let _ = parse_date(nonsense.as_bytes());
        }
    }
}
