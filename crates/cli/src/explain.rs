//! `onrush explain`: shows how a configuration handles a request, and why.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use onrush_serve::Explainer;
use serde_json::Value;

use crate::explain_request::{ExplainArgs, explain, show};
use crate::serve::{Audience, ConfigSource, checked};
use crate::terminal::{Out, print_error, write_raw};

/// Print the matching route, why earlier routes do not match, the response, and the limits that apply.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush explain onrush.toml /api/users                            GET http://localhost/api/users
  onrush explain onrush.toml 'POST https://shop.example/cart' -H 'Content-Length: 10'
  onrush explain onrush.toml https://shop.example/ --client 10.1.2.3 --listener internal --json

Explaining binds no address and connects to no server.

Exit codes: 0 explained, 1 usage error, or the configuration is invalid.")]
pub(crate) struct Args {
    /// Configuration file (TOML)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    asked: ExplainArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the explanation and returns the exit code.
pub(crate) fn run(args: &Args) -> ExitCode {
    match explained(args) {
        Ok(value) if args.json => {
            write_raw(format!("{value:#}\n").as_bytes());
            ExitCode::SUCCESS
        }
        Ok(value) => {
            let _ = Out::standard().write_all(show(&value).as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            print_error(format_args!("onrush explain: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn explained(args: &Args) -> anyhow::Result<Value> {
    let written = ConfigSource::read(&args.file)?;
    let plan = written.plan(Audience::Terminal)?;
    let checked = checked(plan, Some(&written), Audience::Terminal)?;
    let explainer = Explainer::new(checked)?;
    let places = onrush_config::route_places(written.sources());
    explain(&explainer, &places, &args.asked)
}
