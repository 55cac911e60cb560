//! Length-prefixed messages in bodies: a byte that is 1 for a compressed message, the length in four bytes, and the
//! message (Length-Prefixed-Message).

const PREFIX_BYTES: usize = 5;

/// Returns `message` with its prefix, uncompressed; `None` if the length does not fit in four bytes.
pub(crate) fn framed(message: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(message.len()).ok()?;
    let mut bytes = Vec::with_capacity(PREFIX_BYTES + message.len());
    bytes.push(0);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(message);
    Some(bytes)
}

/// Parser of a response body with one message, whose content is discarded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unary {
    prefix: [u8; PREFIX_BYTES],
    prefix_bytes: u8,
    /// Missing bytes of the message, once the prefix is complete.
    left: u32,
}

impl Unary {
    /// Parses the next `bytes` of the body.
    ///
    /// # Errors
    /// The reason why the body is not that of a unary response.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<(), &'static str> {
        while let Some((&byte, rest)) = bytes.split_first() {
            let at = usize::from(self.prefix_bytes);
            if at == PREFIX_BYTES {
                let count = (self.left as usize).min(bytes.len());
                if count == 0 {
                    return Err("more than one message, or bytes after it: the call is unary");
                }
                self.left -= count as u32; // at most `left`
                bytes = &bytes[count..];
                continue;
            }
            self.prefix[at] = byte;
            self.prefix_bytes += 1;
            bytes = rest;
            match (at, byte) {
                (0, 0) => {}
                (0, 1) => {
                    return Err("a compressed message, but only identity was accepted");
                }
                (0, _) => return Err("the first byte of a message is neither 0 nor 1"),
                _ => {}
            }
            if at + 1 == PREFIX_BYTES {
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length);
            }
        }
        Ok(())
    }

    /// Checks that there is a complete message.
    ///
    /// # Errors
    /// The missing part.
    pub(crate) fn end(&self) -> Result<(), &'static str> {
        match (usize::from(self.prefix_bytes), self.left) {
            (0, _) => Err("the status is OK, but the message is missing"),
            (PREFIX_BYTES, 0) => Ok(()),
            (PREFIX_BYTES, _) => Err("the message is shorter than its length field"),
            _ => Err("the body ends within the prefix of a message"),
        }
    }
}

/// Whether a content type is `application/grpc`, with or without a format (Content-Type).
pub(crate) fn is_grpc(content_type: &[u8]) -> bool {
    const WANTED: &[u8] = b"application/grpc";
    let Some((begin, rest)) = content_type.split_at_checked(WANTED.len()) else {
        return false;
    };
    begin.eq_ignore_ascii_case(WANTED) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(pieces: &[&[u8]]) -> Result<(), &'static str> {
        let mut unary = Unary::default();
        for piece in pieces {
            unary.take(piece)?;
        }
        unary.end()
    }

    #[track_caller]
    fn refused(expected: &str, body: &[u8]) {
        let sentence = read(&[body]).unwrap_err();
        assert!(sentence.contains(expected), "{sentence}");
    }

    #[test]
    fn response_has_exactly_one_message() {
        assert_eq!(framed(b"ab").unwrap(), b"\0\0\0\0\x02ab");
        for body in [&b"\0\0\0\0\0"[..], b"\0\0\0\0\x01a"] {
            assert_eq!(read(&[body]), Ok(()));
        }
    }

    #[test]
    fn invalid_grpc_messages_are_refused() {
        refused("the message is missing", b"");
        refused("within the prefix", b"\0\0\0\0");
        refused("shorter than its length", b"\0\0\0\0\x02a");
        refused("compressed", b"\x01\0\0\0\x01a");
        refused("neither 0 nor 1", b"\x02");
        refused("more than one message", b"\0\0\0\0\x01ab");
        refused("more than one message", b"\0\0\0\0\0\0\0\0\0\0");
    }

    proptest! {
        #[test]
        fn result_is_independent_of_read_boundaries(
            body in prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                proptest::collection::vec(any::<u8>(), 0..12).prop_map(|message| framed(&message).unwrap()),
            ],
            cuts in proptest::collection::vec(0usize..16, 0..5),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
            cuts.extend([0, body.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &body[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read(&pieces), read(&[&body]));
        }
    }
}
