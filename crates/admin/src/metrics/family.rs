//! Metric families: a name, a help text, and series with labels.

use std::borrow::Cow;

use onrush_serve::Histogram;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Monotonic until the process ends.
    Counter,
    Gauge,
    Histogram,
}

/// Definition of one family over values of type `V`.
pub(super) struct Row<V> {
    /// Name without the prefix of its table.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) read: fn(&V) -> Values<'_>,
}

pub(super) type Labels<'v> = Vec<(&'static str, Cow<'v, str>)>;

/// Values of one object in a family: none, one, or one per value of an additional label.
pub(super) type Values<'v> = Vec<(Labels<'v>, Value<'v>)>;

#[derive(Debug)]
pub(super) enum Value<'v> {
    Number(f64),
    Histogram(Buckets<'v>),
}

/// A histogram with explicit bounds.
#[derive(Debug)]
pub(super) struct Buckets<'v> {
    /// Upper bounds in ascending order, with cumulative counts.
    pub(super) buckets: Vec<(f64, u64)>,
    pub(super) count: u64,
    pub(super) sum: f64,
    /// Source of the native histogram's buckets.
    pub(super) native: Option<&'v Histogram>,
}

#[derive(Debug)]
pub(super) struct Family<'v> {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
    pub(super) series: Vec<(Labels<'v>, Value<'v>)>,
}

#[derive(Default)]
pub(super) struct Families<'v>(Vec<Family<'v>>);

/// A single value without additional labels.
pub(super) fn single<'v>(number: impl Into<Number>) -> Values<'v> {
    vec![(Vec::new(), Value::Number(number.into().0))]
}

/// One value for each value of an additional label.
pub(super) fn labelled<'v, N: Into<Number>>(
    label: &'static str,
    values: impl IntoIterator<Item = (&'static str, N)>,
) -> Values<'v> {
    let values = values.into_iter();
    let labelled = values.map(|(text, number)| {
        let value = Value::Number(number.into().0);
        (vec![(label, text.into())], value)
    });
    labelled.collect()
}

/// A histogram of durations. It is omitted while empty: empty histograms would be most of a scrape.
pub(super) fn durations(histogram: &Histogram) -> Values<'_> {
    match histogram.count() {
        0 => Vec::new(),
        count => {
            let all = Buckets {
                buckets: histogram.octaves().collect(),
                count,
                sum: histogram.sum().as_secs_f64(),
                native: Some(histogram),
            };
            vec![(Vec::new(), Value::Histogram(all))]
        }
    }
}

/// A Prometheus sample value, which is a float: counts are exact up to 2^53.
pub(super) struct Number(f64);

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Number(number)
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Number(number as f64)
    }
}

impl From<bool> for Number {
    fn from(is_so: bool) -> Self {
        Number(f64::from(u8::from(is_so)))
    }
}

impl<'v> Families<'v> {
    /// Adds the families of a table, with a series for each object.
    pub(super) fn add<V: 'v>(
        &mut self,
        prefix: &str,
        table: &[Row<V>],
        things: impl IntoIterator<Item = (Labels<'v>, &'v V)>,
    ) {
        let things: Vec<(Labels<'v>, &'v V)> = things.into_iter().collect();
        self.0.extend(table.iter().map(|row| Family {
            name: format!("{prefix}{}", row.name),
            kind: row.kind,
            help: row.help,
            series: things.iter().flat_map(|thing| series(row, thing)).collect(),
        }));
    }

    pub(super) fn all(&self) -> &[Family<'v>] {
        &self.0
    }
}

fn series<'v, V: 'v>(
    row: &Row<V>,
    (labels, thing): &(Labels<'v>, &'v V),
) -> impl Iterator<Item = (Labels<'v>, Value<'v>)> {
    let values = (row.read)(thing).into_iter();
    values.map(|(further, value)| (labels.iter().cloned().chain(further).collect(), value))
}
