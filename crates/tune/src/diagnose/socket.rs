//! Accept queues, UDP buffers and local ports.

use std::collections::BTreeMap;

use super::counted::LOSS;
use super::{Case, Confidence, Finding, Limiter, MOST_SAMPLES, finding};
use crate::facts::connection::PortUse;

/// Share of the port range that counts as exhausted: sure, and likely.
const TAKEN_SURE: f64 = 0.99;
const TAKEN: f64 = 0.9;

impl Case<'_> {
    /// A port with a standing accept queue.
    pub(super) fn unaccepted(&self) -> Option<Finding> {
        let waits = |port: u16| {
            self.share_of_samples(|sample| {
                Some(sample.unaccepted.as_ref()?.get(&port).copied().unwrap_or(0) > 0)
            })
        };
        self.sampled_seconds()?;
        let last = self.after.samples.last()?.unaccepted.as_ref()?;
        let (port, _) = last
            .iter()
            .filter(|(port, _)| waits(**port).is_some_and(|share| share >= MOST_SAMPLES))
            .max_by_key(|(_, waiting)| **waiting)?;
        let of_port = |sample: &BTreeMap<u16, u64>| sample.get(port).copied().unwrap_or(0);
        let most = self.after.samples.iter();
        let most = most
            .filter_map(|sample| sample.unaccepted.as_ref())
            .map(of_port);
        let whose = match &self.after.process {
            Some(process) => format!("{} used {:.2} CPUs", process.name, self.own_cpus()),
            None => "run `onrush tune diagnose --pid` on the program that listens on it".to_owned(),
        };
        finding(
            Limiter::Application,
            Confidence::Medium,
            format!(
                "up to {} connections waited to be accepted on port {port} in {:.0} % of {} samples: {whose}",
                most.max().unwrap_or(0),
                waits(*port).unwrap_or(0.0) * 100.0,
                self.after.samples.len()
            ),
            "more threads or processes that accept; the thread that accepts must not wait for timers, locks, disks or other servers",
        )
    }

    pub(super) fn udp_buffers(&self) -> Option<Finding> {
        let both = |name: &str| {
            let six = self.grew(&format!("Udp6{name}"));
            self.grew(&format!("Udp{name}")).saturating_add(six)
        };
        let (dropped, memory) = (both("RcvbufErrors"), both("MemErrors"));
        let unsent = both("SndbufErrors");
        let events = dropped.max(memory).max(unsent);
        (events > 0).then_some(())?;
        let taken = both("InDatagrams");
        let sockets = self.dropping_sockets();
        let own: u64 = sockets.iter().flatten().map(|(_, dropped)| dropped).sum();
        let confidence = self.confidence(events, taken.saturating_add(events), LOSS);
        // The counters cover all sockets of the network namespace, not only the sockets of the process.
        let (confidence, whose) = match (&self.after.process, &sockets) {
            (Some(process), Some(_)) if own == 0 && unsent == 0 => (
                Confidence::Low,
                format!("; none of them on a socket of {}", process.name),
            ),
            (Some(process), None) => (
                confidence.max(Confidence::Medium),
                format!("; whether on sockets of {} is not known", process.name),
            ),
            (_, sockets) => {
                let words = |(port, dropped): &(u16, u64)| format!("{dropped} on port {port}");
                let words = sockets.iter().flatten().map(words).collect::<Vec<_>>();
                let front = if words.is_empty() { "" } else { "; " };
                (confidence, format!("{front}{}", words.join(", ")))
            }
        };
        finding(
            Limiter::UdpBuffers,
            confidence,
            format!(
                "UDP socket buffers were full: {dropped} datagrams dropped (RcvbufErrors), {taken} received; SndbufErrors {unsent}, MemErrors \
                 {memory}{whose}"
            ),
            match memory > 0 {
                true => {
                    "a larger net.ipv4.udp_mem; then a program that reads faster, and SO_RCVBUF with net.core.rmem_max \
                     above it"
                }
                false => {
                    "a program that reads faster (recvmmsg, more sockets with SO_REUSEPORT), then SO_RCVBUF with \
                     net.core.rmem_max above it: a buffer helps against bursts only"
                }
            },
        )
    }

    /// Drops by port between the first and the last sample, the most first; `None` if unknown.
    fn dropping_sockets(&self) -> Option<Vec<(u16, u64)>> {
        self.sampled_seconds()?;
        self.has_known_sockets().then_some(())?;
        let (first, last) = (self.after.samples.first()?, self.after.samples.last()?);
        let then: BTreeMap<u64, u64> = first
            .datagrams
            .as_ref()?
            .iter()
            .map(|socket| (socket.inode, socket.dropped))
            .collect();
        let mut ports: BTreeMap<u16, u64> = BTreeMap::new();
        for socket in last.datagrams.as_ref()? {
            let before = then.get(&socket.inode).copied().unwrap_or(0);
            let dropped = socket.dropped.saturating_sub(before);
            *ports.entry(socket.port).or_default() += dropped;
        }
        let mut ports: Vec<(u16, u64)> = ports.into_iter().filter(|(_, by)| *by > 0).collect();
        ports.sort_by_key(|(_, by)| std::cmp::Reverse(*by));
        ports.truncate(3);
        Some(ports)
    }

    /// Exhausted local ports, or an overflow of TIME-WAIT buckets.
    pub(super) fn ports(&self) -> Option<Finding> {
        self.taken_ports().or_else(|| {
            let waiting = self.grew("TcpExtTCPTimeWaitOverflow");
            (waiting > 0).then_some(())?;
            finding(
                Limiter::Ports,
                self.confidence(waiting, 0, 0.0).max(Confidence::Medium),
                format!("{waiting} connections could not enter TIME-WAIT (TCPTimeWaitOverflow)"),
                "keep-alive connections; otherwise a larger net.ipv4.tcp_max_tw_buckets and ip_local_port_range",
            )
        })
    }

    /// The kernel does not count EADDRNOTAVAIL, so the use of the port range is the evidence.
    fn taken_ports(&self) -> Option<Finding> {
        let samples = self.after.samples.iter();
        let uses = samples.filter_map(|sample| sample.connections.as_ref());
        let uses = uses.flat_map(|connections| &connections.ports);
        let share = |one: &PortUse| one.used as f64 / one.range.max(1) as f64;
        let fullest = uses.max_by(|one, two| {
            let by_share = share(one).total_cmp(&share(two));
            by_share.then_with(|| one.to.is_some().cmp(&two.to.is_some()))
        })?;
        (share(fullest) >= TAKEN).then_some(())?;
        let is_own = !self.has_known_sockets()
            || fullest
                .own
                .is_none_or(|own| own > 0 || fullest.closed * 2 > fullest.used);
        let confidence = match fullest.to {
            // Different destinations can share a port unless programs bind before they connect.
            None => Confidence::Low,
            Some(_) if !is_own => Confidence::Low,
            Some(_) if share(fullest) >= TAKEN_SURE => Confidence::High,
            Some(_) => Confidence::Medium,
        };
        let to = fullest
            .to
            .map_or_else(|| "all destinations".to_owned(), |to| to.to_string());
        let own = match (&self.after.process, fullest.own) {
            (Some(process), Some(own)) => format!(", {own} by {}", process.name),
            _ => String::new(),
        };
        finding(
            Limiter::Ports,
            confidence,
            format!(
                "local ports are exhausted: {} of {} ports of net.ipv4.ip_local_port_range are in use from {} to {to}, {} of them in \
                 TIME-WAIT{own}; connect() fails with EADDRNOTAVAIL when none is free",
                fullest.used, fullest.range, fullest.from, fullest.closed
            ),
            "persistent connections; then a wider net.ipv4.ip_local_port_range, more local or destination \
             addresses, or net.ipv4.tcp_tw_reuse",
        )
    }
}
