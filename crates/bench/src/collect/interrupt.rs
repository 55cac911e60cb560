//! Interrupts of network devices by line and CPU, and per-CPU interrupts (timer, IPIs): `/proc/interrupts`.
//!
//! That file has a column per CPU and a row per interrupt line. On a large machine, generating it takes the kernel
//! milliseconds; there each relevant line is read separately from `/sys/kernel/irq`.

use std::collections::BTreeMap;
use std::fs;

use onrush_machine::per_cpu::{self, Row};

use super::counters::{Count, Counters};
use super::source::{KernelFile, Root};
use crate::limits::{INTERRUPT_LINES_MAX, INTERRUPTS_BYTES_MAX};

/// Rows of per-CPU interrupts: timer, rescheduling, function calls, TLB shootdowns, IRQ work. arm64 numbers them
/// (`IPI0`).
const OF_CPUS: [&str; 5] = ["LOC", "RES", "CAL", "TLB", "IWI"];

/// Sources of interrupt counters.
#[derive(Debug)]
pub struct Interrupts {
    table: KernelFile,
    /// Interrupt lines of network devices, by number, with their names in results.
    lines: BTreeMap<u32, String>,
    /// Files of single lines, if the table is too large to read each second.
    single: Option<Vec<(u32, KernelFile)>>,
}

impl Interrupts {
    /// Finds the interrupt lines of network devices.
    pub fn find(root: &Root) -> Interrupts {
        let mut table = root.proc("interrupts");
        let mut buffer = Vec::new();
        let text = table.read(&mut buffer).unwrap_or_default();
        let lines = network_lines(&text, &Devices::find(root));
        let single = (text.len() > INTERRUPTS_BYTES_MAX).then(|| {
            let file = |line: &u32| {
                let path = root.sys_path(&format!("kernel/irq/{line}/per_cpu_count"));
                (*line, root.file(path))
            };
            lines.keys().map(file).collect()
        });
        Interrupts {
            table,
            lines,
            single,
        }
    }

    /// Description of the interrupts that are not counted.
    pub fn left_out(&self) -> Option<String> {
        let too_long = self.single.is_some();
        too_long.then(|| {
            format!(
                "interrupts between CPUs (/proc/interrupts has more than {} kB here)",
                INTERRUPTS_BYTES_MAX / 1_000
            )
        })
    }

    /// Adds `cpuN` for each line, and the per-CPU interrupts of each CPU.
    pub fn read(&mut self, buffer: &mut Vec<u8>, counters: &mut Counters) {
        let Some(files) = &mut self.single else {
            let text = self.table.read(buffer).unwrap_or_default();
            interrupts(&text, &self.lines, counters);
            return;
        };
        for (line, file) in files {
            let text = file.read(buffer).unwrap_or_default();
            // Comma-separated counts of all possible CPUs, in order.
            let counts = text.trim().split(',').enumerate();
            let counts = counts.filter_map(|(cpu, count)| by_cpu(cpu, count.parse().ok()?));
            counters.add(self.lines[line].clone(), counts);
        }
    }
}

/// `None` for a CPU without interrupts: most lines belong to one CPU.
fn by_cpu(cpu: usize, count: u64) -> Option<(String, Count)> {
    (count > 0).then(|| (format!("cpu{cpu}"), Count::Total(count)))
}

/// Reads `/proc/interrupts`: the named `lines` and the per-CPU interrupts.
pub fn interrupts(text: &str, lines: &BTreeMap<u32, String>, counters: &mut Counters) {
    for Row { label, counts, .. } in per_cpu::rows(text) {
        if OF_CPUS.contains(&label) || label.starts_with("IPI") {
            for (cpu, count) in counts {
                let measure = format!("interrupts_{label}");
                counters.add(format!("cpu{cpu}"), [(measure, Count::Total(count))]);
            }
        } else if let Some(name) = label.parse().ok().and_then(|line: u32| lines.get(&line)) {
            let counts = counts.into_iter();
            let counts = counts.filter_map(|(cpu, count)| by_cpu(cpu, count));
            counters.add(name.clone(), counts);
        }
    }
}

#[derive(Debug, Default)]
struct Devices {
    interfaces: Vec<String>,
    by_line: BTreeMap<u32, String>,
}

impl Devices {
    fn find(root: &Root) -> Devices {
        let mut found = Devices::default();
        let class = root.sys_path("class/net");
        for entry in fs::read_dir(&class).into_iter().flatten().flatten() {
            let Some(interface) = entry.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            // The interrupts of a virtio device belong to its parent on the bus.
            for name in ["device/msi_irqs", "device/../msi_irqs"] {
                let lines = fs::read_dir(class.join(&interface).join(name));
                for line in lines.into_iter().flatten().flatten() {
                    if let Some(line) = line.file_name().to_str().and_then(|line| line.parse().ok())
                    {
                        found.by_line.insert(line, interface.clone());
                    }
                }
            }
            found.interfaces.push(interface);
        }
        found
    }
}

/// Names of network devices' interrupt lines: `irq 38 eth0 queue 0 (virtio2-input.0)`. A line belongs to an interface
/// if its device lists the line, or if the line's name starts with the interface's.
fn network_lines(text: &str, devices: &Devices) -> BTreeMap<u32, String> {
    let name = |row: Row<'_>| {
        let line: u32 = row.label.parse().ok()?;
        let action = row.rest.split_ascii_whitespace().last()?;
        let called = |interface: &&String| {
            let rest = action.strip_prefix(interface.as_str());
            rest.is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
        };
        let interface = devices.by_line.get(&line);
        let interface = interface.or_else(|| devices.interfaces.iter().find(called))?;
        let queue = queue(action).map_or(String::new(), |queue| format!(" queue {queue}"));
        Some((line, format!("irq {line} {interface}{queue} ({action})")))
    };
    per_cpu::rows(text)
        .filter_map(name)
        .take(INTERRUPT_LINES_MAX)
        .collect()
}

/// Queue number at the end of a line's name, or before an `@` with the device's location: `eth0-TxRx-3`,
/// `virtio2-input.0`, `mlx5_comp3@pci:0000:01:00.0`. A number that is part of the interface's name (`eth0`) is not a
/// queue.
fn queue(action: &str) -> Option<u32> {
    let (name, _) = action.split_once('@').unwrap_or((action, ""));
    let digits = name.len()
        - name
            .trim_end_matches(|letter: char| letter.is_ascii_digit())
            .len();
    let (before, number) = name.split_at(name.len() - digits);
    let separated = before.ends_with(['-', '.', '_', ' ']) || before.ends_with("comp");
    separated.then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "           CPU0       CPU1       \n 24:          1          0  IO-APIC   5-edge      ACPI:Ged\n\
        \x2036:          0      78567 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
        \x2037:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n\
        \x2038:          3       4766 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
        \x2040:          9          0 PCI-MSIX-0000:01:00.0   1-edge      enp1s0-TxRx-7\n\
        \x2041:          9          0 PCI-MSIX-0000:01:00.0   1-edge      enp1s0x-TxRx-8\n\
        NMI:          0          0   Non-maskable interrupts\nLOC:      76430      77450   Local timer interrupts\n\
        RES:      19644      17569   Rescheduling interrupts\nERR:          0\n";

    fn devices() -> Devices {
        let line = |line: u32| (line, "eth0".to_owned());
        Devices {
            interfaces: vec!["eth0".into(), "enp1s0".into()],
            by_line: [37, 38, 39].map(line).into(),
        }
    }

    #[test]
    fn only_network_and_cpu_interrupts_are_counted() {
        let lines = network_lines(TEXT, &devices());
        let names: Vec<_> = lines.values().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "irq 37 eth0 (virtio2-config)",
                "irq 38 eth0 queue 0 (virtio2-input.0)",
                "irq 40 enp1s0 queue 7 (enp1s0-TxRx-7)",
            ]
        );
        let mut counters = Counters::default();
        interrupts(TEXT, &lines, &mut counters);
        assert_eq!(counters.at(names[1], "cpu0"), Some(Count::Total(3)));
        assert_eq!(counters.at(names[1], "cpu1"), Some(Count::Total(4_766)));
        assert_eq!(counters.at(names[2], "cpu1"), None);
        let at = |measure| counters.at("cpu1", measure);
        assert_eq!(at("interrupts_LOC"), Some(Count::Total(77_450)));
        assert_eq!(at("interrupts_RES"), Some(Count::Total(17_569)));
        assert_eq!(at("interrupts_NMI"), None);
        interrupts("", &lines, &mut counters);
    }

    #[test]
    fn queue_number_is_parsed_from_interrupt_name() {
        for (action, expected) in [
            ("virtio2-output.11", Some(11)),
            ("eth0-TxRx-3", Some(3)),
            ("ena-mgmnt@pci:0000:00:05.0", None),
            ("ens5-Tx-Rx-2", Some(2)),
            ("mlx5_comp3@pci:0000:01:00.0", Some(3)),
            ("eth0", None),
            ("17", None),
            ("i40e-eth1-TxRx-99999999999", None),
        ] {
            assert_eq!(queue(action), expected, "{action}");
        }
    }

    #[test]
    fn large_interrupt_table_is_read_by_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
            fs::write(path, text).expect("a file");
        };
        let padding = "NMI:  0  0   Non-maskable interrupts\n".repeat(INTERRUPTS_BYTES_MAX / 30);
        write("proc/interrupts", &format!("{TEXT}{padding}"));
        write("sys/class/net/eth0/device/msi_irqs/38", "msix\n");
        write("sys/kernel/irq/38/per_cpu_count", "3,5000\n");
        let root = Root::at(
            &directory.path().join("proc"),
            &directory.path().join("sys"),
        );
        let mut found = Interrupts::find(&root);
        assert!(found.left_out().is_some());
        let mut counters = Counters::default();
        found.read(&mut Vec::new(), &mut counters);
        let name = "irq 38 eth0 queue 0 (virtio2-input.0)";
        assert_eq!(counters.at(name, "cpu1"), Some(Count::Total(5_000)));
        assert_eq!(counters.at("cpu1", "interrupts_LOC"), None);
    }
}
