//! Converts HTTP/1 field lines (RFC 9112 5) written by this program to HTTP/2 fields and back.

use memchr::memchr;

/// Names and values of `lines`, which end with line feeds. Lines without a colon, such as empty ones, are skipped.
#[inline]
pub fn fields_of_lines(lines: &[u8]) -> impl Iterator<Item = (&str, &[u8])> {
    let mut rest = lines;
    let next_line = move || {
        let (line, after) = rest.split_at(memchr(b'\n', rest)?);
        rest = &after[1..];
        Some(line)
    };
    std::iter::from_fn(next_line).filter_map(|line| {
        let colon = memchr(b':', line)?;
        let name = str::from_utf8(&line[..colon]).ok()?;
        Some((name, line[colon + 1..].trim_ascii()))
    })
}

/// Formats `fields` as lines, without an empty one at the end.
pub fn lines_of_fields<'f>(fields: impl Iterator<Item = (&'f str, &'f [u8])>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in fields {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_lines_round_trip() {
        let fields = [("a", &b"1"[..]), ("b", b""), ("c", b"x: y")];
        let lines = lines_of_fields(fields.into_iter());
        assert_eq!(lines, b"a: 1\r\nb: \r\nc: x: y\r\n");
        assert!(fields_of_lines(&lines).eq(fields));
        let last = [&lines[..], b"\r\n"].concat();
        assert!(
            fields_of_lines(&last).eq(fields),
            "the empty line is skipped"
        );
    }

    #[test]
    fn white_space_around_value_is_trimmed() {
        let fields = fields_of_lines(b"A:  1 \r\nno colon\r\nB:2\nunfinished: 3");
        assert!(fields.eq([("A", &b"1"[..]), ("B", b"2")]));
    }
}
