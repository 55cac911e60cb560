//! Splits command lines into words.

use super::limits::WORDS_MAX;

/// Words of a line, up to the limit; further ones are dropped.
#[derive(Debug)]
pub(super) struct Words<'l> {
    /// Only the first `count` are valid.
    words: [&'l [u8]; WORDS_MAX],
    count: usize,
}

impl<'l> Words<'l> {
    /// Splits a line without its end. Only spaces separate words.
    pub(super) fn of(line: &'l [u8]) -> Self {
        let mut words: [&[u8]; WORDS_MAX] = [b""; WORDS_MAX];
        let mut count = 0;
        let all = line.split(|&byte| byte == b' ');
        for (place, word) in words.iter_mut().zip(all.filter(|word| !word.is_empty())) {
            *place = word;
            count += 1;
        }
        Self { words, count }
    }

    pub(super) fn all(&self) -> &[&'l [u8]] {
        &self.words[..self.count]
    }
}

/// Returns the line at the start of `bytes` without its end, and its length including the end; `None` if it is
/// incomplete.
pub(super) fn first(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = memchr::memchr(b'\n', bytes)?;
    Some((without_return(&bytes[..end]), end + 1))
}

pub(super) fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_at_spaces_and_limited() {
        assert_eq!(Words::of(b"").all().len(), 0);
        assert_eq!(Words::of(b"  get  a\tb ").all(), [&b"get"[..], b"a\tb"]);
        let many = "w ".repeat(WORDS_MAX + 10);
        assert_eq!(Words::of(many.as_bytes()).all().len(), WORDS_MAX);
    }

    #[test]
    fn line_ends_with_lf_or_crlf() {
        assert_eq!(first(b"mn\r\nmn"), Some((&b"mn"[..], 4)));
        assert_eq!(first(b"mn\nmn"), Some((&b"mn"[..], 3)));
        assert_eq!(first(b"mn\r"), None);
    }
}
