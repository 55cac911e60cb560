//! `onrush serve`: a plan from a file or from one-liners, a start-up line, and a clean end on a signal.

use std::io::{IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;
use onrush_config::address::{parse_listen, parse_server_url};
use onrush_config::plan::{Io, Listen, OneLiner, Plan, Threads};
use onrush_config::value::{parse_cpus, parse_respond};
use onrush_serve::Server;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// What to serve comes from a directory, one of the one-liners, or a configuration file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush serve ./public                             files, on 127.0.0.1:8080
  onrush serve --respond 200:hello --listen :8000   always the same answer, on every address
  onrush serve --synthetic                          answers that the query describes: /?s=10k&t=50
  onrush serve --forward http://10.0.0.1:8000       a proxy in front of one server
  onrush serve --config onrush.toml                 all of it at once

Exit codes: 0 stopped by a signal, 1 usage or configuration error, or the server could not start.")]
pub(crate) struct Args {
    /// Serve the files beneath this directory
    #[arg(value_name = "DIR", group = "what")]
    directory: Option<PathBuf>,
    /// Answer every request with this status and body
    #[arg(long, value_name = "STATUS[:BODY]", group = "what")]
    respond: Option<String>,
    /// Answer what the query asks for, in the language of httpterm: /?s=SIZE&t=MS (GET /?h for help)
    #[arg(long, group = "what")]
    synthetic: bool,
    /// Forward every request to this server; may be repeated
    #[arg(long, value_name = "URL", group = "what")]
    forward: Vec<String>,
    /// Read everything from this file (TOML)
    #[arg(long, value_name = "FILE", group = "what")]
    config: Option<PathBuf>,
    /// Listen on this address (HOST:PORT, :PORT, [IPV6]:PORT or unix:PATH); may be repeated [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Vec<String>,
    /// Number of cores (engine threads) [default: one per CPU this process may use]
    #[arg(long, value_name = "COUNT")]
    threads: Option<NonZeroUsize>,
    /// Pin the cores to these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// How to talk to the kernel [default: auto]
    #[arg(long, value_enum, value_name = "DRIVER")]
    io: Option<IoArg>,
}

/// A driver as it is written on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum IoArg {
    Auto,
    Epoll,
    #[value(name = "io_uring", alias = "io-uring", alias = "uring")]
    IoUring,
}

/// Serves until SIGINT or SIGTERM.
pub(crate) fn run(args: Args) -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
    match serve(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("onrush serve: {error:#}");
            ExitCode::from(1)
        }
    }
}

fn serve(args: Args) -> anyhow::Result<()> {
    let plan = plan(&args)?;
    // Before the cores start, so that a signal cannot fall between.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot wait for signals")?;
    let what = describe(&plan);
    let server = Server::start(plan)?;
    announce(&server, &what);
    let signal = signals.forever().next();
    let name = if signal == Some(SIGINT) {
        "SIGINT"
    } else {
        "SIGTERM"
    };
    eprintln!("{name}: accepting no more, finishing what is in flight (once more to stop at once)");
    let handles = server.handles();
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            handles
                .iter()
                .for_each(|handle| handle.stop(Duration::ZERO));
        }
    });
    // Whoever read the start-up line may have gone.
    let _ = writeln!(std::io::stdout(), "served {}", server.stop());
    Ok(())
}

/// The file or the one-liner, with the flags on top.
fn plan(args: &Args) -> anyhow::Result<Plan> {
    let listen: Vec<Listen> = args
        .listen
        .iter()
        .map(|text| parse_listen(text))
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow::anyhow!("--listen: {error}"))?;
    let mut plan = match &args.config {
        Some(path) => {
            let mut plan = read(path)?;
            if !listen.is_empty() {
                plan.listen = listen;
            }
            plan
        }
        None => Plan::one_liner(one_liner(args)?, listen),
    };
    if let Some(count) = args.threads {
        plan.threads = Threads::Count(count);
    }
    if let Some(list) = &args.cpus {
        plan.cpus = Some(parse_cpus(list).map_err(|error| anyhow::anyhow!("--cpus: {error}"))?);
    }
    if let Some(io) = args.io {
        plan.io = match io {
            IoArg::Auto => Io::Auto,
            IoArg::Epoll => Io::Epoll,
            IoArg::IoUring => Io::IoUring,
        };
    }
    Ok(plan)
}

fn read(path: &PathBuf) -> anyhow::Result<Plan> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {}", path.display()))?;
    match onrush_config::parse(&text, path) {
        Ok(parsed) => {
            parsed
                .warnings
                .iter()
                .for_each(|warning| eprintln!("{warning}"));
            Ok(parsed.plan)
        }
        Err(errors) => bail!("the configuration cannot be used\n{errors}"),
    }
}

fn one_liner(args: &Args) -> anyhow::Result<OneLiner> {
    if let Some(directory) = &args.directory {
        return Ok(OneLiner::Files(directory.clone()));
    }
    if let Some(text) = &args.respond {
        let (status, body) =
            parse_respond(text).map_err(|error| anyhow::anyhow!("--respond: {error}"))?;
        return Ok(OneLiner::Respond { status, body });
    }
    if args.synthetic {
        return Ok(OneLiner::Synthetic);
    }
    if args.forward.is_empty() {
        bail!(
            "nothing to serve: give a directory, --respond, --synthetic, --forward or --config (see --help)"
        );
    }
    let servers = args
        .forward
        .iter()
        .map(|url| parse_server_url(url))
        .collect::<Result<_, _>>();
    Ok(OneLiner::Forward(
        servers.map_err(|error| anyhow::anyhow!("--forward: {error}"))?,
    ))
}

/// One line about what a plan serves.
fn describe(plan: &Plan) -> String {
    use onrush_config::plan::Action;
    if let [route] = plan.routes.as_slice() {
        return match &route.action {
            Action::Respond { status, body, .. } => {
                format!("status {status} with {} bytes", body.len())
            }
            Action::Files { root, .. } => format!("the files of {}", root.display()),
            Action::Synthetic => "synthetic answers".into(),
            Action::Forward { upstream } => {
                let servers: Vec<String> = plan.upstreams[*upstream]
                    .servers
                    .iter()
                    .map(|server| server.address.to_string())
                    .collect();
                format!("what {} answers", servers.join(", "))
            }
        };
    }
    format!(
        "{} routes to {} groups of servers",
        plan.routes.len(),
        plan.upstreams.len()
    )
}

fn announce(server: &Server, what: &str) {
    let mut out = std::io::stdout().lock();
    let addresses: Vec<String> = server.addresses().map(ToString::to_string).collect();
    let cores = server.cpus().len();
    let cpus: Vec<String> = server
        .cpus()
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let placed = if cpus.is_empty() {
        "not pinned".into()
    } else {
        format!("on CPU {}", cpus.join(","))
    };
    // The reader may have gone; serving goes on.
    let _ = writeln!(
        out,
        "onrush serves {what}\n  listening on {}\n  {cores} {}, {placed}\n  driver {}",
        addresses.join(", "),
        if cores == 1 { "core" } else { "cores" },
        server.driver(),
    );
    let _ = out.flush();
}
