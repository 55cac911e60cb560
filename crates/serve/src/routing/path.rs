//! Normalization of paths: percent-decoding and dot segments (RFC 3986 2.1, 5.2.4).

use std::borrow::Cow;
use std::ops::Range;

/// Why a path is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PathError {
    /// `%` without two hexadecimal digits.
    Encoding,
    /// A NUL byte, which no file name and no route contains.
    Nul,
    /// More `..` than preceding segments.
    AboveRoot,
}

impl PathError {
    /// A clause for the error response.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            PathError::Encoding => "a % in the path is not followed by two hexadecimal digits",
            PathError::Nul => "the path contains a NUL byte",
            PathError::AboveRoot => "the path leads above its root",
        }
    }
}

/// The path with percent-encodings decoded, `.` and `..` resolved, and empty segments removed. Routes and files are
/// found by this path. An encoded slash is a slash, as in nginx and most servers: otherwise `/x/..%2fadmin/` would not
/// match a route for `/admin/`, which then would not protect anything.
///
/// # Errors
/// [`PathError`], to be refused with 400.
#[inline]
pub(crate) fn normalize(path: &str) -> Result<Cow<'_, [u8]>, PathError> {
    if is_normal(path.as_bytes()) {
        return Ok(Cow::Borrowed(path.as_bytes()));
    }
    decode(resolve(path)?.as_bytes()).map(Cow::Owned)
}

/// The normalized path with a slash after its start `prefix`; `None` if there is one.
pub(crate) fn with_slash_after(path: &[u8], prefix: &str) -> Option<Vec<u8>> {
    let (before, rest) = path.split_at(prefix.len().min(path.len()));
    let is_apart = rest.is_empty() || rest.starts_with(b"/") || prefix.ends_with('/');
    (!is_apart).then(|| [before, b"/", rest].concat())
}

/// The rest of a normalized path after its start `prefix`.
pub(crate) fn without_prefix<'p>(path: Cow<'p, [u8]>, prefix: &str) -> Cow<'p, [u8]> {
    match path {
        Cow::Borrowed(path) => Cow::Borrowed(&path[prefix.len()..]),
        Cow::Owned(mut path) => {
            path.drain(..prefix.len());
            Cow::Owned(path)
        }
    }
}

/// The rest of the path after `prefix`, with encodings as received; the normalized path must start with `prefix`. Dot
/// and empty segments are resolved as in that, and an encoded slash at the start is decoded.
pub(crate) fn rest<'p>(path: &'p str, prefix: &str) -> Cow<'p, str> {
    if is_normal(path.as_bytes()) {
        return Cow::Borrowed(path.get(prefix.len()..).unwrap_or(""));
    }
    let resolved = resolved(path);
    let mut at = 0;
    for _ in 0..prefix.len() {
        at += match resolved.as_bytes().get(at) {
            Some(b'%') => 3,
            Some(_) | None => 1,
        };
    }
    let rest = resolved.get(at..).unwrap_or("");
    match slash_bytes(rest.as_bytes()) {
        ENCODED_SLASH_BYTES => Cow::Owned(format!("/{}", &rest[ENCODED_SLASH_BYTES..])),
        _ => Cow::Owned(rest.to_owned()),
    }
}

/// The path for a server if the route does not edit it: as received, so that signatures of the path stay valid. Servers
/// disagree about a path with a dot segment, or with two slashes at its start: such a path is resolved, so that the
/// server gets the path by which the route was chosen.
#[inline]
pub(crate) fn path_for_server(path: &str) -> Cow<'_, str> {
    if is_normal(path.as_bytes()) || !(path.starts_with("//") || has_dot_segment(path)) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(resolved(path).into_owned())
}

/// Why the path may not be sent to a server: some servers would see a dot segment that routing did not, because they
/// treat a backslash as a slash (URL standard), remove `;` and what follows (Tomcat), or decode twice.
#[inline]
pub(crate) fn ambiguity(path: &str) -> Option<&'static str> {
    match is_normal(path.as_bytes()) {
        true => None,
        false => ambiguity_of_unusual(path),
    }
}

#[cold]
fn ambiguity_of_unusual(path: &str) -> Option<&'static str> {
    if path.contains('\\') {
        return Some("a backslash in the path, which some servers treat as a slash");
    }
    let mut plain = path.as_bytes().to_vec();
    for _ in 0..DECODINGS_MAX {
        plain = decode_once(&plain);
    }
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    // To nearly all servers an encoded backslash between letters is data, as in DOMAIN%5Cuser.
    let is_empty = |pair: &[u8]| pair.iter().all(is_slash) && pair.contains(&b'\\');
    if plain.windows(2).any(is_empty) {
        return Some("a backslash beside a slash in the path");
    }
    let mut segments = plain.split(is_slash).peekable();
    while let Some(segment) = segments.next() {
        let name = segment.split(|&byte| byte == b';').next();
        // A last segment that consists of parameters only may be a session ID.
        let is_dropped = segment.starts_with(b";") && segments.peek().is_some();
        if is_dropped || matches!(name, Some(b"." | b"..")) {
            return Some("a path segment that servers interpret differently");
        }
    }
    None
}

/// The path that regular expressions match: resolved, with unreserved characters decoded (RFC 3986 6.2.2).
pub(crate) struct CanonicalPath {
    /// The path with decoded slashes.
    text: String,
    /// Positions in `text` of slashes that were encoded.
    encoded_slashes: Vec<usize>,
}

impl CanonicalPath {
    pub(crate) fn new(path: &str) -> Self {
        let resolved = match is_normal(path.as_bytes()) {
            true => Cow::Borrowed(path),
            false => resolved(path),
        };
        let mut canonical = Self {
            text: String::with_capacity(resolved.len()),
            encoded_slashes: Vec::new(),
        };
        let mut rest = &*resolved;
        while let Some(at) = rest.find('%') {
            let code = rest.get(at + 1..at + 3);
            let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
            canonical.text.push_str(&rest[..at]);
            let Some(byte) = byte else {
                canonical.text.push('%');
                rest = &rest[at + 1..];
                continue;
            };
            match byte {
                b'/' => {
                    canonical.encoded_slashes.push(canonical.text.len());
                    canonical.text.push('/');
                }
                byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
                    canonical.text.push(char::from(byte));
                }
                byte => canonical.text.push_str(&format!("%{byte:02X}")),
            }
            rest = &rest[at + 3..];
        }
        canonical.text.push_str(rest);
        canonical
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// A part of the text, with slashes encoded where the client encoded them.
    pub(crate) fn written(&self, part: Range<usize>) -> Cow<'_, [u8]> {
        let text = self.text.as_bytes();
        let slashes = self.encoded_slashes.iter();
        let mut slashes = slashes.filter(|slash| part.contains(slash)).peekable();
        if slashes.peek().is_none() {
            return Cow::Borrowed(&text[part]);
        }
        let mut written = Vec::new();
        let mut from = part.start;
        for &slash in slashes {
            written.extend_from_slice(&text[from..slash]);
            written.extend_from_slice(b"%2F");
            from = slash + 1;
        }
        written.extend_from_slice(&text[from..part.end]);
        Cow::Owned(written)
    }
}

/// Number of decodings that [`ambiguity`] considers: the regular one, and two more by chains of servers.
const DECODINGS_MAX: usize = 3;

/// Whether the path is certainly in normal form.
#[inline]
fn is_normal(path: &[u8]) -> bool {
    memchr::memchr2(b'%', b'\\', path).is_none()
        && !path
            .windows(2)
            .any(|pair| pair[0] == b'/' && matches!(pair[1], b'.' | b'/' | b';'))
}

fn decode(bytes: &[u8]) -> Result<Vec<u8>, PathError> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first != b'%' {
            decoded.push(*first);
            continue;
        }
        let [high, low, tail @ ..] = rest else {
            return Err(PathError::Encoding);
        };
        rest = tail;
        match byte_of(*high, *low).ok_or(PathError::Encoding)? {
            0 => return Err(PathError::Nul),
            byte => decoded.push(byte),
        }
    }
    Ok(decoded)
}

/// Decodes valid percent-encodings and keeps all other bytes.
fn decode_once(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let byte = match rest {
            [b'%', high, low, ..] => byte_of(*high, *low),
            _ => None,
        };
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &rest[3..] } else { tail };
    }
    decoded
}

fn byte_of(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? * 16 + digit(low)?) as u8)
}

/// [`resolve`] for a path that [`normalize`] has accepted, so that it cannot fail.
fn resolved(path: &str) -> Cow<'_, str> {
    resolve(path).unwrap_or(Cow::Borrowed(path))
}

/// The path without empty segments and with dot segments resolved; dots and slashes may be encoded. Empty segments are
/// removed first, as in a file system: `/a//../b` is `/b`.
fn resolve(path: &str) -> Result<Cow<'_, str>, PathError> {
    if !path.starts_with('/') {
        return Ok(Cow::Borrowed(path));
    }
    // Segments, each with the preceding slash.
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = segments(path).peekable();
    while let Some((whole, segment)) = segments.next() {
        let dots = dots_of(segment);
        if dots == Some(2) && kept.pop().is_none() {
            return Err(PathError::AboveRoot);
        }
        if dots.is_none() && !segment.is_empty() {
            kept.push(whole);
        } else if segments.peek().is_none() {
            kept.push("/");
        }
    }
    let mut resolved = kept.concat();
    if slash_bytes(resolved.as_bytes()) == ENCODED_SLASH_BYTES {
        resolved.replace_range(..ENCODED_SLASH_BYTES, "/");
    }
    Ok(Cow::Owned(resolved))
}

fn has_dot_segment(path: &str) -> bool {
    segments(path).any(|(_, segment)| dots_of(segment).is_some())
}

/// The segments of a path that starts with a slash, each with and without the preceding slash.
fn segments(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let slash = slash_bytes(rest.as_bytes());
        if slash == 0 {
            return None;
        }
        let bytes = &rest.as_bytes()[slash..];
        let mut places = 0..bytes.len();
        let end = places.find(|&at| slash_bytes(&bytes[at..]) > 0);
        let (whole, after) = rest.split_at(slash + end.unwrap_or(bytes.len()));
        rest = after;
        Some((whole, &whole[slash..]))
    })
}

const ENCODED_SLASH_BYTES: usize = "%2F".len();

/// Length of the plain or encoded slash at the start of `bytes`; 0 if there is none.
fn slash_bytes(bytes: &[u8]) -> usize {
    match bytes {
        [b'/', ..] => 1,
        [b'%', b'2', b'f' | b'F', ..] => ENCODED_SLASH_BYTES,
        _ => 0,
    }
}

/// Number of dots in `.` and `..`, each plain or encoded as `%2e`; `None` for all other segments.
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
    fn canonical_path_keeps_reserved_encodings() {
        for (path, expected) in [
            ("/a/b", "/a/b"),
            ("/%61/./x/../%7e", "/a/~"),
            ("//a%2fb%20c%C3%a9", "/a%2Fb%20c%C3%A9"),
            ("/a%252Fb", "/a%252Fb"),
            ("/a%26b", "/a%26b"),
            ("/a/%2e%2e/x%2Ey", "/x.y"),
        ] {
            let canonical = CanonicalPath::new(path);
            let written = canonical.written(0..canonical.text.len());
            assert_eq!(&*written, expected.as_bytes(), "{path}");
            assert_eq!(canonical.text, expected.replace("%2F", "/"), "{path}");
        }
    }

    #[test]
    fn paths_are_normalized() {
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
            ("//..", Err(PathError::AboveRoot)),
            ("/.%2", Err(PathError::Encoding)),
            ("/a%2fb", Ok("/a/b")),
            ("/%2Fa%2f/b", Ok("/a/b")),
            ("/a/..%2fb", Ok("/b")),
            ("/a%2f%2e%2E%2fb", Ok("/b")),
            ("/a/..%2f..%2fb", Err(PathError::AboveRoot)),
            ("/a%252fb", Ok("/a%2fb")),
            ("/a%2f", Ok("/a/")),
            ("*", Ok("*")),
            ("/..", Err(PathError::AboveRoot)),
            ("/a/../../b", Err(PathError::AboveRoot)),
            ("/%2e%2e/b", Err(PathError::AboveRoot)),
            ("/%", Err(PathError::Encoding)),
            ("/%4", Err(PathError::Encoding)),
            ("/%zz", Err(PathError::Encoding)),
            ("/a%00", Err(PathError::Nul)),
        ] {
            let result = normalize(path);
            let result = result
                .as_deref()
                .map(|bytes| str::from_utf8(bytes).unwrap());
            assert_eq!(result.map_err(|&error| error), meant, "{path}");
        }
    }

    #[test]
    fn path_after_prefix_keeps_percent_encoding() {
        for (path, prefix, behind) in [
            ("/p/x%20y", "/p/", "x%20y"),
            ("/%70/x%2Fy", "/p", "/x%2Fy"),
            ("/p%2fx%2fy", "/p", "/x%2fy"),
            ("/p%2fx%2fy", "/p/", "x%2fy"),
            ("/q/..%2fp/x", "/p", "/x"),
            ("/p/a/../b%C3%A9", "/p/", "b%C3%A9"),
            ("//p//x", "/p", "/x"),
            ("/p//evil.example", "/p", "/evil.example"),
            ("/a%2fb/c", "/a/b", "/c"),
            ("/p", "/p", ""),
            ("/%70", "/p", ""),
        ] {
            let normal = normalize(path).expect("a path that means something");
            assert!(normal.starts_with(prefix.as_bytes()), "{path}");
            assert_eq!(rest(path, prefix), behind, "{path}");
        }
    }

    #[test]
    fn path_slice_keeps_encoded_slashes() {
        let canonical = CanonicalPath::new("/a%2fb/c%2Fd");
        assert_eq!(canonical.text, "/a/b/c/d");
        for (part, written) in [
            (0..8, "/a%2Fb/c%2Fd"),
            (2..4, "%2Fb"),
            (3..6, "b/c"),
            (6..6, ""),
        ] {
            assert_eq!(&*canonical.written(part), written.as_bytes());
        }
    }

    #[test]
    fn path_without_dot_segments_is_unchanged() {
        for (path, unedited_path) in [
            ("/a//b%2fc%20d;e=f", "/a//b%2fc%20d;e=f"),
            ("/a/%70/...", "/a/%70/..."),
            ("/a//../%70%2fb", "/%70%2fb"),
            ("/a/..%2fb", "/b"),
            ("/a/%2e/b", "/a/b"),
            ("/a%2f.", "/a/"),
            ("//a//b", "/a/b"),
            ("*", "*"),
        ] {
            assert_eq!(path_for_server(path), unedited_path, "{path}");
        }
    }

    #[test]
    fn ambiguous_dot_segments_are_detected() {
        for path in [
            "/x/..;/b",
            "/x/..;a=b/b",
            "/x/.;",
            "/x/..%3b/b",
            "/x/%2e%2e;/b",
            "/x\\..\\b",
            "/x/b\\c",
            "/x/..%5cb",
            "/x%5c..%5cb",
            "/x/..%255cb",
            "/x/%252e%252e/b",
            "/%5cb",
            "/x%5c/b",
            "/x/%2%65%2e/b",
            "/x/..%252fb",
            "/x%25252f..%25252fb",
            "/x/%25%32%65./b",
            "/./b",
            "/..%2fb",
        ] {
            assert!(ambiguity(path).is_some(), "{path}");
        }
        for path in [
            "/a",
            "/a%20b",
            "/a;b/c",
            "/...",
            "/a..;/b",
            "/..a",
            "/a%5cb",
            "/a%2f..b",
            "/100%25",
            "/.well-known/x",
        ] {
            assert_eq!(ambiguity(path), None, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn normalized_path_has_no_dot_segments(path in "/[a./%2eE0]{0,12}") {
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
