//! The programs that choose among the listeners of an address. Pure.

use crate::socket::filter::instruction;

/// No listener has this index. The kernel then chooses by the hash of the addresses and ports.
const BY_HASH: u32 = u32::MAX;

/// The CPU that the program runs on, which is the one that takes the packet (linux/filter.h: SKF_AD_OFF and SKF_AD_CPU).
const CPU: u32 = 0xffff_f000 + 36;

/// Chooses the listener at the place of the packet's CPU in `cpus`; by hash when it is not among them.
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

/// Leaves the choice to the kernel.
pub(super) fn by_hash() -> [libc::sock_filter; 1] {
    [gives(BY_HASH)]
}

fn gives(index: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, index, (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would make of it, of the instructions that are used here.
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
    fn a_listener_is_chosen_by_the_place_of_its_cpu() {
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
