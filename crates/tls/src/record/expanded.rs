//! Expanded keys: the round keys and GCM tables of a cipher. They take 600 bytes per direction, more than the rest of
//! an idle TLS connection; the key itself has 32 bytes.
//!
//! Each thread therefore keeps them only for the keys it has used last, and expands a key again when it is used after
//! many others: 0.16 us per direction with AES, 0.05 us with ChaCha20.

use std::cell::RefCell;
use std::mem;

use aws_lc_rs::aead::LessSafeKey;

use crate::limits::EXPANDED_KEYS_MAX;

thread_local! {
    static EXPANDED: RefCell<Expanded> = const { RefCell::new(Expanded::new()) };
}

/// Position of the expanded form of one key on this thread. Dropping it frees the form.
pub(super) struct KeySlot {
    index: u32,
    /// Number of the entry; no two keys of a thread have the same one. Zero before the first use.
    number: u64,
}

impl KeySlot {
    /// Position of a key without an expanded form.
    pub(super) const EMPTY: KeySlot = KeySlot {
        index: u32::MAX,
        number: 0,
    };

    /// Runs `work` with the expanded form, which `expand` creates if it is not there.
    #[inline]
    pub(super) fn with<T>(
        &mut self,
        expand: impl FnOnce() -> LessSafeKey,
        work: impl FnOnce(&LessSafeKey) -> T,
    ) -> T {
        EXPANDED.with_borrow_mut(|expanded| {
            if !expanded.has(self) {
                (self.index, self.number) = expanded.put(expand());
                return work(expanded.key(self));
            }
            expanded.entries[self.index as usize].is_used_again = true;
            work(expanded.key(self))
        })
    }
}

impl Drop for KeySlot {
    fn drop(&mut self) {
        if self.number != 0 {
            // At the end of a thread the keys may be gone already.
            let _ = EXPANDED.try_with(|expanded| expanded.borrow_mut().forget(self));
        }
    }
}

/// Expanded keys of a thread, replaced by the clock algorithm.
struct Expanded {
    entries: Vec<Entry>,
    /// Entries without a key.
    unused: Vec<u32>,
    /// Next entry to examine for replacement.
    hand: usize,
    /// Last number assigned.
    number: u64,
}

struct Entry {
    /// Zero if and only if `key` is `None`.
    number: u64,
    key: Option<LessSafeKey>,
    /// Used again since it was added or last examined. Keys used only once, of idle connections, are replaced first.
    is_used_again: bool,
}

impl Expanded {
    const fn new() -> Self {
        Self {
            entries: Vec::new(),
            unused: Vec::new(),
            hand: 0,
            number: 0,
        }
    }

    fn has(&self, place: &KeySlot) -> bool {
        let entry = self.entries.get(place.index as usize);
        entry.is_some_and(|entry| entry.number == place.number)
    }

    fn key(&self, place: &KeySlot) -> &LessSafeKey {
        let entry = &self.entries[place.index as usize];
        entry.key.as_ref().expect("a number has a key")
    }

    /// Adds `key`, and returns its index and number.
    #[cold]
    fn put(&mut self, key: LessSafeKey) -> (u32, u64) {
        let index = self.room();
        self.number += 1;
        self.entries[index] = Entry {
            number: self.number,
            key: Some(key),
            is_used_again: false,
        };
        (index as u32, self.number)
    }

    /// Returns an entry for another key: an unused one, or that of a key not used for a whole round of the hand.
    fn room(&mut self) -> usize {
        if let Some(index) = self.unused.pop() {
            return index as usize;
        }
        if self.entries.len() < EXPANDED_KEYS_MAX {
            self.entries.push(Entry {
                number: 0,
                key: None,
                is_used_again: false,
            });
            return self.entries.len() - 1;
        }
        loop {
            let index = self.hand;
            self.hand = (index + 1) % self.entries.len();
            if !mem::take(&mut self.entries[index].is_used_again) {
                return index;
            }
        }
    }

    fn forget(&mut self, place: &KeySlot) {
        if self.has(place) {
            let entry = &mut self.entries[place.index as usize];
            entry.number = 0;
            entry.key = None;
            self.unused.push(place.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::aead::{AES_128_GCM, Aad, Nonce, UnboundKey};

    use super::*;

    fn key(byte: u8) -> LessSafeKey {
        LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[byte; 16]).unwrap())
    }

    /// Value that differs between keys.
    fn mark(key: &LessSafeKey) -> Vec<u8> {
        let nonce = Nonce::assume_unique_for_key([0; 12]);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut []);
        tag.unwrap().as_ref().to_vec()
    }

    fn kept() -> usize {
        EXPANDED.with_borrow(|expanded| {
            let entries = expanded.entries.iter();
            entries.filter(|entry| entry.key.is_some()).count()
        })
    }

    #[test]
    fn evicted_key_is_expanded_again() {
        let mut busy = KeySlot::EMPTY;
        let mut idle = KeySlot::EMPTY;
        let expected = (mark(&key(1)), mark(&key(2)));
        let mut others = Vec::new();
        for round in 0..3 * EXPANDED_KEYS_MAX {
            let expand = || {
                assert_eq!(round, 0, "it is used all the time");
                key(1)
            };
            assert_eq!(busy.with(expand, mark), expected.0);
            if round == 0 {
                assert_eq!(idle.with(|| key(2), mark), expected.1);
            }
            let mut other = KeySlot::EMPTY;
            other.with(|| key(3), |_| ());
            others.push(other);
        }
        assert_eq!(kept(), EXPANDED_KEYS_MAX);
        let mut is_expanded = false;
        let expand = || {
            is_expanded = true;
            key(2)
        };
        assert_eq!(idle.with(expand, mark), expected.1);
        assert!(is_expanded, "others had its room");
        drop((others, busy, idle));
        assert_eq!(kept(), 0, "what nobody can use is not kept");
    }

    #[test]
    fn stale_key_slot_does_not_use_new_key() {
        let mut first = KeySlot::EMPTY;
        first.with(|| key(1), |_| ());
        let index = first.index;
        let stale = KeySlot {
            index,
            number: first.number,
        };
        drop(first);
        let mut second = KeySlot::EMPTY;
        second.with(|| key(2), |_| ());
        assert_eq!(second.index, index);
        drop(stale);
        assert_eq!(second.with(|| key(9), mark), mark(&key(2)));
    }
}
