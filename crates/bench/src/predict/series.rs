//! Predicts rows of one run from each other: the same programs on this machine with other connections or CPUs.

use std::collections::BTreeMap;

use onrush_measure::compare::Rounds;

use super::cost::{Cost, Exchange, RoleCost, growth, waking};
use super::cross_validation::CrossValidated;
use super::machine::Machine;
use super::measured::{Disturbance, Measured, RoleMeasured};
use super::model::{cross_cpu_share, predict};
use super::solve::{Equation, costs};
use crate::scenario::Role;
use onrush_machine::cpus::CpuSet;

/// Predicts each row from the others of its series. Rows with the same connections and CPUs are left out together.
pub fn leave_one_out(rows: &[Measured]) -> Vec<CrossValidated<Measured>> {
    let check = |row: &Measured| {
        let others: Vec<&Measured> = rows
            .iter()
            .filter(|other| other.series == row.series && !is_same(other, row))
            .collect();
        let cost = cost_at(&others, row);
        let machine = machine_of(row);
        let prediction = machine
            .zip(cost)
            .and_then(|(machine, cost)| predict(&machine, &cost));
        CrossValidated {
            row: row.clone(),
            figure: row.rps,
            predicted: prediction.map(|prediction| (prediction.rps, prediction.limiter)),
        }
    };
    rows.iter().map(check).collect()
}

/// Cost of a request of `row` as measured. Its growth with connections and across CPUs comes from the other rows of its
/// series, if there are any.
pub fn cost_of(row: &Measured, rows: &[Measured]) -> Cost {
    let of_series: Vec<&Measured> = rows
        .iter()
        .filter(|other| other.series == row.series)
        .collect();
    let cost_of_role = |role: Role, measured: &RoleMeasured| {
        let fitted = role_cost(&of_series, role);
        let here = fitted
            .map(|fitted| fitted.at(row.connections, measured.cpus.len(), crossing(row, role)));
        match fitted.zip(here) {
            // The row gives the cost, and the other rows give its changes.
            Some((fitted, here)) => RoleCost {
                base_us: (fitted.base_us + measured.us - here).max(0.0),
                ..fitted
            },
            None => RoleCost::fixed(measured.us),
        }
    };
    let mut roles: BTreeMap<Role, RoleCost> = row
        .roles
        .iter()
        .map(|(role, measured)| (*role, cost_of_role(*role, measured)))
        .collect();
    Cost {
        application: roles.remove(&row.under_test),
        other_programs: roles,
        usable: match row.quiet {
            Disturbance::Undisturbed => cpu_share_used(row).map_or(1.0, |share| share.min(1.0)),
            // The share used by other programs here does not apply to another machine.
            Disturbance::Disturbed => 1.0,
        },
        connections: row.connections,
        exchange: exchange(row.under_test),
        ..Cost::default()
    }
}

/// Network traffic of a small request on a machine with this role: a proxy sends on what it receives.
fn exchange(role: Role) -> Exchange {
    let packets = match role {
        Role::Proxy => 2.0,
        Role::Client | Role::Server | Role::Control => 1.0,
    };
    Exchange {
        packets_in: packets,
        packets_out: packets,
        ..Exchange::default()
    }
}

/// The machine of a row: the CPUs of its roles, without a network.
pub fn machine_of(row: &Measured) -> Option<Machine> {
    let all = row
        .roles
        .values()
        .fold(CpuSet::default(), |all, role| all.union(&role.cpus));
    let mut machine = Machine::of_nodes(vec![all]).ok()?;
    for (role, measured) in &row.roles {
        let cpus = measured.cpus.clone();
        machine = match *role == row.under_test {
            true => machine.with_application(cpus).ok()?,
            false => machine.with_program(*role, cpus).ok()?,
        };
    }
    Some(machine)
}

/// Costs of the roles of `row` estimated from `others`; `None` if a role does not occur there.
fn cost_at(others: &[&Measured], row: &Measured) -> Option<Cost> {
    let mut roles = BTreeMap::new();
    for role in row.roles.keys() {
        roles.insert(*role, role_cost(others, *role)?);
    }
    let shares: Vec<f64> = others
        .iter()
        .filter_map(|other| cpu_share_used(other))
        .collect();
    Some(Cost {
        application: roles.remove(&row.under_test),
        other_programs: roles,
        usable: Rounds::of(&shares).map_or(1.0, |shares| shares.median),
        connections: row.connections,
        ..Cost::default()
    })
}

/// Share of their CPUs that the programs of a row used: its rate divided by the rate that its own costs permit.
fn cpu_share_used(row: &Measured) -> Option<f64> {
    let mut roles: BTreeMap<Role, RoleCost> = row
        .roles
        .iter()
        .map(|(role, measured)| (*role, RoleCost::fixed(measured.us)))
        .collect();
    let cost = Cost {
        application: roles.remove(&row.under_test),
        other_programs: roles,
        ..Cost::default()
    };
    Some(row.rps / predict(&machine_of(row)?, &cost)?.rps)
}

fn role_cost(rows: &[&Measured], role: Role) -> Option<RoleCost> {
    let equation = |row: &&Measured| {
        let measured = row.roles.get(&role)?;
        let cpus = measured.cpus.len();
        let crossing = crossing(row, role);
        let waking = crossing * waking(row.connections, cpus);
        (measured.us > 0.0).then(|| Equation {
            counts: vec![1.0, growth(row.connections, cpus), crossing, waking],
            total: measured.us,
        })
    };
    let equations: Vec<Equation> = rows.iter().filter_map(equation).collect();
    let [base_us, growth_us, crossing_us, waking_us] = costs(&equations)[..] else {
        return None;
    };
    Some(RoleCost {
        base_us,
        growth_us,
        crossing_us,
        waking_us,
    })
}

fn crossing(row: &Measured, role: Role) -> f64 {
    let Some(own) = row.roles.get(&role) else {
        return 0.0;
    };
    let others = row.roles.iter().filter(|(other, _)| **other != role);
    cross_cpu_share(&own.cpus, others.map(|(_, other)| &other.cpus))
}

fn is_same(a: &Measured, b: &Measured) -> bool {
    let cpus = |row: &Measured| -> Vec<CpuSet> {
        row.roles.values().map(|role| role.cpus.clone()).collect()
    };
    a.connections == b.connections && cpus(a) == cpus(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a server that costs 3 us, 1 us for the square root of 100 connections per CPU, 2 us for a client on the
    /// other CPU, and 40 us for a wake-up from there; the client costs the same.
    fn row(connections: u32, cpus: &str) -> Measured {
        let cpus = CpuSet::parse_list(cpus).expect("a list");
        let crossing = 1.0 - 1.0 / cpus.len() as f64;
        let woken = crossing * waking(connections, cpus.len());
        let us = 3.0 + growth(connections, cpus.len()) + 2.0 * crossing + 40.0 * woken;
        let role = RoleMeasured {
            cpus: cpus.clone(),
            us,
        };
        Measured {
            work: format!("{connections} on {cpus}"),
            variant: "v".to_owned(),
            series: "s".to_owned(),
            connections,
            under_test: Role::Server,
            roles: BTreeMap::from([(Role::Client, role.clone()), (Role::Server, role)]),
            rps: 0.9 * cpus.len() as f64 * 1e6 / (2.0 * us),
            quiet: Disturbance::Undisturbed,
        }
    }

    #[test]
    fn synthetic_rows_are_predicted() {
        let rows: Vec<Measured> = [10, 30, 100, 300, 1_000, 3_500]
            .iter()
            .flat_map(|connections| [row(*connections, "0"), row(*connections, "0-1")])
            .collect();
        for checked in leave_one_out(&rows) {
            let error = checked.error().expect("a prediction");
            assert!(error.abs() < 0.10, "{}: {error}", checked.row.work);
        }
    }

    #[test]
    fn single_row_series_is_not_predicted() {
        let checked = leave_one_out(&[row(100, "0"), row(100, "0")]);
        assert!(checked.iter().all(|checked| checked.predicted.is_none()));
    }

    #[test]
    fn row_cost_reproduces_measurement() {
        let rows = [row(100, "0"), row(400, "0"), row(100, "0-1")];
        for row in &rows {
            let machine = machine_of(row).expect("a machine");
            let prediction = predict(&machine, &cost_of(row, &rows)).expect("a prediction");
            assert!(
                (prediction.rps / row.rps - 1.0).abs() < 1e-6,
                "{}",
                row.work
            );
        }
    }
}
