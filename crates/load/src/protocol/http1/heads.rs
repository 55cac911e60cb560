//! Parsing of response heads, with a cache of the last one.

use std::cell::RefCell;

use onrush_http::{Framing, Method, Parsed, Refusal, header_is};

use super::held_head::parse;
use crate::requests::cookies::{Cookie, CookieJar};

/// Parsed properties of a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) keep_alive: bool,
    pub(super) framing: Framing,
    pub(super) bytes: usize,
}

/// Parses heads and caches the last one: under load a server sends identical heads until the second in `Date` changes.
pub(super) struct HeadCache {
    has_cookies: bool,
    last: RefCell<CachedHead>,
}

/// Parsed head with its bytes.
#[derive(Default)]
struct CachedHead {
    bytes: Vec<u8>,
    /// Method of the request: a response to HEAD has no body.
    method: Option<Method>,
    head: Option<Head>,
    cookies: Vec<Cookie>,
}

impl HeadCache {
    pub(super) fn new(has_cookies: bool) -> HeadCache {
        HeadCache {
            has_cookies,
            last: RefCell::default(),
        }
    }

    /// Adds the cookies of the last parsed head to `jar`.
    pub(super) fn put_cookies(&self, jar: &mut CookieJar) {
        let last = self.last.borrow();
        last.cookies.iter().for_each(|cookie| jar.store(cookie));
    }

    /// Returns the head at the start of `input`, which responds to a request with `method`; `None` if it is incomplete.
    pub(super) fn read(&self, input: &[u8], method: Method) -> Result<Option<Head>, Refusal> {
        if input.is_empty() {
            return Ok(None);
        }
        let last = &mut *self.last.borrow_mut();
        if last.head.is_some() && last.method == Some(method) && input.starts_with(&last.bytes) {
            return Ok(last.head);
        }
        let parsed = parse(input, method, |head| {
            last.bytes.clear();
            last.bytes.extend_from_slice(&input[..head.bytes]);
            last.method = Some(method);
            last.cookies.clear();
            if self.has_cookies {
                let fields = head.headers.iter();
                let cookies = fields.filter(|field| header_is(field.name, "set-cookie"));
                last.cookies
                    .extend(cookies.filter_map(|field| Cookie::parse(field.value)));
            }
            last.head = Some(Head {
                status: head.status,
                keep_alive: head.keep_alive,
                framing: head.framing,
                bytes: head.bytes,
            });
            last.head
        });
        match parsed {
            Parsed::Complete(head) => Ok(head),
            Parsed::Partial => Ok(None),
            Parsed::Refused(refusal) => Err(refusal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_head_equals_parsed_head() {
        let heads = HeadCache::new(false);
        let first = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        let other = b"HTTP/1.1 404 Not Found\r\nContent-Length: 30\r\n\r\n";
        let parsed = heads.read(first, Method::Get).unwrap().unwrap();
        assert_eq!((parsed.status, parsed.framing), (200, Framing::Length(2)));
        assert_eq!(heads.read(first, Method::Get), Ok(Some(parsed)));
        assert_eq!(heads.read(other, Method::Get).unwrap().unwrap().status, 404);
        assert_eq!(heads.read(first, Method::Get), Ok(Some(parsed)));
    }

    #[test]
    fn prefix_of_cached_head_is_incomplete() {
        let heads = HeadCache::new(false);
        let whole = b"HTTP/1.1 204 No Content\r\nServer: a\r\n\r\n";
        heads.read(whole, Method::Get).unwrap().unwrap();
        for end in 0..whole.len() {
            assert_eq!(
                heads.read(&whole[..end], Method::Get),
                Ok(None),
                "of {end} bytes"
            );
        }
    }
}
