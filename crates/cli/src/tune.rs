//! `onrush tune`: what a machine needs to serve fast, below any root or from a snapshot; and changing it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use onrush_tune::advise::{self, Goal, Queues, Request, Role};
use onrush_tune::facts;
use onrush_tune::report;
use onrush_tune::tree::{self, Tree};

/// Reads the machine, plans, and changes nothing unless it is told to.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush tune plan                            what to change for a server on this machine, and why
  onrush tune plan --goal latency --json      the same for short waits, for programs
  onrush tune snapshot -o machine.json        one file with everything that was read
  onrush tune plan --root machine.json        the plan for that machine, anywhere

Exit codes: 0 done, 1 nothing could be done.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Save everything that was read of the machine in one file
    Snapshot(Snapshot),
    /// Say what to change and why; change nothing
    Plan(Plan),
}

/// Where facts come from.
#[derive(clap::Args)]
struct Place {
    /// The root directory of a machine, or a snapshot of one
    #[arg(long, value_name = "DIR|SNAPSHOT", default_value = "/")]
    root: PathBuf,
}

#[derive(clap::Args)]
struct Snapshot {
    #[command(flatten)]
    place: Place,
    /// Write it here; it holds names of processes and interfaces, no addresses
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Include the limits of this process
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
}

/// What is wished for.
#[derive(clap::Args)]
struct Wish {
    /// What matters more
    #[arg(long, value_enum, default_value = "throughput")]
    goal: GoalName,
    /// What the application does
    #[arg(long, value_enum, default_value = "server")]
    role: RoleName,
    /// Plan for this interface; repeatable. A bond or VLAN stands for its devices [default: every device that is up]
    #[arg(long = "interface", value_name = "NAME")]
    interfaces: Vec<String>,
    /// Leave the number of queues as it is: changing it resets the interface for a moment
    #[arg(long)]
    keep_queues: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum GoalName {
    Throughput,
    Latency,
}

#[derive(Clone, Copy, ValueEnum)]
enum RoleName {
    Server,
    Proxy,
    Client,
}

impl Wish {
    fn request(&self) -> Request {
        Request {
            goal: match self.goal {
                GoalName::Throughput => Goal::Throughput,
                GoalName::Latency => Goal::Latency,
            },
            role: match self.role {
                RoleName::Server => Role::Server,
                RoleName::Proxy => Role::Proxy,
                RoleName::Client => Role::Client,
            },
            interfaces: self.interfaces.clone(),
            queues: if self.keep_queues {
                Queues::Keep
            } else {
                Queues::Change
            },
        }
    }
}

#[derive(clap::Args)]
struct Plan {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    wish: Wish,
    /// For programs
    #[arg(long, conflicts_with = "script")]
    json: bool,
    /// As a shell script
    #[arg(long)]
    script: bool,
}

/// Runs a verb, and says how it went.
pub(crate) fn run(args: Args) -> ExitCode {
    let outcome = match args.verb {
        Verb::Snapshot(args) => snapshot(&args),
        Verb::Plan(args) => plan(&args),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("onrush tune: {error:#}");
        ExitCode::from(1)
    })
}

fn snapshot(args: &Snapshot) -> anyhow::Result<ExitCode> {
    let tree = Tree::open(&args.place.root)?;
    tree.record();
    facts::read(&tree, args.pid)?;
    tree::write_snapshot(&tree.recorded(), &args.output)?;
    Ok(ExitCode::SUCCESS)
}

fn plan(args: &Plan) -> anyhow::Result<ExitCode> {
    let tree = Tree::open(&args.place.root)?;
    let facts = facts::read(&tree, None)?;
    let plan = advise::plan(&facts, &args.wish.request())?;
    print(&match (args.json, args.script) {
        (true, _) => format!("{}\n", serde_json::to_string_pretty(&plan)?),
        (_, true) => report::script(&plan),
        _ => report::text(&plan),
    })
}

/// Prints to standard output. A reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> anyhow::Result<ExitCode> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
