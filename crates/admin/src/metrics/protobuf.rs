//! Metrics as protocol buffers: `io.prometheus.client.MetricFamily` messages, each preceded by its length. Field
//! numbers come from `metrics.proto` in prometheus/client_model.
//!
//! Histograms of durations have classic and native buckets, so that a scraper may use either.

use std::time::Duration;

use onrush_serve::{Histogram, LOWEST_OCTAVE, NATIVE_SCHEMA, ProtobufWriter};

use super::family::{Buckets, Family, Kind, Labels, Value};

/// Writes all families. `started` is the creation time of counters and histograms, since the Unix epoch.
pub(super) fn write(families: &[Family<'_>], started: Duration) -> Vec<u8> {
    let mut stream = ProtobufWriter::default();
    for family in families {
        stream.delimited(|message| self::family(family, started, message));
    }
    stream.into_bytes()
}

fn family(family: &Family<'_>, started: Duration, message: &mut ProtobufWriter) {
    message.text(1, family.name.as_bytes());
    message.text(2, family.help.as_bytes());
    let kind = match family.kind {
        Kind::Counter => 0,
        Kind::Gauge => 1,
        Kind::Histogram => 4,
    };
    message.varint(3, kind);
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
}

fn write_labels(labels: &Labels<'_>, metric: &mut ProtobufWriter) {
    for (name, value) in labels {
        metric.message(1, |label| {
            label.text(1, name.as_bytes());
            label.text(2, value.as_bytes());
        });
    }
}

fn histogram(all: &Buckets<'_>, message: &mut ProtobufWriter) {
    message.varint(1, all.count);
    message.double(2, all.sum);
    for &(bound, count) in &all.buckets {
        message.message(3, |bucket| {
            bucket.varint(1, count);
            bucket.double(2, bound);
        });
    }
    if let Some(durations) = all.native {
        native(durations, message);
    }
}

fn native(durations: &Histogram, message: &mut ProtobufWriter) {
    let native = durations.native();
    message.signed(5, NATIVE_SCHEMA.into());
    message.double(6, f64::from(LOWEST_OCTAVE).exp2());
    message.varint(7, native.zero);
    for (offset, length) in native.spans {
        message.message(12, |span| {
            span.signed(1, offset.into());
            span.varint(2, length.into());
        });
    }
    message.packed_signed(13, native.deltas);
}

/// `google.protobuf.Timestamp`.
fn timestamp(since_1970: Duration, message: &mut ProtobufWriter) {
    message.varint(1, since_1970.as_secs());
    message.varint(2, since_1970.subsec_nanos().into());
}
