//! From stream ids to slots: open addressing with linear probing. Ids come in steps of two, so half of an id is its hash,
//! and streams of one time lie side by side without a collision.

/// The table; nothing is allocated while it is empty.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// Ids and slots; id 0 is an empty place. The length is 0 or a power of two, at most half of it full, so that each
    /// search ends.
    places: Vec<(u32, u32)>,
    count: usize,
}

/// Places of the smallest table.
const PLACES_MIN: usize = 16;

impl Index {
    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let mut at = self.home(id);
        loop {
            match self.places[at] {
                (found, slot) if found == id => return Some(slot),
                (0, _) => return None,
                _ => at = self.behind(at),
            }
        }
    }

    /// Adds an id that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, id: u32, slot: u32) {
        if 2 * (self.count + 1) > self.places.len() {
            self.grow();
        }
        self.count += 1;
        self.place(id, slot);
    }

    /// Removes an id that is there. What stands behind it moves up, so that no search stops too early.
    #[inline]
    pub(crate) fn remove(&mut self, id: u32) {
        let mut hole = self.home(id);
        while self.places[hole].0 != id {
            hole = self.behind(hole);
        }
        self.count -= 1;
        let mut at = hole;
        loop {
            at = self.behind(at);
            let (other, _) = self.places[at];
            if other == 0 {
                break;
            }
            let mask = self.places.len() - 1;
            let distance = at.wrapping_sub(self.home(other)) & mask;
            if distance >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = self.places[at];
                hole = at;
            }
        }
        self.places[hole] = (0, 0);
    }

    #[inline]
    fn place(&mut self, id: u32, slot: u32) {
        let mut at = self.home(id);
        while self.places[at].0 != 0 {
            at = self.behind(at);
        }
        self.places[at] = (id, slot);
    }

    #[cold]
    fn grow(&mut self) {
        let length = (2 * self.places.len()).max(PLACES_MIN);
        let old = std::mem::replace(&mut self.places, vec![(0, 0); length]);
        for (id, slot) in old.into_iter().filter(|&(id, _)| id != 0) {
            self.place(id, slot);
        }
    }

    #[inline]
    fn home(&self, id: u32) -> usize {
        (id >> 1) as usize & (self.places.len() - 1)
    }

    #[inline]
    fn behind(&self, at: usize) -> usize {
        (at + 1) & (self.places.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(steps in proptest::collection::vec((1u32..200, any::<bool>()), 0..400)) {
            let mut index = Index::default();
            let mut map = BTreeMap::new();
            for (at, (id, adds)) in steps.into_iter().enumerate() {
                match (adds, map.contains_key(&id)) {
                    (true, false) => {
                        map.insert(id, at as u32);
                        index.insert(id, at as u32);
                    }
                    (false, true) => {
                        map.remove(&id);
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
