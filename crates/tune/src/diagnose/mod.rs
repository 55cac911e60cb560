//! What was full while load ran: two readings of what the kernel counts, and the words for it. Pure.

mod busy;
mod conclusion;
mod counted;
mod disk;
mod link;
mod program;
mod queue;
mod socket;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::cpus::CpuSet;
use crate::facts::{Counts, CpuTime, Facts, Sample, Softnet};

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
    /// A link or its queueing discipline was full.
    Link,
    /// The network path to the peers was full.
    Network,
    /// Tasks were stalled on a disk.
    Disk,
    /// UDP socket buffers were full.
    UdpBuffers,
    /// A neighbour table was full.
    Neighbours,
    /// Other programs filled the CPUs of the given process.
    OtherPrograms,
    /// Pacing without a queue that does it.
    Pacing,
    /// The process may open no more files, and so have no more connections.
    Files,
    /// Nothing here was full while clients asked: they asked for no more.
    Client,
    /// Nothing here was full.
    Elsewhere,
    /// Nothing that was read was full, but a needed reading is missing or ambiguous.
    CannotKnow,
}

/// How sure it is. Of what the kernel counts: high takes 10 events, one a second, and a share of what could have been
/// hit that shows in every figure; fewer than 3 events, fewer than one in 10 seconds, or a tenth of that share are low. Of
/// the load of CPUs: high takes 98 % of one, seen for 2 seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The kernel counted it, often enough.
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
    /// Not idle; iowait is idle.
    pub busy: f64,
    /// Handling interrupts and packets.
    pub interrupts: f64,
    /// Taken by others.
    pub steal: f64,
    /// Idle while a task waits for I/O.
    pub iowait: f64,
}

/// The load of each CPU between two readings; CPUs that did not count are left out.
pub fn loads(before: &Counts, after: &Counts) -> BTreeMap<usize, Load> {
    let load = |(cpu, now): (&usize, &CpuTime)| {
        let then = before.cpus.get(cpu).copied().unwrap_or_default();
        let total = now.total().saturating_sub(then.total());
        let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / total as f64;
        let load = Load {
            busy: (1.0 - share(now.idle, then.idle) - share(now.iowait, then.iowait))
                .clamp(0.0, 1.0),
            interrupts: share(now.interrupts, then.interrupts),
            steal: share(now.steal, then.steal),
            iowait: share(now.iowait, then.iowait),
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
    // Causes come before their effects.
    let mut findings: Vec<Finding> = [
        // A stopped program has no other limiter.
        case.stopped(),
        case.allowance(),
        case.quota(),
        case.other_programs(),
        case.cage(),
        case.cpus(),
        case.files(),
        case.thread(),
        case.crowded(),
        case.tracked(),
        case.neighbours(),
        case.ports(),
        case.ring(),
        case.backlog(),
        case.udp_buffers(),
        case.memory(),
        case.link(),
        case.disk(),
        case.accept_queue(),
        case.steal(),
        case.loss(),
        case.network(),
        case.unaccepted(),
        case.pacing(),
    ]
    .into_iter()
    .flatten()
    .collect();
    follow(&mut findings);
    if findings
        .iter()
        .all(|finding| finding.confidence == Confidence::Low)
    {
        // The conclusion comes before findings that are only possible.
        findings.splice(0..0, case.conclusion());
    }
    findings.sort_by_key(|finding| finding.confidence);
    findings
}

/// Lowers the confidence of an effect to that of its cause, so that the cause comes first.
fn follow(findings: &mut [Finding]) {
    use Limiter::{
        AcceptQueue, Application, Disk, Link, Loss, OneCpuOfSoftirq, OtherPrograms, Quota, Ring,
        Softirq,
    };
    for at in 0..findings.len() {
        let causes: &[Limiter] = match findings[at].limiter {
            Loss => &[Link, Ring, OneCpuOfSoftirq, Softirq],
            AcceptQueue => &[Application, OtherPrograms, Quota, Disk],
            _ => continue,
        };
        // An application that is only likely to be slow may be inferred from the same queue; a full CPU is a cause.
        let is_cause = |finding: &&Finding| {
            causes.contains(&finding.limiter)
                && (finding.limiter != Application || finding.confidence == Confidence::High)
        };
        let cause = findings
            .iter()
            .filter(is_cause)
            .map(|finding| finding.confidence)
            .filter(|confidence| *confidence < Confidence::Low)
            .min();
        if let Some(cause) = cause {
            findings[at].confidence = findings[at].confidence.max(cause);
        }
    }
}

/// Share of samples that makes a queue a standing one.
const MOST_SAMPLES: f64 = 0.75;
/// Fewer events are chance.
const EVENTS_SURE: u64 = 10;
/// Events a second: what happens less often is in few measurements.
const RATE_SURE: f64 = 1.0;
/// One or two happen to anybody.
const EVENTS_LIKELY: u64 = 3;
/// Three in a thousand seconds are no reason for anything.
const RATE_LIKELY: f64 = 0.1;

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

/// `CPU 3`, `CPUs 0-7`
fn named(cpus: &CpuSet) -> String {
    let kind = if cpus.len() == 1 { "CPU" } else { "CPUs" };
    format!("{kind} {cpus}")
}

/// `CPU 3 is`, `CPUs 0-7 are`
fn are(cpus: &CpuSet) -> String {
    let verb = if cpus.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", named(cpus))
}

/// `eth0 rx_missed_errors by 17`
fn listed(grown: &[(&str, &str, u64)]) -> String {
    let line = |(name, counter, by): &(&str, &str, u64)| format!("{name} {counter} by {by}");
    grown.iter().map(line).collect::<Vec<_>>().join(", ")
}

impl Case<'_> {
    /// Seconds between the readings; 0 where that is not known.
    fn seconds(&self) -> f64 {
        (self.after.uptime - self.before.uptime).max(0.0)
    }

    /// What some events tell, of so many that could have been (0 is not known), where some share of them shows in every
    /// figure.
    fn confidence(&self, events: u64, possible: u64, telling: f64) -> Confidence {
        let seconds = self.seconds();
        let rate = if seconds > 0.0 {
            events as f64 / seconds
        } else {
            f64::INFINITY
        };
        let share = if possible > 0 {
            events as f64 / possible as f64
        } else {
            f64::INFINITY
        };
        if events >= EVENTS_SURE && rate >= RATE_SURE && share >= telling {
            return Confidence::High;
        }
        match events < EVENTS_LIKELY || rate < RATE_LIKELY || share < telling / 10.0 {
            true => Confidence::Low,
            false => Confidence::Medium,
        }
    }

    /// Share of the samples that satisfy a condition, without samples that were not read; `None` if none was.
    fn share_of_samples(&self, is_so: impl Fn(&Sample) -> Option<bool>) -> Option<f64> {
        let known: Vec<bool> = self.after.samples.iter().filter_map(is_so).collect();
        let times = known.iter().filter(|is_so| **is_so).count();
        (!known.is_empty()).then(|| times as f64 / known.len() as f64)
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::connection::Connections;
    use crate::facts::process::Thread;
    use crate::facts::{Group, Interface, Listening, Process, Qdisc, Unread};

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
                    iowait: 0,
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
    fn confidence_follows_the_evidence() {
        let counted = |uptime: f64, counters: &[(&str, u64)]| Counts {
            uptime,
            network: counters
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
            ..Counts::default()
        };
        let overflows = |seconds: f64, times: u64, opened: u64| {
            let counters = [
                ("TcpExtListenOverflows", times),
                ("TcpPassiveOpens", opened),
            ];
            let after = counted(100.0 + seconds, &counters);
            let findings = judge(&Facts::default(), &counted(100.0, &[]), &after);
            let found = findings
                .iter()
                .find(|finding| finding.limiter == Limiter::AcceptQueue);
            found.expect("it is named").confidence
        };
        assert_eq!(overflows(1_000.0, 3, 1_000), Confidence::Low);
        assert_eq!(overflows(10.0, 3, 1_000), Confidence::Medium);
        assert_eq!(overflows(10.0, 100, 1_000), Confidence::High);
        assert_eq!(overflows(10.0, 100, 500_000), Confidence::Medium);
        assert_eq!(overflows(10.0, 100, 5_000_000), Confidence::Low);

        let busy = |percent: u64, seconds: u64| {
            let mut after = second(&[(percent, 0, 0), (5, 5, 0)]);
            for time in after.cpus.values_mut() {
                (time.interrupts, time.user) = (time.interrupts * seconds, time.user * seconds);
                time.idle *= seconds;
            }
            judge(&Facts::default(), &Counts::default(), &after)[0].confidence
        };
        assert_eq!(busy(95, 10), Confidence::Medium);
        assert_eq!(busy(100, 1), Confidence::Medium);
        assert_eq!(busy(100, 10), Confidence::High);
    }

    #[test]
    fn segments_sent_again_wait_for_a_timer_only_where_one_ran_out() {
        let counters = [
            ("TcpRetransSegs", 500),
            ("TcpOutSegs", 9_000),
            ("TcpExtTCPTimeouts", 7),
        ];
        let after = Counts {
            network: counters
                .map(|(name, count)| (name.to_owned(), count))
                .into(),
            ..Counts::default()
        };
        let findings = judge(&Facts::default(), &Counts::default(), &after);
        let words = "500 of 9000 segments were sent again: 7 times a timer ran out";
        assert!(findings[0].evidence.starts_with(words), "{findings:#?}");
    }

    #[test]
    fn a_program_that_does_not_read_is_the_limit() {
        let with = |state: char, ticks: u64, unread: u64, waiting: u64| {
            let mut found = process(ticks);
            if let Some(process) = &mut found {
                let threads = process.threads.values_mut();
                threads.for_each(|thread| thread.state = Some(state));
                process.listening = vec![Listening {
                    waiting,
                    ..Listening::default()
                }];
            }
            let before = Counts {
                process: process(100),
                uptime: 100.0,
                ..Counts::default()
            };
            let after = Counts {
                process: found,
                uptime: 110.0,
                unread: Some(Unread {
                    connections: unread,
                    bytes: unread * 100,
                }),
                ..second(&[(0, 5, 0)])
            };
            let findings = judge(&Facts::default(), &before, &after);
            let first = &findings[0];
            (first.limiter, first.confidence, first.evidence.clone())
        };
        let (limiter, confidence, evidence) = with('T', 100, 3, 5);
        assert_eq!(
            (limiter, confidence),
            (Limiter::Application, Confidence::High)
        );
        assert_eq!(
            evidence,
            "server is stopped (by a signal, or in a debugger), and 300 bytes of 3 connections have arrived and were not \
             read, and 5 connections were not accepted"
        );
        let (limiter, confidence, evidence) = with('S', 101, 3, 0);
        assert_eq!(
            (limiter, confidence),
            (Limiter::Application, Confidence::Medium)
        );
        assert!(
            evidence.starts_with("server took next to no CPU time, and 300 bytes"),
            "{evidence}"
        );
        // It works on it.
        assert_eq!(with('S', 200, 3, 0).0, Limiter::Elsewhere);
        assert_eq!(with('S', 100, 0, 0).0, Limiter::Elsewhere);
    }

    #[test]
    fn the_load_of_cpus_names_the_limiter() {
        use Limiter::{Application, Elsewhere, OneCpuOfSoftirq, Softirq, Steal};
        check(
            second(&[(99, 1, 0), (5, 20, 0), (5, 20, 0)]),
            &[OneCpuOfSoftirq],
        );
        // Packets keep a CPU full that has some time left for the program they are for.
        check(
            second(&[(86, 12, 0), (5, 5, 0), (5, 5, 0)]),
            &[OneCpuOfSoftirq],
        );
        check(second(&[(40, 58, 0), (5, 5, 0), (5, 5, 0)]), &[Application]);
        check(second(&[(95, 5, 0), (95, 5, 0), (5, 20, 0)]), &[Softirq]);
        check(second(&[(30, 69, 0), (30, 70, 0)]), &[Application]);
        check(second(&[(5, 95, 0), (5, 5, 0)]), &[Application]);
        check(second(&[(20, 30, 0), (20, 30, 0)]), &[Elsewhere]);
        check(second(&[(20, 30, 20), (20, 30, 20)]), &[Steal]);
        check(second(&[(4, 4, 90), (4, 4, 0)]), &[Steal]);
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
        check(network("TcpExtListenOverflows", 30), &[AcceptQueue]);
        check(network("TcpExtTCPMemoryPressures", 1), &[Memory]);
        check(network("TcpRetransSegs", 1000), &[Loss]);
        check(interface("pps_allowance_exceeded"), &[Allowance]);
        check(interface("rx_missed_errors"), &[Ring]);
        let softnet = [(
            0,
            Softnet {
                dropped: 10,
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
                groups: vec![Group {
                    path: "/a".to_owned(),
                    quota: Some((50_000, 100_000)),
                    periods: 48,
                    throttled: 48,
                    ..Group::default()
                }],
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
                "thread worker (17) was on CPU 0 for 95 % of the time, while CPU 1 is less than half busy",
            ],
        );
        check_process(
            second(&[(55, 30, 0), (0, 60, 0)]),
            process(130),
            &["runs on CPU 0, of which packets"],
        );
        let with = |change: fn(&mut Process)| {
            let mut process = process(110);
            process.iter_mut().for_each(change);
            process
        };
        check_process(
            second(&[(5, 92, 0), (0, 5, 0)]),
            with(|process| {
                process.allowed = [0].into_iter().collect();
                process
                    .threads
                    .values_mut()
                    .for_each(|thread| thread.ticks = 160);
            }),
            &[
                "server may run on CPU 0 only, with nothing left, while CPU 1 is",
                "CPU 0 is full with programs",
            ],
        );
        // The same, but the process used a tenth of that CPU.
        check_process(
            second(&[(5, 92, 0), (0, 5, 0)]),
            with(|process| process.allowed = [0].into_iter().collect()),
            &["other programs fill CPU 0, which server may run on: it used 0.10 CPUs"],
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
            let after = Counts {
                softnet: [(0, Softnet::default())].into(),
                samples: vec![quiet_sample(); 2],
                ..after
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
            "client-limited: 4200 packets a second came in and 5000 went out, the busiest CPU was 40 % busy, next to nothing was dropped or stolen, and in 2 samples requests were read and answered and responses sent",
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
        let idle = "next to nothing was asked of this machine: 994 packets came in";
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

    /// A complete sample without queues.
    fn quiet_sample() -> Sample {
        Sample {
            unaccepted: Some([(80, 0)].into()),
            connections: Some(Connections {
                open: 20,
                remote: 20,
                served: 20,
                ..Connections::default()
            }),
            datagrams: Some(Vec::new()),
            links: Some(BTreeMap::new()),
            neighbours: Some(Vec::new()),
            blocked: Some(0),
            ..Sample::default()
        }
    }

    /// Judges a machine with spare capacity and 10,000 packets per second, changed by a case.
    #[track_caller]
    fn check_asked(change: impl Fn(&mut Counts), limiter: Limiter, words: &str) {
        let mut after = Counts {
            uptime: 110.0,
            network: [
                ("TcpInSegs".to_owned(), 100_000),
                ("TcpOutSegs".to_owned(), 100_000),
            ]
            .into(),
            softnet: [(0, Softnet::default())].into(),
            samples: vec![quiet_sample(); 9],
            ..second(&[(20, 20, 0), (5, 5, 0)])
        };
        change(&mut after);
        let before = Counts {
            uptime: 100.0,
            ..Counts::default()
        };
        let findings = judge(&Facts::default(), &before, &after);
        assert_eq!(findings[0].limiter, limiter, "{findings:#?}");
        assert!(findings[0].evidence.contains(words), "{findings:#?}");
    }

    #[test]
    fn client_is_named_only_with_complete_readings() {
        use Limiter::{CannotKnow, Client};
        type Change = fn(&mut Counts);
        check_asked(|_| {}, Client, "client-limited: 10000 packets a second");
        let unread: [(Change, &str); 10] = [
            (|counts| counts.cpus.clear(), "the load of CPUs"),
            (
                |counts| counts.softnet.clear(),
                "packets dropped between CPUs",
            ),
            (
                |counts| counts.samples.clear(),
                "connections and local ports",
            ),
            (
                |counts| counts.samples.truncate(1),
                "connections and local ports",
            ),
            (
                |counts| counts.samples[3].connections = None,
                "connections and local ports",
            ),
            (
                |counts| counts.samples[3].unaccepted = None,
                "accept queues (sock_diag)",
            ),
            (
                |counts| counts.samples[3].datagrams = None,
                "UDP sockets (sock_diag)",
            ),
            (
                |counts| counts.samples[3].links = None,
                "links and their queueing disciplines",
            ),
            (
                |counts| counts.samples[3].neighbours = None,
                "neighbour tables",
            ),
            (
                |counts| counts.has_hidden_group = true,
                "the quota of its control group",
            ),
        ];
        for (change, words) in unread {
            check_asked(change, CannotKnow, words);
        }
        let connections = |counts: &mut Counts, change: fn(&mut Connections)| {
            let samples = counts.samples.iter_mut();
            samples.for_each(|sample| sample.connections.iter_mut().for_each(change));
        };
        check_asked(
            |counts| connections(counts, |one| one.held = 18),
            CannotKnow,
            "18 of 20 connections had received data and sent none since",
        );
        let server = "10.0.0.8:5432".parse().expect("an address");
        check_asked(
            |counts| {
                for sample in &mut counts.samples {
                    let one = sample.connections.as_mut().expect("it is there");
                    (one.asking, one.awaited) = (12, [(server, 12)].into());
                }
            },
            CannotKnow,
            "12 connections to 10.0.0.8:5432 wait for a response",
        );
        check_asked(
            |counts| counts.disk_stall = Some(2_000_000),
            CannotKnow,
            "stalled on a disk for 20 % of the time",
        );
        check_asked(
            |counts| {
                counts.network.insert("UdpInDatagrams".to_owned(), 200_000);
            },
            CannotKnow,
            "most packets are UDP",
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
