//! Limiters that a test cannot plant on every machine, as counters of a generated machine. Each must be the first finding,
//! with and without a process.

use onrush_tune::diagnose::{Limiter, judge};
use onrush_tune::facts::connection::{Connections, PortUse};
use onrush_tune::facts::datagram::Datagrams;
use onrush_tune::facts::link::{Discipline, Link};
use onrush_tune::facts::neighbour::Neighbours;
use onrush_tune::facts::process::Thread;
use onrush_tune::facts::sample::ConnectionTracking;
use onrush_tune::facts::{
    Counts, CpuTime, Disk, Facts, Group, Interface, Listening, Process, Program, Sample, Softnet,
    Unread,
};

/// Ten seconds of a machine with four CPUs and spare capacity: a server receives 10,000 packets per second.
struct Machine {
    facts: Facts,
    before: Counts,
    after: Counts,
}

impl Machine {
    fn new() -> Machine {
        let count = |name: &str, count: u64| (name.to_owned(), count);
        let eth0 = Interface {
            name: "eth0".to_owned(),
            is_device: true,
            speed_mbps: Some(100_000),
            ..Interface::default()
        };
        let server = |ticks: u64, delayed: u64| Process {
            number: 700,
            name: "server".to_owned(),
            allowed: (0..4).collect(),
            threads: [(700, thread(ticks, delayed))].into(),
            files: Some(100),
            files_max: Some(1_024),
            listening: vec![Listening {
                port: 80,
                inode: 7,
                limit: Some(511),
                dropped: Some(0),
                ..Listening::default()
            }],
        };
        let program = |name: &str, ticks: u64| Program {
            name: name.to_owned(),
            ticks,
            started: 1,
        };
        let programs = |server: u64, other: u64| {
            [
                (700, program("server", server)),
                (800, program("cc1", other)),
            ]
            .into()
        };
        Machine {
            facts: Facts {
                interfaces: vec![eth0],
                ..Facts::default()
            },
            before: Counts {
                process: Some(server(100, 0)),
                programs: Some(programs(100, 0)),
                uptime: 100.0,
                ..Counts::default()
            },
            after: Counts {
                cpus: (0..4).map(|cpu| (cpu, ticks(100, 200, 0))).collect(),
                softnet: [(0, Softnet::default())].into(),
                network: [count("TcpInSegs", 100_000), count("TcpOutSegs", 100_000)].into(),
                process: Some(server(300, 1_000_000)),
                programs: Some(programs(300, 10)),
                unread: Some(Unread::default()),
                samples: (0..9).map(sample).collect(),
                uptime: 110.0,
                ..Counts::default()
            },
        }
    }

    fn cpus(&mut self, times: [(u64, u64, u64); 4]) {
        let time = |(cpu, (interrupts, user, steal))| (cpu, ticks(interrupts, user, steal));
        self.after.cpus = times.into_iter().enumerate().map(time).collect();
    }

    fn counter(&mut self, name: &str, count: u64) {
        self.after.network.insert(name.to_owned(), count);
    }

    fn device(&mut self, counter: &str, count: u64) {
        let counters = self.after.interfaces.entry("eth0".to_owned()).or_default();
        counters.insert(counter.to_owned(), count);
    }

    fn samples(&mut self, change: impl Fn(u64, &mut Sample)) {
        for (at, sample) in (0..).zip(&mut self.after.samples) {
            change(at, sample);
        }
    }

    fn connections(&mut self, change: impl Fn(&mut Connections)) {
        self.samples(|_, sample| change(sample.connections.as_mut().expect("it is there")));
    }

    fn server(&mut self, change: impl Fn(&mut Process)) {
        change(self.after.process.as_mut().expect("it is there"));
    }

    /// Sets the server's thread: ticks of CPU time and nanoseconds on a run queue, in ten seconds.
    fn ran(&mut self, ticks: u64, delayed: u64) {
        self.server(|process| process.threads = [(700, thread(100 + ticks, delayed))].into());
        let programs = self.after.programs.as_mut().expect("they are there");
        programs.get_mut(&700).expect("the server").ticks = 100 + ticks;
    }

    fn other_ran(&mut self, ticks: u64) {
        let programs = self.after.programs.as_mut().expect("they are there");
        programs.get_mut(&800).expect("the other").ticks = ticks;
    }
}

/// Ten seconds of a CPU: ticks in interrupts, in programs, and stolen.
fn ticks(interrupts: u64, user: u64, steal: u64) -> CpuTime {
    CpuTime {
        interrupts,
        user,
        steal,
        idle: 1_000 - interrupts - user - steal,
        ..CpuTime::default()
    }
}

fn thread(ticks: u64, delayed: u64) -> Thread {
    Thread {
        name: "server".to_owned(),
        process: 700,
        state: Some('S'),
        ticks,
        delayed: Some(delayed),
        allowed: (0..4).collect(),
        ..Thread::default()
    }
}

/// Sample 0 to 8, without queues.
fn sample(at: u64) -> Sample {
    let eth0 = Link {
        received_packets: 12_000 * at,
        sent_packets: 12_000 * at,
        received_bytes: 2_000_000 * at,
        sent_bytes: 4_000_000 * at,
        disciplines: vec![Discipline {
            handle: (1, u32::MAX),
            kind: "fq_codel".to_owned(),
            sent_bytes: 4_000_000 * at,
            sent_packets: 12_000 * at,
            ..Discipline::default()
        }],
    };
    Sample {
        unaccepted: Some([(80, 0)].into()),
        connections: Some(Connections {
            open: 20,
            remote: 20,
            served: 20,
            ..Connections::default()
        }),
        datagrams: Some(Vec::new()),
        links: Some([("eth0".to_owned(), eth0)].into()),
        neighbours: Some(vec![Neighbours {
            name: "arp_cache".to_owned(),
            entries: 20,
            most: 1_024,
            overflows: 3,
        }]),
        tracked: Some(ConnectionTracking {
            entries: 500,
            most: 262_144,
            dropped: 0,
        }),
        blocked: Some(0),
        is_elsewhere: false,
    }
}

fn discipline(sample: &mut Sample) -> &mut Discipline {
    &mut link(sample).disciplines[0]
}

fn link(sample: &mut Sample) -> &mut Link {
    let links = sample.links.as_mut().expect("they are there");
    links.get_mut("eth0").expect("it is there")
}

/// Plants a limiter and checks the first finding without a process and with the server.
#[track_caller]
fn check(plant: impl Fn(&mut Machine), without: Limiter, with: Limiter) {
    for (expected, has_process) in [(without, false), (with, true)] {
        let mut machine = Machine::new();
        plant(&mut machine);
        if !has_process {
            (machine.before.process, machine.after.process) = (None, None);
        }
        let findings = judge(&machine.facts, &machine.before, &machine.after);
        assert_eq!(
            findings[0].limiter, expected,
            "with a process: {has_process}, {findings:#?}"
        );
        let claims = findings
            .iter()
            .filter(|finding| finding.limiter == Limiter::Client);
        assert!(
            expected == Limiter::Client || claims.count() == 0,
            "{findings:#?}"
        );
    }
}

#[test]
fn client_without_more_requests_is_limiter() {
    check(|_| {}, Limiter::Client, Limiter::Client);
}

#[test]
fn softirq_on_single_cpu_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.cpus([(990, 10, 0), (10, 200, 0), (10, 200, 0), (10, 200, 0)]);
    };
    check(plant, Limiter::OneCpuOfSoftirq, Limiter::OneCpuOfSoftirq);
}

#[test]
fn softirq_on_all_cpus_is_limiter() {
    let plant = |machine: &mut Machine| machine.cpus([(900, 90, 0); 4]);
    check(plant, Limiter::Softirq, Limiter::Softirq);
}

#[test]
fn server_using_all_cpus_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.cpus([(100, 890, 0); 4]);
        machine.ran(3_400, 9_000_000_000);
        machine.counter("TcpExtListenOverflows", 500);
    };
    check(plant, Limiter::Application, Limiter::Application);
}

#[test]
fn single_saturated_thread_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.cpus([(10, 985, 0), (10, 100, 0), (10, 100, 0), (10, 100, 0)]);
        machine.ran(990, 1_000_000);
    };
    check(plant, Limiter::Application, Limiter::Application);
}

#[test]
fn other_programs_using_all_cpus_are_limiter() {
    let plant = |machine: &mut Machine| {
        machine.cpus([(10, 985, 0); 4]);
        machine.ran(100, 6_000_000_000);
        machine.other_ran(3_800);
    };
    check(plant, Limiter::Application, Limiter::OtherPrograms);
    // Full CPUs do not limit a process that never waits on a run queue.
    let idle = |machine: &mut Machine| {
        plant(machine);
        machine.ran(100, 1_000_000);
    };
    check(idle, Limiter::Application, Limiter::Client);
}

#[test]
fn steal_time_is_limiter() {
    let plant = |machine: &mut Machine| machine.cpus([(20, 400, 300); 4]);
    check(plant, Limiter::Steal, Limiter::Steal);
}

#[test]
fn full_receive_ring_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.device("rx_packets", 100_000);
        machine.device("rx_missed_errors", 3_000);
        machine.counter("TcpRetransSegs", 3_000);
    };
    check(plant, Limiter::Ring, Limiter::Ring);
}

#[test]
fn full_softnet_backlog_is_limiter() {
    let plant = |machine: &mut Machine| {
        let softnet = machine.after.softnet.get_mut(&0).expect("it is there");
        (softnet.processed, softnet.dropped) = (100_000, 2_000);
    };
    check(plant, Limiter::Backlog, Limiter::Backlog);
}

#[test]
fn exceeded_provider_allowance_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.device("rx_packets", 100_000);
        machine.device("pps_allowance_exceeded", 4_000);
        machine.counter("TcpRetransSegs", 4_000);
    };
    check(plant, Limiter::Allowance, Limiter::Allowance);
}

#[test]
fn full_conntrack_table_is_limiter() {
    let full = |machine: &mut Machine| {
        machine.samples(|_, sample| {
            sample.tracked.as_mut().expect("it is there").entries = 262_144;
        });
    };
    check(full, Limiter::Conntrack, Limiter::Conntrack);
    let dropped = |machine: &mut Machine| {
        machine.samples(|at, sample| {
            sample.tracked.as_mut().expect("it is there").dropped = 50 * at;
        });
    };
    check(dropped, Limiter::Conntrack, Limiter::Conntrack);
}

#[test]
fn full_neighbour_table_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.samples(|at, sample| {
            let table = &mut sample.neighbours.as_mut().expect("they are there")[0];
            (table.entries, table.overflows) = (1_024, 3 + 100 * at);
        });
    };
    check(plant, Limiter::Neighbours, Limiter::Neighbours);
}

#[test]
fn tcp_memory_pressure_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.counter("TcpExtTCPMemoryPressures", 40);
        machine.counter("TcpExtTCPAbortOnMemory", 900);
    };
    check(plant, Limiter::Memory, Limiter::Memory);
}

#[test]
fn packet_loss_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.counter("TcpRetransSegs", 5_000);
        machine.connections(|one| one.unsent = 15);
    };
    check(plant, Limiter::Loss, Limiter::Loss);
}

#[test]
fn remote_shaper_is_network_limiter() {
    let plant = |machine: &mut Machine| {
        machine.counter("TcpRetransSegs", 400);
        machine.connections(|one| (one.unsent, one.unsent_bytes) = (18, 900_000));
    };
    check(plant, Limiter::Network, Limiter::Network);
}

#[test]
fn client_not_reading_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.connections(|one| (one.unsent, one.refused) = (18, 18));
    };
    check(plant, Limiter::Client, Limiter::Client);
}

#[test]
fn saturated_100_gbit_link_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.samples(|at, sample| link(sample).sent_bytes = 15_000_000_000 * at);
    };
    check(plant, Limiter::Link, Limiter::Link);
}

#[test]
fn local_shaper_is_link_limiter() {
    // The rate of htb is in its classes, so the standing queue is the evidence.
    let plant = |machine: &mut Machine| {
        machine.counter("TcpRetransSegs", 900);
        machine.samples(|at, sample| {
            let discipline = discipline(sample);
            discipline.kind = "htb".to_owned();
            (discipline.waiting, discipline.held, discipline.dropped) =
                (60_000, 2_000 * at, 100 * at);
        });
    };
    check(plant, Limiter::Link, Limiter::Link);
    // A process with only local connections is not limited by it.
    let mut machine = Machine::new();
    plant(&mut machine);
    machine.counter("TcpRetransSegs", 0);
    machine.connections(|one| one.remote = 0);
    let findings = judge(&machine.facts, &machine.before, &machine.after);
    assert_ne!(findings[0].limiter, Limiter::Link, "{findings:#?}");
}

#[test]
fn paced_packets_do_not_limit() {
    let plant = |machine: &mut Machine| {
        machine.samples(|_, sample| {
            let discipline = discipline(sample);
            discipline.kind = "fq".to_owned();
            discipline.waiting = 60_000;
        });
    };
    check(plant, Limiter::Client, Limiter::Client);
}

#[test]
fn stalled_disk_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.after.disk_stall = Some(9_000_000);
        let disk = Disk {
            operations: 900,
            busy: 9_700,
            waited: 11_000,
        };
        machine.after.disks = [("vda".to_owned(), disk)].into();
        machine.samples(|_, sample| sample.blocked = Some(2));
        machine.connections(|one| one.held = 20);
    };
    check(plant, Limiter::Disk, Limiter::Disk);
    // Without PSI, iowait is the evidence.
    let without_stalls = |machine: &mut Machine| {
        plant(machine);
        machine.after.disk_stall = None;
        for time in machine.after.cpus.values_mut() {
            (time.idle, time.iowait) = (time.idle - 300, 300);
        }
    };
    check(without_stalls, Limiter::Disk, Limiter::Disk);
    // Stalls of other programs do not limit a process that never blocks.
    let others = |machine: &mut Machine| {
        machine.after.disk_stall = Some(9_000_000);
        machine.samples(|_, sample| sample.blocked = Some(0));
    };
    check(others, Limiter::Disk, Limiter::Client);
}

#[test]
fn local_port_exhaustion_is_limiter() {
    let used = |used: u64, own: Option<u64>| {
        move |machine: &mut Machine| {
            machine.connections(|one| {
                one.ports = vec![PortUse {
                    from: [10, 0, 0, 1].into(),
                    to: Some(([10, 0, 0, 2], 80).into()),
                    used,
                    own,
                    closed: 200,
                    range: 1_000,
                }];
            });
        }
    };
    check(used(1_000, Some(800)), Limiter::Ports, Limiter::Ports);
    check(used(930, Some(800)), Limiter::Ports, Limiter::Ports);
    check(used(500, Some(300)), Limiter::Client, Limiter::Client);
}

#[test]
fn full_udp_buffer_is_limiter() {
    let plant = |own: bool| {
        move |machine: &mut Machine| {
            machine.counter("UdpInDatagrams", 50_000);
            machine.counter("UdpRcvbufErrors", 30_183);
            let dropped = if own { 3_700 } else { 0 };
            machine.samples(|at, sample| {
                sample.datagrams = Some(vec![Datagrams {
                    port: 53,
                    inode: 9,
                    dropped: dropped * at,
                    ..Datagrams::default()
                }]);
            });
        }
    };
    check(plant(true), Limiter::UdpBuffers, Limiter::UdpBuffers);
    let six = |machine: &mut Machine| machine.counter("Udp6RcvbufErrors", 30_183);
    check(six, Limiter::UdpBuffers, Limiter::Elsewhere);
}

#[test]
fn unaccepted_connections_limit_application() {
    let plant = |machine: &mut Machine| {
        machine.samples(|_, sample| sample.unaccepted = Some([(80, 29)].into()));
    };
    check(plant, Limiter::Application, Limiter::Application);
    let small = |machine: &mut Machine| {
        plant(machine);
        machine.counter("TcpExtListenOverflows", 400);
    };
    check(small, Limiter::AcceptQueue, Limiter::AcceptQueue);
}

#[test]
fn open_file_limit_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.server(|process| process.files = Some(1_024));
        machine.samples(|_, sample| sample.unaccepted = Some([(80, 40)].into()));
    };
    check(plant, Limiter::Application, Limiter::Files);
}

#[test]
fn cpu_quota_is_limiter() {
    let plant = |machine: &mut Machine| {
        machine.after.groups = vec![Group {
            path: "/web".to_owned(),
            quota: Some((50_000, 100_000)),
            periods: 100,
            throttled: 90,
            ..Group::default()
        }];
        machine.counter("TcpExtListenOverflows", 400);
    };
    check(plant, Limiter::Quota, Limiter::Quota);
}

#[test]
fn unknown_link_rate_prevents_diagnosis() {
    let plant = |machine: &mut Machine| {
        machine.facts.interfaces[0].speed_mbps = None;
        machine.samples(|at, sample| link(sample).received_bytes = 100_000_000 * at);
    };
    check(plant, Limiter::CannotKnow, Limiter::CannotKnow);
}

#[test]
fn unreadable_process_files_prevent_diagnosis() {
    let plant = |machine: &mut Machine| {
        machine.server(|process| process.files = None);
        machine.connections(|one| (one.open, one.remote, one.served) = (0, 0, 0));
        machine.ran(0, 0);
    };
    check(plant, Limiter::Client, Limiter::CannotKnow);
    let datagrams = |machine: &mut Machine| {
        plant(machine);
        machine.counter("UdpInDatagrams", 50_000);
        machine.counter("UdpRcvbufErrors", 30_183);
    };
    check(datagrams, Limiter::UdpBuffers, Limiter::UdpBuffers);
}

#[test]
fn inaccessible_namespace_prevents_diagnosis() {
    let plant = |machine: &mut Machine| {
        machine.samples(|_, sample| {
            *sample = Sample {
                blocked: Some(0),
                is_elsewhere: true,
                ..Sample::default()
            };
        });
    };
    check(plant, Limiter::CannotKnow, Limiter::CannotKnow);
}

#[test]
fn stalled_disk_without_traffic_prevents_diagnosis() {
    let plant = |machine: &mut Machine| {
        machine.counter("TcpInSegs", 10);
        machine.after.disk_stall = Some(3_000_000);
        machine.samples(|at, sample| sample.blocked = Some(u64::from(at == 4)));
    };
    check(plant, Limiter::CannotKnow, Limiter::CannotKnow);
}

#[test]
fn wait_for_backend_prevents_diagnosis() {
    let plant = |machine: &mut Machine| {
        machine.connections(|one| {
            (one.held, one.asking) = (18, 12);
            one.awaited = [(([10, 0, 0, 8], 5_432).into(), 12)].into();
        });
    };
    check(plant, Limiter::CannotKnow, Limiter::CannotKnow);
}
