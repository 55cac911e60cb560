//! Flags of `onrush tune`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};
use onrush_measure::amount::duration;
use onrush_tune::advise::{Goal, Queues, Request, Role};
use onrush_tune::tree::Tree;

/// Tune this machine for network load. Only apply, search and revert change anything.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush tune plan                            what to change for a server on this machine, and why
  onrush tune plan --goal latency --json      the same for low latency, as JSON
  onrush tune snapshot -o machine.json        the state of this machine in one file
  onrush tune plan --root machine.json        the plan for that machine, from any machine
  onrush tune apply --confirm-within 60s      apply; undo without `onrush tune confirm` in time
  onrush tune apply --for 'onrush serve …'    apply while a program runs; --for 1h for an hour
  onrush tune status                          changes in force, and changes by others
  onrush tune revert                          undo it
  onrush tune show --svg machine.svg          a picture of the CPUs and their load
  onrush tune diagnose --for 10s              find the full resource while load runs
  onrush tune search --measure ./measure.sh   try settings, keep improvements

Exit codes: 0 done, 1 nothing could be done, 3 a change was refused, is in conflict or is not in force,
4 changes were undone as far as possible, but the journal could not be read or changed.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(Subcommand)]
pub(super) enum Verb {
    /// Save the state of the machine in one file
    Snapshot(Snapshot),
    /// Print what to change and why; change nothing
    Plan(Plan),
    /// Apply the plan, with a journal for revert
    Apply(Apply),
    /// Confirm an apply that waits for confirmation
    Confirm(Place),
    /// Undo the applied changes
    Revert(Revert),
    /// List the changes in force, and changes that other programs have overwritten
    Status(Status),
    /// Draw the machine: nodes, cores, siblings, and what each CPU does for the network
    Show(Show),
    /// Find the resource that is full while load runs
    Diagnose(Diagnose),
    /// Try settings one at a time with your measurement, and keep improvements
    Search(Search),
    /// Undo the changes of another process when it is killed; `apply` starts this
    #[command(hide = true)]
    UndoWhenKilled(UndoWhenKilled),
}

/// Where facts come from.
#[derive(clap::Args)]
pub(super) struct Place {
    /// Root directory or snapshot of a machine
    #[arg(
        long,
        value_name = "DIR|SNAPSHOT",
        default_value = "/",
        display_order = 100
    )]
    pub(super) root: PathBuf,
}

impl Place {
    pub(super) fn tree(&self) -> anyhow::Result<Tree> {
        Ok(Tree::open(&self.root)?.asking(onrush_engine::driver_counters))
    }
}

#[derive(clap::Args)]
pub(super) struct Snapshot {
    #[command(flatten)]
    pub(super) place: Place,
    /// Write the snapshot to this file; it contains names of processes and interfaces, no addresses
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: PathBuf,
    /// Include the limits of this process
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
}

/// What is wished for.
#[derive(clap::Args)]
pub(super) struct PlanRequest {
    /// Optimize for this
    #[arg(long, value_enum, default_value = "throughput")]
    pub(super) goal: GoalName,
    /// Role of the application
    #[arg(long, value_enum, default_value = "server")]
    pub(super) role: RoleName,
    /// Plan for this interface; repeatable; a bond or VLAN selects its devices [default: every device that is up]
    #[arg(long = "interface", value_name = "NAME")]
    pub(super) interfaces: Vec<String>,
    /// Keep the number of queues: a change resets the interface for a moment
    #[arg(long)]
    pub(super) keep_queues: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum GoalName {
    Throughput,
    Latency,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum RoleName {
    Server,
    Proxy,
    Client,
}

impl PlanRequest {
    pub(super) fn request(&self) -> Request {
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
pub(super) struct Plan {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) wish: PlanRequest,
    /// Also check the limits of this process
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
    /// Print JSON
    #[arg(long, conflicts_with = "script")]
    pub(super) json: bool,
    /// Print a shell script that makes the changes
    #[arg(long)]
    pub(super) script: bool,
}

#[derive(clap::Args)]
pub(super) struct Apply {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) wish: PlanRequest,
    /// Undo the changes after this time, such as 60s, without `onrush tune confirm`; also on Ctrl-C or when the session
    /// ends
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "during")]
    pub(super) confirm_within: Option<Duration>,
    /// Undo the changes after this time (1h), when this process ends (PID 4711), or when this command, which is then started, ends
    #[arg(long = "for", id = "during", value_name = "TIME|PID|COMMAND", value_parser = DurationSpec::parse)]
    pub(super) during: Option<DurationSpec>,
    /// Also apply at every boot: write a settings file and a systemd unit, and list them
    #[arg(long, conflicts_with_all = ["confirm_within", "during"])]
    pub(super) persist: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// How long changes last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DurationSpec {
    /// A number with its unit.
    Time(Duration),
    /// Until this process ends: a number without unit.
    Process(i32),
    /// Until this command ends: any other text.
    Command(String),
}

impl DurationSpec {
    fn parse(text: &str) -> Result<DurationSpec, String> {
        let text = text.trim();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = text.parse::<i32>().ok().filter(|number| *number > 0);
            let number = number.ok_or("not a process number: expected 1 or more")?;
            return Ok(DurationSpec::Process(number));
        }
        match duration(text) {
            Ok(time) => Ok(DurationSpec::Time(time)),
            Err(_) if text.is_empty() => Err(format!("empty: expected {LASTS}")),
            // A malformed time is not a command.
            Err(error) if looks_like_number(text) => Err(format!("{error}; or {LASTS}")),
            Err(_) => Ok(DurationSpec::Command(text.to_owned())),
        }
    }
}

const LASTS: &str = "a time with its unit (1h), the number of a process (4711), or a command (one whose name begins with a digit: `env 7z …`)";

/// Whether `text` looks like an amount: one word that begins with a digit (`90min`, `1.5h`, `1e3s`, `7z`), or several
/// words that all begin with a digit or start with a number or a time (`1 2`, `5 min`, `1h 30m`). A command with
/// arguments may be called `7z` or `2to3`.
fn looks_like_number(text: &str) -> bool {
    let begins = |word: &str| {
        let word = word.strip_prefix(['-', '+']).unwrap_or(word);
        let word = word.strip_prefix('.').unwrap_or(word);
        word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    let first = text.split_whitespace().next().unwrap_or_default();
    let is_amount = first.parse::<f64>().is_ok() || duration(first).is_ok();
    begins(first) && (first == text || is_amount || text.split_whitespace().all(begins))
}

#[derive(clap::Args)]
pub(super) struct Revert {
    #[command(flatten)]
    pub(super) place: Place,
    /// Also undo settings that others have changed since
    #[arg(long)]
    pub(super) force: bool,
    /// Also remove the files that `apply --persist` wrote
    #[arg(long)]
    pub(super) persist: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    pub(super) place: Place,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args)]
pub(super) struct Show {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) wish: PlanRequest,
    /// Show the state after the plan instead of the current state
    #[arg(long)]
    pub(super) planned: bool,
    /// Draw into this SVG file instead of printing
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Observe the load for this time
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(super) time: Duration,
    /// Mark the CPUs that the threads of this process run on
    #[arg(long, value_name = "PID", conflicts_with = "planned")]
    pub(super) pid: Option<u32>,
}

#[derive(clap::Args)]
pub(super) struct Diagnose {
    #[command(flatten)]
    pub(super) place: Place,
    /// Observe for this time
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub(super) time: Duration,
    /// Also observe this process (threads, CPUs, files, sockets); stop when it ends
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args)]
pub(super) struct Search {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) wish: PlanRequest,
    /// Measure with this command; the last word that it prints is a number, larger is better
    #[arg(long, value_name = "COMMAND")]
    pub(super) measure: String,
    /// Also try CPUs for the threads of this process and of its children
    #[arg(long, value_name = "PID")]
    pub(super) pid: Option<u32>,
    /// Measure each change this many times, against the best so far
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(super) turns: u8,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args)]
pub(super) struct UndoWhenKilled {
    #[command(flatten)]
    pub(super) place: Place,
    /// PID of the watched process
    pub(super) process: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_takes_precedence_over_command() {
        for (text, expected) in [
            ("1h", Ok(DurationSpec::Time(Duration::from_secs(3_600)))),
            ("250ms", Ok(DurationSpec::Time(Duration::from_millis(250)))),
            ("4711", Ok(DurationSpec::Process(4_711))),
            ("true", Ok(DurationSpec::Command("true".to_owned()))),
            ("7z a b", Ok(DurationSpec::Command("7z a b".to_owned()))),
            ("./1h", Ok(DurationSpec::Command("./1h".to_owned()))),
            ("0", Err("not a process number")),
            ("-1", Err("not a process number")),
            ("99999999999", Err("not a process number")),
            ("90min", Err("is not a duration")),
            ("1.5h", Ok(DurationSpec::Time(Duration::from_secs(5_400)))),
            (" 1h ", Ok(DurationSpec::Time(Duration::from_secs(3_600)))),
            (
                "2to3 file",
                Ok(DurationSpec::Command("2to3 file".to_owned())),
            ),
            (
                "1e3s",
                Err("or a time with its unit (1h), the number of a process (4711), or a command"),
            ),
            ("1 2", Err("is not a duration")),
            ("5 min", Err("is not a duration")),
            ("1h 30m", Err("is not a duration")),
            ("7z", Err("begins with a digit: `env 7z …`")),
            ("-5s", Err("is not a duration")),
            (".5h", Ok(DurationSpec::Time(Duration::from_secs(1_800)))),
            ("5 m", Ok(DurationSpec::Time(Duration::from_secs(300)))),
            ("99999999999999999h", Err("4711")),
            ("", Err("expected a time")),
        ] {
            match (DurationSpec::parse(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(error), Err(words)) => assert!(error.contains(words), "{text}: {error}"),
                (found, expected) => panic!("{text}: {found:?}, not {expected:?}"),
            }
        }
    }
}
