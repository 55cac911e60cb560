//! Parses /proc/interrupts and the names of interrupts.

use onrush_machine::per_cpu::{self, Row};
use serde::Serialize;

use crate::limits::QUEUES_MAX;
use crate::tree::Tree;

/// A numbered interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// Current number; it changes with the number of queues.
    pub number: usize,
    /// Names of the handlers, separated by commas.
    pub name: String,
    /// Nonzero counts since boot, as `(cpu, count)`.
    pub counts: Vec<(usize, u64)>,
}

/// Purpose of a network device's interrupt.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Receive and transmit of a queue pair.
    Both,
    /// Receive.
    Receive,
    /// Transmit.
    Transmit,
    /// Link changes, management, errors.
    Control,
}

/// Numbered rows of /proc/interrupts in order. Invalid rows, as in a truncated file, are skipped.
pub(crate) fn read(tree: &Tree) -> Vec<Interrupt> {
    let text = tree.text("/proc/interrupts").unwrap_or_default();
    let row = |row: Row<'_>| {
        Some(Interrupt {
            number: row.label.parse().ok()?,
            name: handlers(&row.rest.split_whitespace().collect::<Vec<_>>()),
            counts: row
                .counts
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .collect(),
        })
    };
    per_cpu::rows(&text).filter_map(row).collect()
}

/// Parses the handler names. They follow the controller, its interrupt number and the trigger, which take several
/// words, and begin after the last word that describes the hardware.
fn handlers(words: &[&str]) -> String {
    let is_hardware = |word: &&str| {
        let trigger = [
            "-edge",
            "-level",
            "-fasteoi",
            "-msi",
            "Edge",
            "Level",
            "-edge-pirq",
        ];
        trigger.iter().any(|end| word.ends_with(end))
            || word
                .trim_start_matches("0x")
                .chars()
                .all(|letter| letter.is_ascii_hexdigit() && letter != '-')
                && word.chars().any(|letter| letter.is_ascii_digit())
            || word.starts_with("PCI-MSI")
            || word.starts_with("xen-")
            // Xen has a space between controller and kind: `xen-dyn    -event`, `xen-pirq    -msi-x`.
            || word.starts_with('-')
            || [
                "IO-APIC", "GICv3", "GICv2", "ITS-MSI", "ITS-MSIX", "XIVE-IRQ", "XICS", "MSI",
            ]
            .contains(word)
    };
    let names = words
        .iter()
        .rposition(is_hardware)
        .map_or(1.min(words.len()), |at| at + 1);
    words[names..].join(" ")
}

/// Part of the names of gVNIC (`gve`) interrupts, except the management interrupt: `gve-ntfy-blk3@pci:…`, and before
/// Linux 6.4 `eth%d-ntfy-block.3`, with a literal percent sign.
const BLOCK: &str = "ntfy-bl";

pub(crate) fn is_block(name: &str) -> bool {
    name.contains(BLOCK)
}

/// Whether it serves all queues of a virtio device with too few interrupts: `virtio3-virtqueues`
/// (vp_request_msix_vectors in drivers/virtio/virtio_pci_common.c).
pub(crate) fn is_virtqueues(name: &str) -> bool {
    name.ends_with("-virtqueues")
}

/// Whether it belongs to a portal of DPAA2: `dpio.3`.
pub(crate) fn is_portal(name: &str) -> bool {
    let number = name.strip_prefix("dpio.");
    number.is_some_and(|number| number.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// Whether it serves a queue of every port of the device: `mana_q3` serves queue 3 of each port of MANA. The ports
/// share the device's event queues; event queue N has vector N + 1, and its interrupt is named `mana_qN`
/// (mana_create_eq, mana_add_rx_queues and mana_gd_setup_irqs in drivers/net/ethernet/microsoft/mana, Linux 6.2). In
/// later kernels a port can have its own vectors, named by number: `mana_msi4`.
pub(crate) fn is_of_all_ports(name: &str) -> bool {
    name.starts_with("mana_q")
}

/// Prefix of MANA's interrupts that are numbered by vector; the first vector, `mana_hwc`, is for control.
const MANA_VECTOR: &str = "mana_msi";

pub(crate) fn is_mana_vector(name: &str) -> bool {
    name.starts_with(MANA_VECTOR)
}

/// First and last queue in `ice-eth0-TxRx-0-1`.
pub(crate) fn range(name: &str) -> Option<(usize, usize)> {
    let (_, numbers) = name.split_once("TxRx-")?;
    let (first, last) = numbers.split_once('-')?;
    let number = |text: &str| text.parse().ok().filter(|queue| *queue < QUEUES_MAX);
    Some((number(first)?, number(last)?))
}

/// Prefix of mlx4's completion interrupts: `mlx4-3@0000:04:00.0` (drivers/net/ethernet/mellanox/mlx4/eq.c).
const VECTOR: &str = "mlx4-";

pub(crate) fn is_vector(name: &str) -> bool {
    let number = name.strip_prefix(VECTOR);
    number.is_some_and(|number| number.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// Purpose and queue according to the name. Spellings differ by driver: `eth0-TxRx-3`, `eth0-Tx-Rx-3`, `eth0-rx-3`,
/// `virtio2-input.3`, `mlx5_comp3@pci:…`, `mana_q3@pci:…`, `mlx4-3@0000:…`, `eth0-q3-rx`, `vif0-q3-rx`, `eth0-3`.
pub(crate) fn parse_name(name: &str, interface: &str) -> (Purpose, Option<usize>) {
    // The digits of the device address after the @ are not a queue. The interface's name may contain such words too.
    let name = name.split('@').next().unwrap_or(name).to_lowercase();
    let rest = name.replace(&interface.to_lowercase(), "\u{1}");
    const CONTROL: [&str; 12] = [
        "mlx4-ib", "mgmnt", "async", "config", "fdir", "misc", "event", "admin", "ctrl", "mbx",
        "err", "pages",
    ];
    if CONTROL.iter().any(|word| rest.contains(word)) {
        return (Purpose::Control, None);
    }
    const PURPOSES: [(&str, Purpose); 17] = [
        ("tx-rx", Purpose::Both),
        ("rx-tx", Purpose::Both),
        ("txrx", Purpose::Both),
        ("rxtx", Purpose::Both),
        ("comp", Purpose::Both),
        ("input", Purpose::Receive),
        ("output", Purpose::Transmit),
        ("-fp-", Purpose::Both),
        ("_q", Purpose::Both),
        ("queue", Purpose::Both),
        ("rx", Purpose::Receive),
        ("tx", Purpose::Transmit),
        ("-q", Purpose::Both),
        // Numbered by vector; in most kernels the first vector does not serve a queue.
        (VECTOR, Purpose::Both),
        // Receive or transmit depends on the half that the block is in, which requires all blocks.
        (BLOCK, Purpose::Both),
        (MANA_VECTOR, Purpose::Both),
        // MANA before Linux 6.2, without numbers.
        ("mana_intr", Purpose::Both),
    ];
    for (word, purpose) in PURPOSES {
        let Some((before, after)) = rest.split_once(word) else {
            continue;
        };
        // The number comes after the word, or before it: `q3-rx`.
        let queue = first_number(after).or_else(|| last_number(before));
        return (purpose, queue);
    }
    match rest
        .split_once('\u{1}')
        .and_then(|(_, after)| after.strip_prefix('-'))
        .map(str::parse)
    {
        Some(Ok(queue)) if queue < QUEUES_MAX => (Purpose::Both, Some(queue)),
        _ => (Purpose::Control, None),
    }
}

fn first_number(text: &str) -> Option<usize> {
    let start = text.find(|letter: char| letter.is_ascii_digit())?;
    let digits = &text[start..];
    let end = digits
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end]
        .parse()
        .ok()
        .filter(|queue| *queue < QUEUES_MAX)
}

fn last_number(text: &str) -> Option<usize> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let end = text.rfind(is_digit)? + 1;
    let start = text[..end].trim_end_matches(is_digit).len();
    first_number(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Snapshot;

    fn rows(text: &str) -> Vec<(usize, String, u64)> {
        let files = [("/proc/interrupts".to_owned(), text.to_owned())].into();
        let interrupts = read(&Tree::of_snapshot(Snapshot {
            files,
            ..Snapshot::default()
        }));
        let sum = |interrupt: &Interrupt| interrupt.counts.iter().map(|(_, count)| count).sum();
        interrupts
            .iter()
            .map(|row| (row.number, row.name.clone(), sum(row)))
            .collect()
    }

    #[test]
    fn proc_interrupts_is_parsed_for_many_controllers() {
        let text = "           CPU0       CPU2\n\
            \x20 0:         47          0   IO-APIC   2-edge      timer\n\
            \x2038:          0     111097 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n\
            \x2040:          1          2   PCI-MSI 524289-edge      eth0-TxRx-0\n\
            120:          1          2   PCI-MSI-edge      eth0, uhci hcd\n\
            \x2072:          5          5   xen-dyn-event     eth0-q0-rx\n\
            \x2013:          5          5   ITS-MSI 16384 Edge      eth1-Tx-Rx-0\n\
            \x2074:          5          6   xen-dyn    -event     vif0-q0-rx\n\
            \x2075:          5          7   xen-pirq    -msi-x     ens3-Tx-Rx-0\n\
            \x2016:          0          0\n\
            NMI:          0          0   Non-maskable interrupts\n\
            \x2099:          1";
        let expected = [
            (0, "timer", 47),
            (38, "virtio2-input.0", 111097),
            (40, "eth0-TxRx-0", 3),
            (120, "eth0, uhci hcd", 3),
            (72, "eth0-q0-rx", 10),
            (13, "eth1-Tx-Rx-0", 10),
            (74, "vif0-q0-rx", 11),
            (75, "ens3-Tx-Rx-0", 12),
            (16, "", 0),
        ];
        let expected: Vec<_> = expected
            .map(|(number, name, sum)| (number, name.to_owned(), sum))
            .into();
        assert_eq!(rows(text), expected);
    }

    #[test]
    fn interrupt_name_gives_purpose_and_queue() {
        use Purpose::{Both, Control, Receive, Transmit};
        for (name, expected) in [
            ("eth0-TxRx-3", (Both, Some(3))),
            ("i40e-eth0-TxRx-12", (Both, Some(12))),
            ("eth0-Tx-Rx-3", (Both, Some(3))),
            ("eth0-rx-3", (Receive, Some(3))),
            ("eth0-tx-0", (Transmit, Some(0))),
            ("eth0-fp-2", (Both, Some(2))),
            ("eth0-q3-rx", (Receive, Some(3))),
            ("eth0-7", (Both, Some(7))),
            ("vif0-q3-tx", (Transmit, Some(3))),
            ("eth%d-ntfy-block.5", (Both, Some(5))),
            ("eth%d-mgmnt", (Control, None)),
            ("eth0-txrx-2", (Both, Some(2))),
            ("ice-eth0-TxRx-0-1", (Both, Some(0))),
            ("virtio2-input.3", (Receive, Some(3))),
            ("virtio2-output.3", (Transmit, Some(3))),
            ("virtio2-config", (Control, None)),
            ("mlx5_comp17@pci:0000:81:00.0", (Both, Some(17))),
            ("mlx5_async0@pci:0000:81:00.0", (Control, None)),
            ("mana_q5@pci:7870:00:00.0", (Both, Some(5))),
            ("mana_msi6@pci:7870:00:00.0", (Both, Some(6))),
            ("mana_hwc@pci:7870:00:00.0", (Control, None)),
            ("mana_intr", (Both, None)),
            ("mlx4-7@0000:04:00.0", (Both, Some(7))),
            ("mlx4-async@pci:0000:04:00.0", (Control, None)),
            ("mlx4-ib-1-0@PCI Bus 0000:04", (Control, None)),
            ("ena-mgmnt@pci:0000:00:05.0", (Control, None)),
            ("eth0:fdir-TxRx-0", (Control, None)),
            ("eth0", (Control, None)),
        ] {
            assert_eq!(parse_name(name, "eth0"), expected, "{name}");
        }
        assert_eq!(parse_name("enp1s0f1-TxRx-4", "enp1s0f1"), (Both, Some(4)));
        assert_eq!(parse_name("rxtx5-rx-1", "rxtx5"), (Receive, Some(1)));
    }
}
