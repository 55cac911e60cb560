//! Protocol Buffers encoding (<https://protobuf.dev/programming-guides/encoding>): writer and reader for spans (OTLP),
//! metrics (`io.prometheus.client`) and health checks (`grpc.health.v1`).
//!
//! Messages are written field by field instead of with types generated from `.proto` files, which would be more code
//! than this file and copy every string first.

/// Encodes a message. A nested message is appended to the same buffer.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

/// Wire type of a field.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Wire {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
    Fixed32 = 5,
}

impl Writer {
    /// The bytes written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn varint_raw(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u32, wire: Wire) {
        self.varint_raw(u64::from(field) << 3 | wire as u64);
    }

    /// Types `uint64`, `int64` (not negative), `bool` and enumerations.
    pub fn varint(&mut self, field: u32, number: u64) {
        self.tag(field, Wire::Varint);
        self.varint_raw(number);
    }

    /// Types `sint32` and `sint64`.
    pub fn signed(&mut self, field: u32, number: i64) {
        self.varint(field, zigzag(number));
    }

    /// A packed field of type `sint64`.
    pub fn packed_signed(&mut self, field: u32, numbers: impl IntoIterator<Item = i64>) {
        self.message(field, |packed| {
            for number in numbers {
                packed.varint_raw(zigzag(number));
            }
        });
    }

    /// Type `double`.
    pub fn double(&mut self, field: u32, number: f64) {
        self.fixed64(field, number.to_bits());
    }

    /// Type `fixed64`.
    pub fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, Wire::Fixed64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Type `fixed32`.
    pub fn fixed32(&mut self, field: u32, number: u32) {
        self.tag(field, Wire::Fixed32);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Type `bytes`.
    pub fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, Wire::Bytes);
        self.varint_raw(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Type `string`. Bytes that are not UTF-8 become U+FFFD.
    pub fn text(&mut self, field: u32, text: &[u8]) {
        match str::from_utf8(text) {
            Ok(text) => self.bytes(field, text.as_bytes()),
            Err(_) => self.bytes(field, String::from_utf8_lossy(text).as_bytes()),
        }
    }

    /// A message within this one.
    pub fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.tag(field, Wire::Bytes);
        self.delimited(write);
    }

    /// A message preceded by its length, without a tag, as in a stream of messages.
    pub fn delimited(&mut self, write: impl FnOnce(&mut Self)) {
        // Reserve one byte for the length: nearly all messages are short.
        let start = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - start - 1;
        if length < 0x80 {
            self.0[start] = length as u8;
            return;
        }
        let mut prefix = Writer::default();
        prefix.varint_raw(length as u64);
        self.0.splice(start..=start, prefix.0);
    }
}

/// ZigZag encoding: numbers near zero, positive or negative, have few bits.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Value of a parsed field. Values of fixed length are skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value<'b> {
    Varint(u64),
    Bytes(&'b [u8]),
    Fixed,
}

/// The fields of a message in order, up to the first malformed one.
pub(crate) fn fields(mut rest: &[u8]) -> impl Iterator<Item = (u32, Value<'_>)> {
    std::iter::from_fn(move || {
        let tag = varint(&mut rest)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut rest)?),
            1 => take(&mut rest, 8).map(|_| Value::Fixed)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                Value::Bytes(take(&mut rest, length)?)
            }
            5 => take(&mut rest, 4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some((u32::try_from(tag >> 3).ok()?, value))
    })
}

fn take<'b>(rest: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, left) = rest.split_at_checked(count)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn protobuf_encoding_matches_documentation_example() {
        let mut writer = Writer::default();
        // Examples from the documentation of the encoding.
        writer.varint(1, 150);
        writer.text(2, b"testing");
        writer.message(3, |inner| inner.varint(1, 150));
        assert_eq!(writer.0, b"\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01");
        let mut writer = Writer::default();
        writer.fixed64(1, 1);
        writer.fixed32(2, 1);
        assert_eq!(writer.0, b"\x09\x01\0\0\0\0\0\0\0\x15\x01\0\0\0");
        let mut writer = Writer::default();
        writer.double(1, 1.0);
        assert_eq!(writer.0, b"\x09\0\0\0\0\0\0\xf0\x3f");
        // From its table of "Signed Integers".
        let signed = [0, -1, 1, -2, 0x7fff_ffff, -0x8000_0000].map(zigzag);
        assert_eq!(signed, [0, 1, 2, 3, 0xffff_fffe, 0xffff_ffff]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        let mut writer = Writer::default();
        writer.packed_signed(4, [0, -1, 64]);
        writer.signed(1, -2);
        assert_eq!(writer.0, b"\x22\x04\0\x01\x80\x01\x08\x03");
    }

    proptest! {
        #[test]
        fn protobuf_message_round_trips(number: u64, bytes: Vec<u8>, long in 0usize..40_000) {
            let mut writer = Writer::default();
            writer.varint(7, number);
            writer.message(300, |inner| {
                inner.bytes(1, &bytes);
                inner.message(2, |inner| inner.bytes(1, &vec![0; long]));
            });
            let all: Vec<_> = fields(&writer.0).collect();
            prop_assert_eq!(all.len(), 2);
            prop_assert_eq!(all[0], (7, Value::Varint(number)));
            let (300, Value::Bytes(inner)) = all[1] else { panic!("{all:?}") };
            let inner: Vec<_> = fields(inner).collect();
            prop_assert_eq!(inner[0], (1, Value::Bytes(&bytes)));
            let (2, Value::Bytes(inner)) = inner[1] else { panic!("{inner:?}") };
            prop_assert_eq!(fields(inner).next(), Some((1, Value::Bytes(&vec![0; long][..]))));
        }

        #[test]
        fn protobuf_reader_does_not_panic(bytes: Vec<u8>) {
            let _ = fields(&bytes).count();
        }
    }
}
