//! All kernel counters of a machine and of one network namespace.

use super::cgroup::ControlGroup;
use super::counters::Counters;
use super::cpu;
use super::frequency::Frequency;
use super::interrupt::Interrupts;
use super::pressure::{self, pressure};
use super::protocol::{sockets, tables};
use super::softirq::{softirqs, softnet};
use super::source::{KernelFile, Root};

type Reader = fn(&str, &mut Counters);

/// Sources of counters, found once and read each second.
#[derive(Debug)]
pub struct Machine {
    files: Vec<(KernelFile, Reader)>,
    pressure: Vec<(&'static str, KernelFile)>,
    interrupts: Interrupts,
    frequency: Frequency,
    group: ControlGroup,
    buffer: Vec<u8>,
    left_out: Vec<String>,
}

impl Machine {
    /// Finds the sources of this machine, except `/proc/stat`, which the caller reads.
    pub fn find(root: &Root) -> Machine {
        let readers: [(KernelFile, Reader); 6] = [
            (root.proc("softirqs"), softirqs),
            (root.net("softnet_stat"), softnet),
            (root.net("snmp"), tables),
            (root.net("netstat"), tables),
            (root.net("sockstat"), sockets),
            (root.net("sockstat6"), sockets),
        ];
        let mut buffer = Vec::new();
        let mut left_out = Vec::new();
        let mut files = Vec::new();
        for (mut file, reader) in readers {
            if file.read(&mut buffer).is_some() {
                files.push((file, reader));
            } else {
                left_out.push(format!("{} cannot be read", file.path().display()));
            }
        }
        let mut waiting = Vec::new();
        for resource in pressure::RESOURCES {
            let mut file = root.proc(&format!("pressure/{resource}"));
            if file.read(&mut buffer).is_some() {
                waiting.push((resource, file));
            }
        }
        if waiting.is_empty() {
            left_out
                .push("pressure (the kernel was built without PSI, or started with psi=0)".into());
        }
        let interrupts = Interrupts::find(root);
        left_out.extend(interrupts.left_out());
        let frequency = Frequency::find(root);
        if let Frequency::Absent(why) = frequency {
            left_out.push(format!("CPU frequency ({why})"));
        }
        let group = ControlGroup::find(root, "self");
        if group.is_absent() {
            left_out.push("the control group (no cgroup file system is mounted)".into());
        }
        Machine {
            files,
            pressure: waiting,
            interrupts,
            frequency,
            group,
            buffer,
            left_out,
        }
    }

    /// Counters that this machine lacks, with reasons.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// Reads all counters. `stat` is the content of `/proc/stat`.
    pub fn read(&mut self, stat: &str) -> Counters {
        let mut counters = Counters::default();
        cpu::machine(stat, &mut counters);
        for (file, reader) in &mut self.files {
            let text = file.read(&mut self.buffer).unwrap_or_default();
            reader(&text, &mut counters);
        }
        for (resource, file) in &mut self.pressure {
            let text = file.read(&mut self.buffer).unwrap_or_default();
            pressure(resource, "pressure", &text, &mut counters);
        }
        self.interrupts.read(&mut self.buffer, &mut counters);
        self.frequency.read(&mut self.buffer, &mut counters);
        self.group.read(&mut self.buffer, &mut counters);
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::counters::Count;

    #[test]
    fn local_machine_counters_are_read() {
        let mut machine = Machine::find(&Root::of_machine());
        let counters = machine.read("ctxt 5\n");
        let positive = |subject, measure| match counters.at(subject, measure) {
            Some(Count::Total(count)) => count > 0,
            Some(Count::Gauge(value)) => value > 0.0,
            Some(Count::Time(_)) | None => false,
        };
        assert!(positive("machine", "context_switches"));
        assert!(positive("sockets", "sockets_used"), "{counters:?}");
        assert!(positive("tcp", "InSegs") || counters.at("tcp", "InSegs").is_some());
        let has_frequency = counters.at("cpu0", "mhz").is_some();
        let says_why = machine
            .left_out()
            .iter()
            .any(|text| text.starts_with("CPU frequency"));
        assert!(has_frequency || says_why, "{:?}", machine.left_out());
    }

    #[test]
    fn empty_machine_lists_missing_counters() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = Root::at(directory.path(), directory.path());
        let mut machine = Machine::find(&root);
        assert_eq!(machine.left_out().len(), 9, "{:?}", machine.left_out());
        assert_eq!(
            machine
                .read("")
                .since(&Counters::default(), std::time::Duration::from_secs(1))
                .len(),
            0
        );
    }
}
