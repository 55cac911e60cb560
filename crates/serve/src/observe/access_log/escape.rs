//! Escaping of untrusted text, so that a log line stays one line and can be parsed.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Escape {
    /// `\xHH` as in nginx: control characters, quotes, backslashes and non-ASCII bytes.
    Plain,
    Json,
}

pub(super) fn write_escaped(bytes: &[u8], escape: Escape, out: &mut Vec<u8>) {
    if is_harmless(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    match escape {
        Escape::Plain => write_plain(bytes, out),
        Escape::Json => write_string(bytes, out),
    }
}

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Whether no byte needs an escape in any format, as nearly always.
fn is_harmless(bytes: &[u8]) -> bool {
    // Without an early exit the loop is vectorized.
    let harmful = bytes.iter().fold(false, |harmful, &byte| {
        harmful | !(0x20..=0x7e).contains(&byte) | (byte == b'"') | (byte == b'\\')
    });
    !harmful
}

fn write_plain(bytes: &[u8], out: &mut Vec<u8>) {
    for &byte in bytes {
        match byte {
            b'"' | b'\\' | ..0x20 | 0x7f.. => {
                let (high, low) = (byte >> 4, byte & 15);
                out.extend_from_slice(&[
                    b'\\',
                    b'x',
                    HEX[usize::from(high)],
                    HEX[usize::from(low)],
                ]);
            }
            byte => out.push(byte),
        }
    }
}

/// Invalid UTF-8 becomes U+FFFD.
fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                ..0x20 | 0x7f => {
                    let (high, low) = (byte >> 4, byte & 15);
                    out.extend_from_slice(b"\\u00");
                    out.extend_from_slice(&[HEX[usize::from(high)], HEX[usize::from(low)]]);
                }
                byte => out.push(byte),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}
