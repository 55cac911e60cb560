//! Limits on requests per second, by key.
//!
//! The generic cell rate algorithm (ITU-T I.371, annex A): the state of a key is one point in time, up to which its
//! requests have used up the rate. It equals a token bucket, but nothing has to be refilled, and a key whose time has
//! passed need not be stored.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use onrush_config::plan;
use onrush_engine::Instant;

use super::Admission;
use super::key::Key;
use crate::limits::{ADMIT_ATTEMPTS_MAX, RATE_KEYS_MAX};

/// A rate with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Nanoseconds of the rate that one request uses up; not 0.
    interval: u64,
    /// How far ahead of the clock requests may use it up: the burst plus one. Invariant: not below `interval`.
    ahead_max: u64,
}

impl From<&plan::Rate> for Rate {
    /// Exact to a nanosecond per request; at most 10^9 requests per second.
    fn from(written: &plan::Rate) -> Self {
        let interval = written.per.as_nanos() as u64 / u64::from(written.count.get());
        let interval = interval.max(1);
        Self {
            interval,
            ahead_max: interval.saturating_mul(u64::from(written.burst) + 1),
        }
    }
}

/// The keys of all limits of a server, shared by its cores.
///
/// A key may be stored in any of the eight entries of one set, two cache lines. If all are taken, it replaces the entry
/// whose time passes first. If that time has passed already, nothing is lost. Otherwise there are more active keys than
/// entries, and the key that was furthest from its limit may start a new burst. Keys at their limit stay, so inventing
/// keys does not free a throttled client.
///
/// Counts are exact across cores with one exception: while two cores store a key for the first time, or one key
/// replaces another, a request may be counted twice, not at all, or for the other key.
#[derive(Debug)]
pub(crate) struct Rates {
    sets: Box<[Set]>,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Set {
    places: [Place; 8],
}

#[derive(Debug, Default)]
struct Place {
    /// The key's number; 0 in a free entry.
    key: AtomicU64,
    /// Time up to which its rate is used up, in nanoseconds of the clock.
    used_until: AtomicU64,
}

impl Rates {
    pub(crate) fn new() -> Self {
        Self::with_room_for(RATE_KEYS_MAX)
    }

    fn with_room_for(keys: usize) -> Self {
        let sets = (keys / 8).next_power_of_two();
        Self {
            sets: (0..sets).map(|_| Set::default()).collect(),
        }
    }

    /// Counts a request if it is within the rate. A refused request is not counted, so a client that always sends too
    /// many still gets its rate.
    pub(crate) fn admit(&self, key: Key, rate: Rate, now: Instant) -> Admission {
        let set = &self.sets[key.number() as usize & (self.sets.len() - 1)];
        for _ in 0..ADMIT_ATTEMPTS_MAX {
            if let Some(admission) = set.try_admit(key.number(), rate, now.nanoseconds()) {
                return admission;
            }
        }
        // Other cores changed the entry each time, for requests of their own.
        Admission::Admit
    }
}

impl Set {
    /// `None` if another core has changed the entry meanwhile.
    fn try_admit(&self, key: u64, rate: Rate, now: u64) -> Option<Admission> {
        let mut first = (u64::MAX, &self.places[0]);
        for place in &self.places {
            // In this order: a thread that reads a key reads a time not older than it. The compare-exchange detects
            // later changes of the time.
            let is_ours = place.key.load(Acquire) == key;
            let used_until = place.used_until.load(Relaxed);
            if is_ours {
                return place.try_count(used_until, rate, now);
            }
            if used_until < first.0 {
                first = (used_until, place);
            }
        }
        let (used_until, place) = first;
        exchange(&place.used_until, used_until, now + rate.interval)?;
        place.key.store(key, Release);
        Some(Admission::Admit)
    }
}

impl Place {
    fn try_count(&self, used_until: u64, rate: Rate, now: u64) -> Option<Admission> {
        let next = used_until.max(now).saturating_add(rate.interval);
        let ahead = next - now;
        if let Some(excess) = ahead
            .checked_sub(rate.ahead_max)
            .filter(|excess| *excess > 0)
        {
            return Some(Admission::Refuse {
                retry_after: Duration::from_nanos(excess),
            });
        }
        exchange(&self.used_until, used_until, next)?;
        Some(Admission::Admit)
    }
}

fn exchange(place: &AtomicU64, from: u64, to: u64) -> Option<()> {
    place.compare_exchange(from, to, Relaxed, Relaxed).ok()?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::key::Keys;
    use super::*;
    use proptest::prelude::*;
    use std::num::NonZeroU32;

    /// A rate of `requests` in so many seconds, with `at_once` of them at once.
    fn rate(requests: u32, seconds: u64, at_once: u32) -> Rate {
        Rate::from(&plan::Rate {
            count: NonZeroU32::new(requests).expect("tests limit to something"),
            per: Duration::from_secs(seconds),
            burst: at_once - 1,
        })
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanoseconds(milliseconds * 1_000_000)
    }

    fn is_admitted(rates: &Rates, key: Key, rate: Rate, now: Instant) -> bool {
        rates.admit(key, rate, now) == Admission::Admit
    }

    #[test]
    fn burst_is_allowed_then_rate_applies() {
        let (rates, key) = (Rates::new(), Keys::default().route(1));
        let rate = rate(10, 1, 3);
        let refused = |milliseconds| Admission::Refuse {
            retry_after: Duration::from_millis(milliseconds),
        };
        for (now, expected) in [
            (5_000, Admission::Admit),
            (5_000, Admission::Admit),
            (5_000, Admission::Admit),
            (5_000, refused(100)),
            (5_099, refused(1)),
            (5_100, Admission::Admit),
            (5_100, refused(100)),
            // After a pause only one burst is available.
            (60_000, Admission::Admit),
            (60_000, Admission::Admit),
            (60_000, Admission::Admit),
            (60_000, refused(100)),
        ] {
            assert_eq!(rates.admit(key, rate, at(now)), expected, "at {now} ms");
        }
    }

    #[test]
    fn excess_requests_do_not_reduce_rate() {
        let (rates, key) = (Rates::new(), Keys::default().route(1));
        let admitted =
            (10_000..20_000).filter(|&now| is_admitted(&rates, key, rate(10, 1, 1), at(now)));
        assert_eq!(admitted.count(), 100);
    }

    #[test]
    fn rate_limit_keys_are_independent() {
        let (rates, keys) = (Rates::new(), Keys::default());
        for limit in 0..1000 {
            let key = keys.route(limit);
            let admitted = [(); 3].map(|()| is_admitted(&rates, key, rate(1, 1, 2), at(1000)));
            assert_eq!(admitted, [true, true, false]);
        }
    }

    #[test]
    fn random_keys_do_not_affect_other_keys() {
        let (rates, keys) = (Rates::with_room_for(64), Keys::default());
        let limit = rate(10, 1, 5);
        let (fair, greedy) = (keys.header(1, b"fair"), keys.header(1, b"greedy"));
        let mut granted = 0;
        for step in 0..5_000_u64 {
            // Within half a second: 5,000 keys in a table of 64 entries, a greedy client with ten times its rate, and a
            // fair client with one request each 0.1 s.
            let now = at(10_000 + step / 10);
            let made_up = keys.header(1, &step.to_be_bytes());
            assert!(is_admitted(&rates, made_up, limit, now));
            if step % 10 == 0 {
                granted += u32::from(is_admitted(&rates, greedy, limit, now));
            }
            if step % 1000 == 0 {
                assert!(is_admitted(&rates, fair, limit, now), "at step {step}");
            }
        }
        assert_eq!(granted, 5 + 4, "a burst, and the rate after it");
    }

    #[test]
    fn rate_is_exact_across_cores() {
        let (rates, key) = (Rates::new(), Keys::default().route(1));
        let limit = rate(1, 1000, 5000);
        // Stored before the other threads start.
        assert!(is_admitted(&rates, key, limit, at(1000)));
        let admitted: usize = std::thread::scope(|scope| {
            let cores: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let attempts = 0..3000;
                        attempts
                            .filter(|_| is_admitted(&rates, key, limit, at(1000)))
                            .count()
                    })
                })
                .collect();
            cores
                .into_iter()
                .map(|core| core.join().expect("no panic"))
                .sum()
        });
        assert_eq!(admitted, 4999);
    }

    proptest! {
        #[test]
        fn rate_limit_matches_token_bucket(
            requests in 1..1000_u32,
            burst in 1..50_u32,
            pauses in prop::collection::vec(0..30_000_000_u64, 1..200),
        ) {
            let (rates, key) = (Rates::new(), Keys::default().route(1));
            let limit = rate(requests, 1, burst);
            // A token bucket, measured in nanoseconds of the rate instead of tokens.
            let mut bucket = limit.ahead_max;
            let mut now = 1_000_000_000;
            for pause in pauses {
                now += pause;
                bucket = (bucket + pause).min(limit.ahead_max);
                let is_within = bucket >= limit.interval;
                if is_within {
                    bucket -= limit.interval;
                }
                let now = Instant::from_nanoseconds(now);
                match rates.admit(key, limit, now) {
                    Admission::Admit => prop_assert!(is_within),
                    Admission::Refuse { retry_after } => {
                        prop_assert!(!is_within);
                        let missing = limit.interval - bucket;
                        prop_assert_eq!(retry_after, Duration::from_nanos(missing));
                    }
                }
            }
        }
    }
}
