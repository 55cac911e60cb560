//! Items of one core within a memory limit. To make room, a hand moves around all items and removes the first that was
//! not requested since its last visit (the CLOCK algorithm). Expired items are removed in passing.

use indexmap::IndexMap;

use super::item::{Item, Seconds};

/// Items of one core, which no other thread accesses.
#[derive(Debug)]
pub(crate) struct Store {
    /// The hand moves over the indices. The last entry takes the index of a removed one.
    entries: IndexMap<Box<[u8]>, Entry>,
    /// Index of the next entry to visit.
    hand: usize,
    /// Invariant: the sum of the costs of all entries, and at most `memory`.
    bytes: u64,
    memory: u64,
    /// Items of an earlier era are invalid.
    generation: u32,
    /// When the next era begins, after a flush.
    next_era: Option<Seconds>,
    evicted: u64,
}

#[derive(Debug)]
struct Entry {
    item: Item,
    generation: u32,
    /// Whether it was requested since the hand's last visit.
    is_referenced: bool,
}

/// Number of bytes that an item takes besides its key and value: its entry, its index, and the allocator's overhead.
const COST: u64 = 160;

fn cost(key: &[u8], item: &Item) -> u64 {
    COST + key.len() as u64 + item.value.len() as u64
}

impl Store {
    pub(crate) fn new(memory: u64) -> Self {
        Self {
            entries: IndexMap::new(),
            hand: 0,
            bytes: 0,
            memory,
            generation: 0,
            next_era: None,
            evicted: 0,
        }
    }

    /// Finds the item of a key. Its value must be changed by [`Store::set`] only.
    pub(crate) fn find(&mut self, key: &[u8], now: Seconds) -> Option<&mut Item> {
        self.advance_generation(now);
        let era = self.generation;
        let place = self.entries.get_index_of(key)?;
        let entry = &self.entries[place];
        if entry.generation != era || entry.item.expiry.is_expired(now) {
            self.remove_at(place);
            return None;
        }
        let entry = &mut self.entries[place];
        entry.is_referenced = true;
        Some(&mut entry.item)
    }

    /// Stores an item under a key. Returns false if it exceeds the memory.
    #[must_use]
    pub(crate) fn set(&mut self, key: &[u8], item: Item, now: Seconds) -> bool {
        self.advance_generation(now);
        self.remove(key);
        let cost = cost(key, &item);
        if cost > self.memory {
            return false;
        }
        while self.bytes + cost > self.memory {
            self.evict(now);
        }
        self.bytes += cost;
        let entry = Entry {
            item,
            generation: self.generation,
            is_referenced: false,
        };
        self.entries.insert(key.into(), entry);
        true
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let place = self.entries.get_index_of(key);
        place.map(|place| self.remove_at(place)).is_some()
    }

    /// Invalidates all current items from `at` on.
    pub(crate) fn flush(&mut self, at: Seconds) {
        self.next_era = Some(at);
    }

    /// Returns the number of items, including expired ones.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    fn advance_generation(&mut self, now: Seconds) {
        if self.next_era.is_some_and(|at| at <= now) {
            self.next_era = None;
            self.generation = self.generation.wrapping_add(1);
        }
    }

    /// Removes one entry. There must be one: an item that fits in the memory lacks room only if there are others.
    fn evict(&mut self, now: Seconds) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            let is_over = entry.generation != self.generation || entry.item.expiry.is_expired(now);
            if !is_over && entry.is_referenced {
                entry.is_referenced = false;
                self.hand += 1;
                continue;
            }
            self.evicted += u64::from(!is_over);
            self.remove_at(self.hand);
            // The last entry now has this index; it is nearly always the most recent, and is passed over.
            self.hand += 1;
            return;
        }
    }

    fn remove_at(&mut self, place: usize) {
        if let Some((key, entry)) = self.entries.swap_remove_index(place) {
            self.bytes -= cost(&key, &entry.item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::item::{Expiry, value};

    const NOW: Seconds = Seconds(10);

    fn item(length: usize, expiry: Expiry) -> Item {
        Item::new(value(&[&vec![b'x'; length]]), 0, expiry)
    }

    fn filled(count: usize) -> Store {
        let mut store = Store::new(count as u64 * (COST + 4 + 102));
        for number in 0..count {
            let key = format!("{number:04}");
            assert!(store.set(key.as_bytes(), item(100, Expiry::Never), NOW));
        }
        assert_eq!((store.bytes(), store.len()), (store.memory(), count));
        store
    }

    #[test]
    fn unreferenced_items_are_evicted() {
        let mut store = filled(100);
        for number in 0..50 {
            assert!(store.find(format!("{number:04}").as_bytes(), NOW).is_some());
        }
        for number in 100..150 {
            let key = format!("{number:04}");
            assert!(store.set(key.as_bytes(), item(100, Expiry::Never), NOW));
            assert!(store.bytes() <= store.memory());
        }
        assert_eq!(store.evicted(), 50);
        let has = |number: usize, store: &mut Store| {
            store.find(format!("{number:04}").as_bytes(), NOW).is_some()
        };
        assert!((0..50).all(|number| has(number, &mut store)));
        // The most recent item takes the index of a removed one, so an unrequested one may be passed over.
        let old = (50..100).filter(|&number| has(number, &mut store)).count();
        assert!(old <= 1, "{old}");
    }

    #[test]
    fn item_memory_is_accounted_and_limited() {
        let mut store = filled(10);
        assert!(store.set(b"0000", item(300, Expiry::Never), NOW));
        assert!(store.bytes() <= store.memory() && store.len() < 10);
        assert!(!store.set(b"0000", item(100_000, Expiry::Never), NOW));
        assert!(
            store.find(b"0000", NOW).is_none(),
            "the old value is gone, too"
        );
        while store.len() > 0 {
            let key = store.entries.get_index(0).unwrap().0.clone();
            assert!(store.remove(&key));
        }
        assert_eq!(store.bytes(), 0);
    }

    #[test]
    fn expired_items_are_evicted_first() {
        let mut store = filled(10);
        store.find(b"0003", NOW).unwrap().expiry = Expiry::At(Seconds(11));
        for number in 0..10 {
            assert!(store.find(format!("{number:04}").as_bytes(), NOW).is_some());
        }
        let later = Seconds(11);
        assert!(store.set(b"0010", item(100, Expiry::Never), later));
        assert!(store.find(b"0003", later).is_none());
        // The hand first passed three items that had been requested.
        assert_eq!((store.evicted(), store.len()), (0, 10));
    }

    #[test]
    fn delayed_flush_takes_effect_on_time() {
        let mut store = filled(3);
        store.flush(Seconds(20));
        assert!(store.find(b"0001", Seconds(19)).is_some());
        assert!(store.find(b"0001", Seconds(20)).is_none());
        assert!(store.set(b"0001", item(1, Expiry::Never), Seconds(20)));
        assert!(store.find(b"0001", Seconds(20)).is_some());
        assert!(store.find(b"0002", Seconds(20)).is_none());
    }
}
