//! The dynamic table (RFC 7541 2.3.2, 4).

use std::collections::VecDeque;

use super::static_table::{COUNT, Known, Name};
use crate::http2::flaw::FieldError;

/// Overhead of an entry (RFC 7541 4.1).
const ENTRY_OVERHEAD: u32 = 32;

/// A ring buffer of contiguous entries:
///
/// ```text
///  0        end            start                 2 * limit
///  |newest  |    free      |oldest ...    |unused|
/// ```
///
/// An entry that does not fit after the newest is placed at 0. This never overwrites a live entry: all entries
/// including the new one have at most `limit` bytes, half of the buffer.
#[derive(Debug)]
pub(super) struct Table {
    /// Grows to 2 * `limit`.
    bytes: Vec<u8>,
    /// Newest first.
    entries: VecDeque<Entry>,
    /// End of the newest entry's bytes.
    end: usize,
    /// Sum of the entries' sizes; <= `bytes_max`.
    size: u32,
    /// <= `limit`.
    bytes_max: u32,
    /// Upper bound of `bytes_max`.
    limit: u32,
    /// Number of insertions. It is the number of the newest entry; an entry's number never changes.
    inserted: u32,
    changes: u64,
}

#[derive(Debug)]
struct Entry {
    /// Start of its name, or of its value if the name is in the static table and so not stored.
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
    known: Option<Known>,
    flaw: Option<FieldError>,
}

impl Entry {
    fn size(&self) -> u32 {
        self.name_bytes + self.value_bytes + ENTRY_OVERHEAD
    }

    fn bytes_kept(&self) -> usize {
        let name_bytes = match self.known {
            Some(_) => 0,
            None => self.name_bytes,
        };
        (name_bytes + self.value_bytes) as usize
    }
}

pub(super) struct Field<'t> {
    pub(super) name: Name<'t>,
    pub(super) value: &'t [u8],
    pub(super) flaw: Option<FieldError>,
}

impl Table {
    /// Creates an empty table with the current maximum `bytes_max` and the upper bound `limit`.
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

    /// Number of changes. While it is constant, an index refers to the same field.
    #[inline]
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    pub(super) fn bytes_max(&self) -> u32 {
        self.bytes_max
    }

    /// Sets the maximum, at most `limit`, and evicts the oldest entries if necessary (RFC 7541 4.3).
    pub(super) fn set_bytes_max(&mut self, bytes_max: u32) {
        debug_assert!(bytes_max <= self.limit);
        self.changes += 1;
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    /// Entry of the dynamic table; its indices follow the static table's.
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

    /// Inserts an entry (RFC 7541 4.4); an entry larger than the table clears it.
    #[inline]
    pub(super) fn insert(&mut self, name: Name<'_>, value: &[u8], flaw: Option<FieldError>) {
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

    /// Reserves bytes after the newest entry, or at the start.
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

    /// Evicts the oldest entries until the size is at most `bytes_max`.
    #[inline]
    fn evict(&mut self, bytes_max: u32) {
        while self.size > bytes_max {
            let oldest = self.entries.pop_back();
            self.size -= oldest.expect("`size` is the sum of the entries").size();
        }
        if self.entries.is_empty() {
            self.end = 0;
        }
    }

    /// Shrinks the memory to what the entries need.
    pub(super) fn compact(&mut self) {
        let mut bytes = Vec::new();
        // Stored consecutively, as if inserted into an empty table.
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

    pub(super) fn clear(&mut self) {
        self.evict(0);
        self.compact();
    }

    #[inline]
    pub(super) fn newest(&self) -> u32 {
        self.inserted
    }

    /// Index of the entry with this number, unless evicted.
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

    /// Tables compacted between blocks, at any position of their rings, equal tables that never are.
    #[test]
    fn compaction_preserves_dynamic_table() {
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
                    decoder.release_memory();
                }
                if number % (every * 5) == 0 {
                    encoder.release_memory();
                }
            }
        }
    }
}
