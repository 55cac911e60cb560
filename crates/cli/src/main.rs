//! The binary `onrush`: flags -> a command -> exit code. Nothing else.
//!
//! It is the only crate with `clap`, and with `anyhow` (beside xtask). `terminal.rs` prints text for people: names
//! from files cannot control the terminal, and a failed write is an exit code. `load/as_tool/` translates command
//! lines of other tools. `help.rs` shortens `-h`. `explain_request.rs` is the request of `explain` and `ctl explain`.
//!
//! `serve/control.rs` carries out what a running server is asked for (`server_command.rs`): by signals (`signals.rs`), by the
//! admin interface (`admin.rs`), by a changed file (`watch.rs`), or by a process that replaces it (`upgrade.rs`,
//! `handover.rs`). `user.rs`, `privileges.rs` and `confinement.rs` give up rights, system calls and files;
//! `supervisor.rs` and `watchdog.rs` notify systemd.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod convert;
mod ctl;
mod explain;
mod explain_request;
mod help;
mod load;
mod serve;
mod shipped;
mod terminal;
mod top;
mod tune;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Reports failed allocations with a message and an exit code.
#[global_allocator]
static MEMORY: onrush_engine::Memory = onrush_engine::Memory;

/// Version, commit, protocols and drivers.
fn long_version() -> String {
    // Set in builds from a checkout: `make release`, `scripts/package`.
    let commit = option_env!("ONRUSH_COMMIT").unwrap_or("unknown");
    format!(
        "{}\ncommit {commit}\nHTTP/1.1, HTTP/2, TLS 1.2 and 1.3 (rustls, aws-lc), gzip, Brotli, zstd\ndrivers: io_uring, epoll",
        env!("CARGO_PKG_VERSION")
    )
}

/// HTTP server, proxy, load generator and benchmark runner in one program.
#[derive(Parser)]
#[command(
    name = "onrush",
    version,
    long_version = long_version(),
    about,
    arg_required_else_help = true,
    max_term_width = 110
)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve files, fixed and synthetic responses, or forward to servers
    Serve(serve::Args),
    /// Check a configuration and report its errors
    Check(check::Args),
    /// Explain which route a request matches, and why
    Explain(explain::Args),
    /// Convert an nginx or HAProxy configuration
    Convert(convert::Args),
    /// Query and control a running server
    Ctl(ctl::Args),
    /// Watch a running server
    Top(top::Args),
    /// Generate load and measure rate, errors and latency
    Load(Box<load::Args>),
    /// Run a whole experiment and write a report
    Bench(bench::Args),
    /// Tune this machine for network load: plan, apply, revert
    Tune(tune::Args),
    /// Print completions for a shell
    Completions(shipped::Completions),
    /// Write manual pages into a directory
    #[command(hide = true)]
    Manual(shipped::Manual),
}

/// Parses the command line. Also returns the long names of the flags given to the subcommand.
fn parse() -> Result<(Arguments, Vec<String>), clap::Error> {
    let command = help::with_short_help(Arguments::command());
    let matches = command.clone().try_get_matches()?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    let Some((verb, matches)) = matches.subcommand() else {
        return Ok((arguments, Vec::new()));
    };
    let flags = command
        .find_subcommand(verb)
        .into_iter()
        .flat_map(Command::get_arguments);
    let is_given = |flag: &&Arg| {
        let source = matches.value_source(flag.get_id().as_str());
        source == Some(ValueSource::CommandLine)
    };
    let given = flags.filter(is_given).filter_map(Arg::get_long);
    Ok((arguments, given.map(str::to_owned).collect()))
}

fn main() -> ExitCode {
    // clap exits with 2 on a usage error; ours is 1, since 2 means that a target could not be reached.
    let (arguments, given) = match parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            let printed = error.print();
            if let Some(hint) = bench::hint(std::env::args().skip(1)) {
                terminal::print_error(format_args!("{hint}"));
            }
            return if error.use_stderr() {
                ExitCode::from(1)
            } else {
                terminal::record_write(printed.and(terminal::opened()));
                terminal::exit_code(ExitCode::SUCCESS)
            };
        }
    };
    terminal::exit_code(match arguments.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Check(args) => check::run(&args),
        Verb::Explain(args) => explain::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Ctl(args) => ctl::run(&args),
        Verb::Top(args) => top::run(&args),
        Verb::Load(args) => load::run(*args, &given),
        Verb::Bench(args) => bench::run(args),
        Verb::Tune(args) => tune::run(args),
        Verb::Completions(args) => shipped::completions(&args, Arguments::command()),
        Verb::Manual(args) => shipped::manual(&args, Arguments::command()),
    })
}
