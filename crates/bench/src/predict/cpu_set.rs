//! CPUs by their numbers, as the kernel writes them: `0-3,8`.

use std::collections::BTreeSet;
use std::fmt;

use crate::environment::cpu_list;
use crate::limits::CPU_NUMBER_MAX;

/// Some CPUs of a machine, possibly none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// `"0-3,8"`; an empty text is no CPU. The error says what is expected.
    pub fn parse(text: &str) -> Result<CpuSet, String> {
        let wrong = || {
            format!(
                "`{text}` is no list of CPUs: expected numbers and ranges up to {CPU_NUMBER_MAX}, such as 0-3,8"
            )
        };
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first: usize = first.trim().parse().map_err(|_| wrong())?;
            let last: usize = last.trim().parse().map_err(|_| wrong())?;
            if first > last || last > CPU_NUMBER_MAX {
                return Err(wrong());
            }
            cpus.extend(first..=last);
        }
        Ok(CpuSet(cpus))
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this CPU is one of them.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// Whether all of them are in `other`.
    pub fn is_subset(&self, other: &CpuSet) -> bool {
        self.0.is_subset(&other.0)
    }

    /// Those in both.
    pub fn common(&self, other: &CpuSet) -> CpuSet {
        CpuSet(&self.0 & &other.0)
    }

    /// Those in either.
    pub fn union(&self, other: &CpuSet) -> CpuSet {
        CpuSet(&self.0 | &other.0)
    }

    /// Their numbers, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(numbers: I) -> CpuSet {
        CpuSet(numbers.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<usize> = self.numbers().collect();
        out.write_str(&cpu_list(&numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read() {
        let list = |text| CpuSet::parse(text).map(|cpus| cpus.to_string());
        assert_eq!(list("0-3,8").as_deref(), Ok("0-3,8"));
        assert_eq!(list("").as_deref(), Ok(""));
        assert_eq!(list(" 5 \n").as_deref(), Ok("5"));
    }

    #[test]
    fn what_is_no_list_is_refused_with_what_is() {
        for text in [
            "a",
            "3-1",
            "1,,2",
            "-1",
            "99999",
            "1-",
            "0-99999999999999999999",
        ] {
            let error = CpuSet::parse(text).expect_err(text);
            assert!(error.contains("such as 0-3,8"), "{error}");
        }
    }
}
