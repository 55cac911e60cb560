//! Buffers a response head that is larger than a receive buffer until it is complete.

use onrush_http::obs_fold::unfolded;
use onrush_http::response::{self, ResponseHead};
use onrush_http::{HeaderSlots, Limits, Method, Parsed, Refusal};

use crate::limits::http1::RESPONSE_LIMITS;

/// Beginning of a head that is larger than a receive buffer.
#[derive(Debug, Default)]
pub(crate) struct HeldHead(Vec<u8>);

impl HeldHead {
    /// Calls `read` on the kept bytes and `input` together; `read` returns the head and its length. Returns the number of bytes
    /// of `input` to consume, and the head once it is complete.
    #[inline]
    pub(crate) fn read<T>(
        &mut self,
        input: &[u8],
        read: impl FnOnce(&[u8]) -> Result<Option<(T, usize)>, Refusal>,
    ) -> Result<(usize, Option<T>), Refusal> {
        if !self.0.is_empty() {
            return self.read_on(input, read);
        }
        match read(input)? {
            Some((head, bytes)) => Ok((bytes, Some(head))),
            None if input.len() >= Limits::DEFAULT.head_bytes_max => {
                self.0.extend_from_slice(input);
                Ok((input.len(), None))
            }
            None => Ok((0, None)),
        }
    }

    #[cold]
    fn read_on<T>(
        &mut self,
        input: &[u8],
        read: impl FnOnce(&[u8]) -> Result<Option<(T, usize)>, Refusal>,
    ) -> Result<(usize, Option<T>), Refusal> {
        let before = self.0.len();
        self.0.extend_from_slice(input);
        let Some((head, bytes)) = read(&self.0)? else {
            return Ok((input.len(), None));
        };
        // The head was incomplete before, so it ends in `input`.
        self.0 = Vec::new();
        Ok((bytes - before, Some(head)))
    }
}

/// Parses the head at the start of `input`, the response to a request with `method`, and calls `take` on it. Obsolete
/// line folding is replaced by spaces (RFC 9112 section 5.2).
#[inline]
pub(crate) fn parse<T>(
    input: &[u8],
    method: Method,
    take: impl FnOnce(&ResponseHead<'_, '_>) -> T,
) -> Parsed<T> {
    let mut slots = HeaderSlots::new();
    match response::parse(input, &mut slots, method, &RESPONSE_LIMITS) {
        Parsed::Complete(head) => Parsed::Complete(take(&head)),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => parse_folded(input, method, refusal, take),
    }
}

/// Parses a refused head again without line folding.
#[cold]
fn parse_folded<T>(
    input: &[u8],
    method: Method,
    refusal: Refusal,
    take: impl FnOnce(&ResponseHead<'_, '_>) -> T,
) -> Parsed<T> {
    let window = &input[..input.len().min(RESPONSE_LIMITS.head_bytes_max)];
    let Some(input) = unfolded(window) else {
        return Parsed::Refused(refusal);
    };
    let mut slots = HeaderSlots::new();
    match response::parse(&input, &mut slots, method, &RESPONSE_LIMITS) {
        Parsed::Complete(head) => Parsed::Complete(take(&head)),
        Parsed::Partial => Parsed::Partial,
        Parsed::Refused(refusal) => Parsed::Refused(refusal),
    }
}
