//! Limits on concurrent requests, by key.

use std::num::{NonZeroU16, NonZeroU32};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::key::Key;
use crate::limits::{ADMIT_ATTEMPTS_MAX, CONCURRENCY_KEYS_MAX, CONCURRENCY_RETRY_AFTER};

/// The keys of all limits of a server with requests in flight, shared by its cores.
///
/// A key may be stored in any of the eight entries of one set, one cache line. It keeps its entry while it has
/// requests. If all eight are taken, requests of further keys are admitted and not counted.
///
/// Counts are exact across cores, unless two cores store a key at the same moment in different entries; then it has two
/// counts until one of them is 0.
///
/// Clones share the table. Each core has its own clone in an `Rc`, so that tickets refer to it without atomic reference
/// counting.
#[derive(Clone, Debug)]
pub(crate) struct Concurrency {
    sets: Arc<[Set]>,
}

/// ```text
///  63             24 23      0
///  ┌────────────────┬────────┐   The low bits of a key choose its set, the high bits are stored beside the count. Two keys
///  │ 40 bits of key │ count  │   that agree in both share a limit: with a secret hash, one pair in 2^53.
///  └────────────────┴────────┘
/// ```
#[derive(Debug, Default)]
#[repr(align(64))]
struct Set {
    places: [AtomicU64; 8],
}

const COUNT: u64 = 0xff_ffff;

/// Outcome of checking a limit.
#[derive(Debug)]
pub(crate) enum ConcurrencyAdmission {
    /// The request counts until the ticket is dropped.
    Admit(Ticket),
    /// 429 (RFC 6585 section 4); when there will be room is unknown, so the time is fixed.
    Refuse { retry_after: Duration },
}

/// A counted request.
#[derive(Debug)]
#[must_use = "the request counts only as long as its ticket lives"]
pub(crate) struct Ticket {
    /// The table, the set and the entry. `None` if its key could not be stored.
    place: Option<(Rc<Concurrency>, u32, u8)>,
}

/// Position of a counted request in a table of at most 65,535 keys. Unlike a [`Ticket`], it does not refer to the
/// table.
#[derive(Debug)]
#[must_use = "the request counts until it leaves"]
pub(crate) struct Place(NonZeroU16);

impl Place {
    fn new(index: usize) -> Option<Self> {
        let number = u16::try_from(index + 1).ok();
        number.and_then(NonZeroU16::new).map(Self)
    }
}

impl Concurrency {
    pub(crate) fn new() -> Self {
        Self::with_room_for(CONCURRENCY_KEYS_MAX)
    }

    /// A table for `keys` keys, a power of two.
    pub(crate) fn with_room_for(keys: usize) -> Self {
        let sets = (keys / 8).next_power_of_two();
        Self {
            sets: (0..sets).map(|_| Set::default()).collect(),
        }
    }

    /// Counts a request unless its key has `requests_max` already. Limits above 2^24 cannot be reached, because each
    /// request has a connection.
    pub(crate) fn enter(
        self: &Rc<Self>,
        key: Key,
        requests_max: NonZeroU32,
    ) -> ConcurrencyAdmission {
        let requests_max = u64::from(requests_max.get()).min(COUNT);
        let set = key.number() as usize & (self.sets.len() - 1);
        for _ in 0..ADMIT_ATTEMPTS_MAX {
            let place = match self.sets[set].try_enter(key.number() & !COUNT, requests_max) {
                Some(Counted::At(place)) => Some((Rc::clone(self), set as u32, place)),
                Some(Counted::Nowhere) => None,
                Some(Counted::TooMany) => {
                    return ConcurrencyAdmission::Refuse {
                        retry_after: CONCURRENCY_RETRY_AFTER,
                    };
                }
                None => continue,
            };
            return ConcurrencyAdmission::Admit(Ticket { place });
        }
        // Other cores changed the entry each time, for requests of their own.
        ConcurrencyAdmission::Admit(Ticket { place: None })
    }

    /// Counts a request without a limit until it [leaves](Concurrency::leave). `None` if its key cannot be stored.
    pub(crate) fn count_one(&self, key: Key) -> Option<Place> {
        let set = key.number() as usize & (self.sets.len() - 1);
        let mut attempts =
            (0..ADMIT_ATTEMPTS_MAX).map(|_| self.sets[set].try_enter(key.number() & !COUNT, COUNT));
        match attempts.find_map(|counted| counted)? {
            Counted::At(place) => Place::new(set * 8 + usize::from(place)),
            Counted::Nowhere | Counted::TooMany => None,
        }
    }

    /// Uncounts a request.
    pub(crate) fn leave(&self, place: Place) {
        let place = usize::from(place.0.get() - 1);
        // The count is at least 1, for this request, so the bits of the key do not change.
        self.sets[place / 8].places[place % 8].fetch_sub(1, Relaxed);
    }

    pub(crate) fn requests(&self, key: Key) -> u32 {
        let set = key.number() as usize & (self.sets.len() - 1);
        let values = self.sets[set]
            .places
            .iter()
            .map(|place| place.load(Relaxed));
        let its = values.filter(|value| value & !COUNT == key.number() & !COUNT);
        its.map(|value| (value & COUNT) as u32).sum()
    }
}

/// Outcome of counting in a set.
enum Counted {
    /// Counted in this entry.
    At(u8),
    /// No entry is free for its key.
    Nowhere,
    TooMany,
}

impl Set {
    /// `None` if another core has changed the entry meanwhile.
    fn try_enter(&self, tag: u64, requests_max: u64) -> Option<Counted> {
        let mut free = None;
        for (place, value) in (0..).zip(self.places.iter().map(|place| place.load(Relaxed))) {
            let is_free = value & COUNT == 0;
            if value & !COUNT == tag && !is_free {
                if value & COUNT >= requests_max {
                    return Some(Counted::TooMany);
                }
                return self.take(place, value, value + 1);
            }
            if is_free && free.is_none() {
                free = Some((place, value));
            }
        }
        match free {
            Some((place, value)) => self.take(place, value, tag | 1),
            None => Some(Counted::Nowhere),
        }
    }

    fn take(&self, place: u8, from: u64, to: u64) -> Option<Counted> {
        let value = &self.places[usize::from(place)];
        value.compare_exchange(from, to, Relaxed, Relaxed).ok()?;
        Some(Counted::At(place))
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((table, set, place)) = &self.place {
            // The count is at least 1, for this request, so the bits of the key do not change.
            table.sets[*set as usize].places[usize::from(*place)].fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Keys;
    use super::*;

    const THREE: NonZeroU32 = NonZeroU32::new(3).expect("it is not 0");

    /// The tickets of as many requests of a key as are admitted.
    fn fill(table: &Rc<Concurrency>, key: Key, requests_max: u32) -> Vec<Ticket> {
        let requests_max = NonZeroU32::new(requests_max).expect("tests let somebody in");
        let entrances = (0..1000).map_while(|_| match table.enter(key, requests_max) {
            ConcurrencyAdmission::Admit(ticket) => Some(ticket),
            ConcurrencyAdmission::Refuse { .. } => None,
        });
        entrances.collect()
    }

    #[test]
    fn concurrency_is_limited_per_key() {
        let (table, keys) = (Rc::new(Concurrency::new()), Keys::default());
        for limit in 1..20 {
            let key = keys.route(u64::from(limit));
            let mut tickets = fill(&table, key, limit);
            assert_eq!(tickets.len(), limit as usize);
            assert_eq!(table.requests(key), limit);
            assert!(fill(&table, key, limit).is_empty());
            tickets.pop();
            assert_eq!(fill(&table, key, limit).len(), 1);
            drop(tickets);
            assert_eq!(fill(&table, key, limit).len(), limit as usize);
        }
    }

    #[test]
    fn concurrency_refusal_has_retry_after() {
        let (table, key) = (Rc::new(Concurrency::new()), Keys::default().route(1));
        let _tickets = fill(&table, key, 3);
        let ConcurrencyAdmission::Refuse { retry_after } = table.enter(key, THREE) else {
            panic!("three are in");
        };
        assert_eq!(retry_after, CONCURRENCY_RETRY_AFTER);
    }

    #[test]
    fn random_keys_do_not_affect_other_keys() {
        let (table, keys) = (Rc::new(Concurrency::with_room_for(64)), Keys::default());
        let greedy = keys.header(1, b"greedy");
        let held = fill(&table, greedy, 5);
        let made_up: Vec<Ticket> = (0..1000_u32)
            .filter_map(|number| fill(&table, keys.header(1, &number.to_be_bytes()), 1).pop())
            .collect();
        assert_eq!(made_up.len(), 1000, "each was alone with its key");
        assert!(fill(&table, greedy, 5).is_empty());
        assert!(!fill(&table, keys.header(1, b"fair"), 2).is_empty());
        drop((held, made_up));
        let places = table.sets.iter().flat_map(|set| &set.places);
        assert!(
            places
                .map(|place| place.load(Relaxed))
                .all(|value| value & COUNT == 0)
        );
    }

    #[test]
    fn concurrency_is_exact_across_cores() {
        let (table, key) = (Rc::new(Concurrency::new()), Keys::default().route(1));
        let running = AtomicU64::new(0);
        // Stored before the other threads start.
        let ConcurrencyAdmission::Admit(first) = table.enter(key, THREE) else {
            panic!("nobody is in");
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let (table, running) = ((*table).clone(), &running);
                scope.spawn(move || {
                    let table = Rc::new(table);
                    for _ in 0..20_000 {
                        if let ConcurrencyAdmission::Admit(_ticket) = table.enter(key, THREE) {
                            assert!(running.fetch_add(1, Relaxed) < 2);
                            running.fetch_sub(1, Relaxed);
                        }
                    }
                });
            }
        });
        drop(first);
        assert_eq!(fill(&table, key, 3).len(), 3);
    }
}
