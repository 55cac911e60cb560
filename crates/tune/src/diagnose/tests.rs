//! Limiters by counters, samples and processes: their names, their confidence, and counters that are not evidence.

use super::*;
use crate::facts::connection::Connections;
use crate::facts::process::Thread;
use crate::facts::{Group, Interface, Listening, Process, Qdisc, Unread};

/// One second of CPUs: for each, percent in interrupts, in programs and stolen.
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
fn confidence_depends_on_evidence() {
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
fn retransmission_timeouts_are_reported_only_if_counted() {
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
    let words = "500 of 9000 segments were retransmitted, 7 times after a timeout";
    assert!(findings[0].evidence.starts_with(words), "{findings:#?}");
}

#[test]
fn program_with_unread_data_is_limiter() {
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
        "server is stopped (by a signal or a debugger), and 300 bytes of 3 connections arrived and were not read, and \
         5 connections were not accepted"
    );
    let (limiter, confidence, evidence) = with('S', 101, 3, 0);
    assert_eq!(
        (limiter, confidence),
        (Limiter::Application, Confidence::Medium)
    );
    assert!(
        evidence.starts_with("server used next to no CPU time, and 300 bytes"),
        "{evidence}"
    );
    // It is processing the data.
    assert_eq!(with('S', 200, 3, 0).0, Limiter::Elsewhere);
    assert_eq!(with('S', 100, 0, 0).0, Limiter::Elsewhere);
}

#[test]
fn cpu_load_determines_limiter() {
    use Limiter::{Application, Elsewhere, OneCpuOfSoftirq, Softirq, Steal};
    check(
        second(&[(99, 1, 0), (5, 20, 0), (5, 20, 0)]),
        &[OneCpuOfSoftirq],
    );
    // A CPU full of packets still has some time for the program that receives them.
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
fn kernel_counters_determine_limiter() {
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
fn process_evidence_determines_limiter() {
    let elsewhere = "no resource was saturated";
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
        &["runs on CPU 0; packets and interrupts use more than half"],
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
            "server may run only on CPU 0, with no CPU time left, while CPU 1 is",
            "CPU 0 is full with programs",
        ],
    );
    // The same, but the process used a tenth of that CPU.
    check_process(
        second(&[(5, 92, 0), (0, 5, 0)]),
        with(|process| process.allowed = [0].into_iter().collect()),
        &["other programs fill CPU 0, on which server may run: it used 0.10 CPUs"],
    );
    check_process(
        second(&[(5, 30, 0)]),
        with(|process| (process.files, process.files_max) = (Some(1_020), Some(1_024))),
        &["server has 1020 files open (limit 1024)"],
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
        &["ListenOverflows 3, TCPReqQFullDoCookies 0; of server, 129 wait on port 8080"],
    );
}

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
fn full_accept_queue_is_reported_by_port() {
    check_ports(
        &[socket(1, 0, 128, 100)],
        &[socket(1, 129, 128, 117)],
        "DoCookies 0; 129 of 128 wait on port 8080, 17 dropped",
        "; the accept queue of port 8080 is limited to 128 by the backlog of its listen()",
    );
    check_ports(
        &[],
        &[socket(1, 4_097, 4_096, 17), socket(2, 0, 4_096, 0)],
        "; 4097 of 8192 wait on the 2 sockets (1 full) of port 8080, 17 dropped",
        "; the accept queue of port 8080 is limited by net.core.somaxconn (4096): raise that, then restart the program",
    );
    check_ports(
        &[],
        &[socket(1, 12, 1_024, 0), socket(2, 0, 1_024, 0)],
        "; 12 of 2048 wait on the 2 sockets of port 8080",
        "above that",
    );
    // Earlier drops, and drops without a waiting program, are not evidence.
    let quiet = [socket(1, 0, 128, 100)];
    check_ports(&quiet, &quiet, "TCPReqQFullDoCookies 0", "above that");
}

#[test]
fn pacing_advice_depends_on_egress_qdisc() {
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
            format!(
                "congestion control is bbr and {queues}: each connection is paced by its own timer"
            )
        });
        assert_eq!(evidence, expected.as_deref());
    };
    let veth = interface("veth7", false, "noqueue", &[]);
    let eth0 = |root: &str, below: &[&str]| [interface("eth0", true, root, below), veth.clone()];
    check(&[], "fq", None);
    check(&[], "fq_codel", Some("the default qdisc is fq_codel"));
    check(&eth0("fq", &[]), "pfifo_fast", None);
    check(&eth0("mq", &["fq"]), "pfifo_fast", None);
    check(&eth0("mq", &[]), "fq", None);
    check(
        &eth0("pfifo_fast", &[]),
        "fq",
        Some("the qdisc of eth0 is pfifo_fast"),
    );
    check(
        &eth0("mq", &["fq_codel"]),
        "fq",
        Some("the qdisc of eth0 is mq over fq_codel"),
    );
    check(
        &eth0("mq", &[]),
        "fq_codel",
        Some("the qdisc of eth0 is mq over fq_codel"),
    );
    check(&[veth], "fq", Some("the qdisc of veth7 is noqueue"));
}

#[test]
fn exceeded_allowance_is_reported_by_counter_name() {
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
        "packet-rate allowance exceeded: the provider delayed or dropped packets (ens5 pps_allowance_exceeded by 17)"
    );
}

#[test]
fn idle_machine_under_load_is_client_limited() {
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
        "client-limited: 4200 packets per second received and 5000 sent, the busiest CPU was 40 % busy, next to nothing was dropped or stolen, and in 2 samples requests were read and responses sent",
    );
    check(100.0, counted(110.0, &asked), client);
    // A few unwanted packets, as on every network, are not evidence.
    let some = |dropped: u64| [&asked[..], &[("TcpExtTCPBacklogDrop", dropped)]].concat();
    check(100.0, counted(110.0, &some(42)), client);
    let full =
        "no resource was saturated: the busiest CPU was 40 % busy, and 43 packets were dropped";
    check(
        100.0,
        counted(110.0, &some(43)),
        (Limiter::Elsewhere, Confidence::Medium, full),
    );
    let busy = Counts {
        cpus: second(&[(30, 55, 0), (5, 5, 0)]).cpus,
        ..counted(110.0, &asked)
    };
    let words = "no resource was saturated: the busiest CPU was 85 % busy";
    check(100.0, busy, (Limiter::Elsewhere, Confidence::Medium, words));
    let idle = "this machine had next to no load: 994 packets received";
    check(
        100.0,
        counted(110.0, &[("TcpInSegs", 994)]),
        (Limiter::Elsewhere, Confidence::Low, idle),
    );
    // Counters of a whole day say little about one minute.
    check(
        0.0,
        counted(110.0, &asked),
        (
            Limiter::Elsewhere,
            Confidence::Low,
            "on average since the machine booted",
        ),
    );
}

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
fn client_limit_requires_complete_readings() {
    use Limiter::{CannotKnow, Client};
    type Change = fn(&mut Counts);
    check_asked(|_| {}, Client, "client-limited: 10000 packets per second");
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
        "18 of 20 connections received data and have sent none since",
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
fn earlier_counts_are_not_evidence() {
    let counts = Counts {
        network: [("TcpExtListenOverflows".to_owned(), 3)].into(),
        ..Counts::default()
    };
    let findings = judge(&Facts::default(), &counts, &counts);
    assert_eq!(findings[0].limiter, Limiter::Elsewhere);
}
