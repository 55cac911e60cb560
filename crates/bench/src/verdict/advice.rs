//! Suggests the next change for a bottleneck: the step that the four published tuning reports took in the same
//! situation.

use std::collections::BTreeMap;

use crate::outcome::{BottleneckKind, CpuUse, Trial};
use crate::placement::Placement;
use crate::scenario::Role;

/// Use above which a CPU is saturated.
const FULL: f64 = 0.95;
/// Share of packet work in a CPU's busy time above which packets are the cause.
const PACKETS_SHARE: f64 = 0.5;
/// Use below which a CPU can take over packets of another CPU.
const ROOM: f64 = 0.7;

/// A suggested change as a sentence; `None` if there is none, for example if the program under test is the bottleneck.
pub(super) fn advice(trial: &Trial, placement: &Placement, under_test: Role) -> Option<String> {
    if trial.limiter.kind != BottleneckKind::Cpu {
        return None;
    }
    by_packets(&trial.cpus).or_else(|| by_client(trial, placement, under_test))
}

/// Returns advice if a CPU is saturated, mostly with packets, while another CPU has time left.
fn by_packets(cpus: &[CpuUse]) -> Option<String> {
    let full = cpus
        .iter()
        .filter(|cpu| cpu.busy() >= FULL)
        .max_by(|a, b| a.softirq.total_cmp(&b.softirq))?;
    let share = (full.softirq + full.irq) / full.busy();
    let with_room: Vec<usize> = cpus
        .iter()
        .filter(|cpu| cpu.cpu != full.cpu && cpu.busy() < ROOM)
        .map(|cpu| cpu.cpu)
        .collect();
    if share < PACKETS_SHARE || with_room.is_empty() {
        return None;
    }
    Some(format!(
        "CPU {} spent {:.0} % of its time on packets while CPU {} had time left: steer packets there (`steering`, \
         rps_cpus {}), or give the interface more queues",
        full.cpu,
        share * 100.0,
        crate::environment::cpu_list(&with_room),
        mask(&with_room)
    ))
}

/// Returns advice if all CPUs of the client are saturated and those of the role under test are not.
fn by_client(trial: &Trial, placement: &Placement, under_test: Role) -> Option<String> {
    let full: BTreeMap<usize, bool> = trial
        .cpus
        .iter()
        .map(|cpu| (cpu.cpu, cpu.busy() >= FULL))
        .collect();
    let is_full = |role: Role| {
        let cpus = placement.of(role);
        !cpus.is_empty() && cpus.iter().all(|cpu| full.get(cpu) == Some(&true))
    };
    (under_test != Role::Client && is_full(Role::Client) && !is_full(under_test)).then(|| {
        format!(
            "the client was full and the {} was not: give the client more CPUs, or use a second client",
            under_test.name()
        )
    })
}

/// CPU mask in the kernel's format: comma-separated words of 32 bits, the highest first.
fn mask(cpus: &[usize]) -> String {
    let words = cpus.iter().max().map_or(0, |last| last / 32) + 1;
    let word = |index: usize| {
        let bits = cpus.iter().filter(|cpu| *cpu / 32 == index);
        bits.fold(0_u32, |word, cpu| word | 1 << (cpu % 32))
    };
    let mut parts: Vec<String> = (0..words)
        .rev()
        .map(|index| format!("{:08x}", word(index)))
        .collect();
    if let Some(first) = parts.first_mut() {
        let short = first.trim_start_matches('0');
        *first = if short.is_empty() {
            "0".into()
        } else {
            short.into()
        };
    }
    parts.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::place;
    use Role::{Client, Server};

    fn cpu(number: usize, system: f64, softirq: f64) -> CpuUse {
        CpuUse {
            cpu: number,
            system,
            softirq,
            ..CpuUse::default()
        }
    }

    fn of(cpus: Vec<CpuUse>) -> Option<String> {
        let mut trial = Trial {
            cpus,
            ..Trial::default()
        };
        trial.limiter.kind = BottleneckKind::Cpu;
        let placement = place(&[0, 1], &[Client, Server], Server, None);
        advice(&trial, &placement, Server)
    }

    #[test]
    fn packet_bound_cpu_gets_rps_advice() {
        let said = of(vec![cpu(0, 0.2, 0.78), cpu(1, 0.3, 0.0)]).expect("a change");
        assert!(
            said.contains("CPU 0 spent 80 % of its time on packets while CPU 1 had time left"),
            "{said}"
        );
        assert!(said.contains("rps_cpus 2"), "{said}");
    }

    #[test]
    fn only_saturated_client_needs_more_cpus() {
        let said = of(vec![cpu(0, 0.97, 0.0), cpu(1, 0.8, 0.0)]).expect("a change");
        assert!(
            said.starts_with("the client was full and the server was not"),
            "{said}"
        );
        assert_eq!(of(vec![cpu(0, 0.5, 0.0), cpu(1, 0.97, 0.0)]), None);
        assert_eq!(of(vec![cpu(0, 0.2, 0.78), cpu(1, 0.97, 0.0)]), None);
    }

    #[test]
    fn cpu_masks_use_32_bit_words() {
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[32]), "1,00000000");
        assert_eq!(mask(&[0, 31, 40]), "100,80000001");
    }
}
