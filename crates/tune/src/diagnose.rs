//! What was full while load ran: two readings of what the kernel counts, and the words for it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::facts::interface::allowance;
use crate::facts::listening::{Port, ports};
use crate::facts::process::Thread;
use crate::facts::{Counts, CpuTime, Facts, Interface, Softnet};

/// A CPU this busy has nothing left.
const FULL: f64 = 0.9;
/// A CPU this idle could take more.
const FREE: f64 = 0.5;
/// A CPU below this has room enough that a queue before it is short.
const UNHURRIED: f64 = 0.8;
/// Packets a second that are more than the talk of an idle machine: a session over ssh makes some ten.
const SERVES: f64 = 100.0;
/// A share of CPU time that others took which shows in every figure.
const STEAL: f64 = 0.02;
/// A share of packets sent again which shows in the slowest answers.
const LOSS: f64 = 0.001;
/// A queue of connections below this is one that nobody chose: nginx asks for 511, and who gives no number to listen()
/// gets 128 of many languages.
const BACKLOG_SMALL: u64 = 511;
/// The discipline that spreads the packets of a connection over time, so that TCP need not.
const PACER: &str = "fq";
/// Ports that evidence names; the first are the worst.
const PORTS_SHOWN: usize = 5;

/// What was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limiter {
    /// One CPU handles packets, and is full, while others idle.
    OneCpuOfSoftirq,
    /// Every CPU that handles packets is full.
    Softirq,
    /// The CPUs that run programs are full.
    Application,
    /// The provider allows no more packets or bytes.
    Allowance,
    /// The device had no room for packets.
    Ring,
    /// CPUs had no room for packets that others handed them.
    Backlog,
    /// Connections were not accepted in time.
    AcceptQueue,
    /// Packets were lost on the way.
    Loss,
    /// Others on the same hardware took CPU time.
    Steal,
    /// The control group's share of CPU time was used up.
    Quota,
    /// The table of tracked connections was full.
    Conntrack,
    /// The memory for TCP was used up.
    Memory,
    /// Local ports ran out, or closed connections had no place to wait.
    Ports,
    /// Pacing without a queue that does it.
    Pacing,
    /// The process may open no more files, and so have no more connections.
    Files,
    /// Nothing here was full while clients asked: they asked for no more.
    Client,
    /// Nothing here was full.
    Elsewhere,
}

/// How sure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The kernel counted it.
    High,
    /// It explains what was seen.
    Medium,
    /// It is possible.
    Low,
}

/// A limiter with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What was full.
    pub limiter: Limiter,
    /// How sure it is.
    pub confidence: Confidence,
    /// What was seen, as a sentence.
    pub evidence: String,
    /// What would help.
    pub remedy: String,
}

/// Where the time of a CPU went between two readings, as shares of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Load {
    /// Not idle.
    pub busy: f64,
    /// Handling interrupts and packets.
    pub interrupts: f64,
    /// Taken by others.
    pub steal: f64,
}

/// The load of each CPU between two readings; CPUs that did not count are left out.
pub fn loads(before: &Counts, after: &Counts) -> BTreeMap<usize, Load> {
    let load = |(cpu, now): (&usize, &CpuTime)| {
        let then = before.cpus.get(cpu).copied().unwrap_or_default();
        let total = now.total().saturating_sub(then.total());
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        let load = Load {
            busy: (1.0 - share(now.idle, then.idle)).clamp(0.0, 1.0),
            interrupts: share(now.interrupts, then.interrupts),
            steal: share(now.steal, then.steal),
        };
        (total > 0).then_some((*cpu, load))
    };
    after.cpus.iter().filter_map(load).collect()
}

/// Names what was full between two readings, the surest first. There is always a finding.
pub fn judge(facts: &Facts, before: &Counts, after: &Counts) -> Vec<Finding> {
    let case = Case {
        facts,
        before,
        after,
        loads: loads(before, after),
    };
    let mut findings: Vec<Finding> = [
        case.allowance(),
        case.ring(),
        case.backlog(),
        case.accept_queue(),
        case.quota(),
        case.conntrack(),
        case.memory(),
        case.ports(),
        case.steal(),
        case.loss(),
        case.cpus(),
        case.pacing(),
        case.files(),
        case.cage(),
        case.thread(),
        case.crowded(),
    ]
    .into_iter()
    .flatten()
    .collect();
    if findings
        .iter()
        .all(|finding| finding.confidence == Confidence::Low)
    {
        findings.extend(case.elsewhere());
    }
    findings.sort_by_key(|finding| finding.confidence);
    findings
}

struct Case<'here> {
    facts: &'here Facts,
    before: &'here Counts,
    after: &'here Counts,
    loads: BTreeMap<usize, Load>,
}

fn finding(
    limiter: Limiter,
    confidence: Confidence,
    evidence: String,
    remedy: &str,
) -> Option<Finding> {
    Some(Finding {
        limiter,
        confidence,
        evidence,
        remedy: remedy.to_owned(),
    })
}

/// `eth0 rx_missed_errors by 17`
fn listed(grown: &[(&str, &str, u64)]) -> String {
    let line = |(name, counter, by): &(&str, &str, u64)| format!("{name} {counter} by {by}");
    grown.iter().map(line).collect::<Vec<_>>().join(", ")
}

impl Case<'_> {
    /// How much a counter of TCP or IP grew.
    fn grew(&self, name: &str) -> u64 {
        let count = |counts: &Counts| counts.network.get(name).copied().unwrap_or(0);
        count(self.after).saturating_sub(count(self.before))
    }

    /// The counters of interfaces that grew, with how much: `eth0`, `rx_missed_errors`, 17.
    fn grown(&self, is_meant: impl Fn(&str) -> bool) -> Vec<(&str, &str, u64)> {
        let mut grown = Vec::new();
        for (name, counters) in &self.after.interfaces {
            let then = self.before.interfaces.get(name);
            for (counter, now) in counters.iter().filter(|(counter, _)| is_meant(counter)) {
                let then = then
                    .and_then(|counters| counters.get(counter))
                    .copied()
                    .unwrap_or(0);
                if *now > then {
                    grown.push((name.as_str(), counter.as_str(), now - then));
                }
            }
        }
        grown
    }

    fn softnet(&self, part: fn(&Softnet) -> u64) -> u64 {
        let sum = |counts: &Counts| {
            counts
                .softnet
                .values()
                .map(part)
                .fold(0, u64::saturating_add)
        };
        sum(self.after).saturating_sub(sum(self.before))
    }

    fn allowance(&self) -> Option<Finding> {
        let grown = self.grown(|counter| allowance(counter).is_some());
        (!grown.is_empty()).then_some(())?;
        let kinds: BTreeSet<&str> = grown
            .iter()
            .filter_map(|(_, counter, _)| allowance(counter))
            .collect();
        finding(
            Limiter::Allowance,
            Confidence::High,
            format!(
                "{} exceeded: the provider held packets back ({})",
                kinds.into_iter().collect::<Vec<_>>().join(", "),
                listed(&grown)
            ),
            "no setting moves this: a larger machine, or a further interface where each has its own allowance",
        )
    }

    fn ring(&self) -> Option<Finding> {
        let grown = self.grown(|counter| {
            ["rx_missed_errors", "rx_fifo_errors", "rx_over_errors"].contains(&counter)
        });
        (!grown.is_empty()).then_some(())?;
        finding(
            Limiter::Ring,
            Confidence::High,
            format!("the device had no room for packets: {}", listed(&grown)),
            "a CPU of its own for each queue's interrupts first, larger rings then (onrush tune plan)",
        )
    }

    fn backlog(&self) -> Option<Finding> {
        let dropped = self.softnet(|row| row.dropped);
        (dropped > 0).then_some(())?;
        finding(
            Limiter::Backlog,
            Confidence::High,
            format!(
                "{dropped} packets were dropped on their way from one CPU to another (softnet_stat, second column)"
            ),
            "net.core.netdev_max_backlog, or more CPUs to steer to",
        )
    }

    fn accept_queue(&self) -> Option<Finding> {
        let (overflows, cookies) = (
            self.grew("TcpExtListenOverflows"),
            self.grew("TcpExtTCPReqQFullDoCookies"),
        );
        (overflows > 0 || cookies > 0).then_some(())?;
        let ports = self.queues();
        finding(
            Limiter::AcceptQueue,
            Confidence::High,
            format!(
                "connections were not accepted in time: ListenOverflows {overflows}, TCPReqQFullDoCookies {cookies}{}",
                self.waiting(&ports)
            ),
            &format!(
                "a program that accepts faster, a larger backlog in its listen(), and net.core.somaxconn above that{}",
                self.small(&ports)
            ),
        )
    }

    /// The ports that connections wait at or were turned away from: those of the process, or of all.
    fn queues(&self) -> Vec<Port> {
        let sockets = |counts: &'_ Counts| match &counts.process {
            Some(process) => process.listening.clone(),
            None => counts.listening.clone(),
        };
        let mut ports = ports(&sockets(self.before), &sockets(self.after));
        ports.retain(|port| port.waiting > 0 || port.dropped > 0);
        ports.truncate(PORTS_SHOWN);
        ports
    }

    /// `129 of 128 wait at port 8080, 17 dropped`
    fn waiting(&self, ports: &[Port]) -> String {
        let words = |port: &Port| {
            let most = port.limit.map(|limit| format!(" of {limit}"));
            let whose = match (port.sockets, port.full) {
                (1, _) => String::new(),
                (sockets, 0) => format!("the {sockets} sockets of "),
                (sockets, full) => format!("the {sockets} sockets ({full} full) of "),
            };
            let dropped = match port.dropped {
                0 => String::new(),
                dropped => format!(", {dropped} dropped"),
            };
            format!(
                "{}{} wait at {whose}port {}{dropped}",
                port.waiting,
                most.unwrap_or_default(),
                port.number
            )
        };
        let list = ports.iter().map(words).collect::<Vec<_>>().join(", ");
        match (&self.after.process, list.is_empty()) {
            (Some(process), true) => {
                format!("; none wait for {} at this moment", process.name)
            }
            (Some(process), false) => format!("; of {}, {list}", process.name),
            (None, true) => String::new(),
            (None, false) => format!("; {list}"),
        }
    }

    /// Queues that are small because somebody asked for no more, or was given no more.
    fn small(&self, ports: &[Port]) -> String {
        let most: Option<u64> = self
            .facts
            .system
            .setting("net/core/somaxconn")
            .and_then(|text| text.parse().ok());
        let words = |port: &Port| {
            let limit = port.limit_min?;
            if Some(limit) == most {
                return Some(format!(
                    "; port {} has all that net.core.somaxconn allows ({limit}): raise that, then start the program again",
                    port.number
                ));
            }
            (limit < BACKLOG_SMALL).then(|| {
                format!(
                    "; port {} was given room for {limit} only by its listen()",
                    port.number
                )
            })
        };
        ports.iter().filter_map(words).collect()
    }

    fn quota(&self) -> Option<Finding> {
        let times = self.after.throttled.saturating_sub(self.before.throttled);
        (times > 0).then_some(())?;
        finding(
            Limiter::Quota,
            Confidence::High,
            format!(
                "this control group was stopped {times} times because its share of CPU time was used up"
            ),
            "a larger cpu.max, or fewer threads",
        )
    }

    fn conntrack(&self) -> Option<Finding> {
        let number = |name: &str| self.facts.system.setting(name)?.parse::<u64>().ok();
        let count = number("net/netfilter/nf_conntrack_count")?;
        let most = number("net/netfilter/nf_conntrack_max")?;
        (count as f64 >= most as f64 * 0.95).then_some(())?;
        finding(
            Limiter::Conntrack,
            Confidence::High,
            format!(
                "{count} of {most} connections are tracked: new ones are dropped when the table is full"
            ),
            "rules that do not track the service's connections (notrack), or nf_conntrack_max and its hash size",
        )
    }

    fn memory(&self) -> Option<Finding> {
        let times = self
            .grew("TcpExtTCPMemoryPressures")
            .saturating_add(self.grew("TcpExtTCPAbortOnMemory"));
        (times > 0).then_some(())?;
        finding(
            Limiter::Memory,
            Confidence::High,
            format!("TCP ran out of memory {times} times"),
            "net.ipv4.tcp_mem, or smaller buffers for each connection",
        )
    }

    fn ports(&self) -> Option<Finding> {
        let waiting = self.grew("TcpExtTCPTimeWaitOverflow");
        (waiting > 0).then_some(())?;
        finding(
            Limiter::Ports,
            Confidence::Medium,
            format!("{waiting} closed connections had no place to wait (TCPTimeWaitOverflow)"),
            "connections that are kept open; net.ipv4.tcp_max_tw_buckets and ip_local_port_range where they cannot be",
        )
    }

    fn steal(&self) -> Option<Finding> {
        let total: f64 = self.loads.values().map(|load| load.steal).sum();
        let share = total / self.loads.len().max(1) as f64;
        (share > STEAL).then_some(())?;
        finding(
            Limiter::Steal,
            Confidence::High,
            format!(
                "others on the same hardware took {:.0} % of the CPU time",
                share * 100.0
            ),
            "another machine, or a dedicated one: no figure measured beside others repeats",
        )
    }

    fn loss(&self) -> Option<Finding> {
        let (again, sent) = (self.grew("TcpRetransSegs"), self.grew("TcpOutSegs"));
        (again as f64 > sent as f64 * LOSS && again > 10).then_some(())?;
        finding(
            Limiter::Loss,
            Confidence::Medium,
            format!(
                "{again} of {sent} segments were sent again: each makes an answer wait for 200 ms or more"
            ),
            "the drops of the devices between; on one machine, its own rings and backlogs",
        )
    }

    /// The limiters that are seen in the load of CPUs.
    fn cpus(&self) -> Option<Finding> {
        let with = |is_so: &dyn Fn(&Load) -> bool| -> CpuSet {
            self.loads
                .iter()
                .filter(|(_, load)| is_so(load))
                .map(|(cpu, _)| *cpu)
                .collect()
        };
        let full_of_softirq = with(&|load| load.interrupts >= FULL);
        let full = with(&|load| load.busy >= FULL);
        let free = with(&|load| load.busy < FREE);
        if full_of_softirq.len() == 1 && !free.is_empty() {
            return finding(
                Limiter::OneCpuOfSoftirq,
                Confidence::High,
                format!(
                    "CPU {full_of_softirq} is full of softirq while CPUs {free} are less than half busy{}",
                    self.one_queue()
                ),
                "packet steering, or more queues, each with a CPU of its own (onrush tune plan)",
            );
        }
        if !full_of_softirq.is_empty() {
            return finding(
                Limiter::Softirq,
                Confidence::High,
                format!("CPUs {full_of_softirq} are full of softirq"),
                "more CPUs for packets: more queues or more CPUs to steer to; then fewer packets, by larger ones",
            );
        }
        let programs: CpuSet = full.iter().collect();
        if programs.is_empty() {
            return None;
        }
        if free.is_empty() {
            return finding(
                Limiter::Application,
                Confidence::High,
                format!("CPUs {programs} are full, mostly with programs, and none is free"),
                "the programs are the limit, which is as it should be: profile them, or give them more CPUs",
            );
        }
        finding(
            Limiter::Application,
            Confidence::Medium,
            format!(
                "CPUs {programs} are full with programs while CPUs {free} are less than half busy"
            ),
            "a thread for each CPU, or an even share of connections between them (SO_REUSEPORT)",
        )
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

    fn files(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        let (files, most) = (process.files?, process.files_max?);
        (files as f64 >= most as f64 * 0.95).then_some(())?;
        finding(
            Limiter::Files,
            Confidence::High,
            format!(
                "{} has {files} of {most} files open, and each connection is one",
                process.name
            ),
            "LimitNOFILE in its unit, or ulimit -n before it; fs.nr_open above that",
        )
    }

    /// A process that may run on full CPUs only, while others are free.
    fn cage(&self) -> Option<Finding> {
        let process = self.after.process.as_ref()?;
        let load = |cpu: usize| self.loads.get(&cpu).map_or(0.0, |load| load.busy);
        let is_full =
            !process.allowed.is_empty() && process.allowed.iter().all(|cpu| load(cpu) >= FULL);
        let free = self.free().minus(&process.allowed);
        (is_full && !free.is_empty()).then_some(())?;
        finding(
            Limiter::Application,
            Confidence::High,
            format!(
                "{} may run on CPUs {} only, which are full, while CPUs {free} are less than half busy",
                process.name, process.allowed
            ),
            "more CPUs for it (CPUAffinity in its unit, taskset, cpuset), and a thread for each",
        )
    }

    /// A thread that is full while the machine has room.
    fn thread(&self) -> Option<Finding> {
        let shares = self.shares();
        let full: Vec<_> = shares.iter().filter(|(.., share)| *share >= FULL).collect();
        let (name, number, cpu, share) = *full.first()?;
        let free = self.free();
        (!free.is_empty()).then_some(())?;
        let others = match full.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more of {} threads", shares.len()),
        };
        finding(
            Limiter::Application,
            Confidence::High,
            format!(
                "thread {name} ({number}) was on CPU {cpu} for {:.0} % of the time{others}, while CPUs {free} are less than \
                 half busy",
                share * 100.0
            ),
            "more threads, or an even share of connections between them (SO_REUSEPORT)",
        )
    }

    /// Threads on CPUs that packets take half of.
    fn crowded(&self) -> Option<Finding> {
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
                "the program runs on CPUs {cpus}, of which packets and interrupts take more than half"
            ),
            "CPUs of its own for it, beside those that the plan gives to packets (onrush tune plan)",
        )
    }

    /// The threads of the process, with the CPU they ran on last and the share of the time they ran, the most first.
    fn shares(&self) -> Vec<(&str, u32, usize, f64)> {
        let seconds = self.after.uptime - self.before.uptime;
        let (Some(then), Some(now)) = (&self.before.process, &self.after.process) else {
            return Vec::new();
        };
        let share = |(number, thread): (&u32, &'_ Thread)| {
            let ticks = thread.ticks.checked_sub(then.threads.get(number)?.ticks)?;
            // A tick is a hundredth of a second to every program.
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

    fn free(&self) -> CpuSet {
        let free = self.loads.iter().filter(|(_, load)| load.busy < FREE);
        free.map(|(cpu, _)| *cpu).collect()
    }

    fn pacing(&self) -> Option<Finding> {
        let control = self
            .facts
            .system
            .setting("net/ipv4/tcp_congestion_control")?;
        (control == "bbr").then_some(())?;
        let queues = self.unpaced()?;
        finding(
            Limiter::Pacing,
            Confidence::Low,
            format!(
                "congestion control is bbr and {queues}: each connection is paced by a timer of its own"
            ),
            "fq as queue of the device (net.core.default_qdisc is for those that come up later), or cubic where the network is \
             short and does not lose packets",
        )
    }

    /// The queues that packets left by and that do not pace them; where none can be seen, the default one.
    fn unpaced(&self) -> Option<String> {
        let default = self.facts.system.setting("net/core/default_qdisc");
        let sent = self.grown(|counter| counter == "tx_packets");
        let mut devices: Vec<&Interface> = sent
            .iter()
            .flat_map(|(name, ..)| self.facts.devices_of(name))
            .filter(|device| device.qdisc.is_some())
            .collect();
        // What goes to containers and tunnels says nothing of the network, unless there is nothing else.
        if devices.iter().any(|device| device.is_device) {
            devices.retain(|device| device.is_device);
        }
        if devices.is_empty() {
            let default = default.filter(|default| *default != PACER)?;
            return Some(format!("the default queue is {default}"));
        }
        let words = |device: &&Interface| {
            let qdisc = device.qdisc.as_ref()?;
            let mut leaves = qdisc.leaves(default);
            leaves.retain(|leaf| *leaf != PACER);
            let over = match leaves[..] {
                [] => return None,
                [root] if root == qdisc.root => String::new(),
                _ => format!(" over {}", leaves.join(" and ")),
            };
            Some(format!(
                "the queue of {} is {}{over}",
                device.name, qdisc.root
            ))
        };
        let words: BTreeSet<String> = devices.iter().filter_map(words).collect();
        (!words.is_empty()).then(|| words.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// Nothing here was full. Whether anything was asked, and whether what was asked went through, says where else to look.
    fn elsewhere(&self) -> Option<Finding> {
        const CLIENT: &str = "look at the client first: if its CPUs are full, or it asks at a rate of its own, it is what was measured; \
            then at the network, and at locks inside the program. Where this machine asks, look at who answers";
        let busiest = self
            .loads
            .values()
            .map(|load| load.busy)
            .fold(0.0, f64::max);
        let busy = format!("the busiest CPU was {:.0} % busy", busiest * 100.0);
        if self.before.uptime <= 0.0 {
            return finding(
                Limiter::Elsewhere,
                Confidence::Low,
                format!("nothing here was full since the start, of all that time together: {busy}"),
                "two readings while load runs (onrush tune diagnose on the machine itself): what is full for a minute is not seen \
                 in a day",
            );
        }
        let seconds = self.after.uptime - self.before.uptime;
        let received = self
            .grew("TcpInSegs")
            .saturating_add(self.grew("UdpInDatagrams")) as f64;
        let sent = self
            .grew("TcpOutSegs")
            .saturating_add(self.grew("UdpOutDatagrams")) as f64;
        let (came, went) = (received / seconds, sent / seconds);
        // Readings at the same moment have no rate, which is not one that serves either.
        if !(came.is_finite() && came >= SERVES) {
            return finding(
                Limiter::Elsewhere,
                Confidence::Low,
                format!(
                    "nothing here was full, and nothing was asked of this machine: {received} packets came in, and {busy}"
                ),
                "another reading while clients ask; of a program in another network namespace, with --pid",
            );
        }
        let dropped = self.dropped();
        if busiest < UNHURRIED && dropped as f64 <= received * LOSS {
            return finding(
                Limiter::Client,
                Confidence::Medium,
                format!(
                    "client-limited: {came:.0} packets a second came in and {went:.0} went out, {busy}, and next to nothing was \
                     dropped or stolen"
                ),
                CLIENT,
            );
        }
        finding(
            Limiter::Elsewhere,
            Confidence::Medium,
            format!("nothing here was full: {busy}, and {dropped} packets were dropped"),
            CLIENT,
        )
    }

    /// Packets that were dropped here for any reason.
    fn dropped(&self) -> u64 {
        let of_devices = self.grown(|counter| ["rx_dropped", "tx_dropped"].contains(&counter));
        let of_sockets = [
            "TcpExtTCPBacklogDrop",
            "TcpExtTCPRcvQDrop",
            "UdpRcvbufErrors",
        ];
        let devices = of_devices.iter().map(|(.., by)| *by);
        let sockets = of_sockets.iter().map(|name| self.grew(name));
        devices.chain(sockets).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Listening, Process, Qdisc};

    /// A second of CPUs: for each, percent in interrupts, in programs and stolen.
    fn second(cpus: &[(u64, u64, u64)]) -> Counts {
        let time = |(cpu, (interrupts, user, steal)): (usize, &(u64, u64, u64))| {
            let idle = 100 - interrupts - user - steal;
            (
                cpu,
                CpuTime {
                    interrupts: *interrupts,
                    user: *user,
                    steal: *steal,
                    idle,
                    system: 0,
                },
            )
        };
        Counts {
            cpus: cpus.iter().enumerate().map(time).collect(),
            ..Counts::default()
        }
    }

    #[track_caller]
    fn check(after: Counts, expected: &[Limiter]) {
        let facts = Facts::default();
        let findings = judge(&facts, &Counts::default(), &after);
        let limiters: Vec<Limiter> = findings.iter().map(|finding| finding.limiter).collect();
        assert_eq!(limiters, expected, "{findings:#?}");
    }

    #[test]
    fn the_load_of_cpus_names_the_limiter() {
        use Limiter::{Application, Elsewhere, OneCpuOfSoftirq, Softirq, Steal};
        check(
            second(&[(99, 1, 0), (5, 20, 0), (5, 20, 0)]),
            &[OneCpuOfSoftirq],
        );
        check(second(&[(95, 5, 0), (95, 5, 0), (5, 20, 0)]), &[Softirq]);
        check(second(&[(30, 69, 0), (30, 70, 0)]), &[Application]);
        check(second(&[(5, 95, 0), (5, 5, 0)]), &[Application]);
        check(second(&[(20, 30, 0), (20, 30, 0)]), &[Elsewhere]);
        check(second(&[(20, 30, 20), (20, 30, 20)]), &[Steal]);
        check(Counts::default(), &[Elsewhere]);
    }

    #[test]
    fn what_the_kernel_counted_names_the_limiter() {
        use Limiter::{AcceptQueue, Allowance, Backlog, Loss, Memory, Quota, Ring};
        let network = |name: &str, count: u64| Counts {
            network: [(name.to_owned(), count)].into(),
            ..Counts::default()
        };
        let interface = |counter: &str| Counts {
            interfaces: [("eth0".to_owned(), [(counter.to_owned(), 17)].into())].into(),
            ..Counts::default()
        };
        check(network("TcpExtListenOverflows", 3), &[AcceptQueue]);
        check(network("TcpExtTCPMemoryPressures", 1), &[Memory]);
        check(network("TcpRetransSegs", 1000), &[Loss]);
        check(interface("pps_allowance_exceeded"), &[Allowance]);
        check(interface("rx_missed_errors"), &[Ring]);
        let softnet = [(
            0,
            Softnet {
                dropped: 1,
                ..Softnet::default()
            },
        )]
        .into();
        check(
            Counts {
                softnet,
                ..Counts::default()
            },
            &[Backlog],
        );
        check(
            Counts {
                throttled: 2,
                ..Counts::default()
            },
            &[Quota],
        );
    }

    /// A process with a thread that ran for some ticks on CPU 0.
    fn process(ticks: u64) -> Option<Process> {
        let thread = Thread {
            name: "worker".to_owned(),
            ticks,
            cpu: 0,
            ..Thread::default()
        };
        Some(Process {
            name: "server".to_owned(),
            threads: [(17, thread)].into(),
            ..Process::default()
        })
    }

    #[track_caller]
    fn check_process(mut after: Counts, process_now: Option<Process>, expected: &[&str]) {
        let before = Counts {
            process: process(100),
            ..Counts::default()
        };
        (after.uptime, after.process) = (1.0, process_now);
        let findings = judge(&Facts::default(), &before, &after);
        assert_eq!(findings.len(), expected.len(), "{findings:#?}");
        for (finding, words) in findings.iter().zip(expected) {
            assert!(finding.evidence.contains(words), "{finding:#?}");
        }
    }

    #[test]
    fn a_process_has_evidence_of_its_own() {
        let elsewhere = "nothing here was full";
        check_process(second(&[(5, 60, 0), (0, 5, 0)]), process(150), &[elsewhere]);
        check_process(
            second(&[(5, 80, 0), (0, 5, 0)]),
            process(195),
            &[
                "thread worker (17) was on CPU 0 for 95 % of the time, while CPUs 1 are less than half busy",
            ],
        );
        check_process(
            second(&[(55, 30, 0), (0, 60, 0)]),
            process(130),
            &["runs on CPUs 0, of which packets"],
        );
        let with = |change: fn(&mut Process)| {
            let mut process = process(110);
            process.iter_mut().for_each(change);
            process
        };
        check_process(
            second(&[(5, 92, 0), (0, 5, 0)]),
            with(|process| process.allowed = [0].into_iter().collect()),
            &[
                "server may run on CPUs 0 only, which are full, while CPUs 1",
                "CPUs 0 are full with programs",
            ],
        );
        check_process(
            second(&[(5, 30, 0)]),
            with(|process| (process.files, process.files_max) = (Some(1_020), Some(1_024))),
            &["server has 1020 of 1024 files open"],
        );
        let overflows = Counts {
            network: [("TcpExtListenOverflows".to_owned(), 3)].into(),
            ..Counts::default()
        };
        let waits = with(|process| {
            process.listening = vec![Listening {
                port: 8080,
                waiting: 129,
                ..Listening::default()
            }]
        });
        check_process(
            overflows,
            waits,
            &["ListenOverflows 3, TCPReqQFullDoCookies 0; of server, 129 wait at port 8080"],
        );
    }

    /// A socket at port 8080.
    fn socket(inode: u64, waiting: u64, limit: u64, dropped: u64) -> Listening {
        Listening {
            port: 8080,
            inode,
            waiting,
            limit: Some(limit),
            dropped: Some(dropped),
        }
    }

    #[track_caller]
    fn check_ports(before: &[Listening], after: &[Listening], evidence: &str, remedy: &str) {
        let counts = |listening: &[Listening], overflows: u64| Counts {
            network: [("TcpExtListenOverflows".to_owned(), overflows)].into(),
            listening: listening.to_vec(),
            ..Counts::default()
        };
        let mut facts = Facts::default();
        let most = ("net/core/somaxconn".to_owned(), Some("4096".to_owned()));
        facts.system.settings = [most].into();
        let findings = judge(&facts, &counts(before, 3), &counts(after, 20));
        assert_eq!(findings[0].limiter, Limiter::AcceptQueue);
        assert!(findings[0].evidence.ends_with(evidence), "{findings:#?}");
        assert!(findings[0].remedy.ends_with(remedy), "{findings:#?}");
    }

    #[test]
    fn a_full_accept_queue_is_named_by_its_port() {
        check_ports(
            &[socket(1, 0, 128, 100)],
            &[socket(1, 129, 128, 117)],
            "DoCookies 0; 129 of 128 wait at port 8080, 17 dropped",
            "; port 8080 was given room for 128 only by its listen()",
        );
        check_ports(
            &[],
            &[socket(1, 4_097, 4_096, 17), socket(2, 0, 4_096, 0)],
            "; 4097 of 8192 wait at the 2 sockets (1 full) of port 8080, 17 dropped",
            "; port 8080 has all that net.core.somaxconn allows (4096): raise that, then start the program again",
        );
        check_ports(
            &[],
            &[socket(1, 12, 1_024, 0), socket(2, 0, 1_024, 0)],
            "; 12 of 2048 wait at the 2 sockets of port 8080",
            "above that",
        );
        // What was dropped before, and what nobody waits for, is no evidence.
        let quiet = [socket(1, 0, 128, 100)];
        check_ports(&quiet, &quiet, "TCPReqQFullDoCookies 0", "above that");
    }

    #[test]
    fn pacing_is_judged_by_the_queue_that_packets_left_by() {
        let interface = |name: &str, is_device: bool, root: &str, below: &[&str]| Interface {
            name: name.to_owned(),
            is_device,
            qdisc: Some(Qdisc {
                root: root.to_owned(),
                below: below.iter().map(|kind| (*kind).to_owned()).collect(),
            }),
            ..Interface::default()
        };
        let check = |interfaces: &[Interface], default: &str, expected: Option<&str>| {
            let mut facts = Facts {
                interfaces: interfaces.to_vec(),
                ..Facts::default()
            };
            let setting = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
            facts.system.settings = [
                setting("net/ipv4/tcp_congestion_control", "bbr"),
                setting("net/core/default_qdisc", default),
            ]
            .into();
            let sent = |interface: &Interface| {
                let counter = ("tx_packets".to_owned(), 9);
                (interface.name.clone(), [counter].into())
            };
            let after = Counts {
                interfaces: interfaces.iter().map(sent).collect(),
                ..Counts::default()
            };
            let findings = judge(&facts, &Counts::default(), &after);
            let found = findings
                .iter()
                .find(|finding| finding.limiter == Limiter::Pacing);
            let evidence = found.map(|finding| finding.evidence.as_str());
            let expected = expected.map(|queues| {
                format!("congestion control is bbr and {queues}: each connection is paced by a timer of its own")
            });
            assert_eq!(evidence, expected.as_deref());
        };
        let veth = interface("veth7", false, "noqueue", &[]);
        let eth0 =
            |root: &str, below: &[&str]| [interface("eth0", true, root, below), veth.clone()];
        check(&[], "fq", None);
        check(&[], "fq_codel", Some("the default queue is fq_codel"));
        check(&eth0("fq", &[]), "pfifo_fast", None);
        check(&eth0("mq", &["fq"]), "pfifo_fast", None);
        check(&eth0("mq", &[]), "fq", None);
        check(
            &eth0("pfifo_fast", &[]),
            "fq",
            Some("the queue of eth0 is pfifo_fast"),
        );
        check(
            &eth0("mq", &["fq_codel"]),
            "fq",
            Some("the queue of eth0 is mq over fq_codel"),
        );
        check(
            &eth0("mq", &[]),
            "fq_codel",
            Some("the queue of eth0 is mq over fq_codel"),
        );
        check(&[veth], "fq", Some("the queue of veth7 is noqueue"));
    }

    #[test]
    fn an_allowance_is_called_by_its_name() {
        let counters = |count: u64| Counts {
            interfaces: [(
                "ens5".to_owned(),
                ["pps_allowance_exceeded", "bw_in_allowance_exceeded"]
                    .map(|name| {
                        (
                            name.to_owned(),
                            if name.starts_with("pps") { count } else { 9 },
                        )
                    })
                    .into(),
            )]
            .into(),
            ..Counts::default()
        };
        let findings = judge(&Facts::default(), &counters(4), &counters(21));
        assert_eq!(
            findings[0].evidence,
            "packet-rate allowance exceeded: the provider held packets back (ens5 pps_allowance_exceeded by 17)"
        );
    }

    #[test]
    fn a_machine_with_room_that_is_asked_is_limited_by_its_client() {
        let counted = |uptime: f64, counters: &[(&str, u64)]| {
            let count = |(name, count): &(&str, u64)| ((*name).to_owned(), *count);
            let network = counters.iter().map(count).collect();
            Counts {
                uptime,
                network,
                ..second(&[(20, 20, 0), (5, 5, 0)])
            }
        };
        let check = |before: f64, after: Counts, expected: (Limiter, Confidence, &str)| {
            let before = Counts {
                uptime: before,
                ..Counts::default()
            };
            let findings = judge(&Facts::default(), &before, &after);
            let [found] = &findings[..] else {
                panic!("{findings:#?}");
            };
            assert_eq!((found.limiter, found.confidence), (expected.0, expected.1));
            assert!(found.evidence.contains(expected.2), "{found:#?}");
        };
        let asked = [
            ("TcpInSegs", 40_000),
            ("UdpInDatagrams", 2_000),
            ("TcpOutSegs", 50_000),
        ];
        let client = (
            Limiter::Client,
            Confidence::Medium,
            "client-limited: 4200 packets a second came in and 5000 went out, the busiest CPU was 40 % busy, and next to nothing was dropped or stolen",
        );
        check(100.0, counted(110.0, &asked), client);
        // A few that nobody wanted, as on every network, are no reason.
        let some = |dropped: u64| [&asked[..], &[("TcpExtTCPBacklogDrop", dropped)]].concat();
        check(100.0, counted(110.0, &some(42)), client);
        let full =
            "nothing here was full: the busiest CPU was 40 % busy, and 43 packets were dropped";
        check(
            100.0,
            counted(110.0, &some(43)),
            (Limiter::Elsewhere, Confidence::Medium, full),
        );
        let busy = Counts {
            cpus: second(&[(30, 55, 0), (5, 5, 0)]).cpus,
            ..counted(110.0, &asked)
        };
        let words = "nothing here was full: the busiest CPU was 85 % busy";
        check(100.0, busy, (Limiter::Elsewhere, Confidence::Medium, words));
        let idle = "nothing was asked of this machine: 994 packets came in";
        check(
            100.0,
            counted(110.0, &[("TcpInSegs", 994)]),
            (Limiter::Elsewhere, Confidence::Low, idle),
        );
        // A day together says little about the minute of a test.
        check(
            0.0,
            counted(110.0, &asked),
            (Limiter::Elsewhere, Confidence::Low, "since the start"),
        );
    }

    #[test]
    fn what_was_counted_before_is_no_evidence() {
        let counts = Counts {
            network: [("TcpExtListenOverflows".to_owned(), 3)].into(),
            ..Counts::default()
        };
        let findings = judge(&Facts::default(), &counts, &counts);
        assert_eq!(findings[0].limiter, Limiter::Elsewhere);
    }
}
