//! Disks: busy time of each, and the time that tasks were stalled on I/O.

use std::collections::BTreeMap;

use onrush_machine::pressure;
use serde::Serialize;

use crate::limits::DISKS_MAX;
use crate::tree::Tree;

/// Counters of a disk since boot.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Completed reads and writes.
    pub operations: u64,
    /// Milliseconds in which it had at least one operation in flight (`io_ticks`).
    pub busy: u64,
    /// Sum of the durations of all operations, in milliseconds.
    pub waited: u64,
}

/// Reads /proc/diskstats, including partitions; unused disks are skipped.
pub(super) fn read(tree: &Tree) -> BTreeMap<String, Disk> {
    let text = tree.text("/proc/diskstats").unwrap_or_default();
    text.lines().filter_map(row).take(DISKS_MAX).collect()
}

/// `254 0 vda reads merged sectors ms writes merged sectors ms in_flight io_ticks weighted …`
fn row(line: &str) -> Option<(String, Disk)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| words.get(at)?.parse::<u64>().ok();
    let operations = number(3)?.saturating_add(number(7)?);
    let disk = Disk {
        operations,
        busy: number(12)?,
        waited: number(6)?.saturating_add(number(10)?),
    };
    (operations > 0).then(|| (words[2].to_owned(), disk))
}

/// Microseconds with at least one task stalled on I/O.
pub(super) fn stall(tree: &Tree) -> Option<u64> {
    let text = tree.text("/proc/pressure/io")?;
    let mut stalls = pressure::stalls(&text);
    stalls.find_map(|(kind, time)| (kind == "some").then_some(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    #[test]
    fn disk_counters_and_io_pressure_are_read() {
        let files = [
            (
                "/proc/diskstats",
                "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 254       0 vda 10 5 80 20 30 4 200 90 2 77 110 0 0",
            ),
            (
                "/proc/pressure/io",
                "some avg10=0.12 avg60=1.80 avg300=13.62 total=1217\nfull avg10=0.01 avg60=1.54 avg300=7.48 total=19",
            ),
        ];
        let tree = Tree::of_snapshot(Snapshot {
            files: files
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into(),
            ..Snapshot::default()
        });
        let disk = Disk {
            operations: 40,
            busy: 77,
            waited: 110,
        };
        assert_eq!(read(&tree), [("vda".to_owned(), disk)].into());
        assert_eq!(stall(&tree), Some(1_217));
        assert_eq!(stall(&Tree::of_snapshot(Snapshot::default())), None);
    }
}
