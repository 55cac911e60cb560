//! `onrush bench predict`: predicts what a machine can do, and checks predictions against measurements.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use onrush_bench::limits::CONNECTIONS_MAX;
use onrush_bench::predict::cross_validation::{leave_one_out, published_cost};
use onrush_bench::predict::measured::{self, Measured};
use onrush_bench::predict::rows::published;
use onrush_bench::predict::{Cost, CostFile, Machine, predict, series, text};

use onrush_measure::amount::count;

use super::machine;
use crate::terminal::{Out, print_error};

/// Names that an error lists: about a screenful.
const NAMES_SHOWN_MAX: usize = 20;

/// Predict the requests per second of a machine, and the resource that is full first (docs/predict.md).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush bench predict --machine server.toml --cost out/first-light   another machine
  onrush bench predict --machine / --cost cost.toml                   this machine
  onrush bench predict --check                                        check on published figures
  onrush bench predict --check --cost out/capacity                    and on a run of your own

Exit codes: 0 predicted, 1 nothing could be predicted.")]
pub(super) struct Args {
    /// Machine: a description (TOML), a snapshot of `onrush tune`, or a root directory such as /
    #[arg(long, value_name = "FILE", required_unless_present = "check")]
    machine: Option<PathBuf>,

    /// Cost of a request: a result directory, or a cost file; repeatable: later files only fill in missing values
    #[arg(long, value_name = "PATH")]
    cost: Vec<PathBuf>,

    /// Use only this work of a result
    #[arg(long, value_name = "NAME")]
    work: Option<String>,

    /// Use only this variant of a result
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,

    /// Predict for this many connections [default: that of the cost]
    #[arg(long, value_name = "COUNT", conflicts_with = "check", value_parser = connections)]
    connections: Option<u32>,

    /// Check the model: predict each measured row from all other rows, and print the errors
    #[arg(long, conflicts_with = "machine")]
    check: bool,
}

/// Parses a number of connections, from 1 to [`CONNECTIONS_MAX`].
fn connections(text: &str) -> Result<u32, String> {
    let count = count(text).ok();
    let count = count.filter(|count| (1..=CONNECTIONS_MAX).contains(count));
    let count = count.and_then(|count| u32::try_from(count).ok());
    count.ok_or_else(|| {
        format!("expected a whole number of connections from 1 to {CONNECTIONS_MAX}")
    })
}

/// Prints the prediction or the check, and returns the exit code.
pub(super) fn run(args: &Args) -> ExitCode {
    let text = match &args.machine {
        Some(path) => machine::read(path).and_then(|machine| predicted(args, &machine)),
        None => checked(args),
    };
    match text {
        Ok(text) => {
            let _ = Out::standard().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(format_args!("onrush bench predict: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn checked(args: &Args) -> anyhow::Result<String> {
    let costs = Costs::read(args)?;
    if let Some((path, _)) = costs.files.first() {
        anyhow::bail!(
            "{} is a file of costs without measured figures to check: expected the directory of a result",
            path.display()
        );
    }
    if args.cost.is_empty() {
        return Ok(text::published(&leave_one_out(&published())));
    }
    let mut checked = series::leave_one_out(&costs.rows);
    checked.retain(|one| args.wants(&one.row));
    Ok(text::measured(&checked))
}

fn predicted(args: &Args, machine: &Machine) -> anyhow::Result<String> {
    let costs = Costs::read(args)?;
    let mut named = Vec::new();
    for row in costs.rows.iter().filter(|row| args.wants(row)) {
        let cost = costs.complete(args, series::cost_of(row, &costs.rows));
        let prediction = predict(machine, &cost);
        named.push((row.work.clone(), row.variant.clone(), prediction));
    }
    if costs.rows.is_empty() {
        let by_hand = predict(machine, &costs.complete(args, Cost::default()));
        named.push((String::new(), String::new(), by_hand));
    }
    let mut text = match &named[..] {
        [(_, _, Some(only))] => text::prediction(only),
        [(_, _, None)] => anyhow::bail!(
            "no limit of this machine is known: expected a cost of a request (--cost), or an interface with a link, queues or a \
             limit on packets"
        ),
        _ => text::predictions(&named),
    };
    let wanted = costs.rows.iter().filter(|row| args.wants(row));
    let measured = wanted.filter_map(|row| row.roles.get(&row.under_test));
    if let Some(most) = measured.map(|role| role.cpus.len()).max() {
        text.push_str(&text::extrapolation(most, machine.application().len()));
    }
    let mut interfaces = machine.interfaces().iter();
    if interfaces.any(|interface| !interface.queues.is_empty()) {
        let cost = costs.complete(args, Cost::default());
        text.push_str(&text::packet_costs(&cost));
    }
    Ok(text)
}

impl Args {
    fn wants(&self, row: &Measured) -> bool {
        let is =
            |name: &Option<String>, of_row: &str| name.as_deref().is_none_or(|name| name == of_row);
        is(&self.work, &row.work) && is(&self.variant, &row.variant)
    }
}

/// Costs given with --cost.
struct Costs<'a> {
    rows: Vec<Measured>,
    files: Vec<(&'a PathBuf, CostFile)>,
    /// Published cost of packets, used where no cost file sets one.
    published: Cost,
}

impl<'a> Costs<'a> {
    fn read(args: &'a Args) -> anyhow::Result<Costs<'a>> {
        let (mut rows, mut files) = (Vec::new(), Vec::new());
        for path in &args.cost {
            match path.is_dir() {
                true => rows.extend(measured::read(path)?),
                false => files.push((path, CostFile::read(path)?)),
            }
        }
        let is_filtered = args.work.is_some() || args.variant.is_some();
        if is_filtered && !rows.iter().any(|row| args.wants(row)) {
            if rows.is_empty() {
                anyhow::bail!(
                    "--work and --variant choose among the results of --cost, and none is given: name the directory of one"
                );
            }
            let names: BTreeSet<String> = rows
                .iter()
                .map(|row| format!("  {:?} of {:?}", row.variant, row.work))
                .collect();
            let names: Vec<String> = names.into_iter().take(NAMES_SHOWN_MAX).collect();
            anyhow::bail!(
                "no result has that work and variant: expected some of\n{}",
                names.join("\n")
            );
        }
        Ok(Costs {
            rows,
            files,
            published: published_cost(&published()),
        })
    }

    fn complete(&self, args: &Args, cost: Cost) -> Cost {
        let mut cost = Cost {
            packet: self.published.packet,
            paravirtual_us: self.published.paravirtual_us,
            ..cost
        };
        for (_, file) in &self.files {
            file.complete(&mut cost);
        }
        cost.connections = args.connections.unwrap_or(cost.connections);
        cost
    }
}
