//! Opaques of meta commands: a response repeats the opaque of its command (memcached, doc/protocol.txt). Pure.

/// Lower 16 bits of a command's number. They are unique within a batch, which is too short for 65,536 commands. An
/// opaque always has four letters, so that the lines of requests have the same length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Opaque(u16);

impl Opaque {
    pub(crate) const BYTES: usize = 4;

    #[inline]
    pub(crate) fn of(number: u64) -> Opaque {
        Opaque(number as u16)
    }

    /// Writes four bits per letter, from a to p, which needs neither a table nor a comparison.
    #[inline]
    pub(crate) fn bytes(self) -> [u8; Opaque::BYTES] {
        let letter = |shift: u16| b'a' + (self.0 >> shift & 15) as u8;
        [letter(12), letter(8), letter(4), letter(0)]
    }

    /// Parses the output of [`bytes`](Self::bytes).
    pub(crate) fn read(bytes: &[u8]) -> Option<Opaque> {
        let bytes: [u8; Opaque::BYTES] = bytes.try_into().ok()?;
        let number = bytes.iter().try_fold(0, |sum, byte| match byte {
            b'a'..=b'p' => Some(sum << 4 | u16::from(byte - b'a')),
            _ => None,
        });
        number.map(Opaque)
    }

    /// Returns how many commands after that of `earlier` its command was sent.
    pub(crate) fn since(self, earlier: Opaque) -> u64 {
        self.0.wrapping_sub(earlier.0).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_round_trips() {
        for number in 0..1 << 16 {
            let opaque = Opaque::of(number);
            assert_eq!(Opaque::read(&opaque.bytes()), Some(opaque));
        }
        assert_eq!(Opaque::of(0x1_0f2a).bytes(), *b"apck");
        for other in [
            &b""[..],
            b"a",
            b"aaa",
            b"aaaaa",
            b"aa a",
            b"aaaq",
            b"aaaA",
            b"aa1a",
        ] {
            assert_eq!(Opaque::read(other), None, "{other:?}");
        }
    }

    #[test]
    fn opaque_distance_wraps() {
        for (earlier, later, between) in [(0, 0, 0), (3, 5, 2), (65_535, 65_536, 1), (5, 3, 65_534)]
        {
            assert_eq!(Opaque::of(later).since(Opaque::of(earlier)), between);
        }
    }
}
