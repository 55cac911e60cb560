//! Items and counters of a listener on one core. The items are stored, or synthetic, where every key exists and nothing
//! is stored.

use onrush_config::plan::Memcached;

use super::item::{Expiry, Item, Moment, Seconds, value};
use super::store::Store;

/// Items of a listener on one core, which no other core accesses.
#[derive(Debug)]
pub(crate) struct Cache {
    items: Items,
    item_bytes_max: u32,
    /// CAS unique of the last change.
    cas: u64,
    pub(super) counts: Counts,
    began: Seconds,
}

#[derive(Debug)]
enum Items {
    Stored(Store),
    /// Every key has the first item. The second is a copy of it, which a command may change.
    Synthetic(Box<[Item; 2]>),
}

impl Items {
    fn find(&mut self, key: &[u8], now: Seconds) -> Option<&mut Item> {
        match self {
            Items::Stored(store) => store.find(key, now),
            Items::Synthetic(items) => {
                let [item, copy] = &mut **items;
                copy.clone_from(item);
                Some(copy)
            }
        }
    }
}

/// Counters of commands since the start or the last reset.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requested keys.
    pub(crate) gets: u64,
    pub(crate) get_hits: u64,
    pub(crate) sets: u64,
    pub(crate) touches: u64,
    pub(crate) touch_hits: u64,
    pub(crate) deletes: u64,
    pub(crate) delete_hits: u64,
    pub(crate) counts: u64,
    pub(crate) count_hits: u64,
    pub(crate) flushes: u64,
    pub(crate) metas: u64,
    pub(crate) stored: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StoreResult {
    /// Stored with this CAS unique.
    As(u64),
    /// The command's condition on the existence of the key is not met.
    Not,
    /// The CAS unique differs.
    Exists,
    NotFound,
}

impl Cache {
    pub(crate) fn new(plan: Memcached, now: Moment) -> Self {
        let (items, item_bytes_max) = match plan {
            Memcached::Stored {
                memory,
                item_bytes_max,
            } => (Items::Stored(Store::new(memory)), item_bytes_max),
            Memcached::Synthetic { value_bytes } => {
                let bytes = vec![b'x'; value_bytes as usize];
                let mut item = Item::new(value(&[&bytes]), 0, Expiry::Never);
                item.cas = 1;
                let items = Items::Synthetic(Box::new([item.clone(), item]));
                (items, onrush_config::limits::ITEM_BYTES_MAX)
            }
        };
        Self {
            items,
            item_bytes_max,
            cas: 0,
            counts: Counts::default(),
            began: now.seconds,
        }
    }

    pub(super) fn takes(&self, length: u32) -> bool {
        length <= self.item_bytes_max
    }

    pub(super) fn item_bytes_max(&self) -> u32 {
        self.item_bytes_max
    }

    pub(super) fn age(&self, now: Seconds) -> u64 {
        now.0.saturating_sub(self.began.0)
    }

    /// Returns the store, unless the items are synthetic.
    pub(super) fn store(&self) -> Option<&Store> {
        match &self.items {
            Items::Stored(store) => Some(store),
            Items::Synthetic(_) => None,
        }
    }

    pub(super) fn find(&mut self, key: &[u8], now: Seconds) -> Option<&mut Item> {
        self.items.find(key, now)
    }

    /// Finds an item for a get, and counts it.
    pub(super) fn get(&mut self, key: &[u8], now: Seconds) -> Option<&mut Item> {
        let Self { items, counts, .. } = self;
        counts.gets += 1;
        let found = items.find(key, now);
        counts.get_hits += u64::from(found.is_some());
        found
    }

    /// Stores an item under a key and returns its CAS unique.
    pub(super) fn set(&mut self, key: &[u8], item: Item, now: Seconds) -> StoreResult {
        self.cas += 1;
        let item = Item {
            cas: self.cas,
            accessed: now,
            ..item
        };
        self.counts.stored += 1;
        let is_stored = match &mut self.items {
            Items::Stored(store) => store.set(key, item, now),
            Items::Synthetic(_) => true,
        };
        match is_stored {
            true => StoreResult::As(self.cas),
            false => StoreResult::Not,
        }
    }

    /// Returns the CAS unique for a change in place.
    pub(super) fn next_cas(&mut self) -> u64 {
        self.cas += 1;
        self.cas
    }

    pub(super) fn remove(&mut self, key: &[u8], now: Seconds) -> bool {
        let is_there = self.find(key, now).is_some();
        if let Items::Stored(store) = &mut self.items {
            store.remove(key);
        }
        is_there
    }

    /// Invalidates all current items from `at` on.
    pub(super) fn flush(&mut self, at: Seconds) {
        // A flush changes all items.
        self.cas += 1;
        if let Items::Stored(store) = &mut self.items {
            store.flush(at);
        }
    }
}
