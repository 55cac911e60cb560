//! Families as protocol buffers: messages `io.prometheus.client.MetricFamily`, each behind its length. The numbers of fields
//! are those of `metrics.proto` in prometheus/client_model; the encoding is that of the protocol buffers' own documentation.
//!
//! Histograms of durations have both kinds of buckets, so that a scraper may keep either.

use std::time::Duration;

use onrush_serve::{Histogram, LOWEST_OCTAVE, NATIVE_SCHEMA};

use super::family::{Buckets, Family, Kind, Labels, Value};

/// All families; `started` is when their counts began, since 1970.
pub(super) fn write(families: &[Family<'_>], started: Duration) -> Vec<u8> {
    let mut stream = Message::default();
    for family in families {
        let message = self::family(family, started);
        stream.varint(message.0.len() as u64);
        stream.0.extend_from_slice(&message.0);
    }
    stream.0
}

fn family(family: &Family<'_>, started: Duration) -> Message {
    let mut message = Message::default();
    message.text(1, &family.name);
    message.text(2, family.help);
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    message.number(3, kind);
    for (labels, value) in &family.series {
        message.message(4, |metric| {
            write_labels(labels, metric);
            match (family.kind, value) {
                (Kind::Gauge, Value::Number(number)) => {
                    metric.message(2, |gauge| gauge.double(1, *number));
                }
                (_, Value::Number(number)) => metric.message(3, |counter| {
                    counter.double(1, *number);
                    counter.message(3, |time| timestamp(started, time));
                }),
                (_, Value::Histogram(all)) => metric.message(7, |it| {
                    histogram(all, it);
                    it.message(15, |time| timestamp(started, time));
                }),
            }
        });
    }
    message
}

fn write_labels(labels: &Labels<'_>, metric: &mut Message) {
    for (name, value) in labels {
        metric.message(1, |label| {
            label.text(1, name);
            label.text(2, value);
        });
    }
}

fn histogram(all: &Buckets<'_>, message: &mut Message) {
    message.number(1, all.count);
    message.double(2, all.sum);
    for &(bound, count) in &all.buckets {
        message.message(3, |bucket| {
            bucket.number(1, count);
            bucket.double(2, bound);
        });
    }
    if let Some(durations) = all.native {
        native(durations, message);
    }
}

fn native(durations: &Histogram, message: &mut Message) {
    let native = durations.native();
    message.signed(5, NATIVE_SCHEMA.into());
    message.double(6, f64::from(LOWEST_OCTAVE).exp2());
    message.number(7, native.zero);
    for (offset, length) in native.spans {
        message.message(12, |span| {
            span.signed(1, offset.into());
            span.number(2, length.into());
        });
    }
    message.message(13, |deltas| {
        for delta in native.deltas {
            deltas.varint(zigzag(delta));
        }
    });
}

/// `google.protobuf.Timestamp`.
fn timestamp(since_1970: Duration, message: &mut Message) {
    message.number(1, since_1970.as_secs());
    message.number(2, since_1970.subsec_nanos().into());
}

/// The bytes of a message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

/// How the value behind a key is encoded.
#[derive(Clone, Copy)]
enum Wire {
    Varint = 0,
    Bytes8 = 1,
    Length = 2,
}

impl Message {
    fn key(&mut self, field: u64, wire: Wire) {
        self.varint(field << 3 | wire as u64);
    }

    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn number(&mut self, field: u64, number: u64) {
        self.key(field, Wire::Varint);
        self.varint(number);
    }

    /// Of the types `sint32` and `sint64`.
    fn signed(&mut self, field: u64, number: i64) {
        self.number(field, zigzag(number));
    }

    fn double(&mut self, field: u64, number: f64) {
        self.key(field, Wire::Bytes8);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, Wire::Length);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// Numbers near zero have few bits, whatever their sign.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_encoded_as_the_documentation_of_protocol_buffers_has_them() {
        let bytes = |write: &dyn Fn(&mut Message)| {
            let mut message = Message::default();
            write(&mut message);
            message.0
        };
        // Its section "A Simple Message", "Length-Delimited Records" and the table of "Signed Integers".
        assert_eq!(bytes(&|it| it.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(bytes(&|it| it.text(2, "testing")), *b"\x12\x07testing");
        let submessage = bytes(&|it| it.message(3, |inner| inner.number(1, 150)));
        assert_eq!(submessage, [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let signed = [0, -1, 1, -2, 0x7fff_ffff, -0x8000_0000].map(zigzag);
        assert_eq!(signed, [0, 1, 2, 3, 0xffff_fffe, 0xffff_ffff]);
        assert_eq!(zigzag(i64::MIN), u64::MAX);
        assert_eq!(bytes(&|it| it.double(1, 1.0)), *b"\x09\0\0\0\0\0\0\xf0\x3f");
    }
}
