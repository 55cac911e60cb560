//! Encodes fields to blocks (RFC 7541 3, 6).

use super::sensitivity::Sensitivity;
use super::static_table::{self, Known, Name};
use super::table::Table;
use super::{huffman, integer};
use crate::limits::{
    HPACK_COOKIE_GUESSED_BYTES_MAX, HPACK_OWN_TABLE_BYTES_MAX, HPACK_TABLE_BYTES_INITIAL,
};

/// Encodes the blocks of one direction of a connection, in the order of sending.
///
/// For each block, call [`Encoder::begin`], then append its fields, pseudo-fields first.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// Table size that the next block sets, and the smallest size requested since the last one.
    bytes_max_next: u32,
    bytes_max_smallest: u32,
    /// Entry numbers by hash of name and value.
    pairs: EntryIndex,
    /// Entry numbers by hash of the name, for names that are not in the static table.
    names: EntryIndex,
    sensitivity: Sensitivity,
}

/// Indexing of a field that is in no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Insert it into the dynamic table.
    Incremental,
    /// Do not insert it.
    Without,
    /// No hop may insert it: a client that can add fields could otherwise guess its value by the length of compressed
    /// messages (RFC 7541 7.1.3).
    Never,
}

impl Indexing {
    /// Default for a field. Values that differ from message to message would evict constant ones; a password or a short
    /// cookie could be guessed.
    #[inline]
    pub fn of(name: &[u8], value: &[u8]) -> Indexing {
        Indexing::of_name(Name::of(name), value)
    }

    #[inline]
    pub(super) fn of_name(name: Name<'_>, value: &[u8]) -> Indexing {
        let Name::Known(known) = name else {
            return Indexing::Incremental;
        };
        match known {
            Known::AUTHORIZATION | Known::PROXY_AUTHORIZATION => Indexing::Never,
            Known::COOKIE if value.len() < HPACK_COOKIE_GUESSED_BYTES_MAX => Indexing::Never,
            Known::PATH
            | Known::AGE
            | Known::CONTENT_LENGTH
            | Known::CONTENT_RANGE
            | Known::ETAG
            | Known::EXPIRES
            | Known::IF_MODIFIED_SINCE
            | Known::IF_NONE_MATCH
            | Known::LAST_MODIFIED
            | Known::LOCATION
            | Known::RANGE
            | Known::SET_COOKIE => Indexing::Without,
            _ => Indexing::Incremental,
        }
    }
}

/// First byte of a literal field without the index of its name (RFC 7541 6.2).
#[derive(Clone, Copy)]
struct Literal {
    pattern: u8,
    prefix_bits: u32,
}

impl Literal {
    const INCREMENTAL: Literal = Literal {
        pattern: 0x40,
        prefix_bits: 6,
    };
    const WITHOUT: Literal = Literal {
        pattern: 0x00,
        prefix_bits: 4,
    };
    const NEVER: Literal = Literal {
        pattern: 0x10,
        prefix_bits: 4,
    };
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// Creates an encoder with the initial table size of 4096 bytes.
    pub fn new() -> Encoder {
        let bytes_max = HPACK_TABLE_BYTES_INITIAL;
        Encoder {
            table: Table::new(bytes_max, HPACK_OWN_TABLE_BYTES_MAX),
            bytes_max_next: bytes_max,
            bytes_max_smallest: bytes_max,
            pairs: EntryIndex::default(),
            names: EntryIndex::default(),
            sensitivity: Sensitivity::Unmarked,
        }
    }

    /// Number of changes of the table. While it is constant, the same fields have the same encoding.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.table.changes()
    }

    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE, up to our own maximum.
    pub fn set_table_bytes_max(&mut self, bytes: u32) {
        let bytes = bytes.min(HPACK_OWN_TABLE_BYTES_MAX);
        self.bytes_max_next = bytes;
        self.bytes_max_smallest = self.bytes_max_smallest.min(bytes);
    }

    /// Frees all memory. The next block clears the tables of both ends, at a cost of four bytes.
    pub(crate) fn release_memory(&mut self) {
        if self.pairs.places.is_empty() && self.names.places.is_empty() {
            return;
        }
        self.bytes_max_smallest = 0;
        self.table.clear();
        (self.pairs, self.names) = (EntryIndex::default(), EntryIndex::default());
    }

    /// Begins a block and appends pending size updates (RFC 7541 4.2).
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        self.sensitivity = Sensitivity::Unmarked;
        self.resize(self.bytes_max_smallest.min(self.table.bytes_max()), out);
        self.resize(self.bytes_max_next, out);
        self.bytes_max_smallest = self.bytes_max_next;
    }

    #[inline]
    fn resize(&mut self, bytes_max: u32, out: &mut Vec<u8>) {
        if bytes_max != self.table.bytes_max() {
            integer::encode(bytes_max, 5, 0x20, out);
            self.table.set_bytes_max(bytes_max);
        }
    }

    /// Sets the sensitivity of the fields that follow in this block; it takes precedence over their own indexing.
    #[inline]
    pub fn set_sensitivity(&mut self, sensitivity: Sensitivity) {
        self.sensitivity = sensitivity;
    }

    /// Appends a field. The name must be in lower case (RFC 9113 8.2.1), and the value must be trimmed and contain no
    /// control characters; neither is checked.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        self.put(Name::of(name), value, indexing, out);
    }

    /// Appends a field with the indexing of [`Indexing::of`].
    #[inline]
    pub fn field_with_default_indexing(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let name = Name::of(name);
        self.put(name, value, Indexing::of_name(name, value), out);
    }

    /// Appends `:status`, which must be 100 to 999.
    #[inline]
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        debug_assert!((100..=999).contains(&status));
        let index = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [status / 100, status / 10 % 10, status % 10];
                let digits = digits.map(|digit| b'0' + digit as u8);
                self.put(
                    Name::Known(Known::STATUS),
                    &digits,
                    Indexing::Incremental,
                    out,
                );
                return;
            }
        };
        out.push(0x80 | index);
    }

    #[inline]
    fn put(&mut self, name: Name<'_>, value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        if indexing == Indexing::Never || self.sensitivity == Sensitivity::NeverIndexed {
            return self.literal(Literal::NEVER, name, value, out);
        }
        if let Name::Known(known) = name
            && let Some(index) = static_table::index_of(known, value)
        {
            return integer::encode(index, 7, 0x80, out);
        }
        if indexing == Indexing::Without || !self.is_worth_a_place(name, value) {
            return self.literal(Literal::WITHOUT, name, value, out);
        }
        let hash_of_name = hash(name);
        let hash = fold(hash_of_name ^ hash_bytes(value));
        if let Some(index) = self.index_of(hash, name, value) {
            return integer::encode(index, 7, 0x80, out);
        }
        self.literal(Literal::INCREMENTAL, name, value, out);
        self.table.insert(name, value, None);
        self.pairs.put(hash, self.table.newest());
        if let Name::Other(_) = name {
            self.names.put(fold(hash_of_name), self.table.newest());
        }
    }

    /// A field of more than half of the table would evict everything else.
    #[inline]
    fn is_worth_a_place(&self, name: Name<'_>, value: &[u8]) -> bool {
        name.bytes() + value.len() < self.table.bytes_max() as usize / 2
    }

    /// Appends a literal field (RFC 7541 6.2).
    #[inline]
    fn literal(&self, literal: Literal, name: Name<'_>, value: &[u8], out: &mut Vec<u8>) {
        let Literal {
            pattern,
            prefix_bits,
        } = literal;
        match name {
            Name::Known(known) => integer::encode(known.index(), prefix_bits, pattern, out),
            Name::Other(text) => match self.index_of_name(name) {
                Some(index) => integer::encode(index, prefix_bits, pattern, out),
                None => {
                    out.push(pattern);
                    string(text, out);
                }
            },
        }
        string(value, out);
    }

    #[inline]
    fn index_of(&self, hash: u32, name: Name<'_>, value: &[u8]) -> Option<u32> {
        let indices = self
            .pairs
            .of(hash)
            .filter_map(|number| self.table.index_of(number));
        let mut same = indices.filter(|&index| {
            let found = self.table.field(index);
            found.is_some_and(|found| found.name == name && found.value == value)
        });
        same.next()
    }

    #[inline]
    fn index_of_name(&self, name: Name<'_>) -> Option<u32> {
        let numbers = self.names.of(fold(hash(name)));
        let indices = numbers.filter_map(|number| self.table.index_of(number));
        let mut same = indices.filter(|&index| {
            let found = self.table.field(index);
            found.is_some_and(|found| found.name == name)
        });
        same.next()
    }
}

/// Appends a string (RFC 7541 5.2), Huffman-coded if that is shorter.
#[inline]
fn string(text: &[u8], out: &mut Vec<u8>) {
    let bytes = huffman::encoded_bytes(text);
    // Lengths are below 2^32, because heads are bounded.
    if bytes < text.len() {
        integer::encode(bytes as u32, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len() as u32, 7, 0x00, out);
        out.extend_from_slice(text);
    }
}

/// Hash table of entry numbers, possibly evicted. A full bucket drops the oldest; its field is then inserted again.
#[derive(Debug, Default)]
struct EntryIndex {
    /// Allocated on the first insertion, which many connections never make.
    places: Vec<[Numbered; WAYS]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbered {
    hash: u32,
    /// 0 if unused; an empty table has no entry of that number.
    number: u32,
}

/// Number of entries per bucket. With one, two of a dozen fields usually collide and evict each other again and again.
const WAYS: usize = 4;

/// Number of buckets for the maximum number of entries in the table.
const PLACES: usize = HPACK_OWN_TABLE_BYTES_MAX as usize / 32 / WAYS;

impl EntryIndex {
    #[inline]
    fn of(&self, hash: u32) -> impl Iterator<Item = u32> {
        let place = self.places.get(hash as usize % PLACES);
        let all = place.map_or([].as_slice(), |place| place);
        let same = all.iter().filter(move |found| found.hash == hash);
        same.map(|found| found.number)
    }

    /// Adds the newest number at the front.
    #[inline]
    fn put(&mut self, hash: u32, number: u32) {
        if self.places.is_empty() {
            self.places.resize(PLACES, Default::default());
        }
        let place = &mut self.places[hash as usize % PLACES];
        // The one with the same hash is evicted, or is a name with an older value.
        let same = place.iter().position(|found| found.hash == hash);
        place[..=same.unwrap_or(WAYS - 1)].rotate_right(1);
        place[0] = Numbered { hash, number };
    }
}

#[inline]
fn hash(name: Name<'_>) -> u64 {
    match name {
        Name::Known(known) => u64::from(known.index()).wrapping_mul(MULTIPLIER),
        Name::Other(text) => hash_bytes(text).rotate_left(32),
    }
}

/// Odd, with about half of the bits set: the fraction of pi.
const MULTIPLIER: u64 = 0x243f_6a88_85a3_08d3;

/// Hashes eight bytes at a time. Its quality only affects the hit rate.
#[inline]
fn hash_bytes(text: &[u8]) -> u64 {
    let mut hash = text.len() as u64;
    let mut mix = |word: u64| hash = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        mix(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    hash
}

#[inline]
fn fold(hash: u64) -> u32 {
    (hash >> 32) as u32
}
