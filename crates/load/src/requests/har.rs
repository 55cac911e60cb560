//! Requests out of a HAR file (HTTP Archive 1.2), which browsers write of what they have asked for. Those to other servers
//! than the target are left out and counted.

use std::num::NonZeroU32;

use serde::Deserialize;

use super::{Body, Expect, Request, place};
use crate::plan::header::check_header;
use crate::target::Target;

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
    request: Asked,
}

#[derive(Deserialize)]
struct Asked {
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
    #[serde(default)]
    text: String,
}

/// What came of a HAR file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Har {
    /// In the order of the file.
    pub requests: Vec<Request>,
    /// Entries that ask other servers.
    pub elsewhere: usize,
}

/// Reads the requests to `target`'s server in `text`, the content of the file `name`, in their order. Fields that
/// belong to the connection are left out, and everything is sent as it stands, without variables.
///
/// # Errors
/// A sentence with the file and what is wrong with it.
pub fn parse(text: &str, name: &str, target: &Target) -> Result<Har, String> {
    let archive: Archive =
        serde_json::from_str(text).map_err(|error| format!("{name}: this is no HAR: {error}"))?;
    let mut har = Har {
        requests: Vec::new(),
        elsewhere: 0,
    };
    for (index, Entry { request }) in archive.log.entries.into_iter().enumerate() {
        let Ok((host, path)) = place(target, &request.url) else {
            har.elsewhere += 1;
            continue;
        };
        let wrong = |why: String| format!("{name}: entry {}: {why}", index + 1);
        har.requests
            .push(asked(request, host, &path).map_err(wrong)?);
    }
    if har.requests.is_empty() {
        return Err(format!(
            "{name}: none of its {} entries asks {}: give a URL of the server that the recording asks",
            har.elsewhere, target.url
        ));
    }
    Ok(har)
}

fn asked(asked: Asked, host: String, path: &str) -> Result<Request, String> {
    let mut headers = Vec::new();
    for Field { name, value } in asked.headers {
        if is_of_the_connection(&name) {
            continue;
        }
        check_header(&name, &value)?;
        headers.push((name, literal(&value)));
    }
    let body = match asked.post_data {
        Some(data) if !data.text.is_empty() => Body::Bytes(data.text.into_bytes().into()),
        _ => Body::None,
    };
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

/// Text in which nothing is taken for a variable.
pub(super) fn literal(text: &str) -> String {
    text.replace("{{", "{{}}")
}

/// What belongs to the recorded connection or is written anew, and HTTP/2's own fields.
fn is_of_the_connection(name: &str) -> bool {
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
    fn entries_of_the_server_become_requests() {
        let har = parsed(
            r#"{"request": {"method": "GET", "url": "https://a/x?{{y}}", "httpVersion": "h2", "headers":
               [{"name": ":authority", "value": "a"}, {"name": "Connection", "value": "keep-alive"}, {"name": "Accept", "value": "*/*"}]}},
               {"request": {"method": "GET", "url": "https://cdn/x", "headers": []}},
               {"request": {"method": "POST", "url": "https://a/z#f", "headers": [{"name": "Content-Length", "value": "2"}], "postData": {"mimeType": "x", "text": "hi"}}}"#,
        )
        .unwrap();
        assert_eq!(har.elsewhere, 1);
        let [got, posted] = &har.requests[..] else {
            panic!("{har:?}");
        };
        assert_eq!(got.path, "/x?{{}}y}}");
        assert_eq!(got.headers, [("Accept".to_owned(), "*/*".to_owned())]);
        assert_eq!((&*posted.path, &posted.headers[..]), ("/z", &[][..]));
        assert_eq!(posted.body, Body::Bytes(b"hi"[..].into()));
    }

    #[test]
    fn what_is_no_recording_of_the_server_is_refused() {
        let other = r#"{"request": {"method": "GET", "url": "https://b/", "headers": []}}"#;
        assert!(
            parsed(other)
                .unwrap_err()
                .contains("none of its 1 entries asks https://a/")
        );
        assert!(
            parsed("{}")
                .unwrap_err()
                .contains("r.har: this is no HAR: missing field `request`")
        );
    }
}
