//! Machine files in TOML. `docs/predict.md` describes the format.

use std::path::Path;

use toml::de::DeTable;

use super::machine::{Driver, Interface, Machine, Queue};
use super::wire::{LinkRate, MTU_MAX, MTU_MIN};
use crate::Error;
use crate::limits::{
    CLIENTS_MAX, CPU_NUMBER_MAX, EXPERIMENT_BYTES_MAX, PACKET_RATE_MAX, RECEIVE_QUEUES_MAX,
};
use crate::scenario::Role;
use crate::scenario::section::{At, Mistake, Read, Section, Source};
use onrush_machine::cpus::CpuSet;

const MACHINE_KEYS: &[&str] = &[
    "nodes",
    "application",
    "beside",
    "interface",
    "packets_per_s_max",
    "clients",
];
const BESIDE_KEYS: &[&str] = &["client", "proxy", "server", "control"];
const INTERFACE_KEYS: &[&str] = &[
    "name",
    "link",
    "mtu",
    "driver",
    "packets_per_s_max_each_way",
    "queues",
    "irq_cpus",
    "steering",
    "queue",
];
const QUEUE_KEYS: &[&str] = &["irq_cpu", "steering"];

const MTU_DEFAULT: u64 = 1_500;

/// Reads a machine file.
pub fn read(path: &Path) -> Result<Machine, Error> {
    let text = onrush_file::read_text(path, EXPERIMENT_BYTES_MAX)
        .map_err(|error| Error::Read(path.into(), error))?;
    Ok(parse(path, &text)?)
}

/// Parses a machine file; `path` is used in error messages.
fn parse(path: &Path, text: &str) -> Read<Machine> {
    let file = path.display().to_string();
    let source = Source { file: &file, text };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        source.mistake(at, error.message().trim_end().to_owned())
    })?;
    let section = Section::open(source, root.get_ref(), 0..0, MACHINE_KEYS)?;
    machine_of(&section)
}

pub(super) fn machine(source: Source<'_>, table: &At<&DeTable<'_>>) -> Read<Machine> {
    let section = Section::open(source, table.value, table.span.clone(), MACHINE_KEYS)?;
    machine_of(&section)
}

fn machine_of(section: &Section<'_>) -> Read<Machine> {
    let nodes = section.texts("nodes")?.ok_or_else(|| {
        section.missing(
            "nodes",
            "the CPUs of each node, such as [\"0-7\", \"8-15\"]",
        )
    })?;
    let mut sets = Vec::new();
    for node in &nodes {
        sets.push(cpus(section.source, node)?);
    }
    let first = nodes
        .first()
        .map_or(section.span.clone(), |node| node.span.clone());
    let mut machine = placed(section.source, first, Machine::of_nodes(sets))?;
    if let Some(application) = section.text("application")? {
        let set = cpus(section.source, &application)?;
        let made = machine.with_application(set);
        machine = placed(section.source, application.span, made)?;
    }
    if let Some(beside) = section.table("beside")? {
        let beside = Section::open(section.source, beside.value, beside.span, BESIDE_KEYS)?;
        for role in Role::ALL {
            if let Some(list) = beside.text(role.name())? {
                let set = cpus(section.source, &list)?;
                machine = placed(section.source, list.span, machine.with_program(role, set))?;
            }
        }
    }
    for table in section.tables("interface")? {
        let span = table.span.clone();
        let of_table = Section::open(section.source, table.value, table.span, INTERFACE_KEYS)?;
        let made = machine.with_interface(interface(&of_table)?);
        machine = placed(section.source, span, made)?;
    }
    let clients = section.count("clients", 1..CLIENTS_MAX + 1)?.unwrap_or(1);
    let packets_max = section.count("packets_per_s_max", 1..PACKET_RATE_MAX + 1)?;
    Ok(machine
        .with_clients(clients as u32)
        .with_packets_max(packets_max.map(|packets| packets as f64)))
}

fn interface(section: &Section<'_>) -> Read<Interface> {
    let link = match section.text("link")? {
        Some(link) => Some(placed(
            section.source,
            link.span,
            LinkRate::parse(&link.value),
        )?),
        None => None,
    };
    let packets_max = section.count("packets_per_s_max_each_way", 1..PACKET_RATE_MAX + 1)?;
    Ok(Interface {
        name: section
            .text("name")?
            .map_or("eth0".to_owned(), |name| name.value),
        link,
        mtu: section
            .count("mtu", MTU_MIN..MTU_MAX + 1)?
            .unwrap_or(MTU_DEFAULT),
        packets_max_each_way: packets_max.map(|packets| packets as f64),
        driver: driver(section)?,
        queues: queues(section)?,
    })
}

fn driver(section: &Section<'_>) -> Read<Driver> {
    let Some(driver) = section.text("driver")? else {
        return Ok(Driver::Native);
    };
    match driver.value.as_str() {
        "native" => Ok(Driver::Native),
        "paravirtual" => Ok(Driver::Paravirtual),
        other => Err(section.source.mistake(
            driver.span,
            format!("expected \"native\" or \"paravirtual\", found `{other}`"),
        )),
    }
}

/// Queues listed one by one, or identical queues with their interrupts assigned to CPUs in turn.
fn queues(section: &Section<'_>) -> Read<Vec<Queue>> {
    let tables = section.tables("queue")?;
    let irq_cpus = section.text("irq_cpus")?;
    let count = section.count("queues", 1..RECEIVE_QUEUES_MAX + 1)?;
    let steering = match section.text("steering")? {
        Some(list) => cpus(section.source, &list)?,
        None => CpuSet::default(),
    };
    if let (Some(table), true) = (tables.first(), irq_cpus.is_some() || count.is_some()) {
        let message =
            "[[queue]] gives the CPU of each queue: expected that or `irq_cpus`, not both";
        return Err(section.source.mistake(table.span.clone(), message));
    }
    let mut queues = Vec::new();
    for table in tables {
        let of_table = Section::open(section.source, table.value, table.span, QUEUE_KEYS)?;
        queues.push(queue(&of_table, &steering)?);
    }
    let Some(irq_cpus) = irq_cpus else {
        return match count {
            Some(_) => Err(section.missing("irq_cpus", "the CPUs that its queues interrupt")),
            None => Ok(queues),
        };
    };
    let set = cpus(section.source, &irq_cpus)?;
    let count = count.map_or(set.len(), |count| count as usize);
    let in_turn = set.iter().cycle().take(count);
    Ok(in_turn
        .map(|irq_cpu| Queue {
            irq_cpu,
            steering: steering.clone(),
        })
        .collect())
}

fn queue(section: &Section<'_>, steering_of_all: &CpuSet) -> Read<Queue> {
    let irq_cpu = section.count("irq_cpu", 0..CPU_NUMBER_MAX as u64 + 1)?;
    let irq_cpu = irq_cpu.ok_or_else(|| section.missing("irq_cpu", "the CPU it interrupts"))?;
    Ok(Queue {
        irq_cpu: irq_cpu as usize,
        steering: match section.text("steering")? {
            Some(list) => cpus(section.source, &list)?,
            None => steering_of_all.clone(),
        },
    })
}

fn cpus(source: Source<'_>, list: &At<String>) -> Read<CpuSet> {
    let cpus = CpuSet::parse_list(&list.value).ok_or_else(|| {
        format!(
            "`{}` is not a list of CPUs: expected numbers and ranges up to {CPU_NUMBER_MAX}, such as 0-3,8",
            list.value
        )
    });
    placed(source, list.span.clone(), cpus)
}

/// Adds the location of a value to an error message.
pub(super) fn placed<T>(
    source: Source<'_>,
    at: std::ops::Range<usize>,
    outcome: Result<T, String>,
) -> Result<T, Mistake> {
    outcome.map_err(|message| source.mistake(at, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Read<Machine> {
        parse(Path::new("m.toml"), text)
    }

    #[test]
    fn short_machine_file_is_parsed() {
        let machine = read_text(
            r#"
            nodes = ["0-15", "16-31"]
            packets_per_s_max = "2400k"
            beside = { client = "30-31" }
            [[interface]]
            link = "10G"
            irq_cpus = "0,16"
            queues = 4
            steering = "1-7"
            "#,
        )
        .expect("a machine");
        assert_eq!(machine.application().to_string(), "0-31");
        assert_eq!(machine.packets_max(), Some(2.4e6));
        let queues = &machine.interfaces()[0].queues;
        let irq_cpus: Vec<usize> = queues.iter().map(|queue| queue.irq_cpu).collect();
        assert_eq!(irq_cpus, [0, 16, 0, 16]);
        assert_eq!(queues[3].steering.to_string(), "1-7");
    }

    #[test]
    fn differing_queues_are_listed_individually() {
        let machine = read_text(
            r#"
            nodes = ["0-3"]
            application = "1-3"
            [[interface]]
            steering = "2"
            [[interface.queue]]
            irq_cpu = 0
            [[interface.queue]]
            irq_cpu = 1
            steering = "3"
            "#,
        )
        .expect("a machine");
        let steering = |at: usize| machine.interfaces()[0].queues[at].steering.to_string();
        assert_eq!((steering(0).as_str(), steering(1).as_str()), ("2", "3"));
    }

    #[test]
    fn invalid_value_error_has_position_and_expectation() {
        let interface = |line: &str| format!("nodes = [\"0-3\"]\n[[interface]]\n{line}\n");
        for (text, place, said) in [
            (String::new(), "m.toml:1:1:", "`nodes` is missing"),
            ("nodes = []".into(), "m.toml:1:1:", "without CPUs"),
            (
                "nodes = [\"0-1\", \"1\"]".into(),
                "m.toml:1:10:",
                "in two nodes",
            ),
            (
                "nodes = [\"0-\"]".into(),
                "m.toml:1:10:",
                "not a list of CPUs",
            ),
            (
                "nods = [\"0\"]".into(),
                "m.toml:1:1:",
                "did you mean `nodes`",
            ),
            (
                "nodes = [\"0\"]\napplication = \"1\"".into(),
                "m.toml:2:15:",
                "CPUs of its nodes",
            ),
            (
                "nodes = [\"0\"]\nclients = 0".into(),
                "m.toml:2:11:",
                "a whole number from 1",
            ),
            (
                "nodes = [\"0\"]\nbeside = { client = \"7\" }".into(),
                "m.toml:2:21:",
                "client is on CPU 7",
            ),
            (
                interface("link = \"fast\""),
                "m.toml:3:8:",
                "not a link rate",
            ),
            (interface("mtu = 67"), "m.toml:3:7:", "from 68 to 65535"),
            (
                interface("driver = \"xen\""),
                "m.toml:3:10:",
                "\"paravirtual\"",
            ),
            (
                interface("irq_cpus = \"4\""),
                "m.toml:2:1:",
                "an interrupt of eth0",
            ),
            (
                interface("irq_cpus = \"0\"\nsteering = \"3-4\""),
                "m.toml:2:1:",
                "packet steering of eth0",
            ),
            (
                interface("queues = 2"),
                "m.toml:2:1:",
                "`irq_cpus` is missing",
            ),
            (
                interface("queues = 2\n[[interface.queue]]\nirq_cpu = 0"),
                "m.toml:4:1:",
                "not both",
            ),
            (
                interface("[[interface.queue]]\nsteering = \"1\""),
                "m.toml:3:1:",
                "`irq_cpu` is missing",
            ),
        ] {
            let mistake = read_text(&text).expect_err(&text).to_string();
            assert!(
                mistake.starts_with(place) && mistake.contains(said),
                "{mistake}"
            );
        }
    }
}
