//! Classic BPF programs that select among the listeners of an address. Pure.

use crate::socket::filter::instruction;

/// An index without a listener: the kernel then selects by the hash of the addresses and ports.
const BY_HASH: u32 = u32::MAX;

/// The CPU that runs the program, which processes the packet (linux/filter.h: SKF_AD_OFF and SKF_AD_CPU).
const CPU: u32 = 0xffff_f000 + 36;

/// Selects the listener whose index is that of the packet's CPU in `cpus`; by hash if the CPU is not in the list.
pub(super) fn by_cpu(cpus: &[usize]) -> Vec<libc::sock_filter> {
    let load = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, CPU, (0, 0));
    let choices = (0..).zip(cpus).flat_map(|(index, &cpu)| {
        let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        [instruction(is_equal, cpu as u32, (0, 1)), gives(index)]
    });
    std::iter::once(load)
        .chain(choices)
        .chain(by_hash())
        .collect()
}

pub(super) fn by_hash() -> [libc::sock_filter; 1] {
    [gives(BY_HASH)]
}

fn gives(index: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, index, (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interprets a program as the kernel does, for the instructions used here.
    fn run(program: &[libc::sock_filter], cpu: u32) -> u32 {
        let mut at = 0;
        loop {
            let step = &program[at];
            at += 1;
            match u32::from(step.code) {
                code if code == libc::BPF_RET | libc::BPF_K => return step.k,
                code if code == libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K => {
                    at += usize::from(if cpu == step.k { step.jt } else { step.jf });
                }
                code => assert_eq!((code, step.k), (libc::BPF_LD | libc::BPF_ABS, CPU)),
            }
        }
    }

    #[test]
    fn cpu_selects_listener_index() {
        let cpus = [3, 0, 7];
        let program = by_cpu(&cpus);
        for (index, cpu) in [(0, 3), (1, 0), (2, 7)] {
            assert_eq!(run(&program, cpu), index);
        }
        for cpu in [1, 2, 4, 6, 8, 1000] {
            assert_eq!(run(&program, cpu), BY_HASH, "CPU {cpu} has no listener");
        }
        assert_eq!(run(&by_hash(), 3), BY_HASH);
    }
}
