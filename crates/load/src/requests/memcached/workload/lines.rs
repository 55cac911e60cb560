//! Rendering of requests (memcached, doc/protocol.txt). Pure.

use super::{COUNTER, Key, KeySpace, Workload};
use crate::limits::KEY_BYTES_MAX;
use crate::requests::memcached::opaque::Opaque;
use crate::requests::memcached::ratio::Command;
use crate::requests::memcached::{CasUnique, Dialect};

pub(super) const END: &[u8] = b"\r\n";

/// Padding of keys between the letter and the digits.
static ZEROS: [u8; KEY_BYTES_MAX] = [b'0'; KEY_BYTES_MAX];

impl Workload {
    #[inline]
    pub(crate) fn write(&self, number: u64, out: &mut Vec<u8>) {
        let command = self.command(number);
        match self.dialect {
            Dialect::Text => self.write_text(command, number, out),
            Dialect::Meta | Dialect::MetaQuiet => {
                for index in 0..self.keys_of(command) {
                    let key = self.key(command, number, index);
                    self.write_meta(command, key, self.opaque(number, index), out);
                }
            }
        }
    }

    fn write_text(&self, command: Command, number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(match (command, self.versions) {
            (Command::Get, CasUnique::No) => b"get",
            (Command::Get, CasUnique::Yes) => b"gets",
            (Command::Set, _) => b"set",
            (Command::Delete, _) => b"delete",
            (Command::Increment, _) => b"incr",
        });
        for index in 0..self.keys_of(command) {
            out.push(b' ');
            self.write_key(self.key(command, number, index), out);
        }
        match command {
            Command::Get | Command::Delete => out.extend_from_slice(END),
            Command::Increment => out.extend_from_slice(b" 1\r\n"),
            Command::Set => {
                let key = self.key(command, number, 0);
                out.extend_from_slice(b" 0 ");
                write_number(self.expiry, out);
                out.push(b' ');
                write_number(self.value_bytes(key) as u64, out);
                out.extend_from_slice(END);
                self.write_value(key, out);
            }
        }
    }

    /// Appends the meta command for one key; a meta get has one key.
    pub(super) fn write_meta(&self, command: Command, key: Key, opaque: Opaque, out: &mut Vec<u8>) {
        out.extend_from_slice(match command {
            Command::Get => b"mg ",
            Command::Set => b"ms ",
            Command::Delete => b"md ",
            Command::Increment => b"ma ",
        });
        self.write_key(key, out);
        match (command, self.versions) {
            (Command::Get, CasUnique::No) => out.extend_from_slice(b" v"),
            (Command::Get, CasUnique::Yes) => out.extend_from_slice(b" v c"),
            (Command::Delete | Command::Increment, _) => {}
            (Command::Set, _) => {
                out.push(b' ');
                write_number(self.value_bytes(key) as u64, out);
                if self.expiry > 0 {
                    out.extend_from_slice(b" T");
                    write_number(self.expiry, out);
                }
            }
        }
        if self.dialect == Dialect::MetaQuiet {
            out.extend_from_slice(b" q");
        }
        out.extend_from_slice(b" O");
        out.extend_from_slice(&opaque.bytes());
        out.extend_from_slice(END);
        if command == Command::Set {
            self.write_value(key, out);
        }
    }

    fn write_value(&self, key: Key, out: &mut Vec<u8>) {
        match key.space {
            KeySpace::Stored | KeySpace::Absent => {
                self.values.write(key.number, self.value_bytes(key), out);
            }
            KeySpace::Counter => out.extend_from_slice(COUNTER),
        }
        out.extend_from_slice(END);
    }

    #[inline]
    pub(crate) fn write_key(&self, key: Key, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&ZEROS[..self.key_bytes(key.number)]);
        out[start] = key.space.letter();
        let (mut at, mut rest) = (out.len(), key.number);
        while rest > 0 {
            at -= 1;
            out[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }

    /// Returns the bytes after the requests of a batch.
    pub(crate) fn batch_end(&self) -> &'static [u8] {
        match self.dialect {
            Dialect::Text | Dialect::Meta => b"",
            Dialect::MetaQuiet => b"mn\r\n",
        }
    }
}

fn write_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
