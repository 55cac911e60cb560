//! A reader of protocol buffer metrics that shares no code with the server's writer. It panics on anything unknown.

use std::collections::BTreeMap;

/// A series: its labels and values.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
    /// Histogram: cumulative buckets, native buckets (lower bound, upper bound, count), and count.
    pub(crate) classic: Vec<(f64, u64)>,
    pub(crate) native: Vec<(f64, f64, u64)>,
    pub(crate) count: u64,
}

/// Families by name, with their types (0 counter, 1 gauge, 4 histogram).
pub(crate) fn families(mut bytes: &[u8]) -> BTreeMap<String, (u64, Vec<Series>)> {
    let mut all = BTreeMap::new();
    while !bytes.is_empty() {
        let length = varint(&mut bytes) as usize;
        let (mut name, mut kind, mut series) = (String::new(), 0, Vec::new());
        for (number, field) in fields(take(&mut bytes, length)) {
            match number {
                1 => name = field.text(),
                2 => assert!(!field.bytes().is_empty()),
                3 => kind = field.number(),
                4 => series.push(metric(field.bytes())),
                other => panic!("a family has no field {other}"),
            }
        }
        assert!(
            all.insert(name.clone(), (kind, series)).is_none(),
            "{name} twice"
        );
    }
    all
}

fn metric(bytes: &[u8]) -> Series {
    let mut series = Series {
        labels: BTreeMap::new(),
        value: f64::NAN,
        classic: Vec::new(),
        native: Vec::new(),
        count: 0,
    };
    for (number, field) in fields(bytes) {
        match number {
            1 => {
                let pair: Vec<String> = fields(field.bytes())
                    .iter()
                    .map(|(_, it)| it.text())
                    .collect();
                series.labels.insert(pair[0].clone(), pair[1].clone());
            }
            2 | 3 => {
                let value = fields(field.bytes());
                assert_eq!(value[0].0, 1);
                series.value = value[0].1.double();
            }
            7 => histogram(field.bytes(), &mut series),
            other => panic!("a metric has no field {other}"),
        }
    }
    series
}

fn histogram(bytes: &[u8], series: &mut Series) {
    let (mut schema, mut zero, mut threshold) = (0, 0, 0.0);
    let (mut spans, mut deltas) = (Vec::new(), Vec::new());
    for (number, field) in fields(bytes) {
        match number {
            1 => series.count = field.number(),
            2 => series.value = field.double(),
            3 => {
                let bucket = fields(field.bytes());
                series
                    .classic
                    .push((bucket[1].1.double(), bucket[0].1.number()));
            }
            5 => schema = field.signed(),
            6 => threshold = field.double(),
            7 => zero = field.number(),
            12 => {
                let span = fields(field.bytes());
                spans.push((span[0].1.signed(), span[1].1.number()));
            }
            13 => {
                let mut packed = field.bytes();
                while !packed.is_empty() {
                    deltas.push(unzigzag(varint(&mut packed)));
                }
            }
            15 => assert!(fields(field.bytes())[0].1.number() > 1_600_000_000),
            other => panic!("a histogram has no field {other}"),
        }
    }
    if threshold == 0.0 {
        return;
    }
    let bound = |index: i64| (index as f64 / f64::from(1 << schema)).exp2();
    series.native.push((0.0, threshold, zero));
    let (mut index, mut count, mut deltas) = (0, 0, deltas.into_iter());
    for (offset, length) in spans {
        index += offset;
        for _ in 0..length {
            count += deltas.next().expect("one for each bucket");
            series
                .native
                .push((bound(index - 1), bound(index), count as u64));
            index += 1;
        }
    }
    assert_eq!(deltas.next(), None);
}

/// A field of a protocol buffer message: its number, and its value.
enum Field<'b> {
    Number(u64),
    Double(f64),
    Bytes(&'b [u8]),
}

impl Field<'_> {
    fn number(&self) -> u64 {
        match self {
            Field::Number(number) => *number,
            _ => panic!("no number"),
        }
    }

    fn signed(&self) -> i64 {
        unzigzag(self.number())
    }

    fn double(&self) -> f64 {
        match self {
            Field::Double(number) => *number,
            _ => panic!("no double"),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Field::Bytes(bytes) => bytes,
            _ => panic!("no bytes"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("text")
    }
}

fn unzigzag(number: u64) -> i64 {
    match number % 2 {
        0 => (number / 2) as i64,
        _ => -((number / 2) as i64) - 1,
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0.. {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        number += u64::from(byte % 128) << (7 * place);
        if byte < 128 {
            break;
        }
    }
    number
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    taken
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key % 8 {
            0 => Field::Number(varint(&mut bytes)),
            1 => Field::Double(f64::from_le_bytes(
                take(&mut bytes, 8).try_into().expect("eight"),
            )),
            2 => {
                let length = varint(&mut bytes) as usize;
                Field::Bytes(take(&mut bytes, length))
            }
            other => panic!("no wire type of ours: {other}"),
        };
        all.push((key / 8, field));
    }
    all
}
