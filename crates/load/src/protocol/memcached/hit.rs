//! The usual answer to a meta get of one key, which is there whole: it is counted without a look at anything else.

use super::answer::Said;
use super::line;
use super::reading::Reading;
use crate::memcached::ratio::Command;
use crate::memcached::{Dialect, Verify};
use crate::protocol::response::{Met, Outcome, Response};

/// Takes the hit that `input` begins with, if it is the answer to request `number` and nobody looks into its value: how many
/// bytes it has with its value, and what it says. None where it is anything else, or not all of it is here.
#[inline]
pub(super) fn take(reading: &Reading, number: u64, input: &[u8]) -> Option<(usize, Response)> {
    let workload = &*reading.workload;
    let is_usual = workload.dialect() == Dialect::Meta
        && workload.verify() == Verify::No
        && workload.command(number) == Command::Get
        && workload.keys_of(Command::Get) == 1;
    if !is_usual {
        return None;
    }
    let (bytes, opaque, line) = line::plain_value(input)?;
    let value_end = usize::try_from(bytes).ok()?.checked_add(line)?;
    let behind = input.get(value_end..)?;
    if opaque != workload.opaque(number, 0) || !behind.starts_with(b"\r\n") {
        return None;
    }
    let counts = &mut *reading.counts.borrow_mut();
    counts.gets += 1;
    counts.keys_asked += 1;
    counts.hits += 1;
    counts.value_bytes_read += bytes;
    let outcome = Outcome {
        number: Said::Hit as u16,
        class: Said::Hit.class(),
    };
    let response = Response {
        outcome,
        keep_alive: true,
        met: Met::Yes,
    };
    Some((value_end + 2, response))
}
