//! Requests of a HAR file (HTTP Archive 1.2), as recorded by browsers. Requests to other servers than the target are
//! skipped and counted.

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::{Body, Expect, Request, resolve_url};
use crate::pace::target::Target;
use crate::requests::header::check_header;

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: HarRequest,
    response: Option<HarResponse>,
    /// Cache that supplied the response; an extension of Chrome.
    #[serde(rename = "_fromCache")]
    from_cache: Option<serde_json::Value>,
}

impl Entry {
    /// Whether the request was sent: browsers also record cache hits and aborted requests.
    fn was_sent(&self) -> bool {
        let is_aborted = self
            .response
            .as_ref()
            .is_some_and(|response| response.status == 0);
        !is_aborted
            && self
                .from_cache
                .as_ref()
                .is_none_or(serde_json::Value::is_null)
    }
}

#[derive(Deserialize)]
struct HarResponse {
    /// 0 without a response.
    #[serde(default)]
    status: i32,
}

#[derive(Deserialize)]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Field>,
    #[serde(rename = "postData")]
    post_data: Option<PostData>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct PostData {
    text: Option<String>,
    /// Encoding of `text`, such as `base64`; none if it is the body as sent.
    #[serde(alias = "_encoding")]
    encoding: Option<String>,
    #[serde(default, rename = "mimeType")]
    media_type: String,
    /// Fields of a form, without `text`.
    #[serde(default)]
    params: Vec<Param>,
}

#[derive(Deserialize)]
struct Param {
    name: String,
    #[serde(default)]
    value: Option<String>,
}

impl PostData {
    fn body(self) -> Result<Body, String> {
        let bytes = match (self.text.unwrap_or_default(), self.encoding.as_deref()) {
            (text, Some("base64")) => STANDARD
                .decode(text)
                .map_err(|error| format!("its body is not Base64: {error}"))?,
            (text, _) if !text.is_empty() || self.params.is_empty() => text.into_bytes(),
            _ if self.media_type.starts_with("multipart/") => {
                return Err("its body has several parts, but the recording has only their names: record it with \
                    postData.text".to_owned());
            }
            _ => form(&self.params).into_bytes(),
        };
        Ok(match bytes.is_empty() {
            true => Body::None,
            false => Body::Bytes(bytes.into()),
        })
    }
}

/// Encodes the fields of a form as `application/x-www-form-urlencoded` (WHATWG URL 5.2).
fn form(params: &[Param]) -> String {
    let escaped = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b' ' => "+".to_owned(),
            b'*' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            _ if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let pairs = params.iter().map(|Param { name, value }| {
        let value = value.as_deref().unwrap_or_default();
        format!("{}={}", escaped(name), escaped(value))
    });
    pairs.collect::<Vec<String>>().join("&")
}

/// Requests of a HAR file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Har {
    /// Requests in the order of the file.
    pub requests: Vec<Request>,
    /// Entries for other servers.
    pub other_servers: usize,
    /// Entries that were not sent: cache hits and aborted requests.
    pub unsent: usize,
}

/// Parses the requests to `target`'s server in `text`, the content of the file `name`, in order. Hop-by-hop fields are
/// dropped, and braces are not variables.
///
/// # Errors
/// A sentence with the file and the mistake.
pub fn parse(text: &str, name: &str, target: &Target) -> Result<Har, String> {
    let archive: Archive = serde_json::from_str(text.strip_prefix('\u{feff}').unwrap_or(text))
        .map_err(|error| format!("{name}: not a HAR file: {error}"))?;
    let mut har = Har {
        requests: Vec::new(),
        other_servers: 0,
        unsent: 0,
    };
    for (index, entry) in archive.log.entries.into_iter().enumerate() {
        let was_sent = entry.was_sent();
        let request = entry.request;
        let Ok((host, path)) = resolve_url(target, &encoded(request.url.as_bytes())) else {
            har.other_servers += 1;
            continue;
        };
        if !was_sent {
            har.unsent += 1;
            continue;
        }
        let wrong = |why: String| format!("{name}: entry {}: {why}", index + 1);
        har.requests
            .push(asked(request, host, &path).map_err(wrong)?);
    }
    if har.requests.is_empty() {
        return Err(format!(
            "{name}: none of its {} entries is for {}: give a URL of the server in the recording",
            har.other_servers + har.unsent,
            target.url
        ));
    }
    Ok(har)
}

fn asked(asked: HarRequest, host: String, path: &str) -> Result<Request, String> {
    let mut headers = Vec::new();
    for Field { name, value } in asked.headers {
        if is_dropped(&name) {
            continue;
        }
        check_header(&name, &value)?;
        headers.push((name, literal(&value)));
    }
    let body = asked.post_data.map_or(Ok(Body::None), PostData::body)?;
    Ok(Request {
        method: asked.method,
        host,
        path: literal(path),
        headers,
        body,
        weight: NonZeroU32::MIN,
        expect: Expect::default(),
    })
}

/// Percent-encodes the bytes that are not allowed in a URL, as browsers do (RFC 3986 section 2.1).
pub(super) fn encoded(text: &[u8]) -> String {
    let byte = |byte: &u8| match byte {
        b'"' => "%22".to_owned(),
        _ if byte.is_ascii_graphic() => char::from(*byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.iter().map(byte).collect()
}

/// Escapes `{{`, so that the text has no variables.
pub(super) fn literal(text: &str) -> String {
    text.replace("{{", "{{}}")
}

/// Hop-by-hop fields, fields that are generated, and HTTP/2 pseudo-header fields.
fn is_dropped(name: &str) -> bool {
    name.starts_with(':')
        || onrush_http::hop::is_hop_by_hop(name)
        || ["host", "content-length"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(entries: &str) -> Result<Har, String> {
        let text = format!("{{\"log\": {{\"version\": \"1.2\", \"entries\": [{entries}]}}}}");
        parse(&text, "r.har", &Target::parse("https://a/").unwrap())
    }

    #[test]
    fn har_entries_of_target_become_requests() {
        let har = parsed(
            r#"{"request": {"method": "GET", "url": "https://a/x?{{y}}", "httpVersion": "h2", "headers":
               [{"name": ":authority", "value": "a"}, {"name": "Connection", "value": "keep-alive"}, {"name": "Accept", "value": "*/*"}]}},
               {"request": {"method": "GET", "url": "https://cdn/x", "headers": []}},
               {"request": {"method": "POST", "url": "https://a/z#f", "headers": [{"name": "Content-Length", "value": "2"}], "postData": {"mimeType": "x", "text": "hi"}}}"#,
        )
        .unwrap();
        assert_eq!(har.other_servers, 1);
        let [got, posted] = &har.requests[..] else {
            panic!("{har:?}");
        };
        assert_eq!(got.path, "/x?{{}}y}}");
        assert_eq!(got.headers, [("Accept".to_owned(), "*/*".to_owned())]);
        assert_eq!((&*posted.path, &posted.headers[..]), ("/z", &[][..]));
        assert_eq!(posted.body, Body::Bytes(b"hi"[..].into()));
    }

    #[test]
    fn har_bodies_are_restored() {
        let entry = |data: &str| {
            format!(
                r#"{{"request": {{"method": "POST", "url": "https://a/ä b?\"", "postData": {data}}}}}"#
            )
        };
        for (data, body) in [
            (
                r#"{"params": [{"name": "a b", "value": "c&d"}, {"name": "e"}]}"#,
                "a+b=c%26d&e=",
            ),
            (r#"{"text": "aGk=", "encoding": "base64"}"#, "hi"),
            (
                r#"{"text": null, "params": [{"name": "x", "value": "y"}]}"#,
                "x=y",
            ),
        ] {
            let har = parsed(&entry(data)).unwrap();
            let request = &har.requests[0];
            assert_eq!(request.path, "/%C3%A4%20b?%22");
            assert_eq!(request.body, Body::Bytes(body.as_bytes().into()), "{data}");
        }
        let har = parsed(&entry(r#"{"text": null}"#)).unwrap();
        assert_eq!(har.requests[0].body, Body::None);
        assert!(parsed(&entry(r#"{"text": "?", "encoding": "base64"}"#)).is_err());
    }

    #[test]
    fn cached_and_aborted_har_entries_are_skipped() {
        let har = parsed(
            r#"{"request": {"method": "GET", "url": "https://a/1"}, "_fromCache": "disk", "response": {"status": 200}},
               {"request": {"method": "GET", "url": "https://a/2"}, "response": {"status": 0}},
               {"request": {"method": "GET", "url": "https://a/3"}, "response": {"status": 200}}"#,
        )
        .unwrap();
        assert_eq!((har.requests.len(), har.unsent), (1, 2));
    }

    #[test]
    fn byte_order_mark_is_skipped() {
        let text = "\u{feff}{\"log\": {\"entries\": [{\"request\": {\"method\": \"GET\", \"url\": \"https://a/\"}}]}}";
        let har = parse(text, "r.har", &Target::parse("https://a/").unwrap());
        assert_eq!(har.unwrap().requests.len(), 1);
    }

    #[test]
    fn har_without_target_requests_is_refused() {
        let other = r#"{"request": {"method": "GET", "url": "https://b/", "headers": []}}"#;
        assert!(
            parsed(other)
                .unwrap_err()
                .contains("none of its 1 entries is for https://a/")
        );
        assert!(
            parsed("{}")
                .unwrap_err()
                .contains("r.har: not a HAR file: missing field `request`")
        );
    }
}
