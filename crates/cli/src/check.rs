//! `onrush check`: what `onrush serve` would say of a configuration before anything is bound.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onrush_config::Plan;
use onrush_serve::Checked;

use crate::serve::{Audience, Written, checked};
use crate::terminal::{Out, say};

/// Every error and warning is printed with its place.
#[derive(clap::Args)]
#[command(after_help = "Example:
  onrush check onrush.toml && systemctl restart onrush

Exit codes: 0 it can be used, 1 it cannot.")]
pub(crate) struct Args {
    /// The configuration (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Looks at everything and starts nothing.
pub(crate) fn run(args: &Args) -> ExitCode {
    match check(&args.file) {
        Ok((files, checked)) => {
            let with = match files - 1 {
                0 => String::new(),
                1 => " with 1 included file".into(),
                more => format!(" with {more} included files"),
            };
            let _ = writeln!(
                Out::standard(),
                "{}{with} can be used: {}
  {}, if it is started here",
                args.file.display(),
                summary(checked.plan()),
                checked.shares(),
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(format_args!("onrush check: {error:#}"));
            ExitCode::from(1)
        }
    }
}

/// How many files a configuration has that can be used, and their plan; warnings are said.
fn check(file: &Path) -> anyhow::Result<(usize, Checked)> {
    let written = Written::read(file)?;
    let plan = written.plan(Audience::Terminal)?;
    let checked = checked(plan, Some(&written), Audience::Terminal)?;
    Ok((written.sources().iter().count(), checked))
}

fn summary(plan: &Plan) -> String {
    let counted = |count: usize, one: &str, several: &str| {
        format!("{count} {}", if count == 1 { one } else { several })
    };
    [
        counted(plan.listen.len(), "place to listen", "places to listen"),
        counted(plan.routes.len(), "route", "routes"),
        counted(
            plan.upstreams.len(),
            "group of servers",
            "groups of servers",
        ),
    ]
    .join(", ")
}
