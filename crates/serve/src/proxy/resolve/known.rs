//! The known addresses of a name: what an answer changes, and when to query again. Pure.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::time::Duration;

use onrush_config::limits::WEIGHT_MAX;

use crate::limits::{NEGATIVE_ANSWERS_MAX, RESOLVE_PAUSE_MIN, TTL_MAX, TTL_MIN};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Hosts. For a host name, this is the host itself.
    Answered {
        targets: Vec<Target>,
        /// The smallest TTL of all records.
        ttl: Duration,
    },
    /// A negative answer (no such name or no record), with the reason.
    Negative(String),
    /// No answer, with the reason.
    Failed(String),
}

/// A host to which a name refers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    /// From the SRV record; for a host name, the configuration has the port.
    pub(super) service: Option<Service>,
    /// `None` if the host could not be resolved.
    pub(super) addresses: Option<Vec<IpAddr>>,
}

/// The fields of an SRV record (RFC 2782) other than the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) port: u16,
    /// The lowest value is used first.
    pub(super) priority: u16,
    /// Relative to other records of the same priority.
    pub(super) weight: u16,
}

/// An address of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedAddress {
    host: String,
    pub(super) ip: IpAddr,
    /// Port of the SRV record.
    pub(super) port: Option<u16>,
    pub(super) weight: u32,
    /// Whether it is used only when no primary server is available.
    pub(super) backup: bool,
}

/// A change to be logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameEvent {
    /// The addresses have changed.
    Addresses,
    /// The name cannot be resolved; known addresses stay.
    Failing(String),
    /// After repeated negative answers, the addresses have been removed.
    Gone(String),
    /// The name is resolved again, to the same addresses.
    Back,
}

/// Result of processing an outcome.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) news: Option<NameEvent>,
    pub(super) pause: Duration,
}

/// State of a name.
#[derive(Debug)]
pub(super) struct Known {
    /// The longest pause after an outcome without an answer.
    retry: Duration,
    found: Vec<ResolvedAddress>,
    trouble: LoggedProblem,
    /// Number of consecutive outcomes without an answer, and the number of consecutive negative answers at their end.
    unanswered: u32,
    denials: u32,
}

/// Problem of a name that has been logged.
#[derive(Debug, Default, PartialEq, Eq)]
enum LoggedProblem {
    #[default]
    None,
    Failing,
    Gone,
}

impl Known {
    /// A name without addresses. `retry` is the longest pause after a failed query.
    pub(super) fn new(retry: Duration) -> Self {
        Self {
            retry,
            found: Vec::new(),
            trouble: LoggedProblem::None,
            unanswered: 0,
            denials: 0,
        }
    }

    /// Returns the addresses found, primary servers first.
    pub(super) fn found(&self) -> &[ResolvedAddress] {
        &self.found
    }

    pub(super) fn process_outcome(&mut self, outcome: Outcome) -> Step {
        match outcome {
            Outcome::Answered { targets, ttl } => {
                let found = self.found_behind(&targets);
                if !found.is_empty() {
                    return self.accept(found, ttl);
                }
                if targets.iter().any(|target| target.addresses.is_none()) {
                    return self.fail("none of its hosts can be resolved".into());
                }
                self.deny("none of its hosts has an address".into())
            }
            Outcome::Negative(why) => self.deny(why),
            Outcome::Failed(why) => self.fail(why),
        }
    }

    fn accept(&mut self, found: Vec<ResolvedAddress>, ttl: Duration) -> Step {
        let had_trouble = std::mem::take(&mut self.trouble) != LoggedProblem::None;
        (self.unanswered, self.denials) = (0, 0);
        let news = if self.found != found {
            Some(NameEvent::Addresses)
        } else {
            had_trouble.then_some(NameEvent::Back)
        };
        self.found = found;
        Step {
            news,
            pause: ttl.clamp(TTL_MIN, TTL_MAX),
        }
    }

    /// Negative answers count only when repeated: a mistake in a zone should not remove all servers, but an address
    /// that now belongs to another host should not get requests for ever.
    fn deny(&mut self, why: String) -> Step {
        self.denials += 1;
        if self.denials < NEGATIVE_ANSWERS_MAX || self.found.is_empty() {
            return self.trouble(why);
        }
        self.found.clear();
        self.trouble = LoggedProblem::Gone;
        self.unanswered += 1;
        Step {
            news: Some(NameEvent::Gone(why)),
            pause: self.backed_off(),
        }
    }

    /// Known addresses stay however long the failure lasts: an old address is better than none.
    fn fail(&mut self, why: String) -> Step {
        self.denials = 0;
        self.trouble(why)
    }

    fn trouble(&mut self, why: String) -> Step {
        self.unanswered += 1;
        let is_new = self.trouble == LoggedProblem::None;
        if is_new {
            self.trouble = LoggedProblem::Failing;
        }
        Step {
            news: is_new.then_some(NameEvent::Failing(why)),
            pause: self.backed_off(),
        }
    }

    fn backed_off(&self) -> Duration {
        // More doublings would only exceed the limit.
        let doublings = self.unanswered.saturating_sub(1).min(16);
        (RESOLVE_PAUSE_MIN * (1 << doublings)).min(self.retry)
    }

    /// The addresses of `targets`, including the known ones of a host that could not be resolved. Each occurs once; the
    /// order does not depend on the order of the records, and primary servers are first.
    fn found_behind(&self, targets: &[Target]) -> Vec<ResolvedAddress> {
        let mut ranked: Vec<(u16, ResolvedAddress)> = Vec::new();
        let scale = Scale::of(targets);
        for target in targets {
            let known = || self.found.iter().filter(|found| found.host == target.host);
            let addresses = match &target.addresses {
                Some(addresses) => addresses.clone(),
                None => known().map(|found| found.ip).collect(),
            };
            let priority = target.service.map_or(0, |service| service.priority);
            ranked.extend(addresses.into_iter().map(|ip| {
                let found = ResolvedAddress {
                    host: target.host.clone(),
                    ip,
                    port: target.service.map(|service| service.port),
                    weight: target
                        .service
                        .map_or(1, |service| scale.apply(service.weight)),
                    backup: false,
                };
                (priority, found)
            }));
        }
        ranked.sort_by_key(|(priority, found)| {
            (*priority, Reverse(found.weight), found.ip, found.port)
        });
        let first = ranked.first().map(|(priority, _)| *priority);
        let mut all: Vec<ResolvedAddress> = Vec::with_capacity(ranked.len());
        for (priority, found) in ranked {
            let is_known = all
                .iter()
                .any(|known| (known.ip, known.port) == (found.ip, found.port));
            if !is_known {
                all.push(ResolvedAddress {
                    backup: Some(priority) != first,
                    ..found
                });
            }
        }
        all
    }
}

/// Conversion of SRV weights, up to 65,535, to weights of servers.
struct Scale {
    /// The largest weight, if it exceeds the limit for servers.
    of: Option<u32>,
}

impl Scale {
    fn of(targets: &[Target]) -> Self {
        let services = targets.iter().filter_map(|target| target.service);
        let largest = services.map(|service| u32::from(service.weight)).max();
        Self {
            of: largest.filter(|&largest| largest > WEIGHT_MAX),
        }
    }

    /// RFC 2782: a weight of 0 means a very small chance, or no preference if all records have it.
    fn apply(&self, weight: u16) -> u32 {
        let weight = u32::from(weight);
        let scaled = self.of.map_or(weight, |of| weight * WEIGHT_MAX / of);
        scaled.max(1)
    }
}

#[cfg(test)]
mod tests {
    use onrush_config::limits::RESOLVE_RETRY_DEFAULT;

    use super::*;

    fn ip(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// An answer for a host name, with these addresses.
    fn host(addresses: &[u8]) -> Outcome {
        Outcome::Answered {
            targets: vec![Target {
                host: "app".into(),
                service: None,
                addresses: Some(addresses.iter().copied().map(ip).collect()),
            }],
            ttl: seconds(20),
        }
    }

    /// An SRV record: priority, weight, and the host's only address, if any.
    fn target(priority: u16, weight: u16, address: Option<u8>, host: &str) -> Target {
        Target {
            host: host.into(),
            service: Some(Service {
                port: 8000,
                priority,
                weight,
            }),
            addresses: address.map(|last| vec![ip(last)]),
        }
    }

    fn srv(targets: &[Target]) -> Outcome {
        Outcome::Answered {
            targets: targets.to_vec(),
            ttl: seconds(20),
        }
    }

    fn failed() -> Outcome {
        Outcome::Failed("timeout".into())
    }

    fn denied() -> Outcome {
        Outcome::Negative("no such name".into())
    }

    fn found(known: &Known) -> Vec<(IpAddr, u32, bool)> {
        let found = known.found().iter();
        found
            .map(|found| (found.ip, found.weight, found.backup))
            .collect()
    }

    fn addresses(known: &Known) -> Vec<IpAddr> {
        known.found().iter().map(|found| found.ip).collect()
    }

    #[test]
    fn record_order_and_duplicates_are_ignored() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        let first = known.process_outcome(host(&[3, 1, 2]));
        assert_eq!(first.news, Some(NameEvent::Addresses));
        assert_eq!(addresses(&known), [ip(1), ip(2), ip(3)]);
        assert_eq!(known.process_outcome(host(&[2, 3, 1, 2])).news, None);
        assert_eq!(
            known.process_outcome(host(&[2, 1])).news,
            Some(NameEvent::Addresses)
        );
        assert_eq!(addresses(&known), [ip(1), ip(2)]);
    }

    #[test]
    fn ttl_is_clamped() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        for (ttl, pause) in [
            (seconds(0), TTL_MIN),
            (seconds(20), seconds(20)),
            (seconds(86_400), TTL_MAX),
        ] {
            let targets = vec![target(0, 0, Some(1), "a")];
            assert_eq!(
                known
                    .process_outcome(Outcome::Answered { targets, ttl })
                    .pause,
                pause
            );
        }
    }

    #[test]
    fn failures_keep_addresses_and_log_once() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        known.process_outcome(host(&[1, 2]));
        let first = known.process_outcome(failed());
        assert_eq!(first.news, Some(NameEvent::Failing("timeout".into())));
        for _ in 0..1000 {
            assert_eq!(known.process_outcome(failed()).news, None);
        }
        assert_eq!(addresses(&known), [ip(1), ip(2)]);
        assert_eq!(
            known.process_outcome(host(&[1, 2])).news,
            Some(NameEvent::Back)
        );
        assert_eq!(known.process_outcome(host(&[1, 2])).news, None);
        assert!(
            known.process_outcome(failed()).news.is_some(),
            "a new failure"
        );
    }

    #[test]
    fn failed_queries_back_off() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        let pauses: Vec<Duration> = (0..40)
            .map(|_| known.process_outcome(failed()).pause)
            .collect();
        assert_eq!(pauses[..3], [seconds(1), seconds(2), seconds(4)]);
        assert!(pauses.is_sorted());
        assert_eq!(pauses[39], seconds(5));
        let mut eager = Known::new(seconds(2));
        let pauses: Vec<Duration> = (0..3)
            .map(|_| eager.process_outcome(failed()).pause)
            .collect();
        assert_eq!(pauses, [seconds(1), seconds(2), seconds(2)]);
        known.process_outcome(host(&[1]));
        assert_eq!(known.process_outcome(failed()).pause, seconds(1));
    }

    #[test]
    fn repeated_negative_answers_remove_addresses() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        known.process_outcome(host(&[1]));
        let denials = |known: &mut Known, count: u32| -> Vec<Option<NameEvent>> {
            (0..count)
                .map(|_| known.process_outcome(denied()).news)
                .collect()
        };
        denials(&mut known, NEGATIVE_ANSWERS_MAX - 1);
        known.process_outcome(failed());
        denials(&mut known, NEGATIVE_ANSWERS_MAX - 1);
        assert_eq!(addresses(&known), [ip(1)], "never enough in a row");
        let news = known.process_outcome(denied()).news;
        assert_eq!(news, Some(NameEvent::Gone("no such name".into())));
        assert!(known.found().is_empty());
        assert_eq!(denials(&mut known, 3), [None, None, None]);
        assert_eq!(
            known.process_outcome(host(&[1])).news,
            Some(NameEvent::Addresses)
        );
    }

    #[test]
    fn unresolved_name_is_logged_once() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        let news: Vec<_> = (0..5)
            .map(|_| known.process_outcome(denied()).news)
            .collect();
        let first = Some(NameEvent::Failing("no such name".into()));
        assert_eq!(news, [first, None, None, None, None]);
    }

    #[test]
    fn lower_srv_priorities_are_backups() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        known.process_outcome(srv(&[
            target(20, 9, Some(3), "c"),
            target(10, 1, Some(1), "a"),
            target(10, 5, Some(2), "b"),
        ]));
        let expected = [(ip(2), 5, false), (ip(1), 1, false), (ip(3), 9, true)];
        assert_eq!(found(&known), expected);
        // No host of the lowest priority has an address, so the next priority is not a backup.
        known.process_outcome(srv(&[
            Target {
                addresses: Some(vec![]),
                ..target(10, 1, None, "a")
            },
            target(20, 9, Some(3), "c"),
        ]));
        assert_eq!(found(&known), [(ip(3), 9, false)]);
    }

    #[test]
    fn srv_weights_are_scaled() {
        for (written, weights) in [
            ([0, 0], [1, 1]),
            ([10, 0], [10, 1]),
            ([1000, 1], [1000, 1]),
            ([65_535, 6_554], [1000, 100]),
            ([65_535, 1], [1000, 1]),
        ] {
            let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
            known.process_outcome(srv(&[
                target(0, written[0], Some(1), "a"),
                target(0, written[1], Some(2), "b"),
            ]));
            let given: Vec<u32> = known.found().iter().map(|found| found.weight).collect();
            assert_eq!(given, weights, "{written:?}");
        }
    }

    #[test]
    fn unresolved_srv_host_keeps_addresses() {
        let mut known = Known::new(RESOLVE_RETRY_DEFAULT);
        known.process_outcome(srv(&[
            target(0, 1, Some(1), "a"),
            target(0, 1, Some(2), "b"),
        ]));
        let again =
            known.process_outcome(srv(&[target(0, 1, None, "a"), target(0, 1, Some(3), "b")]));
        assert_eq!(again.news, Some(NameEvent::Addresses));
        assert_eq!(addresses(&known), [ip(1), ip(3)]);
        known.process_outcome(srv(&[target(0, 1, Some(3), "b")]));
        assert_eq!(addresses(&known), [ip(3)]);
        // No address is known of the only remaining host: same as a failed query.
        let failing = known.process_outcome(srv(&[target(0, 1, None, "c")]));
        assert!(matches!(failing.news, Some(NameEvent::Failing(_))));
        assert_eq!(addresses(&known), [ip(3)]);
    }
}
