//! Notes about a device's RSS, offloads and interrupt delays that are not as recommended. They are not changed, because
//! an administrator or a driver with more information set them on purpose.

use super::action::Note;
use super::budget::TRAFFIC_MIN;
use super::request::{Goal, Request};
use crate::facts::ethtool::Ethtool;
use crate::facts::{Facts, Interface};

pub(super) fn advise(
    facts: &Facts,
    interface: &Interface,
    request: &Request,
    notes: &mut Vec<Note>,
) {
    let mut note = |text: Option<String>| {
        notes.extend(text.map(|text| Note::new(&interface.name, &text)));
    };
    if let Some(said) = &interface.ethtool {
        note(spreading(interface, said));
        // A virtual interface leaves these offloads to its device.
        for text in features(facts, interface, said)
            .into_iter()
            .filter(|_| interface.is_device)
        {
            note(Some(text));
        }
    }
    note(waiting(interface, request));
    note(datagram_fields(facts, interface));
}

/// Note about the fields that RSS hashes for datagrams. Many drivers use only addresses, so that QUIC and DNS of few
/// clients reach few queues. It matters if most received packets are datagrams and there is real traffic; an idle
/// machine receives DNS responses.
fn datagram_fields(facts: &Facts, interface: &Interface) -> Option<String> {
    let count = |name: &str| facts.counts.network.get(name).copied().unwrap_or(0);
    let (datagrams, segments) = (count("UdpInDatagrams"), count("TcpInSegs"));
    let uptime = facts.counts.uptime;
    let is_traffic = uptime > 0.0 && datagrams as f64 / uptime >= TRAFFIC_MIN;
    let has_queues = interface.is_device && interface.receive.len() > 1;
    let is_meant = has_queues && is_traffic && datagrams > segments;
    let name = &interface.name;
    is_meant.then(|| {
        format!(
            "receives more UDP datagrams ({datagrams}) than TCP segments ({segments}): check that it spreads them by \
             ports, too (ethtool -n {name} rx-flow-hash udp4), or set it (ethtool -N {name} rx-flow-hash udp4 sdfn, \
             and udp6)"
        )
    })
}

/// Note about an uneven RSS indirection table: each queue should have the same number of slots.
fn spreading(interface: &Interface, said: &Ethtool) -> Option<String> {
    let table = said.spreading.as_ref().filter(|table| !table.is_empty())?;
    let queues = interface.receive.len();
    let slots = |queue: usize| table.iter().filter(|slot| **slot as usize == queue).count();
    let counts: Vec<usize> = (0..queues).map(slots).collect();
    let (least, most) = (*counts.iter().min()?, *counts.iter().max()?);
    // If the size is not a multiple, some queues have one slot more.
    let allowed = usize::from(table.len() % queues != 0);
    if queues < 2 || most - least <= allowed {
        return None;
    }
    let name = &interface.name;
    let without = counts.iter().filter(|count| **count == 0).count();
    Some(match without {
        0 => format!(
            "spreads packets unevenly: a queue has from {least} to {most} of {} indirection table slots; ethtool -X \
             {name} equal {queues}",
            table.len()
        ),
        _ => format!(
            "spreads packets over only {} of its {queues} queues; ethtool -X {name} equal {queues}",
            queues - without
        ),
    })
}

/// Notes about offloads that batch packets.
fn features(facts: &Facts, interface: &Interface, said: &Ethtool) -> Vec<String> {
    const RECOMMENDED: [(&str, &str, &str); 3] = [
        (
            "rx-gro",
            "gro",
            "packets of a connection are processed one by one",
        ),
        (
            "tx-generic-segmentation",
            "gso",
            "large responses are split into packets at the top of the stack",
        ),
        (
            "tx-tcp-segmentation",
            "tso",
            "large responses are split into packets by a CPU",
        ),
    ];
    let name = &interface.name;
    let has = |feature: &str| said.features.iter().any(|on| on == feature);
    let mut texts = Vec::new();
    // An empty list means that the driver could not be asked.
    for (feature, option, cost) in RECOMMENDED {
        if !said.features.is_empty() && !has(feature) {
            texts.push(format!(
                "has {feature} off, so {cost}; ethtool -K {name} {option} on, if the device supports it"
            ));
        }
    }
    if has("rx-lro") && facts.system.setting("net/ipv4/ip_forward") == Some("1") {
        texts.push(format!(
            "has rx-lro on although this machine forwards packets, which must not be merged irreversibly; ethtool -K \
             {name} lro off"
        ));
    }
    let flows = facts.system.setting("net/core/rps_sock_flow_entries");
    if has("rx-ntuple-filter") && flows.is_some_and(|flows| flows != "0") {
        texts.push(
            "has rx-ntuple-filter on together with RFS flow tables: the device moves connections to the queues of the \
             application's CPUs, which pays off only with one queue per such CPU and long connections"
                .to_owned(),
        );
    }
    texts
}

/// Note about software interrupt coalescing.
fn waiting(interface: &Interface, request: &Request) -> Option<String> {
    let nanoseconds = interface.gro_flush_timeout.filter(|time| *time > 0)?;
    let polls = interface.napi_defer_hard_irqs.unwrap_or(0);
    match (request.goal, polls) {
        (_, 0) => None,
        (Goal::Latency, _) => Some(format!(
            "delays packets by up to {} microseconds without an interrupt (gro_flush_timeout, napi_defer_hard_irqs \
             {polls}): right for programs that poll, a delay for others",
            nanoseconds / 1_000
        )),
        (Goal::Throughput, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::interface::ReceiveQueue;

    fn interface(queues: usize, spreading: &[u32], features: &[&str]) -> Interface {
        let said = Ethtool {
            spreading: (!spreading.is_empty()).then(|| spreading.to_vec()),
            features: features.iter().map(|name| (*name).to_owned()).collect(),
            ..Ethtool::default()
        };
        Interface {
            name: "eth0".to_owned(),
            is_device: true,
            receive: vec![ReceiveQueue::default(); queues],
            ethtool: Some(said),
            ..Interface::default()
        }
    }

    #[track_caller]
    fn check(facts: &Facts, interface: &Interface, goal: Goal, expected: &[&str]) {
        let request = Request {
            goal,
            ..Request::default()
        };
        let mut notes = Vec::new();
        advise(facts, interface, &request, &mut notes);
        assert_eq!(notes.len(), expected.len(), "{notes:#?}");
        for (note, words) in notes.iter().zip(expected) {
            assert!(note.text.contains(words), "{note:#?}");
        }
    }

    #[test]
    fn uneven_rss_table_is_noted() {
        let facts = Facts::default();
        let table = |queues, table: &[u32], expected: &[&str]| {
            check(
                &facts,
                &interface(queues, table, &[]),
                Goal::Throughput,
                expected,
            )
        };
        table(2, &[0, 1, 0, 1], &[]);
        table(3, &[0, 1, 2, 0], &[]);
        table(1, &[0, 0], &[]);
        table(0, &[0, 0], &[]);
        table(4, &[], &[]);
        table(
            4,
            &[0, 1, 0, 1],
            &["over only 2 of its 4 queues; ethtool -X eth0 equal 4"],
        );
        table(
            2,
            &[0, 0, 0, 1],
            &["from 1 to 3 of 4 indirection table slots"],
        );
    }

    #[test]
    fn misconfigured_offloads_are_noted() {
        const GOOD: [&str; 3] = ["rx-gro", "tx-generic-segmentation", "tx-tcp-segmentation"];
        let mut facts = Facts::default();
        let with = |features: &[&str]| interface(1, &[], features);
        check(&facts, &with(&[]), Goal::Throughput, &[]);
        check(&facts, &with(&GOOD), Goal::Throughput, &[]);
        check(
            &facts,
            &with(&GOOD[1..]),
            Goal::Throughput,
            &["has rx-gro off"],
        );
        let all = [&GOOD[..], &["rx-lro", "rx-ntuple-filter"]].concat();
        check(&facts, &with(&all), Goal::Throughput, &[]);
        for (file, value) in [
            ("net/ipv4/ip_forward", "1"),
            ("net/core/rps_sock_flow_entries", "32768"),
        ] {
            facts
                .system
                .settings
                .insert(file.to_owned(), Some(value.to_owned()));
        }
        check(
            &facts,
            &with(&all),
            Goal::Throughput,
            &["rx-lro on", "rx-ntuple-filter on"],
        );
    }

    #[test]
    fn udp_port_hashing_is_advised_for_mostly_udp() {
        let check_with = |queues, datagrams, seconds, expected: &[&str]| {
            let mut facts = Facts::default();
            facts.counts.uptime = seconds;
            for (name, count) in [("UdpInDatagrams", datagrams), ("TcpInSegs", 1_000)] {
                facts.counts.network.insert(name.to_owned(), count);
            }
            let interface = interface(queues, &[], &[]);
            check(&facts, &interface, Goal::Throughput, expected);
        };
        check_with(4, 1_001, 10.0, &["ethtool -N eth0 rx-flow-hash udp4 sdfn"]);
        check_with(4, 1_000, 10.0, &[]);
        check_with(1, 1_001, 10.0, &[]);
        // Fewer than 100 per second.
        check_with(4, 1_001, 11.0, &[]);
        check_with(4, 1_001, 0.0, &[]);
    }

    #[test]
    fn deferred_interrupts_are_noted_for_latency() {
        let waits = Interface {
            gro_flush_timeout: Some(200_000),
            napi_defer_hard_irqs: Some(2),
            ..interface(1, &[], &[])
        };
        check(&Facts::default(), &waits, Goal::Throughput, &[]);
        check(
            &Facts::default(),
            &waits,
            Goal::Latency,
            &["up to 200 microseconds"],
        );
    }
}
