//! The usual answers to meta gets of one key, which are there whole: they are counted without a look at anything else.

use std::ops::Range;

use super::answer::Said;
use super::line;
use super::reading::Reading;
use crate::memcached::ratio::Command;
use crate::memcached::{Dialect, Verify};
use crate::protocol::response::{Alike, Met, Outcome, Response};

/// A hit, whose value nobody looks into.
const HIT: Response = Response {
    outcome: Outcome {
        number: Said::Hit as u16,
        class: Said::Hit.class(),
    },
    keep_alive: true,
    met: Met::Yes,
};

/// Takes the hits that `input` begins with, as far as they are the answers to requests `numbers` and nobody looks into their
/// values. None where the first is anything else, or not all of it is here.
#[inline]
pub(super) fn take(reading: &Reading, numbers: Range<u64>, input: &[u8]) -> Option<Alike> {
    let workload = &*reading.workload;
    let are_usual = workload.dialect() == Dialect::Meta
        && workload.verify() == Verify::No
        && workload.keys_of(Command::Get) == 1;
    if !are_usual {
        return None;
    }
    let (mut taken, mut hits, mut value_bytes) = (0, 0, 0);
    for number in numbers {
        if workload.command(number) != Command::Get {
            break;
        }
        let Some((length, value)) = hit(workload.opaque(number, 0), &input[taken..]) else {
            break;
        };
        taken += length;
        value_bytes += value;
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
    Some(Alike {
        response: HIT,
        count: hits,
        bytes: taken,
    })
}

/// The hit with this opaque that `input` begins with: how many bytes it has, and its value.
#[inline]
fn hit(opaque: u64, input: &[u8]) -> Option<(usize, u64)> {
    let (bytes, said, line) = line::plain_value(input)?;
    let value_end = usize::try_from(bytes).ok()?.checked_add(line)?;
    let behind = input.get(value_end..)?;
    let is_it = said == opaque && behind.starts_with(b"\r\n");
    is_it.then_some((value_end + 2, bytes))
}
