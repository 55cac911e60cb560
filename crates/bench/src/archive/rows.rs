//! Reads `raw.csv` of an earlier run: figures by work, point, variant and round.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use csv::StringRecord;
use serde::Serialize;

use super::read_error::ReadError;
use crate::limits::{ROUNDS_MAX, VALUE_MAX, VARIANT_ROWS_MAX};
use crate::scenario::{Metric, MetricKind, Role};

/// Required columns, in any order; others are allowed.
const COLUMNS: [&str; 9] = [
    "round",
    "work",
    "variant",
    "ours",
    "valid",
    "disturbed",
    "client_is_limit",
    "metric",
    "value",
];

/// Column of the sweep's point; missing without a sweep.
const POINT: &str = "point";

/// Column that marks trials with a rising or falling rate; missing in older results.
const UNSTEADY: &str = "unsteady";

/// Column that marks trials with a disturbed control client; missing in older results.
const CONTROL_DISTURBED: &str = "control_disturbed";

/// Identifies a series of measurements.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SeriesId {
    /// Name of the work.
    pub work: String,
    /// Point of a sweep, such as `connections=100 io=epoll`; empty without a sweep.
    pub point: String,
    /// Name of the variant.
    pub variant: String,
}

impl SeriesId {
    /// Work and point as in reports and in the keys of `environment.json`.
    pub fn place(&self) -> String {
        match self.point.is_empty() {
            true => self.work.clone(),
            false => format!("{} · {}", self.work, self.point),
        }
    }

    /// Whether both have the same work and point.
    pub fn is_same_work(&self, other: &SeriesId) -> bool {
        (&self.work, &self.point) == (&other.work, &other.point)
    }
}

impl fmt::Display for SeriesId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} / {}", self.place(), self.variant)
    }
}

/// One value of one round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Round {
    /// Number of the round, from 1.
    pub number: u32,
    /// The value.
    pub value: f64,
    /// Whether the trial was valid.
    pub is_valid: bool,
    /// Whether other programs used too much of the trial's CPUs.
    pub is_disturbed: bool,
    /// Whether the client was the bottleneck.
    pub is_client_limit: bool,
    /// Whether the rate rose or fell within the window.
    pub is_unsteady: bool,
    /// Whether the control client was disturbed.
    pub is_control_disturbed: bool,
}

/// A variant with all its measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantRows {
    /// Work, point and variant.
    pub subject: SeriesId,
    /// Whether comparisons judge this variant; if not, it is a reference.
    pub is_ours: bool,
    /// Rounds of each metric, in order.
    pub metrics: BTreeMap<String, Vec<Round>>,
}

/// Rounds of a metric that are usable for a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct UsableRounds {
    /// Number and value of each round, in order.
    pub rounds: Vec<(u32, f64)>,
    /// Number of all rounds.
    pub all: usize,
    /// The most common reason for unusable rounds, if there are any.
    pub without: Option<&'static str>,
}

impl VariantRows {
    /// Usable rounds of `metric`, by the same rules as for figures with a target: the trial is valid; other programs
    /// did not disturb it, except for memory; for rates and latencies, the client was not the bottleneck and the rate
    /// was steady.
    pub fn usable_rounds(&self, metric: &Metric) -> UsableRounds {
        let rounds = self.metrics.get(&metric.name()).map_or(&[][..], |all| all);
        let mut reasons: BTreeMap<&'static str, usize> = BTreeMap::new();
        let mut sound = Vec::new();
        for round in rounds {
            match unusable_reason(metric, round) {
                None => sound.push((round.number, round.value)),
                Some(why) => *reasons.entry(why).or_default() += 1,
            }
        }
        let most = reasons.into_iter().max_by_key(|(_, count)| *count);
        UsableRounds {
            rounds: sound,
            all: rounds.len(),
            without: most.map(|(why, _)| why),
        }
    }
}

fn unusable_reason(metric: &Metric, round: &Round) -> Option<&'static str> {
    let (is_rate_or_latency, is_memory) = match metric.metric_kind() {
        MetricKind::Rate | MetricKind::Latency => (true, false),
        MetricKind::Memory => (false, true),
        MetricKind::Cost | MetricKind::Count => (false, false),
    };
    if !round.is_valid {
        return Some("were invalid");
    }
    if round.is_disturbed && !is_memory {
        return Some("were disturbed by other programs");
    }
    let is_of_control = metric.role() == Some(Role::Control);
    if round.is_control_disturbed && is_of_control {
        return Some("had a disturbed control client");
    }
    if round.is_client_limit && is_rate_or_latency && !is_of_control {
        return Some("were limited by the client");
    }
    if round.is_unsteady && is_rate_or_latency {
        return Some("were not steady");
    }
    // Comparisons use logarithms.
    (round.value <= 0.0).then_some("are not above 0")
}

/// Content of a `raw.csv`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Variants in the order of the file.
    pub variants: Vec<VariantRows>,
}

impl Rows {
    /// Parses a `raw.csv` from `path`.
    ///
    /// # Errors
    /// Reports the line, its content and what was expected.
    pub fn parse(text: &str, path: &Path) -> Result<Rows, ReadError> {
        let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let columns = Columns::of(
            reader.headers().map_err(|error| unread(path, &error))?,
            path,
        )?;
        if !text.ends_with('\n') {
            let last = text.lines().count() as u64;
            let what = "the file ends within this line: it is truncated, or still being written";
            return Err(ReadError::line(path, last, what));
        }
        let mut rows = Rows::default();
        let mut places: BTreeMap<SeriesId, usize> = BTreeMap::new();
        for record in reader.records() {
            let record = record.map_err(|error| unread(path, &error))?;
            let line = record.position().map_or(0, csv::Position::line);
            let wrong = |what: String| ReadError::line(path, line, what);
            rows.take(&columns, &record, &mut places).map_err(wrong)?;
        }
        if rows.variants.is_empty() {
            let what = "the file has no rows: expected one for each metric of each round";
            return Err(ReadError::line(path, 1, what));
        }
        for rounds in rows
            .variants
            .iter_mut()
            .flat_map(|it| it.metrics.values_mut())
        {
            rounds.sort_by_key(|round| round.number);
        }
        Ok(rows)
    }

    fn take(
        &mut self,
        columns: &Columns,
        record: &StringRecord,
        places: &mut BTreeMap<SeriesId, usize>,
    ) -> Result<(), String> {
        let subject = columns.subject(record);
        let is_ours = columns.flag(record, "ours")?;
        let round = columns.round(record)?;
        let place = *places.entry(subject.clone()).or_insert(self.variants.len());
        if place == self.variants.len() {
            if place == VARIANT_ROWS_MAX {
                return Err(format!(
                    "more than {VARIANT_ROWS_MAX} variants of works: an experiment is limited to that number"
                ));
            }
            self.variants.push(VariantRows {
                subject,
                is_ours,
                metrics: BTreeMap::new(),
            });
        }
        let entrant = &mut self.variants[place];
        if entrant.is_ours != is_ours {
            return Err(format!(
                "{} is marked as ours in one line and as a peer's in another: expected the same in all",
                entrant.subject
            ));
        }
        let metric = columns.text(record, "metric");
        let rounds = entrant.metrics.entry(metric.to_owned()).or_default();
        if rounds.iter().any(|other| other.number == round.number) {
            return Err(format!(
                "round {} of {metric} of {} occurs twice: expected it once",
                round.number, entrant.subject
            ));
        }
        rounds.push(round);
        Ok(())
    }

    /// The variant with this subject.
    pub fn of(&self, subject: &SeriesId) -> Option<&VariantRows> {
        self.variants.iter().find(|it| it.subject == *subject)
    }

    /// References with the same work and point as `subject`.
    pub fn references(&self, subject: &SeriesId) -> impl Iterator<Item = &VariantRows> {
        let beside = self
            .variants
            .iter()
            .filter(|other| other.subject.is_same_work(subject));
        beside.filter(|other| !other.is_ours && other.subject != *subject)
    }
}

struct Columns(BTreeMap<&'static str, usize>);

impl Columns {
    fn of(head: &StringRecord, path: &Path) -> Result<Columns, ReadError> {
        let find = |name: &str| head.iter().position(|column| column == name);
        let mut found = BTreeMap::new();
        for name in COLUMNS {
            let Some(place) = find(name) else {
                let what = format!(
                    "column {name:?} is missing: expected at least {}",
                    COLUMNS.join(",")
                );
                return Err(ReadError::line(path, 1, what));
            };
            found.insert(name, place);
        }
        for name in [POINT, UNSTEADY, CONTROL_DISTURBED] {
            if let Some(place) = find(name) {
                found.insert(name, place);
            }
        }
        Ok(Columns(found))
    }

    /// Value of a column; empty if the column is missing.
    fn text<'record>(&self, record: &'record StringRecord, name: &str) -> &'record str {
        let place = self.0.get(name);
        place.and_then(|place| record.get(*place)).unwrap_or("")
    }

    fn subject(&self, record: &StringRecord) -> SeriesId {
        let [work, point, variant] =
            ["work", POINT, "variant"].map(|name| self.text(record, name).to_owned());
        SeriesId {
            work,
            point,
            variant,
        }
    }

    fn round(&self, record: &StringRecord) -> Result<Round, String> {
        let text = self.text(record, "round");
        let number = text.parse().ok();
        let number = number.filter(|number| (1..=ROUNDS_MAX).contains(number));
        let Some(number) = number else {
            return Err(format!(
                "round {text:?}: expected a whole number from 1 to {ROUNDS_MAX}"
            ));
        };
        let text = self.text(record, "value");
        let value = text.parse().ok();
        let value = value.filter(|value: &f64| value.abs() <= VALUE_MAX);
        let Some(value) = value else {
            return Err(format!("value {text:?}: expected a number such as 3.52"));
        };
        Ok(Round {
            number,
            value,
            is_valid: self.flag(record, "valid")?,
            is_disturbed: self.flag(record, "disturbed")?,
            is_client_limit: self.flag(record, "client_is_limit")?,
            is_unsteady: self.later_flag(record, UNSTEADY)?,
            is_control_disturbed: self.later_flag(record, CONTROL_DISTURBED)?,
        })
    }

    /// A flag that is false if the column is missing, as in older results.
    fn later_flag(&self, record: &StringRecord, name: &str) -> Result<bool, String> {
        Ok(self.0.contains_key(name) && self.flag(record, name)?)
    }

    fn flag(&self, record: &StringRecord, name: &str) -> Result<bool, String> {
        match self.text(record, name) {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("{name} {other:?}: expected true or false")),
        }
    }
}

fn unread(path: &Path, error: &csv::Error) -> ReadError {
    let line = error.position().map_or(1, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("{len} fields: expected {expected_len}, as in the first line"),
        _ => error.to_string(),
    };
    ReadError::line(path, line, what)
}

#[cfg(test)]
mod tests {
    use onrush_measure::random::Random;

    use super::*;

    const HEAD: &str =
        "round,at_s,work,variant,ours,valid,disturbed,client_is_limit,metric,value\n";

    fn parse(text: &str) -> Result<Rows, String> {
        Rows::parse(text, Path::new("raw.csv")).map_err(|error| error.to_string())
    }

    fn metric(name: &str) -> Metric {
        Metric::parse(name).expect("a metric")
    }

    #[test]
    fn columns_are_found_by_name() {
        let text = "value,metric,new,point,client_is_limit,disturbed,valid,ours,variant,work,round\n\
                    2.5,rps,x,io=epoll,false,false,true,true,\"a, b\",w,2\n\
                    1.5,rps,x,io=epoll,false,false,true,true,\"a, b\",w,1\n";
        let rows = parse(text).expect("a table");
        let entrant = &rows.variants[0];
        assert_eq!(entrant.subject.to_string(), "w · io=epoll / a, b");
        assert!(entrant.is_ours);
        let sound = entrant.usable_rounds(&metric("rps"));
        assert_eq!(sound.rounds, [(1, 1.5), (2, 2.5)]);
        assert_eq!((sound.all, sound.without), (2, None));
    }

    #[test]
    fn unusable_rounds_have_a_reason() {
        let row = |round: u32, flags: &str, metric: &str| {
            format!("{round},0,w,v,true,{flags},{metric},1\n")
        };
        let mut text = HEAD.to_owned();
        for name in [
            "rps",
            "server.cpu_us_per_request",
            "server.memory_per_connection",
        ] {
            text += &row(1, "true,false,false", name);
            text += &row(2, "false,false,false", name);
            text += &row(3, "true,true,false", name);
            text += &row(4, "true,false,true", name);
            text += &row(5, "true,false,true", name);
        }
        let rows = parse(&text).expect("a table");
        let sound = |name: &str| rows.variants[0].usable_rounds(&metric(name));
        let numbers = |name: &str| -> Vec<u32> {
            sound(name)
                .rounds
                .iter()
                .map(|(number, _)| *number)
                .collect()
        };
        assert_eq!(numbers("rps"), [1]);
        assert_eq!(sound("rps").without, Some("were limited by the client"));
        assert_eq!(numbers("server.cpu_us_per_request"), [1, 4, 5]);
        assert_eq!(numbers("server.memory_per_connection"), [1, 3, 4, 5]);
        assert_eq!(numbers("latency.mean"), [0; 0]);
    }

    #[test]
    fn unsteady_rate_excludes_rate_not_cost() {
        let head = HEAD.trim_end();
        let row = |round: u32, metric: &str, unsteady: &str| {
            format!("{round},0,w,v,true,true,false,false,{metric},1,{unsteady}\n")
        };
        let mut text = format!("{head},unsteady\n");
        for name in ["rps", "server.cpu_us_per_request"] {
            text += &row(1, name, "true");
            text += &row(2, name, "false");
        }
        let rows = parse(&text).expect("a table");
        let rate = rows.variants[0].usable_rounds(&metric("rps"));
        assert_eq!(
            (rate.rounds.len(), rate.without),
            (1, Some("were not steady"))
        );
        let cost = rows.variants[0].usable_rounds(&metric("server.cpu_us_per_request"));
        assert_eq!((cost.rounds.len(), cost.without), (2, None));
        let wrong = parse(&text.replace(",true\n", ",maybe\n")).expect_err("no mark");
        assert!(
            wrong.contains("unsteady \"maybe\": expected true or false"),
            "{wrong}"
        );
    }

    #[test]
    fn parse_errors_have_line_number() {
        let good = "1,0,w,v,true,true,false,false,rps,1\n";
        for (text, expected) in [
            (
                String::new(),
                "line 1: column \"round\" is missing: expected at least round,work,variant",
            ),
            (HEAD.to_owned(), "line 1: the file has no rows"),
            ("a,b\n".into(), "line 1: column \"round\" is missing"),
            (
                format!("{HEAD}{good}2,0,w,v,true,true,fal"),
                "line 3: the file ends within this line",
            ),
            (
                format!("{HEAD}{good}2,0,w,v,true,true\n"),
                "line 3: 6 fields: expected 10",
            ),
            (
                format!("{HEAD}{good}{good}"),
                "line 3: round 1 of rps of w / v occurs twice",
            ),
            (
                format!("{HEAD}{good}2,0,w,v,false,true,false,false,rps,1\n"),
                "line 3: w / v is marked as ours in one line",
            ),
            (
                format!("{HEAD}0,0,w,v,true,true,false,false,rps,1\n"),
                "line 2: round \"0\": expected a whole number from 1 to 1000",
            ),
            (
                format!("{HEAD}1,0,w,v,true,true,false,false,rps,NaN\n"),
                "line 2: value \"NaN\": expected a number",
            ),
            (
                format!("{HEAD}1,0,w,v,true,true,false,false,rps,1e999\n"),
                "line 2: value \"1e999\"",
            ),
            (
                format!("{HEAD}1,0,w,v,true,true,false,false,rps,1,5\n"),
                "line 2: 11 fields",
            ),
            (
                format!("{HEAD}1,0,w,v,true,yes,false,false,rps,1\n"),
                "line 2: valid \"yes\": expected true or false",
            ),
        ] {
            let said = parse(&text).expect_err(expected);
            assert!(said.starts_with(&format!("raw.csv, {expected}")), "{said}");
        }
    }

    #[test]
    fn truncated_file_never_yields_partial_rows() {
        let text = format!(
            "{HEAD}1,0,w,v,true,true,false,false,rps,123.5\n2,0,w,v,true,true,false,false,rps,124.5\n"
        );
        for cut in 0..text.len() {
            let Ok(rows) = parse(&text[..cut]) else {
                continue;
            };
            assert!(text[..cut].ends_with('\n'), "{cut}");
            assert_eq!(
                rows.variants[0].usable_rounds(&metric("rps")).rounds,
                [(1, 123.5)]
            );
        }
    }

    #[test]
    fn damaged_file_does_not_panic() {
        let row =
            |round: u32| format!("{round},0,\"w, x\",v,true,true,false,false,rps,{round}.5\n");
        let whole = HEAD.to_owned() + &(1..6).map(row).collect::<String>();
        let mut random = Random::new(5);
        let mut refused = 0;
        for _ in 0..2_000 {
            let mut bytes = whole.clone().into_bytes();
            for _ in 0..=random.below(3) {
                let at = random.below(bytes.len());
                bytes[at] = *b"\",\n\r-.9eaT\0 ;".get(random.below(14)).unwrap_or(&b'x');
            }
            match parse(&String::from_utf8(bytes).expect("all of it is ASCII")) {
                Ok(rows) => {
                    let rounds = rows
                        .variants
                        .iter()
                        .flat_map(|it| it.metrics.values().flatten());
                    assert!(
                        rounds
                            .clone()
                            .all(|it| it.value.is_finite() && it.number > 0)
                    );
                }
                Err(said) => {
                    refused += 1;
                    assert!(said.starts_with("raw.csv, line "), "{said}");
                }
            }
        }
        assert!((200..2_000).contains(&refused), "{refused}");
    }
}
