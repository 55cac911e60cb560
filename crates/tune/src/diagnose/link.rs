//! Full links, queueing disciplines that delay packets, and a slow network path.

use super::{Case, Confidence, Finding, Limiter, MOST_SAMPLES, finding};
use crate::facts::link::{Discipline, Link};

/// Share of a rate that counts as full: likely, and sure.
const FULL: f64 = 0.9;
const FULL_SURE: f64 = 0.95;
/// Bytes on the wire per frame beside those counted: FCS, preamble and gap (IEEE 802.3).
const FRAME_BYTES: u64 = 24;
/// Disciplines that delay packets by design, at any load.
const TIMED: [&str; 4] = ["fq", "netem", "etf", "taprio"];
/// Samples needed for a sure finding.
const SAMPLES_SURE: usize = 4;
/// Share of dropped packets that shows in the slowest responses.
const DROPPED: f64 = 0.001;
/// Share of connections with unsent data above which the network is the likely limit.
const UNSENT: f64 = 0.1;

impl Case<'_> {
    pub(super) fn link(&self) -> Option<Finding> {
        let (first, last) = (self.after.samples.first()?, self.after.samples.last()?);
        let links = last.links.as_ref()?.iter();
        let found = links.filter_map(|(name, link)| {
            let then = first.links.as_ref()?.get(name)?;
            self.full(name, then, link)
                .or_else(|| self.held_back(name, then, link))
        });
        let (confidence, evidence) = found.min_by_key(|(confidence, _)| *confidence)?;
        let (confidence, evidence) = match self.local_only_reason() {
            Some(words) => (Confidence::Low, format!("{evidence}; {words}")),
            None => (confidence, evidence),
        };
        finding(
            Limiter::Link,
            confidence,
            evidence,
            "a faster link or a higher rate of its queueing discipline (tc -s qdisc), smaller responses (compression), or less other traffic",
        )
    }

    /// The reason why links do not matter to a process that has only local connections.
    fn local_only_reason(&self) -> Option<String> {
        let process = self.after.process.as_ref()?;
        let sample = self.after.samples.last()?;
        let connections = sample.connections.as_ref()?;
        let has_datagrams = sample.datagrams.as_ref().is_none_or(|all| !all.is_empty());
        let stays = connections.open > 0 && connections.remote == 0 && !has_datagrams;
        stays.then(|| format!("{} has only local connections", process.name))
    }

    /// A device whose traffic is close to the rate of its link.
    fn full(&self, name: &str, then: &Link, now: &Link) -> Option<(Confidence, String)> {
        let rate = self.link_rate(name)?;
        let seconds = self.sampled_seconds()?;
        let bits = |bytes: u64, packets: u64| {
            bytes.saturating_add(packets.saturating_mul(FRAME_BYTES)) as f64 * 8.0 / seconds
        };
        let received = bits(
            now.received_bytes.saturating_sub(then.received_bytes),
            now.received_packets.saturating_sub(then.received_packets),
        );
        let sent = bits(
            now.sent_bytes.saturating_sub(then.sent_bytes),
            now.sent_packets.saturating_sub(then.sent_packets),
        );
        let (what, most) = match received > sent {
            true => ("received", received),
            false => ("sent", sent),
        };
        (most >= rate * FULL).then(|| {
            let confidence = match most >= rate * FULL_SURE {
                true => Confidence::High,
                false => Confidence::Medium,
            };
            let words = format!(
                "the link of {name} is full: {} of {} were {what}",
                rate_words(most),
                rate_words(rate)
            );
            (confidence, words)
        })
    }

    /// A queueing discipline that delayed or dropped packets.
    fn held_back(&self, name: &str, then: &Link, now: &Link) -> Option<(Confidence, String)> {
        let found = now.disciplines.iter().filter_map(|discipline| {
            let is_same = |other: &&Discipline| other.handle == discipline.handle;
            let then = then.disciplines.iter().find(is_same);
            let then = then.cloned().unwrap_or_default();
            self.held_by(name, &then, discipline)
        });
        found.min_by_key(|(confidence, _)| *confidence)
    }

    fn held_by(
        &self,
        name: &str,
        then: &Discipline,
        now: &Discipline,
    ) -> Option<(Confidence, String)> {
        let seconds = self.sampled_seconds()?;
        let grew = |part: fn(&Discipline) -> u64| part(now).saturating_sub(part(then));
        let (dropped, held) = (grew(|one| one.dropped), grew(|one| one.held));
        let (bytes, packets) = (grew(|one| one.sent_bytes), grew(|one| one.sent_packets));
        let waited = self.share_of_samples(|sample| {
            let link = sample.links.as_ref()?.get(name)?;
            let is_same = |other: &&Discipline| other.handle == now.handle;
            Some(link.disciplines.iter().find(is_same)?.waiting > 0)
        });
        let is_timed = TIMED.contains(&now.kind.as_str());
        let waited = waited.filter(|_| !is_timed).unwrap_or(0.0);
        let sent = bytes as f64 / seconds;
        let is_at_rate = now.rate.is_some_and(|rate| sent >= rate as f64 * FULL);
        let confidence = match self.after.samples.len() >= SAMPLES_SURE {
            _ if is_at_rate => Confidence::High,
            true if waited >= MOST_SAMPLES && (held > 0 || dropped > 0) => Confidence::High,
            _ if waited >= MOST_SAMPLES => Confidence::Medium,
            _ if dropped > 0 => self.confidence(dropped, packets.saturating_add(dropped), DROPPED),
            _ => return None,
        };
        let of = now.rate.map_or_else(String::new, |rate| {
            format!(" (limit {})", rate_words(rate as f64 * 8.0))
        });
        let words = format!(
            "the queueing discipline {} of {name} sent {}{of}: packets were queued in {:.0} % of {} samples, {held} delayed and {dropped} \
             dropped",
            now.kind,
            rate_words(sent * 8.0),
            waited * 100.0,
            self.after.samples.len()
        );
        Some((confidence, words))
    }

    /// Rate of a physical link in bits per second; `None` for virtual devices and unreported rates.
    pub(super) fn link_rate(&self, name: &str) -> Option<f64> {
        let is_elsewhere = self.after.samples.iter().any(|sample| sample.is_elsewhere);
        let interface = self.facts.interface(name).filter(|_| !is_elsewhere)?;
        // Virtual devices report a rate that does not limit them: 10 Gbit/s for veth.
        let speed = interface.speed_mbps.filter(|_| interface.is_device);
        speed
            .filter(|speed| *speed > 0)
            .map(|speed| speed as f64 * 1e6)
    }

    /// Written data that TCP may not send yet, because of the congestion window or the peer's receive window.
    pub(super) fn network(&self) -> Option<Finding> {
        let is_waiting = |part: fn(&crate::facts::connection::Connections) -> u64| {
            self.share_of_samples(move |sample| {
                let connections = sample.connections.as_ref()?;
                let share = part(connections) as f64 / connections.open.max(1) as f64;
                Some(part(connections) > 0 && share >= UNSENT)
            })
        };
        let share = is_waiting(|connections| connections.unsent)?;
        (share >= MOST_SAMPLES && self.sampled_seconds().is_some()).then_some(())?;
        let last = self.after.samples.last()?.connections.as_ref()?;
        let words = format!(
            "{} of {} connections had data that TCP may not send yet, {} bytes at the end, in {:.0} % of {} samples",
            last.unsent,
            last.open,
            last.unsent_bytes,
            share * 100.0,
            self.after.samples.len()
        );
        if is_waiting(|connections| connections.refused)? >= MOST_SAMPLES {
            return finding(
                Limiter::Client,
                Confidence::Medium,
                format!(
                    "client-limited: {words}, because the receive windows of the peers were full: they do not read"
                ),
                "the peers: how fast they read, and the sizes of their receive buffers",
            );
        }
        finding(
            Limiter::Network,
            Confidence::Medium,
            format!(
                "{words}: the network to the peers is full, or the congestion window is small for its delay"
            ),
            "the links and shapers between this machine and the peers; net.ipv4.tcp_wmem on long paths",
        )
    }

    /// Seconds between the first and the last sample; `None` with fewer than two.
    pub(super) fn sampled_seconds(&self) -> Option<f64> {
        (self.after.samples.len() > 1 && self.seconds() > 0.0).then(|| self.seconds())
    }
}

/// `20.0 Mbit/s`
fn rate_words(bits: f64) -> String {
    match bits {
        _ if bits >= 1e9 => format!("{:.1} Gbit/s", bits / 1e9),
        _ if bits >= 1e6 => format!("{:.1} Mbit/s", bits / 1e6),
        _ => format!("{:.0} kbit/s", bits / 1e3),
    }
}
