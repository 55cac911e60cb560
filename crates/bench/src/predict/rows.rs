//! Published measurements by others: `published.toml`, whose first lines explain its keys.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::cost::Exchange;
use super::machine::Machine;
use super::machine_file::{machine, placed};
use super::model::Limiter;
use super::wire::{FRAME_BYTES_MIN, LinkRate, MTU_MAX, Size};
use crate::limits::{CONNECTIONS_MAX, MESSAGE_BYTES_MAX, PACKETS_PER_REQUEST_MAX, RATE_MAX};
use crate::scenario::section::{Read, Section, Source};

const PUBLISHED: &str = include_str!("published.toml");

const FILE_KEYS: &[&str] = &["machine", "row"];
const ROW_KEYS: &[&str] = &[
    "table",
    "name",
    "figure",
    "full",
    "note",
    "limit",
    "hardware",
    "software",
    "client",
    "tls",
    "connections",
    "packets_in",
    "packets_out",
    "bytes_in",
    "bytes_out",
    "machine",
    "link",
    "frame_bytes",
];

/// One published figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Table of the figure.
    pub table: String,
    /// Name of the measurement.
    pub name: String,
    /// Requests per second, or the unit in `name`.
    pub figure: f64,
    /// The bottleneck; `None` if the source does not show it.
    pub full: Option<Limiter>,
    /// Note for readers; may be empty.
    pub note: String,
    /// Subject of the figure.
    pub subject: Subject,
}

impl Row {
    /// Whether the figure counts requests to a program rather than packets.
    pub fn is_of_requests(&self) -> bool {
        match &self.subject {
            Subject::Load(load) => load.software != "packets",
            Subject::Frames(_, _) => false,
        }
    }
}

/// Subject of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A machine under load.
    Load(Box<Load>),
    /// A link saturated with frames of one size.
    Frames(LinkRate, Size),
}

/// A machine under load.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// The machine without a packet limit, which comes from other rows.
    pub machine: Machine,
    /// Hardware with the same name has the same packet costs and packet limit.
    pub hardware: String,
    /// Programs with the same name have the same costs.
    pub software: String,
    /// Clients with the same name have the same maximum rate.
    pub client: String,
    /// Transport of the clients.
    pub transport: Transport,
    /// Concurrent connections.
    pub connections: u32,
    /// Network traffic of a request.
    pub exchange: Exchange,
    /// How the packet limit counts, if it was the bottleneck.
    pub counted: Option<Counted>,
}

/// Transport of the clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Plain TCP.
    Plain,
    /// TLS.
    Tls,
}

/// How a packet limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Per direction and interface.
    EachWay,
    /// Both directions and all interfaces together.
    Together,
}

/// The rows of the published tables, in order.
pub fn published() -> Vec<Row> {
    match read("published.toml", PUBLISHED) {
        Ok(rows) => rows,
        // The text is part of the program, and a test parses it.
        Err(mistake) => unreachable!("rows that ship: {mistake}"),
    }
}

fn read(file: &str, text: &str) -> Read<Vec<Row>> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.mistake(at, error.message().trim_end().to_owned())
    })?;
    let section = Section::open(source, root.get_ref(), 0..0, FILE_KEYS)?;
    let mut machines = BTreeMap::new();
    if let Some(tables) = section.table("machine")? {
        let names = Section::names(tables.value);
        let keys: Vec<&str> = names.iter().map(|name| name.value).collect();
        let all = Section::open(source, tables.value, tables.span.clone(), &keys)?;
        for name in keys {
            if let Some(table) = all.table(name)? {
                machines.insert(name, machine(source, &table)?);
            }
        }
    }
    let mut rows = Vec::new();
    for table in section.tables("row")? {
        let of_row = Section::open(source, table.value, table.span, ROW_KEYS)?;
        rows.push(row(&of_row, &machines)?);
    }
    Ok(rows)
}

fn row(section: &Section<'_>, machines: &BTreeMap<&str, Machine>) -> Read<Row> {
    let full = match section.text("full")? {
        Some(word) => Some(placed(section.source, word.span, limiter(&word.value))?),
        None => None,
    };
    let subject = match section.count("frame_bytes", FRAME_BYTES_MIN..MTU_MAX)? {
        Some(bytes) => {
            let link = needed(section, "link")?;
            let rate = placed(section.source, section.span.clone(), LinkRate::parse(&link))?;
            Subject::Frames(rate, Size::Frame(bytes))
        }
        None => Subject::Load(Box::new(load(section, machines)?)),
    };
    Ok(Row {
        table: needed(section, "table")?,
        name: needed(section, "name")?,
        figure: number(section, "figure", 1.0..=RATE_MAX)?
            .ok_or_else(|| section.missing("figure", "what was measured"))?,
        full,
        note: section
            .text("note")?
            .map(|note| note.value)
            .unwrap_or_default(),
        subject,
    })
}

fn load(section: &Section<'_>, machines: &BTreeMap<&str, Machine>) -> Read<Load> {
    let name = needed(section, "machine")?;
    let machine = machines
        .get(name.as_str())
        .ok_or_else(|| section.missing("machine", "the name of a [machine.NAME]"))?;
    let counted = match section.text("limit")?.map(|limit| limit.value).as_deref() {
        None => None,
        Some("each way") => Some(Counted::EachWay),
        Some("together") => Some(Counted::Together),
        Some(_) => return Err(section.missing("limit", "\"each way\" or \"together\"")),
    };
    let transport = match section
        .value("tls")
        .and_then(|value| value.get_ref().as_bool())
    {
        Some(true) => Transport::Tls,
        Some(false) | None => Transport::Plain,
    };
    let connections = section.count("connections", 1..CONNECTIONS_MAX + 1)?;
    Ok(Load {
        machine: machine.clone(),
        hardware: needed(section, "hardware")?,
        software: needed(section, "software")?,
        client: needed(section, "client")?,
        transport,
        connections: connections.unwrap_or(0) as u32,
        exchange: exchange(section)?,
        counted,
    })
}

/// Parses the network traffic of a request; the defaults are one packet and no bytes.
pub(super) fn exchange(section: &Section<'_>) -> Read<Exchange> {
    let packets = |key| number(section, key, 0.0..=PACKETS_PER_REQUEST_MAX);
    let bytes = |key| number(section, key, 0.0..=MESSAGE_BYTES_MAX);
    let default = Exchange::default();
    Ok(Exchange {
        packets_in: packets("packets_in")?.unwrap_or(default.packets_in),
        packets_out: packets("packets_out")?.unwrap_or(default.packets_out),
        bytes_in: bytes("bytes_in")?.unwrap_or(default.bytes_in),
        bytes_out: bytes("bytes_out")?.unwrap_or(default.bytes_out),
    })
}

pub(super) fn number(
    section: &Section<'_>,
    key: &str,
    bounds: std::ops::RangeInclusive<f64>,
) -> Read<Option<f64>> {
    match section.number(key)? {
        Some(number) if bounds.contains(&number.value) => Ok(Some(number.value)),
        Some(number) => Err(section.source.mistake(
            number.span,
            format!(
                "expected a number from {} to {}, found {}",
                bounds.start(),
                bounds.end(),
                number.value
            ),
        )),
        None => Ok(None),
    }
}

fn needed(section: &Section<'_>, key: &str) -> Read<String> {
    let text = section.text(key)?;
    text.map(|text| text.value)
        .ok_or_else(|| section.missing(key, "a string in quotes"))
}

fn limiter(word: &str) -> Result<Limiter, String> {
    let mut all = Limiter::ALL.into_iter();
    all.find(|limiter| limiter.name() == word).ok_or_else(|| {
        let names = Limiter::ALL.map(|limiter| format!("\"{limiter}\""));
        format!("expected one of {}, found `{word}`", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_rows_cover_three_tables() {
        let rows = published();
        let of = |table: &str| rows.iter().filter(|row| row.table == table).count();
        assert_eq!((of("B"), of("C"), of("D")), (13, 10, 13));
    }

    #[test]
    fn row_without_figure_or_known_limiter_is_rejected() {
        let row = |lines: &str| {
            let text = format!(
                "[[row]]\ntable = \"X\"\nname = \"x\"\nlink = \"1G\"\nframe_bytes = 64\n{lines}"
            );
            read("x.toml", &text)
        };
        assert_eq!(row("figure = 1_488_095").map(|rows| rows.len()), Ok(1));
        for (lines, said) in [
            ("", "`figure` is missing"),
            ("figure = 0", "expected a number from 1"),
            ("figure = 1\nfull = \"disk\"", "\"interrupt CPU\""),
        ] {
            let mistake = row(lines).expect_err(lines).to_string();
            assert!(mistake.contains(said), "{mistake}");
        }
    }
}
