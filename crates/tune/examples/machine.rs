//! Writes a generated machine of the tests to a new directory and prints its path, to try plans for large machines.
//!
//!     cargo run --release --package onrush-tune --example machine -- NODES CORES SIBLINGS INTERFACES QUEUES
//!
//! CORES is per node, SIBLINGS per core, QUEUES per interface.

#[path = "../tests/machines/machine/mod.rs"]
mod machine;

use std::process::ExitCode;

use machine::{Kind, Machine};

fn main() -> ExitCode {
    let arguments = std::env::args().skip(1);
    let numbers: Option<Vec<usize>> = arguments.map(|word| word.parse().ok()).collect();
    let Some([nodes, cores, siblings, interfaces, queues]) =
        numbers.as_deref().filter(|numbers| !numbers.contains(&0))
    else {
        eprintln!("machine: expected five numbers above 0: NODES CORES SIBLINGS INTERFACES QUEUES");
        return ExitCode::FAILURE;
    };
    let mut machine = Machine::new(*nodes, *cores, *siblings);
    for at in 0..*interfaces {
        let node = i64::try_from(at % nodes).unwrap_or(-1);
        machine = machine.with(&format!("eth{at}"), Kind::Mlx5, node, *queues, 0);
    }
    println!("{}", machine.write().keep().display());
    ExitCode::SUCCESS
}
