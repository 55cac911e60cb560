//! Limiters found in the load of CPUs and threads.

use super::{Case, Confidence, Finding, Limiter, Load, MOST_SAMPLES, are, finding, named};
use crate::facts::process::Thread;
use crate::facts::{Counts, CpuTime};
use onrush_machine::cpus::CpuSet;

/// Load above which a CPU is full.
pub(super) const FULL: f64 = 0.9;
/// Load above which a CPU is certainly full: at 90 % it may have spare capacity soon.
const FULL_SURE: f64 = 0.98;
/// Ticks of 10 ms of a CPU needed for a reliable load, since the kernel counts whole ticks.
const TICKS_SURE: u64 = 200;
/// Seconds of observation needed for a reliable load of a thread.
const SECONDS_SURE: f64 = 2.0;
/// Load below which a CPU has spare capacity.
const FREE: f64 = 0.5;

impl Case<'_> {
    pub(super) fn cpus(&self) -> Option<Finding> {
        let with = |is_so: &dyn Fn(&Load) -> bool| -> CpuSet {
            self.loads
                .iter()
                .filter(|(_, load)| is_so(load))
                .map(|(cpu, _)| *cpu)
                .collect()
        };
        // Stolen time is reported by steal().
        let work = |load: &Load| load.busy - load.steal;
        // A CPU full of packets still spends some time on the program that receives them.
        let is_of_packets = |load: &Load| load.interrupts > work(load) / 2.0;
        let full_of_softirq = with(&|load| work(load) >= FULL && is_of_packets(load));
        let programs = with(&|load| work(load) >= FULL && !is_of_packets(load));
        let free = with(&|load| load.busy < FREE);
        if full_of_softirq.len() == 1 && !free.is_empty() {
            return finding(
                Limiter::OneCpuOfSoftirq,
                self.fullness(&full_of_softirq),
                format!(
                    "{} full of softirq while {} less than half busy{}",
                    are(&full_of_softirq),
                    are(&free),
                    self.one_queue()
                ),
                "packet steering, or more queues, each with its own CPU (onrush tune plan)",
            );
        }
        if !full_of_softirq.is_empty() {
            return finding(
                Limiter::Softirq,
                self.fullness(&full_of_softirq),
                format!("{} full of softirq", are(&full_of_softirq)),
                "more CPUs for packets: more queues or more CPUs to steer to; then fewer, larger packets",
            );
        }
        // CPUs filled by others are reported by other_programs().
        if programs.is_empty() || !self.is_own(&programs) {
            return None;
        }
        let whose = self.busiest_programs("; most of it is ");
        if free.is_empty() {
            return finding(
                Limiter::Application,
                self.fullness(&programs),
                format!(
                    "{} full, mostly with programs, and no CPU is free{whose}",
                    are(&programs)
                ),
                "the programs are the limit, as they should be: profile them, or give them more CPUs",
            );
        }
        finding(
            Limiter::Application,
            Confidence::Medium,
            format!(
                "{} full with programs while {} less than half busy{whose}",
                are(&programs),
                are(&free)
            ),
            "a thread for each CPU, or an even share of connections between them (SO_REUSEPORT)",
        )
    }

    pub(super) fn fullness(&self, cpus: &CpuSet) -> Confidence {
        let ticks = |cpu: usize| {
            let of = |counts: &Counts| counts.cpus.get(&cpu).map_or(0, CpuTime::total);
            of(self.after).saturating_sub(of(self.before))
        };
        let is_sure = |cpu: usize| {
            let load = self.loads.get(&cpu);
            ticks(cpu) >= TICKS_SURE && load.is_some_and(|load| load.busy - load.steal >= FULL_SURE)
        };
        match cpus.iter().all(is_sure) {
            true => Confidence::High,
            false => Confidence::Medium,
        }
    }

    fn one_queue(&self) -> String {
        let devices = self
            .facts
            .interfaces
            .iter()
            .filter(|interface| interface.is_device && interface.receive.len() == 1);
        let names: Vec<&str> = devices.map(|interface| interface.name.as_str()).collect();
        match names.is_empty() {
            true => String::new(),
            false => format!("; {} has a single receive queue", names.join(", ")),
        }
    }

    pub(super) fn files(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        let (files, most) = (process.files?, process.files_max?);
        (files as f64 >= most as f64 * 0.95).then_some(())?;
        // Below the limit nothing has been refused yet.
        let confidence = match files >= most {
            true => Confidence::High,
            false => Confidence::Medium,
        };
        finding(
            Limiter::Files,
            confidence,
            format!(
                "{} has {files} files open (limit {most}), and each connection is one",
                process.name
            ),
            "set LimitNOFILE in its unit, or ulimit -n before it starts; fs.nr_open above that",
        )
    }

    /// A process restricted to full CPUs while others are free.
    pub(super) fn restricted_to_full_cpus(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        let load = |cpu: usize| self.loads.get(&cpu).map_or(0.0, |load| load.busy);
        let is_full =
            !process.allowed.is_empty() && process.allowed.iter().all(|cpu| load(cpu) >= FULL);
        let free = self.free().minus(&process.allowed);
        (is_full && !free.is_empty() && self.is_own(&process.allowed)).then_some(())?;
        finding(
            Limiter::Application,
            self.fullness(&process.allowed),
            format!(
                "{} may run only on {}, with no CPU time left, while {} less than half busy",
                process.name,
                named(&process.allowed),
                are(&free)
            ),
            "more CPUs for it (CPUAffinity in its unit, taskset, cpuset), and one thread per CPU",
        )
    }

    /// A thread that uses a full CPU while others are free.
    pub(super) fn thread(&self) -> Option<Finding> {
        let shares = self.shares();
        let full: Vec<_> = shares.iter().filter(|(.., share)| *share >= FULL).collect();
        let (name, number, cpu, share) = full.first()?;
        let free = self.free();
        (!free.is_empty()).then_some(())?;
        let others = match full.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more of {} threads", shares.len()),
        };
        let confidence = match *share >= FULL_SURE && self.seconds() >= SECONDS_SURE {
            true => Confidence::High,
            false => Confidence::Medium,
        };
        finding(
            Limiter::Application,
            confidence,
            format!(
                "thread {name} ({number}) was on CPU {cpu} for {:.0} % of the time{others}, while {} less than half busy",
                share * 100.0,
                are(&free)
            ),
            "more threads, or an even share of connections between them (SO_REUSEPORT)",
        )
    }

    /// A program that does not read received data: stopped, or waiting for something other than a CPU.
    pub(super) fn stopped(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        if process.is_stopped() {
            return finding(
                Limiter::Application,
                Confidence::High,
                format!(
                    "{} is stopped (by a signal or a debugger){}",
                    process.name,
                    self.unread_words(", and ")
                ),
                "SIGCONT (kill -CONT), or continue in the debugger",
            );
        }
        let ran = self.shares().iter().any(|(.., share)| *share > 0.01);
        let unread = self.unread_words("");
        // Data unread in one sample may be read before the next.
        let stays = self.share_of_samples(|sample| {
            let unaccepted = sample.unaccepted.as_ref()?.values().any(|count| *count > 0);
            Some(unaccepted || sample.connections.as_ref()?.unread > 0)
        });
        let stays = stays.is_none_or(|share| share >= MOST_SAMPLES);
        (!ran && stays && !unread.is_empty() && self.seconds() > 0.0).then_some(())?;
        finding(
            Limiter::Application,
            Confidence::Medium,
            format!("{} used next to no CPU time, and {unread}", process.name),
            "the program waits for a lock, a disk or another server (gdb -p, or the wait channels of its threads in \
             /proc/PID/task/*/wchan)",
        )
    }

    /// `3 connections have 351 bytes that it has not read` after `front`; empty if everything was read.
    pub(super) fn unread_words(&self, front: &str) -> String {
        let unread = self.after.unread.unwrap_or_default();
        let listening = match &self.after.process {
            Some(process) => &process.listening,
            None => &self.after.listening,
        };
        let waiting = listening
            .iter()
            .fold(0u64, |sum, socket| sum.saturating_add(socket.waiting));
        let read = (unread.connections > 0).then(|| {
            format!(
                "{} bytes of {} connections arrived and were not read",
                unread.bytes, unread.connections
            )
        });
        let accepted = (waiting > 0).then(|| format!("{waiting} connections were not accepted"));
        let words: Vec<String> = read.into_iter().chain(accepted).collect();
        match words.is_empty() {
            true => String::new(),
            false => format!("{front}{}", words.join(", and ")),
        }
    }

    /// Threads on CPUs that spend half of their time on packets.
    pub(super) fn shares_packet_cpus(&self) -> Option<Finding> {
        let is_crowded = |cpu: &usize| {
            self.loads
                .get(cpu)
                .is_some_and(|load| load.interrupts >= FREE)
        };
        let shares = self.shares();
        let cpus: CpuSet = shares
            .iter()
            .filter(|(.., share)| *share > 0.01)
            .map(|(_, _, cpu, _)| *cpu)
            .filter(is_crowded)
            .collect();
        (!cpus.is_empty()).then_some(())?;
        finding(
            Limiter::Softirq,
            Confidence::Medium,
            format!(
                "the program runs on {}; packets and interrupts use more than half of these CPUs",
                named(&cpus)
            ),
            "pin it to CPUs that the plan does not assign to packets (onrush tune plan)",
        )
    }

    /// Threads of the process with last CPU and share of running time, in descending order.
    pub(super) fn shares(&self) -> Vec<(&str, u32, usize, f64)> {
        let seconds = self.after.uptime - self.before.uptime;
        let (Some(then), Some(now)) = (&self.before.process, &self.after.process) else {
            return Vec::new();
        };
        let share = |(number, thread): (&u32, &'_ Thread)| {
            let ticks = thread.ticks.checked_sub(then.threads.get(number)?.ticks)?;
            // A tick is 10 ms for user space.
            Some((*number, thread.cpu, ticks as f64 / 100.0 / seconds))
        };
        let mut shares: Vec<_> = now
            .threads
            .iter()
            .filter_map(|row| {
                share(row).map(|(number, cpu, share)| (row.1.name.as_str(), number, cpu, share))
            })
            .filter(|(.., share)| share.is_finite())
            .collect();
        shares.sort_by(|one, two| two.3.total_cmp(&one.3));
        shares
    }

    pub(super) fn free(&self) -> CpuSet {
        let free = self.loads.iter().filter(|(_, load)| load.busy < FREE);
        free.map(|(cpu, _)| *cpu).collect()
    }
}
