//! Folded field lines (obs-fold, RFC 9112 5.2). Servers with old frameworks still fold long values.

/// Copies the response head at the start of `input` and replaces each fold by as many spaces, as the RFC requires of
/// user agents. `None` without a fold. White space after the status line is not a fold (RFC 9112 2.2) and is kept.
pub fn unfolded(input: &[u8]) -> Option<Vec<u8>> {
    let mut copy = None;
    let mut begin = 0;
    for (number, line) in input.split_inclusive(|&byte| byte == b'\n').enumerate() {
        if matches!(line, b"\r\n" | b"\n") {
            break;
        }
        if number > 1 && matches!(line[0], b' ' | b'\t') {
            let copy: &mut Vec<u8> = copy.get_or_insert_with(|| input.to_vec());
            let is_white = |byte: &u8| matches!(byte, b' ' | b'\t');
            let spaces = line.iter().take_while(|byte| is_white(byte)).count();
            // The previous line ends with LF.
            let ends_with_cr = copy[..begin - 1].ends_with(b"\r");
            let from = begin - 1 - usize::from(ends_with_cr);
            copy[from..begin + spaces].fill(b' ');
        }
        begin += line.len();
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obs_fold_is_replaced_with_spaces() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nA: b\r\n\r\n", None),
            (
                "HTTP/1.1 200 OK\r\nA: b\r\n\tc\r\nD: e\r\n\r\n f\r\n g",
                Some("HTTP/1.1 200 OK\r\nA: b   c\r\nD: e\r\n\r\n f\r\n g"),
            ),
            (
                "HTTP/1.1 200 OK\nA:\n \t b\n\n",
                Some("HTTP/1.1 200 OK\nA:    b\n\n"),
            ),
            (
                "HTTP/1.1 200 OK\r\nA: b\r\n \r\n  c\r\n",
                Some("HTTP/1.1 200 OK\r\nA: b       c\r\n"),
            ),
            ("HTTP/1.1 200 OK\r\n A: b\r\n\r\n", None),
        ] {
            let found = unfolded(head.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{head:?}");
        }
    }
}
