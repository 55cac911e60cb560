//! From the path of a request to the path it means: percent-decoding and dot segments (RFC 3986 2.1, 5.2.4).

use std::borrow::Cow;

/// Why a path means nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadPath {
    /// `%` without two hexadecimal digits behind it.
    Encoding,
    /// A NUL byte, which no file name and no route contains.
    Nul,
    /// More `..` than segments before them.
    AboveRoot,
}

impl BadPath {
    /// One clause for the client.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            BadPath::Encoding => "a % in the path lacks its two hexadecimal digits",
            BadPath::Nul => "the path contains a NUL byte",
            BadPath::AboveRoot => "the path leads above its root",
        }
    }
}

/// The path with percent-encodings decoded, `.` and `..` resolved, and slashes in a row taken for one: what a route or a
/// file is found by. An encoded slash is data, not a separator (RFC 3986 2.2), and no file name can contain it; it stays
/// encoded, so that nothing is found by it.
///
/// Empty segments go because most of what stands behind a proxy does not see them either: a route for `/admin` that
/// `//admin` slips past protects nothing.
///
/// # Errors
/// [`BadPath`], to be refused with 400.
#[inline]
pub(crate) fn normalize(path: &str) -> Result<Cow<'_, [u8]>, BadPath> {
    if is_normal(path.as_bytes()) {
        return Ok(Cow::Borrowed(path.as_bytes()));
    }
    decode(resolve(path)?.as_bytes()).map(Cow::Owned)
}

/// What stands behind `prefix`, which the normalized path begins with, still encoded as it was received: for a place
/// where it becomes part of a path again. Like that, dots and empty segments are resolved.
pub(crate) fn rest<'p>(path: &'p str, prefix: &str) -> Cow<'p, str> {
    if is_normal(path.as_bytes()) {
        return Cow::Borrowed(path.get(prefix.len()..).unwrap_or(""));
    }
    // A path that has no meaning has been refused before.
    let resolved = resolve(path).unwrap_or(Cow::Borrowed(path));
    let mut left = prefix.len();
    let mut at = 0;
    while left > 0 && at < resolved.len() {
        let (raw, decoded) = match &resolved.as_bytes()[at..] {
            [b'%', b'2', b'f' | b'F', ..] => (3, 3),
            [b'%', _, _, ..] => (3, 1),
            _ => (1, 1),
        };
        at += raw;
        left = left.saturating_sub(decoded);
    }
    match resolved {
        Cow::Borrowed(path) => Cow::Borrowed(path.get(at..).unwrap_or("")),
        Cow::Owned(path) => Cow::Owned(path.get(at..).unwrap_or("").to_owned()),
    }
}

/// The path as it was received, but for what means nothing: `.`, `..` and empty segments, and encodings of characters
/// that need none (RFC 3986 6.2.2). Two paths that differ by more stay different.
pub(crate) fn canonical(path: &str) -> Cow<'_, str> {
    if is_normal(path.as_bytes()) {
        return Cow::Borrowed(path);
    }
    // A path that has no meaning has been refused before.
    let resolved = resolve(path).unwrap_or(Cow::Borrowed(path));
    let mut canonical = String::with_capacity(resolved.len());
    let mut rest = &*resolved;
    while let Some(at) = rest.find('%') {
        let code = rest.get(at + 1..at + 3);
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        canonical.push_str(&rest[..at]);
        match byte {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                canonical.push(char::from(byte));
            }
            Some(byte) => canonical.push_str(&format!("%{byte:02X}")),
            None => {
                canonical.push('%');
                rest = &rest[at + 1..];
                continue;
            }
        }
        rest = &rest[at + 3..];
    }
    canonical.push_str(rest);
    Cow::Owned(canonical)
}

/// Whether the path is written as it is meant.
#[inline]
fn is_normal(path: &[u8]) -> bool {
    memchr::memchr(b'%', path).is_none()
        && !path
            .windows(2)
            .any(|pair| pair[0] == b'/' && matches!(pair[1], b'.' | b'/'))
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, BadPath> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else {
            return Err(BadPath::Encoding);
        };
        let digit = |byte: &u8| char::from(*byte).to_digit(16).ok_or(BadPath::Encoding);
        let byte = (digit(high)? * 16 + digit(low)?) as u8;
        rest = tail;
        match byte {
            0 => return Err(BadPath::Nul),
            b'/' => decoded.extend_from_slice(b"%2F"),
            byte => decoded.push(byte),
        }
    }
    Ok(decoded)
}

/// Without empty segments, and with dot segments resolved, in whatever way the dots are written. Empty ones go first, as
/// in a file system: `/a//../b` is `/b`.
fn resolve(path: &str) -> Result<Cow<'_, str>, BadPath> {
    if !path.starts_with('/') {
        return Ok(Cow::Borrowed(path));
    }
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let dots = dots_of(segment);
        if dots == Some(2) && kept.pop().is_none() {
            return Err(BadPath::AboveRoot);
        }
        if dots.is_none() && !segment.is_empty() {
            kept.push(segment);
        } else if last {
            kept.push("");
        }
    }
    let length = kept.iter().map(|segment| 1 + segment.len()).sum();
    let mut resolved = String::with_capacity(length);
    for segment in kept {
        resolved.push('/');
        resolved.push_str(segment);
    }
    Ok(Cow::Owned(resolved))
}

/// How many dots `.` and `..` have, with each dot as it is or as `%2e`; `None` for all other segments.
fn dots_of(segment: &str) -> Option<usize> {
    let mut rest = segment.as_bytes();
    let mut dots = 0;
    loop {
        rest = match rest {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            [] => return (1..=2).contains(&dots).then_some(dots),
            _ => return None,
        };
        dots += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_path_keeps_what_has_a_meaning() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/%61/./x/../%7e", "/a/~"),
            ("//a%2fb%20c%C3%a9", "/a%2Fb%20c%C3%A9"),
            ("/a%252Fb", "/a%252Fb"),
            ("/a%26b", "/a%26b"),
            ("/a/%2e%2e/x%2Ey", "/x.y"),
        ] {
            assert_eq!(canonical(path), expected, "{path}");
        }
    }

    #[test]
    fn a_path_means_what_the_rfc_says() {
        for (path, meant) in [
            ("/", Ok("/")),
            ("/a/b.html", Ok("/a/b.html")),
            ("/a%20b", Ok("/a b")),
            ("/%61", Ok("/a")),
            ("/a/./b", Ok("/a/b")),
            ("/a/../b", Ok("/b")),
            ("/a/b/..", Ok("/a/")),
            ("/a/.", Ok("/a/")),
            ("/a/%2e%2E/b", Ok("/b")),
            ("/.hidden", Ok("/.hidden")),
            ("/a/...", Ok("/a/...")),
            ("//a//b", Ok("/a/b")),
            ("//", Ok("/")),
            ("/a//", Ok("/a/")),
            ("/a//../b", Ok("/b")),
            ("/a/.%2E/b", Ok("/b")),
            ("//..", Err(BadPath::AboveRoot)),
            ("/.%2", Err(BadPath::Encoding)),
            ("/a%2fb", Ok("/a%2Fb")),
            ("/a/..%2f..%2fb", Ok("/a/..%2F..%2Fb")),
            ("*", Ok("*")),
            ("/..", Err(BadPath::AboveRoot)),
            ("/a/../../b", Err(BadPath::AboveRoot)),
            ("/%2e%2e/b", Err(BadPath::AboveRoot)),
            ("/%", Err(BadPath::Encoding)),
            ("/%4", Err(BadPath::Encoding)),
            ("/%zz", Err(BadPath::Encoding)),
            ("/a%00", Err(BadPath::Nul)),
        ] {
            let result = normalize(path);
            let result = result
                .as_deref()
                .map(|bytes| str::from_utf8(bytes).unwrap());
            assert_eq!(result.map_err(|&error| error), meant, "{path}");
        }
    }

    #[test]
    fn what_stands_behind_a_prefix_stays_as_it_was_encoded() {
        for (path, prefix, behind) in [
            ("/p/x%20y", "/p/", "x%20y"),
            ("/%70/x%2Fy", "/p", "/x%2Fy"),
            ("/p/a/../b%C3%A9", "/p/", "b%C3%A9"),
            ("//p//x", "/p", "/x"),
            ("/p//evil.example", "/p", "/evil.example"),
            ("/a%2fb/c", "/a%2Fb", "/c"),
            ("/p", "/p", ""),
            ("/%70", "/p", ""),
        ] {
            let normal = normalize(path).expect("a path that means something");
            assert!(normal.starts_with(prefix.as_bytes()), "{path}");
            assert_eq!(rest(path, prefix), behind, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn a_normalized_path_has_no_segments_to_resolve(path in "/[a./%2eE0]{0,12}") {
            if let Ok(normal) = normalize(&path) {
                proptest::prop_assert!(normal.starts_with(b"/"));
                let inner = normal[1..].strip_suffix(b"/").unwrap_or(&normal[1..]);
                if normal.len() > 1 {
                    let bad = |segment: &[u8]| matches!(segment, b"" | b"." | b"..");
                    proptest::prop_assert!(!inner.split(|&byte| byte == b'/').any(bad), "{:?}", normal);
                }
                proptest::prop_assert_eq!(
                    &decode(rest(&path, "").as_bytes()).expect("it was decoded before"),
                    &normal.to_vec()
                );
            }
        }
    }
}
