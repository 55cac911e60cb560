//! Hash table from stream ids to slots, with chaining. Ids are two apart, so half the id is the hash, and concurrent
//! streams usually get a chain each. Removal stays fast with thousands of open streams.

/// The table; empty, it allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// First slot of each chain, or [`NONE`]. The length is 0 or a power of two, and at least the number of ids.
    heads: Vec<u32>,
    /// Indexed by slot.
    links: Vec<Link>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    /// 0 if unused.
    id: u32,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Minimum number of chains.
const HEADS_MIN: usize = 16;

impl Index {
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        if self.heads.is_empty() {
            return None;
        }
        let mut slot = self.heads[self.home(id)];
        while slot != NONE {
            let link = self.links[slot as usize];
            if link.id == id {
                return Some(slot);
            }
            slot = link.next;
        }
        None
    }

    /// Adds a new id in an unused slot.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32, slot: u32) {
        if self.links.len() <= slot as usize {
            let free = Link { id: 0, next: NONE };
            self.links.resize(slot as usize + 1, free);
        }
        self.count += 1;
        if self.count > self.heads.len() {
            self.grow();
        }
        self.place(id, slot);
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let home = self.home(id);
        let mut slot = self.heads[home];
        let mut before = NONE;
        while self.links[slot as usize].id != id {
            before = slot;
            slot = self.links[slot as usize].next;
        }
        let link = &mut self.links[slot as usize];
        let next = link.next;
        link.id = 0;
        match before {
            NONE => self.heads[home] = next,
            before => self.links[before as usize].next = next,
        }
        self.count -= 1;
    }

    #[inline]
    fn place(&mut self, id: u32, slot: u32) {
        let home = self.home(id);
        let next = self.heads[home];
        self.heads[home] = slot;
        self.links[slot as usize] = Link { id, next };
    }

    #[cold]
    fn grow(&mut self) {
        let length = (2 * self.heads.len()).max(HEADS_MIN);
        self.heads.clear();
        self.heads.resize(length, NONE);
        for slot in 0..self.links.len() {
            let id = self.links[slot].id;
            if id != 0 {
                self.place(id, slot as u32);
            }
        }
    }

    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.heads.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn index_agrees_with_btree_map(steps in proptest::collection::vec((1u32..200, any::<bool>()), 0..400)) {
            let mut index = Index::default();
            let mut map = BTreeMap::new();
            let mut free: Vec<u32> = (0..200).rev().collect();
            for (id, adds) in steps {
                match (adds, map.contains_key(&id)) {
                    (true, false) => {
                        let slot = free.pop().expect("there are as many as ids");
                        map.insert(id, slot);
                        index.insert(id, slot);
                    }
                    (false, true) => {
                        free.extend(map.remove(&id));
                        index.remove(id);
                    }
                    (true, true) | (false, false) => {}
                }
                for id in 1..200 {
                    prop_assert_eq!(index.find(id), map.get(&id).copied());
                }
            }
        }
    }
}
