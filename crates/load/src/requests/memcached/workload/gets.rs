//! Gets of one key each whose lines differ in the digits of their keys and in their opaques only, as nearly all runs have them.
//! The lines of a batch stay where they are, and the next batch has nothing written anew but these. Pure.
//!
//! ```text
//!  mg k000000000004711 v Oaack\r\n
//!     ^       ^^^^^^^^    ^^^^ opaque
//!     key     digits: all that a key has
//! ```

use std::ops::Range;

use onrush_engine::random::Random;

use super::lines::END;
use super::{Key, Order, Space, Workload};
use crate::requests::memcached::keys::Picker;
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;
use crate::requests::memcached::sizes::Sizes;
use crate::requests::memcached::{Dialect, Versions};

/// Gets whose lines differ in digits and opaques only.
#[derive(Debug)]
pub(crate) struct Gets {
    seed: u64,
    keys: u64,
    picker: Picker,
    /// The line of key 0 with opaque 0.
    line: Box<[u8]>,
    /// Where its key begins.
    key: usize,
    /// Its last eight digits, which end with it.
    digits: Range<usize>,
    /// Where its opaque begins.
    opaque: Option<usize>,
    /// What stands behind the lines of a batch.
    end: &'static [u8],
}

/// The digits of a key that differ.
const DIGITS: usize = 8;

/// Keys that they tell apart.
const KEYS_MAX: u64 = 100_000_000;

/// Eight digits 0.
const ZEROS: u64 = 0x3030_3030_3030_3030;

impl Gets {
    /// Those of `workload`, where all of its requests are such gets.
    pub(super) fn of(workload: &Workload) -> Option<Gets> {
        let (Sizes::Fixed(key_bytes), Order::Drawn(picker)) =
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
            space: Space::Stored,
            number: 0,
        };
        let mut line = Vec::new();
        match workload.dialect {
            Dialect::Text => {
                line.extend_from_slice(match workload.versions {
                    Versions::No => b"get ",
                    Versions::Yes => b"gets ",
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
        Some(Gets {
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

    /// Makes `text`, which is empty or has a batch of these, the batch of `count` requests from `number` on.
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

    /// What stands in `input` behind the key of request `number`; none where it does not begin with it.
    #[inline]
    pub(crate) fn behind_key<'i>(&self, number: u64, input: &'i [u8]) -> Option<&'i [u8]> {
        let rest = input.strip_prefix(&self.line[self.key..self.digits.start])?;
        rest.strip_prefix(&self.digits_of(number))
    }

    /// The digits of the key of request `number`: those of [`Workload::key`].
    #[inline]
    fn digits_of(&self, number: u64) -> [u8; DIGITS] {
        let random = Random::stream(self.seed, number);
        let key = self.picker.pick(&random, number, self.keys);
        (ZEROS + digits(key)).to_le_bytes()
    }
}

/// The eight digits of a number below 10^8, each in a byte, the first in the lowest. All at once: four digits are halved in two
/// lanes, then two in four, by multiplications with inverses that are exact for numbers of so few digits.
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
    use crate::requests::memcached::Asks;
    use crate::requests::memcached::keys::Distribution;
    use crate::requests::memcached::ratio::Ratio;

    #[test]
    fn digits_are_those_of_the_number() {
        let small = 0..20_000;
        let large = (0..10_000).map(|step| (step * 7_919_317 + 13) % KEYS_MAX);
        for number in small.chain(large).chain([KEYS_MAX - 1]) {
            let digits = digits(number).to_le_bytes().map(|digit| digit + b'0');
            assert_eq!(digits, format!("{number:08}").as_bytes(), "{number}");
        }
    }

    fn workload(change: impl FnOnce(&mut Asks)) -> Workload {
        let mut asks = Asks::default();
        change(&mut asks);
        Workload::new(&asks, 3).unwrap()
    }

    #[test]
    fn a_batch_is_what_its_requests_are_one_by_one() {
        for dialect in [Dialect::Text, Dialect::Meta, Dialect::MetaQuiet] {
            for (bytes, keys) in [(16, 10_000), (9, KEYS_MAX), (250, 1)] {
                let workload = workload(|asks| {
                    asks.dialect = dialect;
                    asks.key_sizes = Sizes::Fixed(bytes);
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
                    assert_eq!(gets.behind_key(number, key), Some(&b""[..]));
                    assert_eq!(gets.behind_key(number, &key[1..]), None);
                }
            }
        }
    }

    #[test]
    fn what_differs_in_more_than_digits_is_none() {
        type Change = fn(&mut Asks);
        let changes: [Change; 6] = [
            |asks| asks.multiget = 2,
            |asks| asks.hit_ratio = Some(0.5),
            |asks| asks.ratio = Ratio::parse("9:1").unwrap(),
            |asks| asks.key_sizes = Sizes::Range(10, 20),
            |asks| asks.keys = KEYS_MAX + 1,
            |asks| asks.key_sizes = Sizes::Fixed(DIGITS),
        ];
        for change in changes {
            assert!(workload(change).gets().is_none());
        }
    }
}
