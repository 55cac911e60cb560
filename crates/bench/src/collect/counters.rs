//! Counters at one moment by subject and measure, and the differences between two moments.
//!
//! A counter that decreased was reset (for example, an interface was recreated); a counter that disappeared ended with
//! its subject; a new one starts at 0. So differences are never negative, and the totals of a window are the sum of its
//! differences.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::outcome::BySubject;

/// Value of a counter at the time of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Count {
    /// Monotonic count: events, packets, bytes.
    Total(u64),
    /// Monotonic time; its difference is a share of the elapsed time.
    Time(Duration),
    /// Current value: sockets, bytes of memory, megahertz.
    Gauge(f64),
}

/// Values of all counters at the time of a sample.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters(BTreeMap<String, BTreeMap<Cow<'static, str>, Count>>);

impl Counters {
    /// Adds values of a subject.
    pub fn add<M: Into<Cow<'static, str>>>(
        &mut self,
        subject: impl Into<String>,
        values: impl IntoIterator<Item = (M, Count)>,
    ) {
        let measures = self.0.entry(subject.into()).or_default();
        measures.extend(values.into_iter().map(|(name, count)| (name.into(), count)));
    }

    /// One value.
    pub fn at(&self, subject: &str, measure: &str) -> Option<Count> {
        self.0.get(subject)?.get(measure).copied()
    }

    /// Changes since `before`: `NAME_per_s` for totals, `NAME` as a share of `span` for times, `NAME` for gauges. Zeros
    /// are left out, because most counters do not change.
    pub fn since(&self, before: &Counters, span: Duration) -> BySubject {
        let seconds = span.as_secs_f64().max(1e-9);
        let mut rates = BySubject::new();
        self.each_since(before, |subject, measure, grown| {
            let (name, value) = match grown {
                Count::Total(count) => (format!("{measure}_per_s"), count as f64 / seconds),
                Count::Time(time) => (measure.to_owned(), time.as_secs_f64() / seconds),
                Count::Gauge(value) => (measure.to_owned(), value),
            };
            if value != 0.0 {
                let measures = rates.entry(subject.to_owned()).or_default();
                measures.insert(name, value);
            }
        });
        rates
    }

    fn each_since(&self, before: &Counters, mut visit: impl FnMut(&str, &str, Count)) {
        for (subject, measures) in &self.0 {
            let then = before.0.get(subject);
            for (measure, now) in measures {
                let then = then.and_then(|then| then.get(measure)).copied();
                if let Some(grown) = grown(*now, then) {
                    visit(subject, measure, grown);
                }
            }
        }
    }
}

/// `None` if the counter decreased or changed its type.
fn grown(now: Count, then: Option<Count>) -> Option<Count> {
    match (now, then) {
        (now, None) => Some(now),
        (Count::Total(now), Some(Count::Total(then))) => now.checked_sub(then).map(Count::Total),
        (Count::Time(now), Some(Count::Time(then))) => now.checked_sub(then).map(Count::Time),
        (Count::Gauge(now), Some(Count::Gauge(_))) => Some(Count::Gauge(now)),
        (Count::Total(_) | Count::Time(_) | Count::Gauge(_), Some(_)) => None,
    }
}

/// Totals over a window.
#[derive(Debug, Clone, Default)]
pub struct Totals(BTreeMap<String, BTreeMap<String, Sum>>);

#[derive(Debug, Clone, Copy)]
enum Sum {
    Total(u64),
    Time(Duration),
    Gauge { sum: f64, readings: u32 },
}

impl Totals {
    /// Adds the changes between two moments of the window.
    pub fn add(&mut self, now: &Counters, before: &Counters) {
        now.each_since(before, |subject, measure, grown| {
            let measures = self.0.entry(subject.to_owned()).or_default();
            let sum = measures.get(measure).copied();
            let sum = match (grown, sum) {
                (Count::Total(more), Some(Sum::Total(sum))) => Sum::Total(sum.saturating_add(more)),
                (Count::Time(more), Some(Sum::Time(sum))) => Sum::Time(sum.saturating_add(more)),
                (Count::Gauge(value), Some(Sum::Gauge { sum, readings })) => Sum::Gauge {
                    sum: sum + value,
                    readings: readings.saturating_add(1),
                },
                (Count::Total(more), _) => Sum::Total(more),
                (Count::Time(more), _) => Sum::Time(more),
                (Count::Gauge(sum), _) => Sum::Gauge { sum, readings: 1 },
            };
            measures.insert(measure.to_owned(), sum);
        });
    }

    /// `NAME` for totals, `NAME_s` in seconds for times, the mean for gauges. Zeros are left out.
    pub fn by_subject(&self) -> BySubject {
        let mut all = BySubject::new();
        for (subject, measures) in &self.0 {
            for (measure, sum) in measures {
                let (name, value) = match *sum {
                    Sum::Total(sum) => (measure.clone(), sum as f64),
                    Sum::Time(sum) => (format!("{measure}_s"), sum.as_secs_f64()),
                    Sum::Gauge { sum, readings } => (measure.clone(), sum / f64::from(readings)),
                };
                if value != 0.0 {
                    let measures = all.entry(subject.clone()).or_default();
                    measures.insert(name, value);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(values: &[(&'static str, Count)]) -> Counters {
        let mut counters = Counters::default();
        counters.add("eth9", values.iter().copied());
        counters
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn counters_give_rates_shares_and_gauges() {
        let before = moment(&[
            ("packets", Count::Total(100)),
            ("throttled", Count::Time(SECOND)),
            ("sockets", Count::Gauge(7.0)),
            ("still", Count::Total(5)),
        ]);
        let now = moment(&[
            ("packets", Count::Total(300)),
            ("throttled", Count::Time(SECOND * 3 / 2)),
            ("sockets", Count::Gauge(9.0)),
            ("still", Count::Total(5)),
        ]);
        let rates = now.since(&before, SECOND * 2);
        let expected = [
            ("packets_per_s".to_owned(), 100.0),
            ("sockets".to_owned(), 9.0),
            ("throttled".to_owned(), 0.25),
        ];
        assert_eq!(rates["eth9"], BTreeMap::from(expected));

        let mut totals = Totals::default();
        totals.add(&before, &before);
        totals.add(&now, &before);
        let expected = [
            ("packets".to_owned(), 200.0),
            ("sockets".to_owned(), 8.0),
            ("throttled_s".to_owned(), 0.5),
        ];
        assert_eq!(totals.by_subject()["eth9"], BTreeMap::from(expected));
    }

    #[test]
    fn differences_are_never_negative() {
        let steps: [&[(&'static str, Count)]; 4] = [
            &[("packets", Count::Total(100))],
            &[("packets", Count::Total(150))],
            // The interface was removed and recreated with the same name.
            &[],
            &[("packets", Count::Total(20))],
        ];
        let moments = steps.map(moment);
        let mut totals = Totals::default();
        for pair in moments.windows(2) {
            totals.add(&pair[1], &pair[0]);
        }
        assert_eq!(totals.by_subject()["eth9"]["packets"], 70.0);
        assert!(moments[2].since(&moments[1], SECOND).is_empty());
        // Reset between two readings: the change is unknown.
        assert!(moments[3].since(&moments[1], SECOND).is_empty());
        let other_kind = moment(&[("packets", Count::Gauge(1.0))]);
        assert!(other_kind.since(&moments[0], SECOND).is_empty());
    }
}
