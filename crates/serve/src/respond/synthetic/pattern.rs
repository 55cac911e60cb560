//! The content of synthetic bodies, generated at compile time and sent without a copy.

/// Number of bytes per line of the default body.
const LINE: usize = 50;

/// Whole lines. Length and count are chosen so that repetitions join without a break.
pub(crate) static LINES: [u8; LINE * 1280] = lines();

/// The lines of [`LINES`], each byte in its own chunk: `1 CRLF byte CRLF`.
pub(crate) static CHUNKS: [u8; CHUNK * LINE * 213] = chunks();

/// Incompressible bytes, the same ones each time.
pub(crate) static RANDOM: [u8; 64_000] = random();

/// Length of a one-byte chunk.
pub(crate) const CHUNK: usize = 6;

/// `.123456789` five times, with the last byte a line feed.
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

/// xorshift64 (Marsaglia, "Xorshift RNGs", 2003), one byte per step.
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
    fn pattern_lines_have_50_bytes() {
        let line = b".123456789.123456789.123456789.123456789.12345678\n";
        assert!(LINES.chunks(LINE).all(|found| found == line));
    }

    #[test]
    fn chunked_pattern_has_one_byte_per_chunk() {
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
    fn random_bytes_are_uniform() {
        let mut counts = [0u32; 256];
        RANDOM.iter().for_each(|&byte| counts[byte as usize] += 1);
        assert!(counts.iter().all(|count| (150..350).contains(count)));
    }
}
