//! Parses complete payloads, except for SETTINGS (`settings`) and DATA, which is processed in pieces.

use super::{Flags, Head, NUMBER_MAX};
use crate::http2::code::{Code, ConnectionError, StreamError};

/// Big-endian 32 bits at `at`. The caller has checked the length of the frame.
#[inline]
pub(crate) fn number_at(payload: &[u8], at: usize) -> u32 {
    let bytes = payload[at..at + 4].try_into();
    u32::from_be_bytes(bytes.expect("a slice of four bytes"))
}

/// Number of bytes before the content and of padding after it (RFC 9113 6.1). `payload` is the start of the payload;
/// `None` if the byte with the length of the padding has not arrived.
///
/// # Errors
/// A connection error: the padding does not fit the payload.
#[inline]
pub(crate) fn padded(
    head: &Head,
    payload: &[u8],
    before_content: u32,
) -> Result<Option<(u32, u32)>, ConnectionError> {
    if !head.flags.has(Flags::PADDED) {
        return match before_content <= head.length {
            true => Ok(Some((before_content, 0))),
            false => Err(ConnectionError::size(
                "frame shorter than its flags require",
            )),
        };
    }
    if head.length < 1 + before_content {
        return Err(ConnectionError::size(
            "frame shorter than its flags require",
        ));
    }
    let Some(&padding) = payload.first() else {
        return Ok(None);
    };
    let (before, behind) = (1 + before_content, u32::from(padding));
    match before + behind <= head.length {
        true => Ok(Some((before, behind))),
        false => Err(ConnectionError::protocol("padding longer than the payload")),
    }
}

/// Number of bytes before and after the field block of HEADERS (RFC 9113 6.2); `None` if more of `payload` is needed.
///
/// # Errors
/// A connection error of [`padded`].
#[inline]
pub(crate) fn headers(head: &Head, payload: &[u8]) -> Result<Option<(u32, u32)>, ConnectionError> {
    let priority = match head.flags.has(Flags::PRIORITY) {
        true => 5,
        false => 0,
    };
    let around = padded(head, payload, priority)?;
    Ok(around.filter(|&(before, _)| payload.len() >= before as usize))
}

/// Checks RFC 7540's dependency, which begins with the stream id (RFC 9113 5.3.2, RFC 7540 5.3.1).
///
/// # Errors
/// A stream error: the stream depends on itself.
pub(crate) fn dependency(stream: u32, dependency: &[u8]) -> Result<(), StreamError> {
    match number_at(dependency, 0) & NUMBER_MAX == stream {
        true => Err(StreamError::protocol("stream that depends on itself")),
        false => Ok(()),
    }
}

/// PRIORITY (RFC 9113 6.3).
///
/// # Errors
/// A stream error.
pub(crate) fn priority(head: &Head, payload: &[u8]) -> Result<(), StreamError> {
    if head.length != 5 {
        return Err(StreamError::new(
            Code::FRAME_SIZE_ERROR,
            "PRIORITY frame with a length other than 5",
        ));
    }
    dependency(head.stream, payload)
}

/// RST_STREAM (RFC 9113 6.4).
#[inline]
pub(crate) fn reset(payload: &[u8]) -> Code {
    Code(number_at(payload, 0))
}

/// PING (RFC 9113 6.7).
pub(crate) fn ping(payload: &[u8]) -> [u8; 8] {
    *payload
        .first_chunk()
        .expect("the frame's length is checked")
}

/// Last stream and code of GOAWAY (RFC 9113 6.8). The debug data is ignored.
pub(crate) fn go_away(payload: &[u8]) -> (u32, Code) {
    (
        number_at(payload, 0) & NUMBER_MAX,
        Code(number_at(payload, 4)),
    )
}

/// Increment of WINDOW_UPDATE (RFC 9113 6.9); 0 is an error.
#[inline]
pub(crate) fn window_update(payload: &[u8]) -> u32 {
    number_at(payload, 0) & NUMBER_MAX
}

/// Stream and Priority field value of PRIORITY_UPDATE (RFC 9218 7.1).
pub(crate) fn priority_update(payload: &[u8]) -> (u32, &[u8]) {
    (number_at(payload, 0) & NUMBER_MAX, &payload[4..])
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn around(flags: Flags, length: u32, payload: &[u8]) -> Result<Option<(u32, u32)>, Code> {
        let head = Head {
            length,
            kind: Kind::Headers,
            flags,
            stream: 1,
        };
        headers(&head, payload).map_err(|error| error.code)
    }

    #[test]
    fn padding_and_priority_are_stripped() {
        let both = Flags::PADDED.and(Flags::PRIORITY);
        let cases: [(Flags, u32, &[u8], _); 10] = [
            (Flags::default(), 0, b"", Ok(Some((0, 0)))),
            (Flags::PADDED, 0, b"", Err(Code::FRAME_SIZE_ERROR)),
            (Flags::PADDED, 3, b"", Ok(None)),
            (Flags::PADDED, 3, &[2], Ok(Some((1, 2)))),
            (Flags::PADDED, 3, &[3], Err(Code::PROTOCOL_ERROR)),
            (Flags::PRIORITY, 4, &[0; 4], Err(Code::FRAME_SIZE_ERROR)),
            (Flags::PRIORITY, 9, &[0; 4], Ok(None)),
            (Flags::PRIORITY, 9, &[0; 5], Ok(Some((5, 0)))),
            (both, 7, &[1, 0, 0, 0, 0, 0], Ok(Some((6, 1)))),
            (both, 7, &[2, 0, 0, 0, 0, 0], Err(Code::PROTOCOL_ERROR)),
        ];
        for (flags, length, payload, wanted) in cases {
            assert_eq!(around(flags, length, payload), wanted, "{flags:?} {length}");
        }
    }

    #[test]
    fn stream_depending_on_itself_is_an_error() {
        let head = |length| Head {
            length,
            kind: Kind::Priority,
            flags: Flags::default(),
            stream: 3,
        };
        let code =
            |head: Head, payload: &[u8]| priority(&head, payload).map_err(|error| error.code);
        assert_eq!(code(head(5), &[0, 0, 0, 1, 9]), Ok(()));
        assert_eq!(
            code(head(5), &[0x80, 0, 0, 3, 9]),
            Err(Code::PROTOCOL_ERROR)
        );
        assert_eq!(code(head(4), &[0, 0, 0, 1]), Err(Code::FRAME_SIZE_ERROR));
    }
}
