//! `onrush serve`: a plan from a file or from one-liners, a start-up line, and a clean end on a signal.

mod describe;
mod signals;

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::ValueEnum;
use onrush_config::address::{ServerUrl, parse_listen, parse_server_url};
use onrush_config::limits::TEXT_MAX;
use onrush_config::plan::{Accept, Io, Listen, OneLiner, Plan};
use onrush_config::value::{parse_cpus, parse_respond, parse_threads, parse_tls};
use onrush_config::{Diagnostic, Findings};
use onrush_serve::{Arrival, Checked, Server, Unusable};
use onrush_tune::facts::arrival;
use onrush_tune::tree::Tree;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder};

use crate::terminal::{Out, say};
use describe::describe;
use signals::Signals;

/// What to serve comes from a directory, one of the one-liners, or a configuration file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush serve ./public                             files, on 127.0.0.1:8080
  onrush serve --respond 200:hello --listen :8000   always the same answer, on every address
  onrush serve --synthetic                          answers that the query describes: /?s=10k&t=50
  onrush serve --forward http://10.0.0.1:8000       a proxy in front of one server
  onrush serve ./public --tls self-signed           files over https
  onrush serve --config onrush.toml                 all of it at once

Exit codes: 0 stopped by a signal, 1 usage or configuration error, or the server could not start, or standard output could not be written.")]
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
    // In the attribute: rustdoc takes the brackets for a link.
    #[arg(
        help = "Listen on this address (IP:PORT, :PORT, [IPV6]:PORT or unix:PATH); may be repeated [default: 127.0.0.1:8080]",
        long,
        value_name = "ADDR"
    )]
    listen: Vec<String>,
    /// Speak TLS there, with a certificate made for it or with these PEM files
    #[arg(long, value_name = "self-signed|CERT,KEY")]
    tls: Option<String>,
    /// Number of cores (engine threads) [default: one per CPU this process may use]
    #[arg(long, value_name = "COUNT")]
    threads: Option<String>,
    /// Pin the cores to these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// How to talk to the kernel [default: auto]
    #[arg(long, value_enum, value_name = "DRIVER")]
    io: Option<IoArg>,
    /// Which core gets a connection: by the CPU that takes its packets, or by hash [default: auto]
    #[arg(long, value_enum, value_name = "HOW")]
    accept: Option<AcceptArg>,
}

/// Lines of the log that wait for whoever reads it: some hundred KiB.
const LOG_LINES_MAX: usize = 4096;

/// A driver as it is written on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum IoArg {
    Auto,
    Epoll,
    #[value(name = "io_uring", alias = "io-uring", alias = "uring")]
    IoUring,
}

/// Which core gets a connection, as it is written on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum AcceptArg {
    Auto,
    Cpu,
    Hash,
}

/// Serves until SIGINT, SIGTERM or SIGQUIT.
pub(crate) fn run(args: Args) -> ExitCode {
    // Whoever reads standard error may have stopped: lines that do not fit are lost and counted, and no core waits.
    let (log, _flushed_at_the_end) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_MAX)
        .finish(std::io::stderr());
    tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        // It would tell standard error that standard error cannot be written to, by a panic.
        .log_internal_errors(false)
        .init();
    match serve(args, log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("onrush serve: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn serve(args: Args, mut log: NonBlocking) -> anyhow::Result<()> {
    let written = args.config.as_deref().map(Written::read).transpose()?;
    let plan = plan(&args, written.as_ref())?;
    // Before the cores start, so that a signal cannot fall between.
    let mut signals = Signals::new().context("cannot wait for signals")?;
    let what = describe(&plan);
    let checked = checked(plan, written.as_ref())?;
    let server = Server::start(checked.arriving(arrival()))?;
    announce(&server, &what);
    let name = signals.wait_for_end();
    let said = format!(
        "{name}: accepting no more, finishing what is in flight (once more to stop at once)\n"
    );
    // In the log's own order, and as patient as it is.
    let _ = log.write_all(said.as_bytes());
    signals.hasten(server.handles());
    let totals = server.stop();
    let lost = log.error_counter().dropped_lines();
    if lost > 0 {
        let _ = writeln!(
            Out::standard(),
            "lost {lost} lines of the log, which nobody read"
        );
    }
    let _ = writeln!(Out::standard(), "served {totals}");
    Ok(())
}

/// The file or the one-liner, with the flags on top.
fn plan(args: &Args, written: Option<&Written>) -> anyhow::Result<Plan> {
    let listen = listen(args)?;
    let mut plan = match written {
        Some(written) => {
            let mut plan = written.plan()?;
            if !listen.is_empty() {
                plan.listen = listen;
            }
            plan
        }
        None => Plan::one_liner(one_liner(args)?, listen),
    };
    if let Some(text) = &args.threads {
        plan.threads =
            parse_threads(text).map_err(|error| anyhow::anyhow!("--threads: {error}"))?;
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
    if let Some(accept) = args.accept {
        plan.accept = match accept {
            AcceptArg::Auto => Accept::Auto,
            AcceptArg::Cpu => Accept::Cpu,
            AcceptArg::Hash => Accept::Hash,
        };
    }
    Ok(plan)
}

/// Where to listen by the flags; nowhere when they leave it to the file or the default.
fn listen(args: &Args) -> anyhow::Result<Vec<Listen>> {
    let mut listen: Vec<Listen> = args
        .listen
        .iter()
        .map(|text| parse_listen(text))
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow::anyhow!("--listen: {error}"))?;
    if let Some(twice) = first_repeated(listen.iter().map(|listen| &listen.address)) {
        bail!("--listen: {twice} is given twice");
    }
    let Some(text) = &args.tls else {
        return Ok(listen);
    };
    let tls = parse_tls(text).map_err(|error| anyhow::anyhow!("--tls: {error}"))?;
    if listen.is_empty() {
        if args.config.is_some() {
            bail!(
                "--tls goes with --listen; places to listen in the file have a key tls of their own"
            );
        }
        listen.push(Listen::default());
    }
    for one in &mut listen {
        one.tls = Some(tls.clone());
    }
    Ok(listen)
}

/// A configuration file as it is written, so that places in it can be shown.
pub(crate) struct Written<'a> {
    path: &'a Path,
    text: String,
}

impl<'a> Written<'a> {
    pub(crate) fn read(path: &'a Path) -> anyhow::Result<Self> {
        let text = onrush_file::read_text(path, TEXT_MAX as u64)
            .with_context(|| format!("cannot read the configuration {}", path.display()))?;
        Ok(Self { path, text })
    }

    /// What it means; its warnings are said.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        match onrush_config::parse(&self.text, self.path) {
            Ok(parsed) => {
                say_all(&parsed.warnings);
                Ok(parsed.plan)
            }
            Err(errors) => bail!("{UNUSABLE}\n{errors}"),
        }
    }

    fn findings(&self) -> Findings<'_> {
        Findings::new(&self.text, self.path)
    }
}

const UNUSABLE: &str = "the configuration cannot be used";

/// The plan with what its files say; warnings are said. What the file names has its place there, as everything else that
/// is wrong with it; what flags name has none.
pub(crate) fn checked(plan: Plan, written: Option<&Written<'_>>) -> anyhow::Result<Checked> {
    let outcome = onrush_serve::check(plan);
    let Some(written) = written else {
        let checked = outcome?;
        for warning in checked.warnings() {
            say(format_args!("warning: {warning}"));
        }
        return Ok(checked);
    };
    let mut findings = written.findings();
    match outcome {
        Ok(checked) => {
            for warning in checked.warnings() {
                match &warning.place {
                    Some(place) => findings.warning(place.clone(), &*warning.message),
                    None => say(format_args!("warning: {warning}")),
                }
            }
            say_all(&findings.finish().expect("there are warnings only"));
            Ok(checked)
        }
        Err(Unusable(troubles)) => {
            let mut said = UNUSABLE.to_owned();
            for trouble in &troubles {
                match &trouble.place {
                    Some(place) => findings.error(place.clone(), &*trouble.message),
                    None => said += &format!("\n{trouble}"),
                }
            }
            if let Err(errors) = findings.finish() {
                said += &format!("\n{errors}");
            }
            bail!(said)
        }
    }
}

fn say_all(warnings: &[Diagnostic]) {
    for warning in warnings {
        say(format_args!("{warning}"));
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
    let urls: Vec<ServerUrl> = args
        .forward
        .iter()
        .map(|url| parse_server_url(url))
        .collect::<Result<_, _>>()
        .map_err(|error| anyhow::anyhow!("--forward: {error}"))?;
    if let Some(twice) = first_repeated(urls.iter().map(|url| &url.address)) {
        bail!("--forward: {twice} is given twice");
    }
    let tls = urls.iter().filter(|url| url.tls).count();
    if tls != 0 && tls != urls.len() {
        bail!("--forward: servers that take turns all speak TLS (https://), or none of them does");
    }
    let servers = urls.into_iter().map(|url| url.address).collect();
    Ok(if tls == 0 {
        OneLiner::Forward(servers)
    } else {
        OneLiner::ForwardTls(servers)
    })
}

/// The first value that stands in the list before. Port 0 never does: it is another port each time.
fn first_repeated<T: Display + PartialEq>(list: impl Iterator<Item = T> + Clone) -> Option<String> {
    list.clone()
        .enumerate()
        .find(|(at, value)| list.clone().take(*at).any(|before| before == *value))
        .map(|(_, value)| value.to_string())
        .filter(|text| !text.ends_with(":0"))
}

/// Which CPUs of this machine take packets, as far as /sys and /proc say.
fn arrival() -> Option<Arrival> {
    let tree = Tree::open(Path::new("/")).ok()?;
    let found = arrival::read(&tree);
    Some(Arrival {
        online: found.online.iter().collect(),
        network: found.network.map(|cpus| cpus.iter().collect()),
    })
}

fn announce(server: &Server, what: &str) {
    let mut out = Out::standard();
    let addresses: Vec<String> = server
        .addresses()
        .zip(server.speaks_tls())
        .map(|(address, is_tls)| format!("{address}{}", if is_tls { " with TLS" } else { "" }))
        .collect();
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
    let accepting = server.accepting();
    let accepting = accepting.map_or(String::new(), |accepting| format!("\n  {accepting}"));
    // Who cannot read it can still be served. A full disk under a log is an exit code at the end.
    let _ = writeln!(
        out,
        "onrush serves {what}\n  listening on {}\n  {cores} {}, {placed}{accepting}\n  driver {}\n  {}",
        addresses.join(", "),
        if cores == 1 { "core" } else { "cores" },
        server.driver(),
        server.shares(),
    );
    let _ = out.flush();
}
