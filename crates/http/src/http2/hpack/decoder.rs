//! Decodes blocks to fields (RFC 7541 3, 6).

use super::block_cache::BlockCache;
use super::encoder::Indexing;
use super::error::Error;
use super::sensitivity::Sensitivity;
use super::static_table::{Entry, Name};
use super::table::{Field, Table};
use super::{huffman, integer};
use crate::http2::fields::FieldSection;
use crate::http2::flaw::{validate, value_of};
use crate::http2::limits::EXCESS_PER_BLOCK_MAX;
use crate::limits::{HPACK_COPIED_BYTES_MAX, HPACK_STRING_BYTES_KEPT, HPACK_TABLE_BYTES_INITIAL};

/// Decodes the blocks of one direction of a connection. It must get all of them, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// Maximum table size that a block may set.
    table_bytes_max: u32,
    /// Buffers for decoded strings and copied names; between two blocks <= HPACK_STRING_BYTES_KEPT each.
    name: Vec<u8>,
    value: Vec<u8>,
    last: Option<Box<BlockCache>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    Inserted,
    NotInserted,
    /// Not inserted, and must not be inserted by the next hops either (RFC 7541 6.2.3).
    NeverIndexed,
}

impl Decoder {
    /// Creates a decoder whose peer may use a table of `table_bytes_max` bytes, the value of our
    /// SETTINGS_HEADER_TABLE_SIZE. Until the peer acknowledges that by a first size update it may use 4096 bytes.
    pub fn new(table_bytes_max: u32) -> Decoder {
        let limit = table_bytes_max.max(HPACK_TABLE_BYTES_INITIAL);
        Decoder {
            table: Table::new(HPACK_TABLE_BYTES_INITIAL, limit),
            table_bytes_max,
            name: Vec::new(),
            value: Vec::new(),
            last: None,
        }
    }

    /// Decodes one complete block, HEADERS and its CONTINUATIONs, and replaces the contents of `section`. Fields that
    /// exceed `list_bytes_max` (RFC 9113 6.5.2) or are malformed are decoded and reported, but not stored.
    ///
    /// # Errors
    /// A connection error (RFC 9113 4.3): the tables of both ends differ from now on, also if the block was abandoned
    /// because it takes too much work. The contents of `section` are undefined.
    pub fn decode(
        &mut self,
        block: &[u8],
        list_bytes_max: u32,
        section: &mut FieldSection,
    ) -> Result<(), Error> {
        if let Some(last) = &self.last
            && last.put(block, list_bytes_max, section)
        {
            return Ok(());
        }
        let changes = self.table.changes();
        self.decode_anew(block, list_bytes_max, section)?;
        let last = self.last.get_or_insert_default();
        match changes == self.table.changes() {
            true => last.learn(block, list_bytes_max, section),
            false => last.forget(),
        }
        Ok(())
    }

    fn decode_anew(
        &mut self,
        block: &[u8],
        list_bytes_max: u32,
        section: &mut FieldSection,
    ) -> Result<(), Error> {
        section.begin(list_bytes_max);
        let mut copied_bytes = 0;
        let mut rest = self.size_updates(block)?;
        while let Some(&first) = rest.first() {
            rest = match first {
                0x80.. => self.indexed(rest, section)?,
                0x40..0x80 => {
                    self.literal(rest, 6, Literal::Inserted, &mut copied_bytes, section)?
                }
                0x20..0x40 => return Err(Error::SizeUpdateTooLate),
                0x10..0x20 => {
                    self.literal(rest, 4, Literal::NeverIndexed, &mut copied_bytes, section)?
                }
                0x00..0x10 => {
                    self.literal(rest, 4, Literal::NotInserted, &mut copied_bytes, section)?
                }
            };
            if section.excess() > EXCESS_PER_BLOCK_MAX {
                return Err(Error::TooMuchWork);
            }
        }
        section.add_excess((copied_bytes / 1024) as u32); // <= HPACK_COPIED_BYTES_MAX
        section.end();
        for room in [&mut self.name, &mut self.value] {
            if room.capacity() > HPACK_STRING_BYTES_KEPT {
                *room = Vec::new();
            }
        }
        Ok(())
    }

    /// Frees memory that the table's entries do not need.
    pub(crate) fn release_memory(&mut self) {
        self.table.compact();
        (self.name, self.value) = (Vec::new(), Vec::new());
        self.last = None;
    }

    /// Dynamic table size updates, at the start of a block only (RFC 7541 6.3).
    #[inline]
    fn size_updates<'b>(&mut self, mut block: &'b [u8]) -> Result<&'b [u8], Error> {
        while let Some(0x20..0x40) = block.first() {
            let (bytes_max, rest) = integer::decode(block, 5)?;
            if bytes_max > self.table_bytes_max {
                return Err(Error::SizeUpdateTooLarge);
            }
            self.table.set_bytes_max(bytes_max);
            block = rest;
        }
        Ok(block)
    }

    /// Indexed field (RFC 7541 6.1).
    #[inline]
    fn indexed<'b>(
        &mut self,
        block: &'b [u8],
        section: &mut FieldSection,
    ) -> Result<&'b [u8], Error> {
        let (index, rest) = integer::decode(block, 7)?;
        if let Some(entry) = Entry::of(index) {
            section.push_entry(entry);
            return Ok(rest);
        }
        let Field { name, value, flaw } = self.table.field(index).ok_or(Error::UnknownIndex)?;
        section.push(name, value, flaw);
        Ok(rest)
    }

    /// Literal field (RFC 7541 6.2).
    #[inline]
    fn literal<'b>(
        &mut self,
        block: &'b [u8],
        prefix_bits: u32,
        literal: Literal,
        copied_bytes: &mut usize,
        section: &mut FieldSection,
    ) -> Result<&'b [u8], Error> {
        let (index, rest) = integer::decode(block, prefix_bits)?;
        let (name, rest) = match index {
            0 => {
                let (text, rest) = string(rest, &mut self.name)?;
                (Name::of(text), rest)
            }
            1..=61 => {
                let entry = Entry::of(index).ok_or(Error::UnknownIndex)?;
                (Name::Known(entry.name()), rest)
            }
            _ => {
                let name = match self.table.field(index).ok_or(Error::UnknownIndex)?.name {
                    Name::Known(known) => Name::Known(known),
                    // Inserting this field may evict the entry (RFC 7541 4.4).
                    Name::Other(text) => {
                        *copied_bytes += text.len();
                        if *copied_bytes > HPACK_COPIED_BYTES_MAX {
                            return Err(Error::TooMuchWork);
                        }
                        self.name.clear();
                        self.name.extend_from_slice(text);
                        Name::Other(&self.name)
                    }
                };
                (name, rest)
            }
        };
        let (value, rest) = string(rest, &mut self.value)?;
        let flaw = validate(name, value_of(name, value));
        section.push(name, value, flaw);
        match literal {
            Literal::Inserted => self.table.insert(name, value, flaw),
            Literal::NeverIndexed if Indexing::of_name(name, value) != Indexing::Never => {
                section.set_sensitivity(Sensitivity::NeverIndexed);
            }
            Literal::NeverIndexed | Literal::NotInserted => {}
        }
        Ok(rest)
    }
}

/// Parses a string (RFC 7541 5.2); a Huffman string is decoded into `room`. Returns the string and the rest.
#[inline]
fn string<'s, 'b: 's>(
    block: &'b [u8],
    room: &'s mut Vec<u8>,
) -> Result<(&'s [u8], &'b [u8]), Error> {
    let is_huffman = block.first().is_some_and(|first| first & 0x80 != 0);
    let (bytes, rest) = integer::decode(block, 7)?;
    let (text, rest) = rest
        .split_at_checked(bytes as usize)
        .ok_or(Error::Truncated)?;
    if !is_huffman {
        return Ok((text, rest));
    }
    let bytes = huffman::decode(text, room)?;
    Ok((&room[..bytes], rest))
}
