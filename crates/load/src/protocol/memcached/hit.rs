//! Fast path for complete hits of single-key gets: they are compared with the expected bytes and counted.
//!
//! ```text
//!  text     VALUE | k000000000004711 |  0 100\r\n | value | \r\nEND\r\n
//!  meta    VA 100 O | aack\r\n | value | \r\n        quiet, the last of a batch: | \r\nMN\r\n
//! ```

use super::Sent;
use super::line;
use super::reading::Reading;
use super::response::CommandOutcome;
use crate::requests::memcached::ratio::Command;
use crate::requests::memcached::{CasUnique, Dialect, Verify};
use crate::requests::response::{ExpectationResult, IdenticalResponses, Outcome, Response};

const HIT: Response = Response {
    outcome: Outcome {
        number: CommandOutcome::Hit as u16,
        class: CommandOutcome::Hit.class(),
    },
    keep_alive: true,
    expectation: ExpectationResult::Yes,
};

/// Takes the hits at the start of `input` that respond to the requests of `sent`. Returns `None` if the first response
/// is anything else or incomplete.
#[inline]
pub(super) fn take(reading: &Reading, sent: Sent, input: &[u8]) -> Option<IdenticalResponses> {
    let workload = &*reading.workload;
    let are_usual = workload.versions() == CasUnique::No && workload.keys_of(Command::Get) == 1;
    if !are_usual {
        return None;
    }
    let (mut taken, mut hits, mut value_bytes) = (0, 0, 0);
    let mut size = Size::default();
    for number in sent.number..sent.number.saturating_add(sent.most) {
        if workload.command(number) != Command::Get {
            break;
        }
        let rest = &input[taken..];
        let hit = match workload.dialect() {
            Dialect::Text => text_hit(reading, number, rest, &mut size),
            Dialect::Meta => meta_hit(reading, number, rest, &mut size, b"\r\n"),
            Dialect::MetaQuiet if number + 1 == sent.end => {
                meta_hit(reading, number, rest, &mut size, b"\r\nMN\r\n")
            }
            Dialect::MetaQuiet => meta_hit(reading, number, rest, &mut size, b"\r\n"),
        };
        let Some(length) = hit else {
            break;
        };
        taken += length;
        value_bytes += size.bytes;
        hits += 1;
    }
    if hits == 0 {
        return None;
    }
    let counts = &mut *reading.counts.borrow_mut();
    counts.gets += hits;
    counts.keys_asked += hits;
    counts.hits += hits;
    counts.value_bytes_read += value_bytes;
    Some(IdenticalResponses {
        response: HIT,
        count: hits,
        bytes: taken,
    })
}

/// Cache of the size part of a line, which is usually the same in the next line.
#[derive(Default)]
struct Size<'i> {
    words: &'i [u8],
    bytes: u64,
}

impl<'i> Size<'i> {
    /// Returns the length of the size part of `input`: `before`, digits and `behind`. `None` if `input` has another
    /// form.
    #[inline]
    fn read(&mut self, input: &'i [u8], before: &[u8], behind: &[u8]) -> Option<usize> {
        if self.words.is_empty() || !input.starts_with(self.words) {
            let (bytes, rest) = line::digits(input.strip_prefix(before)?)?;
            let rest = rest.strip_prefix(behind)?;
            *self = Size {
                words: &input[..input.len() - rest.len()],
                bytes,
            };
        }
        Some(self.words.len())
    }
}

/// Returns the length of the hit at the start of `input` for request `number`.
#[inline]
fn text_hit<'i>(
    reading: &Reading,
    number: u64,
    input: &'i [u8],
    size: &mut Size<'i>,
) -> Option<usize> {
    let workload = &*reading.workload;
    let rest = input.strip_prefix(b"VALUE ")?;
    let rest = match workload.gets() {
        Some(gets) => gets.strip_key(number, rest)?,
        None => {
            let own = &mut *reading.key.borrow_mut();
            own.clear();
            workload.write_key(workload.key(Command::Get, number, 0), own);
            rest.strip_prefix(&own[..])?
        }
    };
    let rest = &rest[size.read(rest, b" 0 ", b"\r\n")?..];
    let end = value(reading, number, rest, size.bytes, b"\r\nEND\r\n")?;
    Some(input.len() - rest.len() + end)
}

/// The same in the meta protocols, where `end` follows the value.
#[inline]
fn meta_hit<'i, const END: usize>(
    reading: &Reading,
    number: u64,
    input: &'i [u8],
    size: &mut Size<'i>,
    end: &[u8; END],
) -> Option<usize> {
    let rest = &input[size.read(input, b"VA ", b" O")?..];
    let opaque = reading.workload.opaque(number, 0);
    let rest = rest.strip_prefix(&opaque.bytes())?.strip_prefix(b"\r\n")?;
    let end = value(reading, number, rest, size.bytes, end)?;
    Some(input.len() - rest.len() + end)
}

/// Returns the length of the value of request `number` at the start of `input`, which has `bytes` bytes, and of `end`
/// after it.
#[inline]
fn value<const END: usize>(
    reading: &Reading,
    number: u64,
    input: &[u8],
    bytes: u64,
    end: &[u8; END],
) -> Option<usize> {
    let workload = &*reading.workload;
    let bytes = usize::try_from(bytes).ok()?;
    let (value, behind) = input.split_at_checked(bytes)?;
    let is_right = match workload.verify() {
        Verify::No => true,
        Verify::Yes => {
            let key = workload.key(Command::Get, number, 0);
            workload.value_bytes(key) == bytes && workload.matches(key, 0, value)
        }
    };
    (is_right && behind.starts_with(end)).then_some(bytes + END)
}
