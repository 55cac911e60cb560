//! The dynamic table (RFC 7541 2.3.2, 4): the fields that both ends have agreed to remember, the newest first.

use std::collections::VecDeque;

use super::static_table::{COUNT, Known, Name};
use crate::http2::flaw::Flaw;

/// What the size of an entry has beside its bytes (RFC 7541 4.1).
const ENTRY_OVERHEAD: u32 = 32;

/// A ring of entries that are never cut:
///
/// ```text
///  0        end            start                 2 * limit
///  |newest  |    free      |oldest ...    |unused|
/// ```
///
/// An entry that does not fit behind the newest begins at 0. That is free: all entries together have at most `limit` bytes,
/// the new one with them, so of twice the room no live byte is in its way.
#[derive(Debug)]
pub(super) struct Table {
    /// Grows to 2 * `limit`.
    bytes: Vec<u8>,
    /// The newest first.
    entries: VecDeque<Entry>,
    /// Behind the newest entry's bytes.
    end: usize,
    /// The sum of the entries' sizes; <= `bytes_max`.
    size: u32,
    /// <= `limit`.
    bytes_max: u32,
    /// What `bytes_max` can ever be.
    limit: u32,
    /// Entries ever inserted: the newest is number `inserted`, so an entry has the same number all its life.
    inserted: u32,
    changes: u64,
}

#[derive(Debug)]
struct Entry {
    /// Its first byte: of its name, unless that is a known one, whose bytes are not kept.
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
    known: Option<Known>,
    flaw: Option<Flaw>,
}

impl Entry {
    fn size(&self) -> u32 {
        self.name_bytes + self.value_bytes + ENTRY_OVERHEAD
    }

    /// How many of them stand in the ring.
    fn bytes_kept(&self) -> usize {
        let name_bytes = match self.known {
            Some(_) => 0,
            None => self.name_bytes,
        };
        (name_bytes + self.value_bytes) as usize
    }
}

/// An entry to look at.
pub(super) struct Field<'t> {
    pub(super) name: Name<'t>,
    pub(super) value: &'t [u8],
    pub(super) flaw: Option<Flaw>,
}

impl Table {
    /// An empty one, which may have `bytes_max` now and `limit` at most.
    pub(super) fn new(bytes_max: u32, limit: u32) -> Table {
        debug_assert!(bytes_max <= limit);
        Table {
            bytes: Vec::new(),
            entries: VecDeque::new(),
            end: 0,
            size: 0,
            bytes_max,
            limit,
            inserted: 0,
            changes: 0,
        }
    }

    /// How often it has changed: as long as it does not, the same index is the same field.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn bytes_max(&self) -> u32 {
        self.bytes_max
    }

    /// Makes it smaller or larger, up to its limit; the oldest entries leave where they must (RFC 7541 4.3).
    pub(super) fn set_bytes_max(&mut self, bytes_max: u32) {
        debug_assert!(bytes_max <= self.limit);
        self.changes += 1;
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    /// The entry of an index behind those of the static table.
    #[inline]
    pub(super) fn field(&self, index: u32) -> Option<Field<'_>> {
        let age = (index as usize).checked_sub(COUNT + 1)?;
        let entry = self.entries.get(age)?;
        let start = entry.start as usize;
        let (name, start) = match entry.known {
            Some(known) => (Name::Known(known), start),
            None => {
                let end = start + entry.name_bytes as usize;
                (Name::Other(&self.bytes[start..end]), end)
            }
        };
        Some(Field {
            name,
            value: &self.bytes[start..start + entry.value_bytes as usize],
            flaw: entry.flaw,
        })
    }

    /// Inserts an entry (RFC 7541 4.4): one that does not fit empties the table.
    #[inline]
    pub(super) fn insert(&mut self, name: Name<'_>, value: &[u8], flaw: Option<Flaw>) {
        self.changes += 1;
        self.inserted = self.inserted.wrapping_add(1);
        let (name_bytes, value_bytes) = (name.bytes(), value.len());
        let size = name_bytes + value_bytes + ENTRY_OVERHEAD as usize;
        if size > self.bytes_max as usize {
            self.evict(0);
            return;
        }
        let size = size as u32; // <= bytes_max
        self.evict(self.bytes_max - size);
        let (known, kept) = match name {
            Name::Known(known) => (Some(known), b"".as_slice()),
            Name::Other(text) => (None, text),
        };
        let start = self.place(kept.len() + value_bytes);
        let (name_room, value_room) = self.bytes[start..self.end].split_at_mut(kept.len());
        name_room.copy_from_slice(kept);
        value_room.copy_from_slice(value);
        self.size += size;
        self.entries.push_front(Entry {
            start: start as u32, // < 2 * limit
            name_bytes: name_bytes as u32,
            value_bytes: value_bytes as u32,
            known,
            flaw,
        });
    }

    /// Room for so many bytes behind the newest entry, or at the front.
    #[inline]
    fn place(&mut self, bytes: usize) -> usize {
        if self.end + bytes > 2 * self.limit as usize {
            self.end = 0;
        }
        let start = self.end;
        self.end += bytes;
        if self.end > self.bytes.len() {
            self.bytes.resize(self.end, 0);
        }
        start
    }

    /// Takes the oldest away until the rest has `bytes_max` at most.
    #[inline]
    fn evict(&mut self, bytes_max: u32) {
        while self.size > bytes_max {
            let oldest = self.entries.pop_back();
            self.size -= oldest.expect("the sizes are those of the entries").size();
        }
        if self.entries.is_empty() {
            self.end = 0;
        }
    }

    /// Takes no more memory than the entries need.
    pub(super) fn compact(&mut self) {
        let mut bytes = Vec::new();
        // They stand one behind the other, as if they had come to an empty table.
        for entry in self.entries.iter_mut().rev() {
            let start = entry.start as usize;
            entry.start = bytes.len() as u32; // <= limit
            bytes.extend_from_slice(&self.bytes[start..start + entry.bytes_kept()]);
        }
        bytes.shrink_to_fit();
        self.end = bytes.len();
        self.bytes = bytes;
        self.entries.shrink_to_fit();
    }

    /// Empties it.
    pub(super) fn clear(&mut self) {
        self.evict(0);
        self.compact();
    }

    /// The number of the newest entry.
    #[inline]
    pub(super) fn newest(&self) -> u32 {
        self.inserted
    }

    /// The index of the entry of this number, if it is still there.
    #[inline]
    pub(super) fn index_of(&self, number: u32) -> Option<u32> {
        let age = self.inserted.wrapping_sub(number);
        ((age as usize) < self.entries.len()).then_some(age + COUNT as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use crate::http2::fields::FieldSection;
    use crate::http2::hpack::{Decoder, Encoder, Indexing};

    /// Tables that rest between blocks, at any place of their rings, are the same as tables that never do.
    #[test]
    fn tables_that_rest_are_the_same_afterwards() {
        for every in [1, 3, 7, 40] {
            let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new(4096));
            let mut steady = Decoder::new(4096);
            let (mut section, mut wanted) = (FieldSection::default(), FieldSection::default());
            for number in 0_usize..500 {
                let (name, value) = (
                    format!("name-{}", number % 23),
                    "v".repeat(number * 7 % 300),
                );
                let mut block = Vec::new();
                encoder.begin(&mut block);
                for (name, value) in [
                    (&name[..], &value[..]),
                    ("server", "onrush"),
                    (":path", "/a"),
                ] {
                    encoder.field(
                        name.as_bytes(),
                        value.as_bytes(),
                        Indexing::Incremental,
                        &mut block,
                    );
                }
                for (decoder, section) in [(&mut decoder, &mut section), (&mut steady, &mut wanted)]
                {
                    decoder
                        .decode(&block, 4096, section)
                        .expect("it is in order");
                }
                assert!(section.iter().eq(wanted.iter()), "{number}");
                assert_eq!(section.iter().next(), Some((&name[..], value.as_bytes())));
                if number % every == 0 {
                    decoder.rest();
                }
                if number % (every * 5) == 0 {
                    encoder.rest();
                }
            }
        }
    }
}
