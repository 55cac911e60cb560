//! Attributes lost datagrams to counters of both ends. Pure.
//!
//! ```text
//!  sent ── own interface, own CPU's queue ── network ── target socket's buffer ── received by the target
//!  received here ── own socket's buffer ── network ── returned by the target  <──┘
//! ```

use onrush_measure::units;
use serde::Serialize;

use super::plan::Direction;

/// Counters of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) direction: Direction,
    pub(crate) sent: u64,
    /// Maximum number of datagrams in one segmented send (UDP GSO). The kernel drops such a send as a whole.
    pub(crate) per_packet: u64,
    /// Received at the destination: by the target one way, here after a round trip; `None` if unknown.
    pub(crate) received: Option<u64>,
    /// Received by the target, without duplicates; `None` if it does not report.
    pub(crate) target_received: Option<u64>,
    /// Dropped by the target's sockets because their buffers were full.
    pub(crate) target_dropped: u64,
    /// Dropped by sockets of this network namespace because their buffers were full.
    pub(crate) own_receive_buffer: u64,
    /// Dropped by interfaces of this network namespace.
    pub(crate) interfaces: u64,
    /// Dropped by full queues of this machine's CPUs, for all senders.
    pub(crate) backlog: u64,
}

/// Lost datagrams by cause.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Losses {
    /// Datagrams that were sent and did not reach their destination.
    pub lost: u64,
    /// Datagrams lost on the way to the target, if it reports how many it received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub there: Option<u64>,
    /// Datagrams lost on the way back; see [`there`](Self::there).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<u64>,
    /// Counters that explain losses.
    #[serde(rename = "found")]
    pub explained: Vec<ExplainedLoss>,
    /// Losses in no counter that this program can read.
    pub unaccounted: u64,
}

/// Losses explained by one counter.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ExplainedLoss {
    /// Description of the counter.
    pub place: String,
    /// Losses that it explains.
    pub count: u64,
    /// Value of the counter, in packets. A packet may contain several datagrams (`--send offload`), and may be from
    /// another sender.
    pub counted: u64,
}

struct Rest {
    there: u64,
    back: u64,
    per_packet: u64,
    found: Vec<ExplainedLoss>,
}

impl Losses {
    /// Attributes losses to counters, the most reliable first. `None` if it is unknown how many datagrams were
    /// received.
    pub(crate) fn of(facts: &Facts) -> Option<Losses> {
        let received = facts.received?;
        let lost = facts.sent.saturating_sub(received);
        let there = facts
            .target_received
            .map(|far| facts.sent.saturating_sub(far).min(lost));
        let mut rest = match (facts.direction, there) {
            (Direction::OneWay, _) => Rest::new(lost, 0, facts.per_packet),
            (Direction::RoundTrip, Some(there)) => Rest::new(there, lost - there, facts.per_packet),
            (Direction::RoundTrip, None) => Rest::new(0, lost, facts.per_packet),
        };
        rest.explain_there(
            "dropped by the target's full socket buffer (SO_RXQ_OVFL)",
            facts.target_dropped,
        );
        // If the target is in this namespace, the namespace's counter includes the drops of the target's sockets.
        let own = facts.own_receive_buffer;
        rest.explain_back("dropped by full socket buffers here (RcvbufErrors)", own);
        rest.explain(
            "dropped by interfaces here (/proc/net/dev)",
            facts.interfaces,
        );
        rest.explain(
            "dropped by the CPUs' backlog queues here (softnet_stat)",
            facts.backlog,
        );
        let back = there.map(|there| lost - there);
        Some(Losses {
            lost,
            there: there.filter(|_| facts.direction == Direction::RoundTrip),
            back: back.filter(|_| facts.direction == Direction::RoundTrip),
            unaccounted: rest.there + rest.back,
            explained: rest.found,
        })
    }

    /// Formats the losses as one line of the report.
    pub(crate) fn line(&self, sent: u64) -> String {
        let share = self.lost as f64 / sent.max(1) as f64 * 100.0;
        if self.lost == 0 {
            return "0".to_owned();
        }
        let mut parts: Vec<String> = self
            .explained
            .iter()
            .map(|found| {
                // A smaller count means packets of several datagrams.
                let packets = match found.counted < found.count {
                    true => format!(", in {}", units::plural(found.counted, "packet")),
                    false => String::new(),
                };
                format!("{} {}{packets}", units::count(found.count), found.place)
            })
            .collect();
        if self.unaccounted > 0 {
            parts.push(format!(
                "{} not counted by any counter here",
                units::count(self.unaccounted)
            ));
        }
        let ways = match (self.there, self.back) {
            (Some(there), Some(back)) => format!(
                "; {} on the way to the target, {} on the way back",
                units::count(there),
                units::count(back)
            ),
            _ => String::new(),
        };
        format!(
            "{} ({share:.4} %): {}{ways}",
            units::count(self.lost),
            parts.join(", ")
        )
    }
}

impl Rest {
    fn new(there: u64, back: u64, per_packet: u64) -> Rest {
        Rest {
            there,
            back,
            per_packet,
            found: Vec::new(),
        }
    }

    fn datagrams(&self, packets: u64) -> u64 {
        packets.saturating_mul(self.per_packet)
    }

    fn note(&mut self, place: &str, count: u64, counted: u64) {
        if count > 0 {
            self.found.push(ExplainedLoss {
                place: place.to_owned(),
                count,
                counted,
            });
        }
    }

    fn explain_there(&mut self, place: &str, counted: u64) {
        let count = self.datagrams(counted).min(self.there);
        self.there -= count;
        self.note(place, count, counted);
    }

    fn explain_back(&mut self, place: &str, counted: u64) {
        let count = self.datagrams(counted).min(self.back);
        self.back -= count;
        self.note(place, count, counted);
    }

    fn explain(&mut self, place: &str, counted: u64) {
        let datagrams = self.datagrams(counted);
        let there = datagrams.min(self.there);
        self.there -= there;
        let back = (datagrams - there).min(self.back);
        self.back -= back;
        self.note(place, there + back, counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        direction: Direction::OneWay,
        sent: 100,
        per_packet: 1,
        received: Some(60),
        target_received: Some(60),
        target_dropped: 0,
        own_receive_buffer: 0,
        interfaces: 0,
        backlog: 0,
    };

    fn found(losses: &Losses) -> Vec<u64> {
        losses.explained.iter().map(|found| found.count).collect()
    }

    #[test]
    fn target_socket_drops_are_attributed() {
        let losses = Losses::of(&Facts {
            target_dropped: 30,
            backlog: 50,
            ..FACTS
        })
        .unwrap();
        assert_eq!((losses.lost, losses.unaccounted), (40, 0));
        assert_eq!(found(&losses), [30, 10]);
        assert_eq!(losses.explained[1].counted, 50);
    }

    #[test]
    fn segmented_packet_losses_count_all_datagrams() {
        let facts = Facts {
            per_packet: 20,
            target_dropped: 2,
            ..FACTS
        };
        let losses = Losses::of(&facts).unwrap();
        assert_eq!((found(&losses), losses.unaccounted), (vec![40], 0));
        assert!(losses.line(100).contains("in 2 packets"));
    }

    #[test]
    fn unexplained_losses_are_reported() {
        let losses = Losses::of(&Facts {
            interfaces: 5,
            ..FACTS
        })
        .unwrap();
        assert_eq!((losses.lost, losses.unaccounted), (40, 35));
        assert!(
            losses
                .line(100)
                .contains("35 not counted by any counter here")
        );
    }

    #[test]
    fn losses_are_split_by_direction() {
        let facts = Facts {
            direction: Direction::RoundTrip,
            target_received: Some(90),
            target_dropped: 10,
            own_receive_buffer: 40,
            ..FACTS
        };
        let losses = Losses::of(&facts).unwrap();
        assert_eq!((losses.there, losses.back), (Some(10), Some(30)));
        assert_eq!(found(&losses), [10, 30]);
        assert_eq!(losses.unaccounted, 0);
    }

    #[test]
    fn losses_are_unknown_without_counters() {
        assert_eq!(
            Losses::of(&Facts {
                received: None,
                ..FACTS
            }),
            None
        );
    }
}
