//! Tables with a column per CPU: `/proc/interrupts` and `/proc/softirqs`.

/// A row of such a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Row<'text> {
    /// The text before the colon: the number of an interrupt, or a name such as `LOC` or `NET_RX`.
    pub label: &'text str,
    /// Count of each online CPU.
    pub counts: Vec<(usize, u64)>,
    /// The text after the counts: controller, hardware interrupt number, trigger and handlers.
    pub rest: &'text str,
}

/// Parses the rows of a table. The header names the CPUs; offline CPUs have no column. Rows without a count for each
/// CPU are skipped, such as the last one of a truncated file.
pub fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let mut lines = text.lines();
    let cpu = |word: &str| word.strip_prefix("CPU")?.parse::<usize>().ok();
    let head = lines.next().unwrap_or_default().split_ascii_whitespace();
    let cpus: Vec<usize> = head.filter_map(cpu).collect();
    lines.filter_map(move |line| {
        let (label, mut rest) = line.split_once(':')?;
        let mut counts = Vec::with_capacity(cpus.len());
        for cpu in &cpus {
            rest = rest.trim_ascii_start();
            let end = rest.find([' ', '\t']).unwrap_or(rest.len());
            counts.push((*cpu, rest[..end].parse().ok()?));
            rest = &rest[end..];
        }
        Some(Row {
            label: label.trim(),
            counts,
            rest: rest.trim(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_rows_have_count_per_cpu() {
        let text = "           CPU0       CPU2       \n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
            LOC:      76430      77450   Local timer interrupts\nERR:          0\n  NET_RX:       3126       4732\nnothing\n";
        let found: Vec<_> = rows(text).collect();
        let row = |label, counts: [u64; 2], rest| Row {
            label,
            counts: vec![(0, counts[0]), (2, counts[1])],
            rest,
        };
        assert_eq!(
            found,
            [
                row("24", [1, 0], "IO-APIC   5-edge      ACPI:Ged"),
                row("LOC", [76_430, 77_450], "Local timer interrupts"),
                row("NET_RX", [3_126, 4_732], ""),
            ]
        );
        assert_eq!(rows("").count(), 0);
    }
}
