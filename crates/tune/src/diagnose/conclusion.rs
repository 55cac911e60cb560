//! The conclusion when no limiter was found. "Client-limited" takes complete readings and connections that wait for the
//! client; otherwise the conclusion is "cannot know".

use super::counted::LOSS;
use super::{Case, Confidence, Finding, Limiter, finding};
use crate::facts::Sample;
use crate::facts::connection::Connections;

/// CPU load below which threads wait only a short time for a CPU.
const UNHURRIED: f64 = 0.8;
/// Share of time on a run queue below which CPU time is not the limit.
const UNDELAYED: f64 = 0.1;
/// Packets per second that count as load; an ssh session makes about ten.
const SERVES: f64 = 100.0;
/// CPU use below which a process is idle.
const WORKS: f64 = 0.01;
/// Share of connections whose clients wait for a response above which the program may hold requests.
const HELD: f64 = 0.25;
/// Share of samples that is more than chance.
const OFTEN: f64 = 0.5;
/// Share of time with a task stalled on I/O above which a disk may be the limit.
const STALLED: f64 = 0.1;
/// Ratio of received to sent bytes above which the receive direction of a link may be the limit.
const UPLOAD: u64 = 4;
const CLIENT: &str = "check the client first: if its CPUs are full, or it sends at a fixed rate, the client was \
    measured; then check the network, and locks inside the program. Where this machine is the client, check the server";

const UNKNOWN: &str = "what is missing: another reading with --pid of the program, as root, and on the machine that has the \
    network devices; then the wait channels of the program's threads (/proc/PID/task/*/wchan)";

struct TrafficLoad {
    /// TCP and UDP packets received.
    received: f64,
    came: f64,
    went: f64,
    busiest: f64,
}

impl Case<'_> {
    /// The finding when no limiter was found.
    pub(super) fn conclusion(&self) -> Option<Finding> {
        let asked = self.asked();
        let busy = format!("the busiest CPU was {:.0} % busy", asked.busiest * 100.0);
        if self.before.uptime <= 0.0 {
            return finding(
                Limiter::Elsewhere,
                Confidence::Low,
                format!("no resource was saturated on average since the machine booted: {busy}"),
                "two readings while load runs (onrush tune diagnose on the machine itself): a limit reached for a \
                 minute does not show in the average of a day",
            );
        }
        if !self.serves(&asked) {
            return self.idle(&asked, &busy);
        }
        let dropped = self.dropped();
        if !self.has_room(asked.busiest) || dropped as f64 > asked.received * LOSS {
            return finding(
                Limiter::Elsewhere,
                Confidence::Medium,
                format!("no resource was saturated: {busy}, and {dropped} packets were dropped"),
                CLIENT,
            );
        }
        let rates = format!(
            "{:.0} packets per second received and {:.0} sent, {busy}",
            asked.came, asked.went
        );
        let mut doubts = self.missing();
        doubts.extend(self.doubts());
        if !doubts.is_empty() {
            return finding(
                Limiter::CannotKnow,
                Confidence::Medium,
                format!(
                    "cannot tell: nothing that could be read was full ({rates}), but {}",
                    doubts.join("; and ")
                ),
                UNKNOWN,
            );
        }
        finding(
            Limiter::Client,
            Confidence::Medium,
            format!(
                "client-limited: {rates}, next to nothing was dropped or stolen, and in {} samples requests were read \
                 and responses sent",
                self.after.samples.len()
            ),
            CLIENT,
        )
    }

    fn asked(&self) -> TrafficLoad {
        let both = |tcp: &str, udp: &str| {
            let six = self.grew(&format!("Udp6{udp}"));
            let sum = self
                .grew(tcp)
                .saturating_add(self.grew(&format!("Udp{udp}")));
            sum.saturating_add(six) as f64
        };
        let received = both("TcpInSegs", "InDatagrams");
        let sent = both("TcpOutSegs", "OutDatagrams");
        let seconds = self.after.uptime - self.before.uptime;
        TrafficLoad {
            received,
            came: received / seconds,
            went: sent / seconds,
            busiest: self
                .loads
                .values()
                .map(|load| load.busy)
                .fold(0.0, f64::max),
        }
    }

    /// Whether there was load, on the process if one was given.
    fn serves(&self, asked: &TrafficLoad) -> bool {
        let is_idle = self.after.process.is_some()
            && self.has_known_sockets()
            && self.own_cpus() < WORKS
            && self.share_of_samples(|sample| Some(sample.connections.as_ref()?.open == 0))
                == Some(1.0);
        // Two readings at the same time have no rate.
        asked.came.is_finite() && asked.came >= SERVES && !is_idle
    }

    fn idle(&self, asked: &TrafficLoad, busy: &str) -> Option<Finding> {
        // If a process was given, stopped() has already reported unread data.
        let unread = match &self.after.process {
            Some(_) => String::new(),
            None => self.unread_words(""),
        };
        if !unread.is_empty() {
            return finding(
                Limiter::Application,
                Confidence::Medium,
                format!(
                    "no resource was saturated, but {unread}: {} packets received, and {busy}",
                    asked.received
                ),
                "find the program that does not read: `onrush tune diagnose --pid` reports whether it is stopped",
            );
        }
        if let Some(words) = self.may_be_the_disk() {
            return finding(
                Limiter::CannotKnow,
                Confidence::Medium,
                format!("cannot tell: nothing that could be read was full ({busy}), but {words}"),
                UNKNOWN,
            );
        }
        finding(
            Limiter::Elsewhere,
            Confidence::Low,
            format!(
                "no resource was saturated, and this machine had next to no load: {} packets received, and {busy}",
                asked.received
            ),
            "another reading while clients send requests; for a program in another network namespace, with --pid",
        )
    }

    /// Whether CPU time was left: for the process if its time on run queues is known.
    fn has_room(&self, busiest: f64) -> bool {
        let delayed = self.after.process.as_ref().and(self.delayed());
        match delayed {
            // Interrupts run before any thread.
            Some(share) => {
                let packets = self.loads.values().map(|load| load.interrupts);
                share < UNDELAYED && packets.fold(0.0, f64::max) < UNHURRIED
            }
            None => busiest < UNHURRIED,
        }
    }

    /// Readings that are missing and needed for the conclusion.
    fn missing(&self) -> Vec<String> {
        let samples = &self.after.samples;
        let is_known =
            |is_there: fn(&Sample) -> bool| samples.len() > 1 && samples.iter().all(is_there);
        let setting = |name: &str| self.facts.system.setting(name).is_some();
        let lacks = [
            (self.loads.is_empty(), "the load of CPUs (/proc/stat)"),
            (
                !self.after.network.contains_key("TcpInSegs"),
                "the counters of TCP and UDP (/proc/net/snmp)",
            ),
            (
                self.after.softnet.is_empty(),
                "packets dropped between CPUs (/proc/net/softnet_stat)",
            ),
            (
                !is_known(|sample| sample.connections.is_some()),
                "connections and local ports (sock_diag)",
            ),
            (
                !is_known(|sample| sample.unaccepted.is_some()),
                "accept queues (sock_diag)",
            ),
            (
                !is_known(|sample| sample.datagrams.is_some()),
                "UDP sockets (sock_diag)",
            ),
            (
                !is_known(|sample| sample.links.is_some()),
                "links and their queueing disciplines (rtnetlink)",
            ),
            (
                !is_known(|sample| sample.neighbours.is_some()),
                "neighbour tables (rtnetlink)",
            ),
            (
                !is_known(|sample| sample.blocked.is_some()),
                "threads blocked on I/O (/proc)",
            ),
            (
                setting("net/netfilter/nf_conntrack_max")
                    && !setting("net/netfilter/nf_conntrack_count"),
                "the number of tracked connections",
            ),
            (
                self.after.has_hidden_group,
                "the quota of its control group (its files are not visible here)",
            ),
            (
                !self.has_known_sockets(),
                "the open files and sockets of the process",
            ),
        ];
        let lacks: Vec<&str> = lacks
            .into_iter()
            .filter_map(|(is_lacking, what)| is_lacking.then_some(what))
            .collect();
        match lacks.is_empty() {
            true => Vec::new(),
            false => vec![format!("could not be read: {}", lacks.join(", "))],
        }
    }

    pub(super) fn has_known_sockets(&self) -> bool {
        let process = self.after.process.as_ref();
        process.is_none_or(|process| process.files.is_some())
    }

    /// Readings with more than one explanation.
    fn doubts(&self) -> Vec<String> {
        [
            self.is_held(),
            self.waits_for_servers(),
            self.is_unread(),
            self.may_be_the_disk(),
            self.may_be_the_link(),
            self.is_of_datagrams(),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Whether a share of connections was exceeded in most samples.
    fn often(
        &self,
        part: fn(&Connections) -> u64,
        of: fn(&Connections) -> u64,
        share: f64,
    ) -> bool {
        let samples = self.share_of_samples(move |sample| {
            let connections = sample.connections.as_ref()?;
            let (part, all) = (part(connections), of(connections));
            Some(part > 0 && part as f64 >= all as f64 * share)
        });
        samples.is_some_and(|samples| samples >= OFTEN)
    }

    fn last_connections(&self) -> Option<&Connections> {
        self.after.samples.last()?.connections.as_ref()
    }

    fn is_held(&self) -> Option<String> {
        let due = |one: &Connections| one.held.saturating_add(one.unclear);
        self.often(due, |one| one.served, HELD).then_some(())?;
        let last = self.last_connections()?;
        let unclear = match last.unclear {
            0 => String::new(),
            unclear => {
                format!(" ({unclear} of them sent and received in the same kernel tick)")
            }
        };
        Some(format!(
            "{} of {} connections received data and have sent none since{unclear}: either the program holds requests \
             while it waits for a lock, a timer, a disk or another server, or clients send data that gets no \
             response",
            last.held.saturating_add(last.unclear),
            last.served
        ))
    }

    fn waits_for_servers(&self) -> Option<String> {
        let waiting = |one: &Connections| one.awaited.values().sum();
        self.often(waiting, |one| one.asking, HELD).then_some(())?;
        let awaited = &self.last_connections()?.awaited;
        let (server, count) = awaited.iter().max_by_key(|(_, count)| **count)?;
        Some(format!(
            "{count} connections to {server} wait for a response: that server may be the limit"
        ))
    }

    fn is_unread(&self) -> Option<String> {
        self.often(|one| one.unread, |one| one.open, HELD)
            .then_some(())?;
        let last = self.last_connections()?;
        Some(format!(
            "{} of {} connections had unread bytes although CPUs had time left",
            last.unread, last.open
        ))
    }

    fn may_be_the_disk(&self) -> Option<String> {
        // A process without a blocked thread does not wait for a disk.
        let is_blocked =
            self.after.process.is_none() || self.blocked().is_none_or(|share| share > 0.0);
        let stalled = self.stalled().unwrap_or_else(|| self.iowait());
        (stalled >= STALLED && is_blocked).then(|| {
            format!(
                "tasks were stalled on a disk for {:.0} % of the time, on an unknown disk",
                stalled * 100.0
            )
        })
    }

    /// A link of unknown rate may be full in the receive direction.
    fn may_be_the_link(&self) -> Option<String> {
        let (first, last) = (self.after.samples.first()?, self.after.samples.last()?);
        let is_unknown = |(name, now): (&String, &crate::facts::link::Link)| {
            let then = first.links.as_ref()?.get(name)?;
            let received = now.received_bytes.saturating_sub(then.received_bytes);
            let sent = now.sent_bytes.saturating_sub(then.sent_bytes);
            let is_upload = received > sent.saturating_mul(UPLOAD);
            (is_upload && self.link_rate(name).is_none()).then(|| (received, name.clone()))
        };
        let links = last.links.as_ref()?.iter().filter_map(is_unknown);
        let (_, name) = links.max_by_key(|(received, _)| *received)?;
        Some(format!(
            "most bytes were received on {name}, whose link rate is not known"
        ))
    }

    fn is_of_datagrams(&self) -> Option<String> {
        let datagrams = self
            .grew("UdpInDatagrams")
            .saturating_add(self.grew("Udp6InDatagrams"));
        (datagrams > self.grew("TcpInSegs")).then(|| {
            "most packets are UDP: requests that wait inside the program are not visible".to_owned()
        })
    }
}
