//! Command line of `onrush serve`, and the plan that it describes.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use onrush_config::address::{
    ServerUrl, check_datagrams, check_reach, parse_listen, parse_server_url,
};
use onrush_config::plan::{Accept, Io, Listener, LoadTarget, OneLiner, Plan, Protocol};
use onrush_config::value::{parse_cpus, parse_respond, parse_run_as, parse_threads, parse_tls};

use super::config_source::{Audience, ConfigSource};

/// Serve a directory, fixed or synthetic responses, other servers, or a configuration file.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush serve ./public                             files, on 127.0.0.1:8080
  onrush serve --respond 200:hello --listen :8000   the same response to all requests
  onrush serve --synthetic                          responses as the query says: /?s=10k&t=50
  onrush serve --forward http://10.0.0.1:8000       a proxy in front of one server
  onrush serve ./public --tls self-signed           files over https
  onrush serve ./public --listen :80 --user www-data   started as root, then runs as www-data
  onrush serve --echo 127.0.0.1:7                   send everything back, over TCP and UDP
  onrush serve --sink 10.0.0.1:9                    count and discard everything
  onrush serve --config onrush.toml                 everything from a file

Exit codes: 0 stopped by a signal, or replaced by another process (SIGUSR2), 1 usage or configuration error, the server cannot start, or standard output cannot be written.")]
pub(crate) struct Args {
    /// Serve the files in this directory
    #[arg(value_name = "DIR", group = "what")]
    directory: Option<PathBuf>,
    /// Respond to every request with this, such as 200:hello
    #[arg(long, value_name = "STATUS[:BODY]", group = "what")]
    respond: Option<String>,
    /// Respond as the query says, in the syntax of httpterm: /?s=SIZE&t=MS (GET /?h for help)
    #[arg(long, group = "what")]
    synthetic: bool,
    /// Forward to this server, such as http://10.0.0.1:8000; repeatable
    #[arg(long, value_name = "URL", group = "what")]
    forward: Vec<String>,
    /// Read the configuration from this file (TOML)
    #[arg(long, value_name = "FILE", group = "what")]
    pub(super) config: Option<PathBuf>,
    /// Reload the file when it changes, as SIGHUP does
    #[arg(long, requires = "config", hide_short_help = true)]
    pub(super) watch: bool,
    // In the attribute: rustdoc takes the brackets for a link.
    #[arg(
        help = "Listen on this address (IP:PORT, :PORT, [IPV6]:PORT or unix:PATH); repeatable [default: 127.0.0.1:8080]",
        long,
        value_name = "ADDR"
    )]
    listen: Vec<String>,
    /// Use TLS on --listen, with a self-signed certificate or these PEM files
    #[arg(long, value_name = "self-signed|CERT,KEY")]
    tls: Option<String>,
    /// Echo: send back everything received on this address, over TCP and UDP (RFC 862); repeatable, also together with --sink
    #[arg(long, value_name = "ADDR", conflicts_with = "what")]
    echo: Vec<String>,
    /// Sink: count and discard everything received on this address, over TCP and UDP (RFC 863); repeatable
    #[arg(long, value_name = "ADDR", conflicts_with = "what")]
    sink: Vec<String>,
    /// Let --echo and --sink listen on public addresses, not only on loopback and private networks
    #[arg(long, hide_short_help = true)]
    public: bool,
    /// Drop root privileges: switch to this user after opening all sockets and files [default: keep the user]
    #[arg(long, value_name = "USER[:GROUP]")]
    user: Option<String>,
    /// Use this many cores (engine threads) [default: one per CPU this process may use]
    #[arg(long, value_name = "COUNT")]
    threads: Option<String>,
    /// Pin the cores to these CPUs, such as 0,2-3
    #[arg(long, value_name = "LIST", hide_short_help = true)]
    cpus: Option<String>,
    /// Use this kernel interface [default: auto]
    #[arg(long, value_enum, value_name = "DRIVER", hide_short_help = true)]
    io: Option<IoArg>,
    /// Assign connections to cores by the CPU that receives their packets, or by hash [default: auto]
    #[arg(long, value_enum, value_name = "HOW", hide_short_help = true)]
    accept: Option<AcceptArg>,
    /// Busy-poll: each core uses a whole CPU and never sleeps, which saves the wake-up before a response
    #[arg(long, hide_short_help = true)]
    busy_poll: bool,
}

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

/// The plan of the file or of the flags; flags override the file.
pub(super) fn plan(
    args: &Args,
    written: Option<&ConfigSource>,
    audience: Audience,
) -> anyhow::Result<Plan> {
    let far_ends = load_targets(args)?;
    let listen = match far_ends.is_empty() {
        true => listen(args)?,
        false => far_ends,
    };
    let mut plan = match written {
        Some(written) => {
            let mut plan = written.plan(audience)?;
            if !listen.is_empty() {
                if plan.routes.is_empty() {
                    bail!(
                        "--listen: the file has no [[route]], so there is no response for this address"
                    );
                }
                plan.replace_listeners(listen)
                    .map_err(|error| anyhow::anyhow!("--listen: {error}"))?;
            }
            plan
        }
        None => Plan::one_liner(one_liner(args)?, listen),
    };
    if let Some(text) = &args.user {
        let run_as = parse_run_as(text).map_err(|error| anyhow::anyhow!("--user: {error}"))?;
        plan.process.run_as = Some(run_as);
    }
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
    plan.busy_poll |= args.busy_poll;
    Ok(plan)
}

/// Listeners of `--echo` and `--sink`, each with its own address.
fn load_targets(args: &Args) -> anyhow::Result<Vec<Listener>> {
    let flags = [
        (
            "--echo",
            &args.echo,
            Protocol::Echo as fn(LoadTarget) -> Protocol,
        ),
        ("--sink", &args.sink, Protocol::Sink),
    ];
    let mut all = Vec::new();
    for (flag, addresses, protocol) in flags {
        for text in addresses {
            let listen = far_end(text, args).map_err(|error| anyhow::anyhow!("{flag}: {error}"))?;
            all.push(Listener {
                protocol: protocol(LoadTarget::default()),
                ..listen
            });
        }
    }
    if all.is_empty() {
        if args.public {
            bail!("--public is only for --echo and --sink");
        }
        return Ok(all);
    }
    if !args.listen.is_empty() || args.tls.is_some() {
        bail!(
            "--listen and --tls apply only to HTTP: --echo and --sink set their own addresses; for a combination use a file (--config)"
        );
    }
    if let Some(twice) = first_repeated(all.iter().map(|listen| &listen.address)) {
        bail!("--echo and --sink: {twice} is given twice");
    }
    Ok(all)
}

fn far_end(text: &str, args: &Args) -> anyhow::Result<Listener> {
    let listen = parse_listen(text)?;
    check_datagrams(&listen.address)?;
    match check_reach(&listen.address) {
        Err(why) if !args.public => bail!("{why}, or --public"),
        Ok(()) | Err(_) => Ok(listen),
    }
}

/// Listeners of the flags; empty when the file or the default applies.
fn listen(args: &Args) -> anyhow::Result<Vec<Listener>> {
    let mut listen: Vec<Listener> = args
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
            bail!("--tls needs --listen; a [[listen]] of the file has its own key tls");
        }
        listen.push(Listener::default());
    }
    for one in &mut listen {
        one.tls = Some(tls.clone());
    }
    Ok(listen)
}

fn one_liner(args: &Args) -> anyhow::Result<OneLiner> {
    if !args.echo.is_empty() || !args.sink.is_empty() {
        return Ok(OneLiner::LoadTargets);
    }
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
            "nothing to serve: pass a directory, --respond, --synthetic, --forward, --echo, --sink or --config (see --help)"
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
        bail!("--forward: expected https:// for all servers, or for none");
    }
    let servers = urls.into_iter().map(|url| url.address).collect();
    Ok(if tls == 0 {
        OneLiner::Forward(servers)
    } else {
        OneLiner::ForwardTls(servers)
    })
}

/// First value that occurs earlier in the list. Port 0 is excluded: it is a different port each time.
fn first_repeated<T: Display + PartialEq>(list: impl Iterator<Item = T> + Clone) -> Option<String> {
    list.clone()
        .enumerate()
        .find(|(at, value)| list.clone().take(*at).any(|before| before == *value))
        .map(|(_, value)| value.to_string())
        .filter(|text| !text.ends_with(":0"))
}
