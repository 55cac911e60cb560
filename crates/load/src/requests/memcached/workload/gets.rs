//! Fast path of single-key gets whose lines differ only in the digits of keys and in opaques, as in nearly all runs.
//! The next batch overwrites only these bytes in the previous one. Pure.
//!
//! ```text
//!  mg k000000000004711 v Oaack\r\n
//!     ^       ^^^^^^^^    ^^^^ opaque
//!     key     digits: all that a key has
//! ```

use std::ops::Range;

use onrush_engine::random::Random;

use super::lines::END;
use super::{Key, KeySpace, Order, Workload};
use crate::requests::memcached::keys::KeySelector;
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;
use crate::requests::memcached::sizes::LengthDistribution;
use crate::requests::memcached::{CasUnique, Dialect};

#[derive(Debug)]
pub(crate) struct GetTemplate {
    seed: u64,
    keys: u64,
    picker: KeySelector,
    /// Line of key 0 with opaque 0.
    line: Box<[u8]>,
    key: usize,
    /// Range of the key's last eight digits.
    digits: Range<usize>,
    opaque: Option<usize>,
    /// Bytes after the lines of a batch.
    end: &'static [u8],
}

/// Variable digits of a key.
const DIGITS: usize = 8;

/// Number of keys with so many digits.
const KEYS_MAX: u64 = 100_000_000;

const ZEROS: u64 = 0x3030_3030_3030_3030;

impl GetTemplate {
    /// Returns `None` if the requests of `workload` differ in more.
    pub(super) fn of(workload: &Workload) -> Option<GetTemplate> {
        let (LengthDistribution::Fixed(key_bytes), Order::Drawn(picker)) =
            (&workload.key_sizes, &workload.order)
        else {
            return None;
        };
        let are_alike = workload.commands[..] == [Command::Get]
            && workload.multiget == 1
            && workload.hit_ratio.is_none()
            && workload.keys <= KEYS_MAX
            && *key_bytes > DIGITS;
        if !are_alike {
            return None;
        }
        let first = Key {
            space: KeySpace::Stored,
            number: 0,
        };
        let mut line = Vec::new();
        match workload.dialect {
            Dialect::Text => {
                line.extend_from_slice(match workload.versions {
                    CasUnique::No => b"get ",
                    CasUnique::Yes => b"gets ",
                });
                workload.write_key(first, &mut line);
                line.extend_from_slice(END);
            }
            Dialect::Meta | Dialect::MetaQuiet => {
                workload.write_meta(Command::Get, first, Opaque::of(0), &mut line);
            }
        }
        let key = line.iter().position(|byte| *byte == b' ')? + 1;
        let key_end = key + key_bytes;
        Some(GetTemplate {
            seed: workload.seed,
            keys: workload.keys,
            picker: picker.clone(),
            key,
            digits: key_end - DIGITS..key_end,
            opaque: match workload.dialect {
                Dialect::Text => None,
                Dialect::Meta | Dialect::MetaQuiet => Some(line.len() - END.len() - Opaque::BYTES),
            },
            line: line.into(),
            end: workload.batch_end(),
        })
    }

    /// Renders `count` requests from `number` on into `text`, which is empty or holds a previous batch.
    #[inline]
    pub(crate) fn rewrite(&self, (number, count): (u64, u64), text: &mut Vec<u8>) {
        let length = self.line.len() * count as usize;
        if text.len() != length + self.end.len() {
            *text = self.line.repeat(count as usize);
            text.extend_from_slice(self.end);
        }
        let lines = text[..length].chunks_exact_mut(self.line.len());
        for (number, line) in (number..).zip(lines) {
            line[self.digits.clone()].copy_from_slice(&self.digits_of(number));
            if let Some(at) = self.opaque {
                line[at..at + Opaque::BYTES].copy_from_slice(&Opaque::of(number).bytes());
            }
        }
    }

    /// Returns the rest of `input` after the key of request `number`; `None` if it does not start with this key.
    #[inline]
    pub(crate) fn strip_key<'i>(&self, number: u64, input: &'i [u8]) -> Option<&'i [u8]> {
        let rest = input.strip_prefix(&self.line[self.key..self.digits.start])?;
        rest.strip_prefix(&self.digits_of(number))
    }

    /// Returns the digits of the key of request `number`, the same as in [`Workload::key`].
    #[inline]
    fn digits_of(&self, number: u64) -> [u8; DIGITS] {
        let random = Random::stream(self.seed, number);
        let key = self.picker.pick(&random, number, self.keys);
        (ZEROS + digits(key)).to_le_bytes()
    }
}

/// Returns the eight digits of a number below 10^8, one per byte, the first in the lowest byte. Four digits are split
/// in two lanes, then two digits in four, by multiplication with reciprocals that are exact for such small numbers.
#[inline]
fn digits(number: u64) -> u64 {
    debug_assert!(number < KEYS_MAX);
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x7f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::memcached::MemcachedOptions;
    use crate::requests::memcached::keys::Distribution;
    use crate::requests::memcached::ratio::Ratio;

    #[test]
    fn digits_match_decimal_format() {
        let small = 0..20_000;
        let large = (0..10_000).map(|step| (step * 7_919_317 + 13) % KEYS_MAX);
        for number in small.chain(large).chain([KEYS_MAX - 1]) {
            let digits = digits(number).to_le_bytes().map(|digit| digit + b'0');
            assert_eq!(digits, format!("{number:08}").as_bytes(), "{number}");
        }
    }

    fn workload(change: impl FnOnce(&mut MemcachedOptions)) -> Workload {
        let mut asks = MemcachedOptions::default();
        change(&mut asks);
        Workload::new(&asks, 3).unwrap()
    }

    #[test]
    fn batch_equals_individual_requests() {
        for dialect in [Dialect::Text, Dialect::Meta, Dialect::MetaQuiet] {
            for (bytes, keys) in [(16, 10_000), (9, KEYS_MAX), (250, 1)] {
                let workload = workload(|asks| {
                    asks.dialect = dialect;
                    asks.key_sizes = LengthDistribution::Fixed(bytes);
                    asks.keys = keys;
                    asks.distribution = Distribution::Zipf(0.5);
                });
                let gets = workload.gets().expect("they differ in digits only");
                let mut text = Vec::new();
                for (number, count) in [(0, 1), (65_530, 16), (7, 16), (u64::MAX / 2, 3), (1, 1)] {
                    gets.rewrite((number, count), &mut text);
                    let mut expected = Vec::new();
                    for number in number..number + count {
                        workload.write(number, &mut expected);
                    }
                    expected.extend_from_slice(workload.batch_end());
                    assert_eq!(text, expected, "{dialect:?} {bytes} {number}");
                    let key = &text[gets.key..gets.digits.end];
                    assert_eq!(gets.strip_key(number, key), Some(&b""[..]));
                    assert_eq!(gets.strip_key(number, &key[1..]), None);
                }
            }
        }
    }

    #[test]
    fn unsupported_workloads_have_no_fast_path() {
        type Change = fn(&mut MemcachedOptions);
        let changes: [Change; 6] = [
            |asks| asks.multiget = 2,
            |asks| asks.hit_ratio = Some(0.5),
            |asks| asks.ratio = Ratio::parse("9:1").unwrap(),
            |asks| asks.key_sizes = LengthDistribution::Range(10, 20),
            |asks| asks.keys = KEYS_MAX + 1,
            |asks| asks.key_sizes = LengthDistribution::Fixed(DIGITS),
        ];
        for change in changes {
            assert!(workload(change).gets().is_none());
        }
    }
}
