//! Follows redirects (RFC 9110 section 15.4).

use std::rc::Rc;

use memchr::memmem;
use onrush_http::Method;

use super::response::Response;
use crate::pace::target::Target;
use crate::requests::cookies::CookieJar;

/// A serialized request.
#[derive(Clone, Debug)]
pub(crate) struct SerializedRequest {
    pub(crate) method: Method,
    /// Head, followed by the body if it was copied.
    pub(crate) text: Vec<u8>,
    /// Body too large to copy.
    pub(crate) body: Option<Rc<[u8]>>,
    /// Whether the request has `Connection: close`.
    pub(crate) closes: bool,
}

pub(crate) fn is_redirect(response: &Response) -> bool {
    matches!(response.status, 301 | 302 | 303 | 307 | 308)
}

impl SerializedRequest {
    /// Returns the request that follows the redirect `response`, with the cookies of `jar`. `None` if `response` has no
    /// valid `Location`, or one on another server than `target`.
    pub(crate) fn follow(
        &self,
        response: &Response,
        target: &Target,
        jar: &CookieJar,
    ) -> Option<SerializedRequest> {
        let location = std::str::from_utf8(response.fields("location").next()?).ok()?;
        let head_bytes = memmem::find(&self.text, b"\r\n\r\n")? + 4;
        let (head, body) = self.text.split_at(head_bytes);
        let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
        let (method, rest) = lines.next()?.split_once(' ')?;
        let (path, _) = rest.rsplit_once(' ')?;
        let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
        let own_host = fields
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let (_, own_host) = own_host?;
        let (host, path) = resolve(location, path, own_host, target)?;
        // As browsers do, and as RFC 9110 sections 15.4.2 to 15.4.4 permit.
        let becomes_get = match (response.status, self.method) {
            (303, Method::Head) => false,
            (303, _) | (301 | 302, Method::Post) => true,
            _ => false,
        };
        let method = if becomes_get { "GET" } else { method };
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in fields {
            let is_of_body = name.to_ascii_lowercase().starts_with("content-");
            if name.eq_ignore_ascii_case("cookie") || (becomes_get && is_of_body) {
                continue;
            }
            let is_host = name.eq_ignore_ascii_case("host");
            let value = if is_host { host.as_str() } else { value };
            text += &format!("{name}: {value}\r\n");
        }
        let mut text = text.into_bytes();
        jar.write(&mut text);
        text.extend_from_slice(b"\r\n");
        let mut body_apart = None;
        if !becomes_get {
            text.extend_from_slice(body);
            body_apart.clone_from(&self.body);
        }
        Some(SerializedRequest {
            method: Method::of(method),
            text,
            body: body_apart,
            closes: self.closes,
        })
    }
}

/// Resolves `location` against `path` and `host` of the redirected request (RFC 3986 section 5.2) and returns host and
/// request target; `None` if it is on another server than `target`.
fn resolve(location: &str, path: &str, host: &str, target: &Target) -> Option<(String, String)> {
    let is_graphic = location.bytes().all(|byte| byte.is_ascii_graphic());
    let location = location.split('#').next()?;
    if !is_graphic || location.is_empty() {
        return None;
    }
    let here = |path: String| Some((host.to_owned(), path));
    if location.contains("://") || location.starts_with("//") {
        let url = match location.starts_with("//") {
            true => format!("{}:{location}", target.scheme.name()),
            false => location.to_owned(),
        };
        let there = Target::of_url(&url).ok()?;
        // A server uses the requested host in its URLs, although connections may go to another address (--connect-to).
        let is_here = there.place == target.place || there.host.eq_ignore_ascii_case(host);
        return (is_here && there.scheme == target.scheme).then_some((there.host, there.path));
    }
    let (directory, _) = path.split('?').next()?.rsplit_once('/')?;
    match location.as_bytes()[0] {
        b'/' => here(remove_dot_segments(location)),
        b'?' => here(format!("{}{location}", path.split('?').next()?)),
        _ if location.split(['/', '?']).next()?.contains(':') => None,
        _ => here(remove_dot_segments(&format!("{directory}/{location}"))),
    }
}

/// Removes `.` and `..` segments from a path with optional query (RFC 3986 section 5.2.4).
fn remove_dot_segments(path: &str) -> String {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    let mut segments: Vec<&str> = Vec::new();
    let mut all = path.split('/').skip(1).peekable();
    while let Some(segment) = all.next() {
        match segment {
            "." => {}
            ".." => drop(segments.pop()),
            _ => segments.push(segment),
        }
        if matches!(segment, "." | "..") && all.peek().is_none() {
            segments.push("");
        }
    }
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target() -> Target {
        Target::parse("http://a:81/").unwrap()
    }

    #[test]
    fn location_is_resolved_against_request() {
        let of = |location: &str| {
            let (host, path) = resolve(location, "/x/y?z", "shop", &target())?;
            Some(format!("{host} {path}"))
        };
        for (location, expected) in [
            ("/next", Some("shop /next")),
            ("next?q=1", Some("shop /x/next?q=1")),
            ("../up", Some("shop /up")),
            ("./", Some("shop /x/")),
            ("?page=2", Some("shop /x/y?page=2")),
            ("/a#part", Some("shop /a")),
            ("http://a:81/b", Some("a:81 /b")),
            ("http://SHOP/b", Some("SHOP /b")),
            ("//shop/b", Some("shop /b")),
            ("http://other/b", None),
            ("https://a:81/b", None),
            ("mailto:x", None),
            ("/a b", None),
            ("#part", None),
            ("", None),
        ] {
            assert_eq!(of(location).as_deref(), expected, "{location}");
        }
    }

    proptest! {
        #[test]
        fn any_location_resolves_to_valid_path(
            location in "[/.:?#a-z \u{e9}-]{0,24}|\\PC{0,24}",
            path in "/[a-z/?.]{0,20}",
        ) {
            if let Some((_, found)) = resolve(&location, &path, "shop", &target()) {
                prop_assert!(found.starts_with('/'), "{}", found);
                prop_assert!(found.bytes().all(|byte| byte.is_ascii_graphic()), "{}", found);
            }
        }
    }

    #[test]
    fn redirected_post_becomes_get_except_307_308() {
        let written = SerializedRequest {
            method: Method::Post,
            text: b"POST /login HTTP/1.1\r\nHost: a:81\r\nAccept: x\r\nContent-Type: f\r\nCookie: a=1\r\nContent-Length: 2\r\n\r\nhi".to_vec(),
            body: None,
            closes: false,
        };
        let mut jar = CookieJar::default();
        jar.store(&crate::requests::cookies::Cookie::parse(b"b=2").unwrap());
        let after = |status| {
            let response = Response::of(status, &[("Location", "/home")], b"");
            let next = written.follow(&response, &target(), &jar).unwrap();
            String::from_utf8(next.text).unwrap()
        };
        let get = "GET /home HTTP/1.1\r\nHost: a:81\r\nAccept: x\r\nCookie: b=2\r\n\r\n";
        for status in [301, 302, 303] {
            assert_eq!(after(status), get, "{status}");
        }
        let post = "POST /home HTTP/1.1\r\nHost: a:81\r\nAccept: x\r\nContent-Type: f\r\nContent-Length: 2\r\nCookie: b=2\r\n\r\nhi";
        for status in [307, 308] {
            assert_eq!(after(status), post, "{status}");
        }
        let nowhere = Response::of(302, &[], b"");
        assert!(written.follow(&nowhere, &target(), &jar).is_none());
    }
}
