//! Extracts values from responses, for use in later requests.

use regex::bytes::Regex;

use super::json;
use super::response::Response;
use crate::limits::VALUE_IN_HEAD_MAX;

/// A value that steps extract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) used: ValueUse,
}

/// Parts of requests that contain the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueUse {
    /// A path or a header field, which limits length and characters.
    InHead,
    /// Bodies alone.
    InBody,
}

/// Extraction of one value.
#[derive(Clone, Debug)]
pub(crate) struct Extraction {
    /// Index of the value.
    pub(crate) value: usize,
    pub(crate) source: Source,
    /// Default if the response does not have the value.
    pub(crate) default: Option<String>,
}

/// Source of a value in a response.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// First header field with this name.
    Header(String),
    /// Cookie with this name in `Set-Cookie`.
    Cookie(String),
    /// Value at a JSON pointer in the body (RFC 6901).
    Json(String),
    /// First group of the first match in the body; the whole match if the expression has no group.
    Regex(Regex),
}

impl Source {
    /// Whether the source is the body.
    pub(crate) fn is_of_body(&self) -> bool {
        match self {
            Source::Json(_) | Source::Regex(_) => true,
            Source::Header(_) | Source::Cookie(_) => false,
        }
    }

    fn find(&self, response: &Response) -> Option<Vec<u8>> {
        match self {
            Source::Header(name) => response.fields(name).next().map(<[u8]>::to_vec),
            Source::Cookie(name) => {
                let mut cookies = response.cookies();
                let found = cookies.find(|cookie| cookie.name() == name.as_bytes())?;
                Some(found.value().to_vec())
            }
            Source::Json(pointer) => {
                json::text(json::find(response.body(), pointer)?).map(String::into_bytes)
            }
            Source::Regex(regex) => {
                let found = regex.captures(response.body())?;
                let group = found.get(if found.len() > 1 { 1 } else { 0 })?;
                Some(group.as_bytes().to_vec())
            }
        }
    }
}

impl Extraction {
    /// Returns the value in `response`, or the default; `None` if there is neither, or if requests cannot carry it in
    /// the parts of `used`.
    pub(crate) fn find(&self, response: &Response, used: ValueUse) -> Option<Vec<u8>> {
        let found = self.source.find(response);
        let value = found.or(self.default.clone().map(String::into_bytes))?;
        let is_fit = match used {
            ValueUse::InHead => {
                value.len() <= VALUE_IN_HEAD_MAX && onrush_http::is_field_value(&value)
            }
            ValueUse::InBody => true,
        };
        is_fit.then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"token": "t-1", "items": [{"id": 7}, {"id": "a/b"}], "none": null, "ok": true, "a/b": 1.50}"#;

    fn response() -> Response {
        let fields = [
            ("Location", "/next"),
            ("Set-Cookie", "sid=s-1; Path=/"),
            ("Set-Cookie", "other=2"),
        ];
        Response::of(200, &fields, BODY)
    }

    fn take(source: Source, used: ValueUse) -> Option<String> {
        let take = Extraction {
            value: 0,
            source,
            default: None,
        };
        let found = take.find(&response(), used)?;
        Some(String::from_utf8(found).unwrap())
    }

    #[test]
    fn values_are_extracted_from_each_source() {
        let json = |pointer: &str| Source::Json(pointer.to_owned());
        let regex = |text: &str| Source::Regex(Regex::new(text).unwrap());
        for (source, expected) in [
            (Source::Header("location".to_owned()), Some("/next")),
            (Source::Header("etag".to_owned()), None),
            (Source::Cookie("other".to_owned()), Some("2")),
            (Source::Cookie("Other".to_owned()), None),
            (json("/token"), Some("t-1")),
            (json("/items/0/id"), Some("7")),
            (json("/items/1/id"), Some("a/b")),
            (json("/items/0"), Some(r#"{"id":7}"#)),
            (json("/a~1b"), Some("1.50")),
            (json("/ok"), Some("true")),
            (json("/none"), None),
            (json("/items/2/id"), None),
            (regex(r#""id": (\d+)"#), Some("7")),
            (regex("t-[0-9]"), Some("t-1")),
            (regex("t-(x)?1"), None),
            (regex("absent"), None),
        ] {
            let shown = format!("{source:?}");
            assert_eq!(
                take(source, ValueUse::InHead).as_deref(),
                expected,
                "{shown}"
            );
        }
    }

    #[test]
    fn values_invalid_in_head_are_refused() {
        let lines = Response::of(200, &[], b"a\r\nb");
        let take = Extraction {
            value: 0,
            source: Source::Regex(Regex::new("(?s).+").unwrap()),
            default: None,
        };
        assert_eq!(take.find(&lines, ValueUse::InHead), None);
        assert_eq!(
            take.find(&lines, ValueUse::InBody),
            Some(b"a\r\nb".to_vec())
        );
        let long = Response::of(200, &[], &vec![b'a'; VALUE_IN_HEAD_MAX + 1]);
        assert_eq!(take.find(&long, ValueUse::InHead), None);
        assert!(take.find(&long, ValueUse::InBody).is_some());
    }

    #[test]
    fn default_replaces_missing_value() {
        let take = Extraction {
            value: 0,
            source: Source::Json("/absent".to_owned()),
            default: Some("d".to_owned()),
        };
        assert_eq!(
            take.find(&response(), ValueUse::InHead),
            Some(b"d".to_vec())
        );
    }
}
