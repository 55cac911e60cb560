//! `onrush serve`: a plan from a file or from flags, a start-up line, and a graceful end on a signal.

mod admin;
mod args;
mod config_files;
mod config_source;
mod confinement;
mod control;
mod describe;
mod error_log;
mod handover;
mod packet_cpus;
mod privileges;
mod reload;
mod server_command;
mod signals;
mod socket_files;
mod supervisor;
mod upgrade;
mod user;
mod watch;
mod watchdog;

use std::fmt::Display;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Context;
use onrush_admin::CurrentToken;
use onrush_config::plan;
use onrush_engine::Claim;
use onrush_serve::{Prepared, Server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use signal_hook::iterator::Signals;
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder};

use crate::terminal::{Out, print_error};
use args::plan as plan_of;
use control::Control;
use describe::{describe, describe_protocol};
use error_log::ErrorLog;
use packet_cpus::arrival;
use privileges::{Inherited, Privileges};
use reload::Reloader;
use server_command::{ServerCommand, handle_commands_during_shutdown};
use upgrade::Invocation;
use watch::{Watch, WatchedFiles};

pub(crate) use admin::token;
pub(crate) use args::Args;
pub(crate) use config_source::{Audience, ConfigSource, checked, refusal, warn};
pub(crate) use privileges::{denied_to, of_reload, user};
pub(crate) use user::User;

/// Log lines that may wait for a slow reader: some hundred KiB.
const LOG_LINES_MAX: usize = 4096;

/// Time that a full pipe gets at the end to take the last lines of standard output.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until SIGINT, SIGTERM or SIGQUIT.
pub(crate) fn run(args: Args) -> ExitCode {
    match serve(args) {
        Ok(Output::Read) => ExitCode::SUCCESS,
        // Lines of the start may still wait for the reader, and a flush would wait for it.
        Ok(Output::Unread) => std::process::exit(0),
        Err(error) => {
            print_error(format_args!("onrush serve: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn serve(args: Args) -> anyhow::Result<Output> {
    let bound = bind(&args)?;
    let admin_plan = bound.prepared.plan().admin.clone();
    let is_admin_kept = bound.start.has_admin();
    let (written, privileges) = (bound.written, bound.privileges);
    // Threads start here: none of them has ever had other rights than these.
    //
    // The reader of standard error may have stopped: lines that do not fit are dropped and counted, and no core waits.
    let (mut log, _flushed_at_the_end) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_MAX)
        .finish(std::io::stderr());
    let error_log = &ErrorLog::start(log.clone());
    error_log.follow(bound.prepared.plan().error_log);
    let (ask, asked) = mpsc::channel();
    signals::wait(bound.signals, ask.clone()).context("cannot wait for signals")?;
    let mut server = start_server(bound.prepared, bound.predecessor)?;
    let watch = watching(bound.watched.filter(|_| args.watch), &ask)?;
    let asking = (&ask, error_log);
    let about = admin::AdminContext::new(&server, written.as_ref(), asking, &privileges);
    let (readiness, in_force) = (about.readiness.clone(), about.in_force.clone());
    let token = bound.token.clone();
    let interface = match admin::start(bound.admin_place, bound.token, about) {
        Ok(interface) => interface,
        Err(error) => {
            server.stop();
            return Err(error);
        }
    };
    let address = interface.address();
    let announced = print(announcement(&server, &bound.what, &privileges, address));
    supervisor::ready();
    watchdog::start(server.handles()).context("cannot start the watchdog")?;
    socket_files::watch(in_force.clone()).context("cannot watch the sockets")?;
    let control = Control {
        reloading: Reloader::new(
            &args,
            written,
            watch,
            (in_force, error_log.clone(), token),
            privileges,
        ),
        start: bound.start,
        ask,
        next: None,
        readiness,
    };
    let end = control.run(&mut server, &asked);
    if end.successor().is_some() && (admin_plan != plan::Admin::Default || is_admin_kept) {
        // The next process waits for the interface's address, or has its socket.
        interface.end();
    }
    let said = format!("{end}\n");
    // Written through the log, which keeps the order of lines and never waits for a reader.
    let _ = log.write_all(said.as_bytes());
    handle_commands_during_shutdown(asked, server.handles(), end.successor());
    let totals = server.stop();
    interface.end();
    let output = output();
    if output == Output::Read {
        print_end(announced, &log, &totals);
    }
    Ok(output)
}

/// State of standard output at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    Read,
    /// The pipe is full.
    Unread,
}

/// Prints the last lines, after the lines of the start.
fn print_end(announced: Option<JoinHandle<()>>, log: &NonBlocking, totals: &impl Display) {
    if let Some(announced) = announced {
        // A panic of the thread has already been printed.
        let _ = announced.join();
    }
    print_dropped_log_lines(log);
    let _ = writeln!(Out::standard(), "served {totals}");
}

fn watching(
    watched: Option<WatchedFiles>,
    ask: &Sender<ServerCommand>,
) -> anyhow::Result<Option<Watch>> {
    let watch = watched.map(|watched| Watch::start(watched, ask.clone()));
    watch.transpose().context("cannot watch the files")
}

/// State of the server before it has threads.
struct Bound {
    start: Invocation,
    written: Option<ConfigSource>,
    /// Description in the start-up line.
    what: String,
    watched: Option<WatchedFiles>,
    signals: Signals,
    prepared: Prepared,
    predecessor: Option<OwnedFd>,
    token: Option<CurrentToken>,
    admin_place: admin::AdminAddress,
    privileges: Privileges,
}

/// Reads and binds everything, and drops the rights that the configuration gives up.
fn bind(args: &Args) -> anyhow::Result<Bound> {
    // Before anything else opens files.
    let passed = onrush_engine::passed()?;
    let start = Invocation::of_this_process().context("cannot find the path of this program")?;
    let handed = upgrade::receive_from_predecessor()?;
    let written = args.config.as_deref().map(ConfigSource::read).transpose()?;
    let plan = plan_of(args, written.as_ref(), Audience::Terminal)?;
    let user = privileges::user(&plan)?;
    privileges::check_start(user.as_ref(), &plan, written.as_ref())?;
    // Before anything is bound, so that a signal in between is not lost.
    let signals = signals::catch().context("cannot wait for signals")?;
    let what = describe(&plan);
    let admin_plan = plan.admin.clone();
    let token = admin::token(&admin_plan)?.map(CurrentToken::new);
    let watched = written.as_ref();
    let watched = watched.map(|written| WatchedFiles::of(written).with(&plan));
    let checked = checked(plan, written.as_ref(), Audience::Terminal)?;
    let before = admin::AddressHolder::of(handed.as_ref());
    let inherited = handed
        .as_ref()
        .map_or(Inherited::default(), |handed| handed.inherited);
    let (handover, handed_admin, socket) = match handed {
        Some(handed) => (Some(handed.server), handed.admin, Some(handed.socket)),
        None => (None, None, None),
    };
    let (for_admin, passed) = admin::split_passed(&admin_plan, passed)?;
    let prepared = Prepared::new(
        checked.with_receiving_cpus(arrival()),
        handover,
        passed,
        user.as_ref().map(|user| &user.identity),
    )?;
    let admin_place = match handed_admin.map(Ok).or(for_admin.map(Claim::of_passed)) {
        Some(claim) => admin::AdminAddress::Claimed(claim?),
        None => admin::claim(&admin_plan, before, user.as_ref())?,
    };
    let mut privileges =
        Privileges::reduce(user, &prepared, admin_place.claim(), written.as_ref())?;
    let used = (prepared.plan(), written.as_ref());
    privileges.confine(used, admin_place.claim(), start.program(), inherited)?;
    privileges.refuse_calls(&prepared.plan().process, inherited)?;
    let start = start.with_inherited(&admin_place, &privileges)?;
    Ok(Bound {
        start,
        written,
        what,
        watched,
        signals,
        prepared,
        predecessor: socket,
        token,
        admin_place,
        privileges,
    })
}

/// Waits until standard output accepts a line, for at most [`OUTPUT_TIMEOUT`]; a signal restarts the wait.
fn output() -> Output {
    let output = std::io::stdout();
    let patience = Timespec::try_from(OUTPUT_TIMEOUT).expect("it is short");
    let mut polled = [PollFd::new(&output, PollFlags::OUT)];
    match retry_on_intr(|| poll(&mut polled, Some(&patience))) {
        Ok(0) => Output::Unread,
        Ok(_) | Err(_) => Output::Read,
    }
}

/// Prints how many lines of the log were dropped.
fn print_dropped_log_lines(log: &NonBlocking) {
    let lost = log.error_counter().dropped_lines();
    if lost > 0 {
        let _ = writeln!(
            Out::standard(),
            "lost {lost} lines of the log: standard output was not read"
        );
    }
}

/// Starts the server. On an upgrade, confirms to the predecessor and takes over from it.
fn start_server(prepared: Prepared, predecessor: Option<OwnedFd>) -> anyhow::Result<Server> {
    let (server, taken) = prepared.start()?;
    let Some(socket) = predecessor else {
        return Ok(server);
    };
    match handover::confirm(socket, &taken) {
        Ok(()) => {
            server.take_over();
            Ok(server)
        }
        Err(error) => {
            server.stop();
            Err(error.context("the running server has ended"))
        }
    }
}

/// Prints on a separate thread: the reader of standard output may have stopped, and signals must still be handled.
fn print(text: String) -> Option<JoinHandle<()>> {
    let printing = move || {
        let mut out = Out::standard();
        // A failed write does not stop the server; it becomes the exit code at the end.
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    };
    thread::Builder::new()
        .name("output".into())
        .spawn(printing)
        .ok()
}

fn announcement(
    server: &Server,
    what: &str,
    privileges: &Privileges,
    admin: Option<String>,
) -> String {
    let addresses: Vec<String> = server
        .addresses()
        .zip(server.uses_tls().zip(server.protocols()))
        .map(|(address, (is_tls, protocol))| {
            let tls = if is_tls { " with TLS" } else { "" };
            format!("{address}{}{tls}", describe_protocol(protocol))
        })
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
    let placed = match server.plan().busy_poll {
        true => format!("{placed}, busy polling"),
        false => placed,
    };
    let passed: Vec<String> = server
        .managed_addresses()
        .map(ToString::to_string)
        .collect();
    let passed = match passed.is_empty() {
        true => String::new(),
        false => format!(
            "\n  sockets of the service manager: {}; all cores share their queues",
            passed.join(", ")
        ),
    };
    let accepting = server.distribution();
    let accepting = accepting.map_or(String::new(), |accepting| format!("\n  {accepting}"));
    let privileges = privileges.describe();
    let privileges = privileges.iter().map(|said| format!("\n  {said}"));
    let privileges: String = privileges.collect();
    let admin = admin.map_or(String::new(), |address| {
        format!("\n  admin interface on {address}")
    });
    format!(
        "onrush serves {what}\n  listening on {}\n  {cores} {}, {placed}{passed}{accepting}\n  driver {}\n  {}{privileges}{admin}\n",
        addresses.join(", "),
        if cores == 1 { "core" } else { "cores" },
        server.driver(),
        server.shares(),
    )
}
