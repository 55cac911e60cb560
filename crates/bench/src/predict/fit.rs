//! Estimates costs from published rows: each cost from the rows in which it was the bottleneck.
//!
//! If an interrupt's CPU was saturated, its time per packet is one second divided by the packets per second. If the
//! application's CPUs were saturated, the same holds for their time per request. Each such row is an equation in a few
//! costs, which are fitted to all of them ([`super::solve`]).

use super::cost::{Cost, PacketCost, RoleCost, growth};
use super::machine::{Driver, Machine};
use super::model::{Limiter, PacketParts, PacketWork};
use super::rows::{Counted, Load, Row, Subject, Transport};
use super::solve::{Equation, costs};

const MICROSECONDS: f64 = 1e6;

type Measured<'a> = (&'a Load, f64);

/// Costs of the load of another row estimated from `rows`, and its machine with the packet limit of its hardware.
pub(super) fn fit(rows: &[&Row], load: &Load) -> (Machine, Cost) {
    let packet = packet_cost(rows, load);
    let client = rows_of(rows, Limiter::Client, |other| other.client == load.client);
    let cost = Cost {
        application: application(rows, load, packet.as_ref()),
        connections: load.connections,
        exchange: load.exchange,
        packet,
        paravirtual_us: paravirtual(rows),
        client_rps_max: client
            .iter()
            .map(|(load, figure)| figure / f64::from(load.machine.clients()))
            .reduce(f64::max),
        ..Cost::default()
    };
    (with_packet_limit(rows, load), cost)
}

/// Rows with the bottleneck `limiter` whose load matches `counts`.
fn rows_of<'a>(
    rows: &[&'a Row],
    limiter: Limiter,
    counts: impl Fn(&Load) -> bool,
) -> Vec<Measured<'a>> {
    let measured = |row: &&'a Row| match &row.subject {
        Subject::Load(load) if row.full == Some(limiter) && counts(load) => {
            Some((&**load, row.figure))
        }
        Subject::Load(_) | Subject::Frames(_, _) => None,
    };
    rows.iter().filter_map(measured).collect()
}

/// Rows with the same hardware, or all rows if there are none: an estimate from other hardware is better than no limit.
fn of_hardware_or_any<'a>(all: Vec<Measured<'a>>, hardware: &str) -> Vec<Measured<'a>> {
    let own: Vec<Measured> = all
        .iter()
        .copied()
        .filter(|(load, _)| load.hardware == hardware)
        .collect();
    if own.is_empty() { all } else { own }
}

fn packet_cost(rows: &[&Row], load: &Load) -> Option<PacketCost> {
    let is_native = |load: &Load| {
        let interfaces = load.machine.interfaces();
        interfaces
            .iter()
            .all(|interface| interface.driver == Driver::Native)
    };
    let measured = rows_of(rows, Limiter::InterruptCpu, is_native);
    let equations: Vec<Equation> = of_hardware_or_any(measured, &load.hardware)
        .into_iter()
        .filter_map(interrupt_equation)
        .collect();
    if equations.is_empty() {
        return None;
    }
    // The additional cost of another node is a separate unknown, because it cannot be negative.
    let [driver_us, interrupt_us, far_more_us, stack_us] = costs(&equations)[..] else {
        return None;
    };
    Some(PacketCost {
        driver_us,
        stack_us,
        interrupt_us,
        far_interrupt_us: interrupt_us + far_more_us,
    })
}

/// Time per packet of the saturated interrupt CPU.
fn interrupt_equation((load, figure): Measured<'_>) -> Option<Equation> {
    let queues: Vec<_> = load
        .machine
        .interfaces()
        .iter()
        .flat_map(|interface| &interface.queues)
        .collect();
    let parts = PacketParts::of(&load.machine, queues.first()?);
    let packets = figure * load.exchange.packets_in / queues.len() as f64;
    Some(Equation {
        counts: vec![1.0, parts.near + parts.far, parts.far, parts.stack],
        total: parts.share * MICROSECONDS / packets,
    })
}

fn paravirtual(rows: &[&Row]) -> Option<f64> {
    let is_paravirtual = |load: &Load| {
        let interfaces = load.machine.interfaces();
        interfaces
            .iter()
            .any(|interface| interface.driver == Driver::Paravirtual)
    };
    let measured = rows_of(rows, Limiter::InterruptCpu, is_paravirtual);
    let packet_us = |(load, figure): &Measured| MICROSECONDS / (figure * load.exchange.packets_in);
    let sum: f64 = measured.iter().map(packet_us).sum();
    (!measured.is_empty()).then(|| sum / measured.len() as f64)
}

/// Cost of a request in the program under test; `None` if no row has it.
fn application(rows: &[&Row], load: &Load, packet: Option<&PacketCost>) -> Option<RoleCost> {
    let is_same = |other: &Load| other.software == load.software;
    let measured = rows_of(rows, Limiter::ApplicationCpus, is_same);
    let equations: Vec<Equation> = of_hardware_or_any(measured, &load.hardware)
        .into_iter()
        .filter_map(|measured| application_equation(measured, packet))
        .collect();
    let [base_us, growth_us, tls_us] = costs(&equations)[..] else {
        return None;
    };
    Some(RoleCost {
        base_us: match load.transport {
            Transport::Plain => base_us,
            Transport::Tls => base_us + tls_us,
        },
        growth_us,
        ..RoleCost::default()
    })
}

/// Time per request of the saturated application CPUs, without packet work on them.
fn application_equation(
    (load, figure): Measured<'_>,
    packet: Option<&PacketCost>,
) -> Option<Equation> {
    let cpus = load.machine.application();
    let cost = Cost {
        packet: packet.copied(),
        exchange: load.exchange,
        ..Cost::default()
    };
    let packets_us = PacketWork::of(&load.machine, &cost).on(cpus);
    let total = cpus.len() as f64 * MICROSECONDS / figure - packets_us;
    let tls = match load.transport {
        Transport::Plain => 0.0,
        Transport::Tls => 1.0,
    };
    (total > 0.0).then(|| Equation {
        counts: vec![1.0, growth(load.connections, cpus.len()), tls],
        total,
    })
}

/// The machine of a row with the highest packet rate of rows of the same hardware in which packets were the bottleneck.
fn with_packet_limit(rows: &[&Row], load: &Load) -> Machine {
    let of_kind = |counted| {
        rows_of(rows, Limiter::PacketLimit, |other| {
            other.hardware == load.hardware && other.counted == Some(counted)
        })
    };
    let together = of_kind(Counted::Together)
        .into_iter()
        .map(|(load, figure)| figure * (load.exchange.packets_in + load.exchange.packets_out))
        .reduce(f64::max);
    let each_way = of_kind(Counted::EachWay)
        .into_iter()
        .map(|(load, figure)| figure * load.exchange.packets_in.max(load.exchange.packets_out))
        .reduce(f64::max);
    let machine = load.machine.clone().with_packets_max(together);
    match each_way {
        Some(packets_max) => machine.with_packets_max_each_way(packets_max),
        None => machine,
    }
}
