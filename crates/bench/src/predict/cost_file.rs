//! Cost files in TOML, which complete or replace measured costs. `docs/predict.md` describes the format.

use std::path::Path;

use toml::de::DeTable;

use super::cost::{Cost, Exchange, PacketCost, RoleCost};
use super::rows::{exchange, number};
use crate::Error;
use crate::limits::{CONNECTIONS_MAX, COST_US_MAX, COST_US_MIN, EXPERIMENT_BYTES_MAX, RATE_MAX};
use crate::scenario::Role;
use crate::scenario::section::{Read, Section, Source};

const KEYS: &[&str] = &[
    "application_us",
    "growth_us",
    "crossing_us",
    "waking_us",
    "client_us",
    "connections",
    "client_rps_max",
    "packets_in",
    "packets_out",
    "bytes_in",
    "bytes_out",
    "driver_us",
    "stack_us",
    "interrupt_us",
    "far_interrupt_us",
    "paravirtual_us",
];

/// Content of a cost file; missing keys leave a cost unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct CostFile {
    application: Parts,
    client_us: Option<f64>,
    connections: Option<u32>,
    client_rps_max: Option<f64>,
    /// `None` if the file has no keys about packets and bytes of a request.
    exchange: Option<Exchange>,
    packet: PacketParts,
    paravirtual_us: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct Parts {
    base_us: Option<f64>,
    growth_us: Option<f64>,
    crossing_us: Option<f64>,
    waking_us: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
struct PacketParts {
    driver_us: Option<f64>,
    stack_us: Option<f64>,
    interrupt_us: Option<f64>,
    far_interrupt_us: Option<f64>,
}

impl CostFile {
    /// Reads a cost file.
    pub fn read(path: &Path) -> Result<CostFile, Error> {
        let text = onrush_file::read_text(path, EXPERIMENT_BYTES_MAX)
            .map_err(|error| Error::Read(path.into(), error))?;
        Ok(parse(&path.display().to_string(), &text)?)
    }

    /// Overrides `cost` with the values in the file.
    pub fn complete(&self, cost: &mut Cost) {
        if let Some(base_us) = self.application.base_us {
            cost.application = Some(RoleCost::fixed(base_us));
        }
        if let Some(application) = &mut cost.application {
            set(&mut application.growth_us, self.application.growth_us);
            set(&mut application.crossing_us, self.application.crossing_us);
            set(&mut application.waking_us, self.application.waking_us);
        }
        if let Some(client_us) = self.client_us {
            cost.other_programs
                .insert(Role::Client, RoleCost::fixed(client_us));
        }
        set(&mut cost.connections, self.connections);
        cost.client_rps_max = self.client_rps_max.or(cost.client_rps_max);
        set(&mut cost.exchange, self.exchange);
        cost.paravirtual_us = self.paravirtual_us.or(cost.paravirtual_us);
        if let Some(packet) = &mut cost.packet {
            self.packet.complete(packet);
        }
    }
}

impl PacketParts {
    fn complete(&self, packet: &mut PacketCost) {
        set(&mut packet.driver_us, self.driver_us);
        set(&mut packet.stack_us, self.stack_us);
        set(&mut packet.interrupt_us, self.interrupt_us);
        set(&mut packet.far_interrupt_us, self.far_interrupt_us);
        // Reaching another node is never cheaper.
        packet.far_interrupt_us = packet.far_interrupt_us.max(packet.interrupt_us);
    }
}

/// Parses a time. A time below [`COST_US_MIN`] would predict an unbounded rate.
fn microseconds(section: &Section<'_>, key: &str) -> Read<Option<f64>> {
    let value = number(section, key, 0.0..=COST_US_MAX)?;
    match section.number(key)? {
        Some(tiny) if tiny.value > 0.0 && tiny.value < COST_US_MIN => {
            let said = format!(
                "expected 0 or a number from {COST_US_MIN}, found {:e}",
                tiny.value
            );
            Err(section.source.mistake(tiny.span, said))
        }
        Some(_) | None => Ok(value),
    }
}

fn set<T: Copy>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn parse(file: &str, text: &str) -> Read<CostFile> {
    let source = Source { file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.mistake(at, error.message().trim_end().to_owned())
    })?;
    let section = Section::open(source, root.get_ref(), 0..0, KEYS)?;
    let us = |key| microseconds(&section, key);
    let says_exchange = KEYS
        .iter()
        .filter(|key| key.starts_with("packets_") || key.starts_with("bytes_"))
        .any(|key| section.value(key).is_some());
    let connections = section.count("connections", 1..CONNECTIONS_MAX + 1)?;
    Ok(CostFile {
        application: Parts {
            base_us: us("application_us")?,
            growth_us: us("growth_us")?,
            crossing_us: us("crossing_us")?,
            waking_us: us("waking_us")?,
        },
        client_us: us("client_us")?,
        connections: connections.map(|connections| connections as u32),
        client_rps_max: number(&section, "client_rps_max", 1.0..=RATE_MAX)?,
        exchange: match says_exchange {
            true => Some(exchange(&section)?),
            false => None,
        },
        packet: PacketParts {
            driver_us: us("driver_us")?,
            stack_us: us("stack_us")?,
            interrupt_us: us("interrupt_us")?,
            far_interrupt_us: us("far_interrupt_us")?,
        },
        paravirtual_us: us("paravirtual_us")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_file_overrides_only_listed_costs() {
        let file = parse(
            "c.toml",
            "application_us = 8\nstack_us = 1.5\npackets_in = 2",
        )
        .expect("costs");
        let packet = PacketCost {
            driver_us: 1.0,
            stack_us: 0.5,
            interrupt_us: 2.0,
            far_interrupt_us: 3.0,
        };
        let mut cost = Cost {
            packet: Some(packet),
            client_rps_max: Some(1e6),
            ..Cost::default()
        };
        file.complete(&mut cost);
        assert_eq!(cost.application, Some(RoleCost::fixed(8.0)));
        assert_eq!(
            cost.packet,
            Some(PacketCost {
                stack_us: 1.5,
                ..packet
            })
        );
        assert_eq!(
            (cost.exchange.packets_in, cost.exchange.packets_out),
            (2.0, 1.0)
        );
        assert_eq!(cost.client_rps_max, Some(1e6));
    }

    #[test]
    fn invalid_value_error_has_position_and_expectation() {
        for (text, said) in [
            ("aplication_us = 1", "did you mean `application_us`"),
            (
                "application_us = -1",
                "c.toml:1:18: expected a number from 0",
            ),
            (
                "application_us = \"8us\"",
                "expected a number, found string",
            ),
            (
                "client_us = 1e-308",
                "c.toml:1:13: expected 0 or a number from 0.000001, found 1e-308",
            ),
            ("connections = 0", "a whole number from 1"),
            ("packets_in = 1e9", "expected a number from 0 to 1000000"),
            ("a = ", "c.toml:1:"),
        ] {
            let mistake = parse("c.toml", text).expect_err(text).to_string();
            assert!(mistake.contains(said), "{mistake}");
        }
    }
}
