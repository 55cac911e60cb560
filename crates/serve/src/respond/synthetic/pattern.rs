//! The bytes that synthetic bodies are made of: made once, when the program is built, and sent from where they are.

/// Bytes of a line of the usual body.
const LINE: usize = 50;

/// Whole lines, of length and number so that every run of them looks alike from the start.
pub(crate) static LINES: [u8; LINE * 1280] = lines();

/// The same lines, each byte in a chunk of its own: `1 CRLF byte CRLF`.
pub(crate) static CHUNKS: [u8; CHUNK * LINE * 213] = chunks();

/// Bytes that do not compress; the same ones each time.
pub(crate) static RANDOM: [u8; 64_000] = random();

/// Bytes that a byte takes in a chunk of its own.
pub(crate) const CHUNK: usize = 6;

/// `.123456789` five times, the last byte an end of line.
const fn line_byte(at: usize) -> u8 {
    match at % LINE {
        49 => b'\n',
        at if at.is_multiple_of(10) => b'.',
        at => b'0' + (at % 10) as u8,
    }
}

const fn lines() -> [u8; LINES.len()] {
    let mut bytes = [0; LINES.len()];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = line_byte(at);
        at += 1;
    }
    bytes
}

const fn chunks() -> [u8; CHUNKS.len()] {
    let mut bytes = [0; CHUNKS.len()];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = match at % CHUNK {
            0 => b'1',
            1 | 4 => b'\r',
            2 | 5 => b'\n',
            _ => line_byte(at / CHUNK),
        };
        at += 1;
    }
    bytes
}

/// xorshift64 (Marsaglia, "Xorshift RNGs", 2003), a byte from each step.
const fn random() -> [u8; RANDOM.len()] {
    let mut bytes = [0; RANDOM.len()];
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut at = 0;
    while at < bytes.len() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[at] = (state >> 32) as u8;
        at += 1;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_fifty_bytes_as_with_httpterm() {
        let line = b".123456789.123456789.123456789.123456789.12345678\n";
        assert!(LINES.chunks(LINE).all(|found| found == line));
    }

    #[test]
    fn chunks_carry_the_lines_byte_by_byte() {
        let mut reader = onrush_http::body::BodyReader::new(onrush_http::Framing::Chunked);
        let limits = onrush_http::Limits::DEFAULT;
        let (mut at, mut payload) = (0, Vec::new());
        while at < CHUNKS.len() {
            let step = reader.advance(&CHUNKS[at..], &limits).unwrap();
            assert_eq!((step.consumed, step.payload.len()), (CHUNK, 1));
            payload.extend_from_slice(&CHUNKS[at..][step.payload]);
            at += step.consumed;
        }
        assert!(payload == LINES[..payload.len()]);
        assert!(payload.len().is_multiple_of(LINE));
    }

    #[test]
    fn random_bytes_are_spread_evenly() {
        let mut counts = [0u32; 256];
        RANDOM.iter().for_each(|&byte| counts[byte as usize] += 1);
        assert!(counts.iter().all(|count| (150..350).contains(count)));
    }
}
