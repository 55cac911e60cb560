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

/// The path with percent-encodings decoded and `.` and `..` resolved. An encoded slash is data, not a separator (RFC
/// 3986 2.2), and no file name can contain it; it stays encoded, so that nothing is found by it.
///
/// # Errors
/// [`BadPath`], to be answered with 400.
pub(crate) fn normalize(path: &str) -> Result<Cow<'_, [u8]>, BadPath> {
    let bytes = path.as_bytes();
    let plain =
        memchr::memchr(b'%', bytes).is_none() && !bytes.windows(2).any(|pair| pair == b"/.");
    if plain {
        return Ok(Cow::Borrowed(bytes));
    }
    let decoded = decode(bytes)?;
    remove_dot_segments(&decoded).map(Cow::Owned)
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

fn remove_dot_segments(path: &[u8]) -> Result<Vec<u8>, BadPath> {
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            b"." | b".." => {
                // The empty segment before the first slash is the root.
                if segment == b".." && (kept.len() < 2 || kept.pop().is_none()) {
                    return Err(BadPath::AboveRoot);
                }
                if last {
                    kept.push(b"");
                }
            }
            segment => kept.push(segment),
        }
    }
    Ok(kept.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("//a//b", Ok("//a//b")),
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
}
