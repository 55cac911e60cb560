//! Sets of CPUs in the kernel's two formats: lists (`0-3,8`) and masks (`0000,000001ff`).

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::CPUS_MAX;

/// A set of CPU numbers, in ascending order. Every number is below [`CPUS_MAX`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuSet {
    /// Bit `cpu % 64` of word `cpu / 64`; the last word is never zero, so that equal sets have equal words.
    words: Vec<u64>,
}

impl CpuSet {
    /// The empty set.
    pub fn new() -> CpuSet {
        CpuSet::default()
    }

    /// Parses `0-3,8`. An empty string is the empty set; `None` if the string is not a list.
    pub fn parse_list(text: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        let text = text.trim();
        if text.is_empty() {
            return Some(set);
        }
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            if first > last {
                return None;
            }
            set.extend(first..=last);
        }
        Some(set)
    }

    /// Parses `0000,000001ff`: hexadecimal words of 32 bits, the highest first. `None` if the string is not a mask.
    pub fn parse_mask(text: &str) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        for (at, word) in text.trim().rsplit(',').enumerate() {
            if word.is_empty() || word.len() > 8 || at * 32 >= CPUS_MAX {
                return None;
            }
            let bits = u32::from_str_radix(word, 16).ok()?;
            set.extend(
                (0..32)
                    .filter(|bit| bits >> bit & 1 == 1)
                    .map(|bit| at * 32 + bit),
            );
        }
        Some(set)
    }

    /// Formats the set as a mask with as many words and leading digits as `model`, a mask that this kernel printed.
    pub fn mask_like(&self, model: &str) -> String {
        let model = model.trim();
        let digits_first = model.split(',').next().map_or(1, str::len).clamp(1, 8);
        let words_needed = self.last().map_or(1, |last| last / 32 + 1);
        let words = (model.matches(',').count() + 1).max(words_needed);
        let word = |at: usize| {
            let pair = self.words.get(at / 2).copied().unwrap_or(0);
            (pair >> (at % 2 * 32)) as u32
        };
        let digits_highest = if words > words_needed || model.contains(',') {
            digits_first
        } else {
            1
        };
        let mut text = format!(
            "{:0width$x}",
            word(words - 1),
            width = digits_highest.max(digits_first)
        );
        for at in (0..words - 1).rev() {
            text.push_str(&format!(",{:08x}", word(at)));
        }
        text
    }

    /// Whether a CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words
            .get(cpu / 64)
            .is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Adds a CPU.
    ///
    /// # Panics
    /// If `cpu` is [`CPUS_MAX`] or more. Check numbers from outside first.
    pub fn insert(&mut self, cpu: usize) {
        assert!(cpu < CPUS_MAX, "CPU {cpu} is beyond the largest kernel");
        if self.words.len() <= cpu / 64 {
            self.words.resize(cpu / 64 + 1, 0);
        }
        self.words[cpu / 64] |= 1 << (cpu % 64);
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let bits = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| at * 64 + bit)
        };
        self.words.iter().enumerate().flat_map(bits)
    }

    /// Number of CPUs.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    /// The highest CPU.
    pub fn last(&self) -> Option<usize> {
        let word = self.words.last()?;
        Some((self.words.len() - 1) * 64 + 63 - word.leading_zeros() as usize)
    }

    /// CPUs in either set.
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        self.combined(other, |one, two| one | two)
    }

    /// CPUs in both sets.
    pub fn intersection(&self, other: &CpuSet) -> CpuSet {
        self.combined(other, |one, two| one & two)
    }

    /// CPUs in this set but not in the other.
    pub fn minus(&self, other: &CpuSet) -> CpuSet {
        self.combined(other, |one, two| one & !two)
    }

    /// Whether the sets share a CPU.
    pub fn intersects(&self, other: &CpuSet) -> bool {
        self.words
            .iter()
            .zip(&other.words)
            .any(|(one, two)| one & two != 0)
    }

    /// Whether the other set contains all CPUs of this one.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.minus(other).is_empty()
    }

    /// The set for a message: `CPU 3`, `CPUs 0-3,8`.
    pub fn label(&self) -> String {
        format!("{} {self}", if self.len() == 1 { "CPU" } else { "CPUs" })
    }

    fn combined(&self, other: &CpuSet, each: impl Fn(u64, u64) -> u64) -> CpuSet {
        let word = |words: &[u64], at: usize| words.get(at).copied().unwrap_or(0);
        let length = self.words.len().max(other.words.len());
        let words = (0..length).map(|at| each(word(&self.words, at), word(&other.words, at)));
        let mut words: Vec<u64> = words.collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        CpuSet { words }
    }
}

/// Formats CPUs in the given order, with consecutive numbers as a range: `0-2,5`.
pub fn ranges(cpus: impl IntoIterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let words = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    words.collect::<Vec<_>>().join(",")
}

fn number(text: &str) -> Option<usize> {
    let number: usize = text.trim().parse().ok()?;
    (number < CPUS_MAX).then_some(number)
}

impl Extend<usize> for CpuSet {
    fn extend<T: IntoIterator<Item = usize>>(&mut self, cpus: T) {
        for cpu in cpus {
            self.insert(cpu);
        }
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<T: IntoIterator<Item = usize>>(cpus: T) -> CpuSet {
        let mut set = CpuSet::new();
        set.extend(cpus);
        set
    }
}

/// A list such as `0-3,8`; empty for the empty set.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(self.iter()))
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CpuSet, D::Error> {
        let cpus = Vec::<usize>::deserialize(deserializer)?;
        match cpus.iter().find(|cpu| **cpu >= CPUS_MAX) {
            Some(cpu) => Err(serde::de::Error::custom(format!(
                "{cpu} is not a CPU number"
            ))),
            None => Ok(cpus.into_iter().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> CpuSet {
        CpuSet::parse_list(text).expect("a list")
    }

    #[test]
    fn cpu_lists_round_trip() {
        for text in ["", "0", "0-3", "0,2,4-7,9", "8191"] {
            assert_eq!(list(text).to_string(), text);
        }
        assert_eq!(list(" 1 - 2 ,3\n").to_string(), "1-3");
    }

    #[test]
    fn invalid_cpu_lists_and_masks_are_refused() {
        for text in ["a", "1-", "-1", "3-1", "8192", "1,,2", "0-99999999999"] {
            assert_eq!(CpuSet::parse_list(text), None, "{text:?}");
        }
        for text in ["", "g", "1,", "123456789", "0x1"] {
            assert_eq!(CpuSet::parse_mask(text), None, "{text:?}");
        }
    }

    #[test]
    fn masks_keep_kernel_width() {
        let set = list("17-23");
        assert_eq!(CpuSet::parse_mask("00fe0000"), Some(set.clone()));
        assert_eq!(
            CpuSet::parse_mask("0000,00000000,00fe0000"),
            Some(set.clone())
        );
        for (model, mask) in [
            ("00000000", "00fe0000"),
            ("ffffffff", "00fe0000"),
            ("0000,00000000,00000000", "0000,00000000,00fe0000"),
            ("00000000,00000000", "00000000,00fe0000"),
            ("0", "fe0000"),
        ] {
            assert_eq!(set.mask_like(model), mask, "like {model}");
        }
        assert_eq!(list("0").mask_like("3"), "1");
        assert_eq!(CpuSet::new().mask_like("f"), "0");
        assert_eq!(list("33").mask_like("0"), "2,00000000");
    }

    #[test]
    fn cpu_sets_combine() {
        let (one, two) = (list("0-3,100"), list("2-5"));
        assert_eq!(one.union(&two).to_string(), "0-5,100");
        assert_eq!(one.intersection(&two).to_string(), "2-3");
        assert_eq!(one.minus(&two).to_string(), "0-1,100");
        assert!(one.intersects(&two) && !one.is_subset(&two) && list("3").is_subset(&one));
        assert_eq!(
            (one.first(), one.last(), one.len()),
            (Some(0), Some(100), 5)
        );
        assert_eq!(one.minus(&one), CpuSet::new());
    }
}
