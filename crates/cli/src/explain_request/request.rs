//! Parsing of a request as people write it: `GET https://host/path`, a URL or a path alone, and header fields.

use anyhow::bail;
use onrush_config::plan::Scheme;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    /// Value of the first `Host` field.
    pub(super) host: String,
    /// `None` for a path alone.
    pub(super) scheme: Option<Scheme>,
    /// Port of the URL, or the default of its scheme.
    pub(super) port: Option<u16>,
    /// Header lines.
    fields: Vec<String>,
    /// Notes on assumptions.
    pub(super) notes: Vec<String>,
}

impl Request {
    /// Parses a request.
    ///
    /// # Errors
    /// When it cannot be written as a request. A request that is merely invalid is left to the server's checks.
    pub(super) fn read(text: &str, fields: &[String]) -> anyhow::Result<Request> {
        const EXPECTED: &str =
            "expected [METHOD] URL or path, such as \"GET https://host/path\" or \"/path\"";
        let words: Vec<&str> = text.split_whitespace().collect();
        let (method, url) = match *words {
            [url] => ("GET", url),
            [method, url] | [method, url, "HTTP/1.1"] => (method, url),
            _ => bail!("{text:?} is not a request: {EXPECTED}"),
        };
        let (scheme, authority, target) = split(url)
            .ok_or_else(|| anyhow::anyhow!("{url:?} is neither a URL nor a path: {EXPECTED}"))?;
        let mut notes = Vec::new();
        let mut lines = Vec::new();
        let mut host = None;
        for field in fields {
            if field.contains(['\r', '\n']) || !field.contains(':') {
                bail!("-H {field:?} is not a header field: expected \"Name: value\" on one line");
            }
            let (name, value) = field.split_once(':').unwrap_or((field, ""));
            if name.eq_ignore_ascii_case("host") && host.is_none() {
                host = Some(value.trim().to_owned());
            }
            lines.push(field.clone());
        }
        let host = host.unwrap_or_else(|| {
            let host = authority.unwrap_or_else(|| {
                notes.push("no host in the URL: Host is localhost".to_owned());
                "localhost".to_owned()
            });
            lines.insert(0, format!("Host: {host}"));
            host
        });
        let own_port = scheme.map(|scheme| match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        });
        Ok(Request {
            method: method.to_owned(),
            target,
            port: port(&host).or(own_port),
            host,
            scheme,
            fields: lines,
            notes,
        })
    }

    /// Bytes of the request as a client sends it.
    pub(super) fn head(&self) -> Vec<u8> {
        let first = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        let fields = self.fields.iter().map(|field| format!("{field}\r\n"));
        (first + &fields.collect::<String>() + "\r\n").into_bytes()
    }
}

/// Splits a URL into scheme, host with port, and target.
fn split(url: &str) -> Option<(Option<Scheme>, Option<String>, String)> {
    // A fragment is never sent.
    let url = url.split('#').next().unwrap_or(url);
    if url.starts_with('/') || url == "*" {
        return Some((None, None, url.to_owned()));
    }
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (Some(Scheme::Http), rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (Some(Scheme::Https), rest),
        Some(_) => return None,
        None => (None, url),
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    // A user name and password in a URL are for the client.
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    if host.is_empty() {
        return None;
    }
    let target = match target.starts_with('/') {
        true => target.to_owned(),
        false => format!("/{target}"),
    };
    Some((scheme, Some(host.to_owned()), target))
}

fn port(host: &str) -> Option<u16> {
    host.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_is_url_or_path_with_headers() {
        for (text, fields, head) in [
            (
                "/a?b",
                &[][..],
                "GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n",
            ),
            (
                "https://h.example:8443",
                &[],
                "GET / HTTP/1.1\r\nHost: h.example:8443\r\n\r\n",
            ),
            (
                "POST http://u:p@h.example?x#y HTTP/1.1",
                &["X-A: 1"],
                "POST /?x HTTP/1.1\r\nHost: h.example\r\nX-A: 1\r\n\r\n",
            ),
            (
                "HEAD h.example/x",
                &["X-A:", "host: other"],
                "HEAD /x HTTP/1.1\r\nX-A:\r\nhost: other\r\n\r\n",
            ),
            (
                "OPTIONS *",
                &[],
                "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
            ),
        ] {
            let fields: Vec<String> = fields.iter().map(|&field| field.to_owned()).collect();
            let request = Request::read(text, &fields).expect(text);
            assert_eq!(String::from_utf8_lossy(&request.head()), head, "{text}");
        }
        let port = |text| Request::read(text, &[]).expect(text).port;
        assert_eq!(port("https://h/"), Some(443));
        assert_eq!(port("http://h:8080/"), Some(8080));
        assert_eq!(port("/"), None);
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (text, field, why) in [
            ("", None, "\"\" is not a request: expected [METHOD] URL"),
            ("GET /a b", None, "\"GET /a b\" is not a request"),
            ("ftp://h/", None, "\"ftp://h/\" is neither a URL nor a path"),
            ("http:///x", None, "\"http:///x\" is neither"),
            (
                "/",
                Some("X-A"),
                "-H \"X-A\" is not a header field: expected \"Name: value\"",
            ),
            (
                "/",
                Some("X-A: 1\r\nX-B: 2"),
                "-H \"X-A: 1\\r\\nX-B: 2\" is not a header field",
            ),
        ] {
            let fields: Vec<String> = field.iter().map(|&field| field.to_owned()).collect();
            let error = Request::read(text, &fields).expect_err(text).to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }
}
