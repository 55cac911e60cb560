//! `onrush serve`: a plan from a file or from one-liners, a start-up line, and a clean end on a signal.

mod admin;
mod args;
mod arrival;
mod asked;
mod control;
mod describe;
mod disk;
mod error_log;
mod handover;
mod reload;
mod signals;
mod supervisor;
mod upgrade;
mod watch;
mod watchdog;
mod written;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::Context;
use onrush_config::plan;
use onrush_serve::{Checked, Handover, Server};
use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder};

use crate::terminal::{Out, say};
use args::plan as plan_of;
use arrival::arrival;
use asked::hasten;
use control::Control;
use describe::describe;
use error_log::ErrorLog;
use reload::Reloading;
use upgrade::Start;
use watch::{Watch, Watched};

pub(crate) use args::Args;
pub(crate) use written::{Audience, Written, checked};

/// Lines of the log that wait for whoever reads it: some hundred KiB.
const LOG_LINES_MAX: usize = 4096;

/// Serves until SIGINT, SIGTERM or SIGQUIT.
pub(crate) fn run(args: Args) -> ExitCode {
    // Whoever reads standard error may have stopped: lines that do not fit are lost and counted, and no core waits.
    let (log, _flushed_at_the_end) = NonBlockingBuilder::default()
        .lossy(true)
        .buffered_lines_limit(LOG_LINES_MAX)
        .finish(std::io::stderr());
    let error_log = ErrorLog::start(log.clone());
    match serve(args, log, &error_log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(format_args!("onrush serve: {error:#}"));
            ExitCode::from(1)
        }
    }
}

fn serve(args: Args, mut log: NonBlocking, error_log: &ErrorLog) -> anyhow::Result<()> {
    let start = Start::of_this_process().context("cannot tell which program this is")?;
    let handed = upgrade::handed()?;
    let written = args.config.as_deref().map(Written::read).transpose()?;
    let plan = plan_of(&args, written.as_ref(), Audience::Terminal)?;
    error_log.follow(plan.error_log);
    let (ask, asked) = mpsc::channel();
    // Before the cores start, so that a signal cannot fall between.
    signals::wait(ask.clone()).context("cannot wait for signals")?;
    let what = describe(&plan);
    let admin_plan = plan.admin.clone();
    let token = admin::token(&admin_plan)?;
    let watched = written.as_ref();
    let watched = watched.map(|written| Watched::of(written).with(&plan));
    let checked = checked(plan, written.as_ref(), Audience::Terminal)?;
    let before = admin::Before::of(handed.as_ref());
    let mut server = started(checked.arriving(arrival()), handed)?;
    let watch = watched.filter(|_| args.watch);
    let watch = watch.map(|watched| Watch::start(watched, ask.clone()));
    let watch = watch
        .transpose()
        .context("cannot watch the configuration")?;
    let about = admin::About::new(&server, written.as_ref(), (&ask, error_log));
    let (readiness, in_force) = (about.readiness.clone(), about.in_force.clone());
    let interface = admin::start(&admin_plan, token, about, before);
    let interface = match interface {
        Ok(interface) => interface,
        Err(error) => {
            server.stop();
            return Err(error);
        }
    };
    let announced = print(announcement(&server, &what, interface.address()));
    supervisor::ready();
    watchdog::start(server.handles()).context("cannot start the watchdog")?;
    let control = Control {
        reloading: Reloading::new(&args, written, watch, (in_force, error_log.clone())),
        start,
        ask,
        next: None,
        readiness,
    };
    let end = control.until_the_end(&mut server, &asked);
    if end.successor().is_some() && admin_plan != plan::Admin::Default {
        // The next process waits for its address.
        interface.end();
    }
    let said = format!("{end}\n");
    // In the log's own order, and as patient as it is.
    let _ = log.write_all(said.as_bytes());
    hasten(asked, server.handles(), end.successor());
    let totals = server.stop();
    interface.end();
    if let Some(announced) = announced {
        // Its panic has been printed.
        let _ = announced.join();
    }
    say_what_was_lost(&log);
    let _ = writeln!(Out::standard(), "served {totals}");
    Ok(())
}

/// Lines of the log that did not fit.
fn say_what_was_lost(log: &NonBlocking) {
    let lost = log.error_counter().dropped_lines();
    if lost > 0 {
        let _ = writeln!(
            Out::standard(),
            "lost {lost} lines of the log, which nobody read"
        );
    }
}

/// The server, where there is one in force already in its place.
fn started(checked: Checked, handed: Option<(Handover, OwnedFd)>) -> anyhow::Result<Server> {
    let Some((handover, socket)) = handed else {
        return Ok(Server::start(checked)?);
    };
    let (server, taken) = Server::start_beside(checked, handover)?;
    match handover::confirm(socket, &taken) {
        Ok(()) => {
            server.take_over();
            Ok(server)
        }
        Err(error) => {
            server.stop();
            Err(error.context("the server in force has ended"))
        }
    }
}

/// Prints on a thread of its own: whoever reads standard output may have stopped, and signals are to be heard meanwhile.
fn print(text: String) -> Option<JoinHandle<()>> {
    let printing = move || {
        let mut out = Out::standard();
        // Who cannot read it can still be served. A full disk under a log is an exit code at the end.
        let _ = out.write_all(text.as_bytes());
        let _ = out.flush();
    };
    thread::Builder::new()
        .name("output".into())
        .spawn(printing)
        .ok()
}

fn announcement(server: &Server, what: &str, admin: Option<String>) -> String {
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
    let admin = admin.map_or(String::new(), |address| {
        format!("\n  admin interface on {address}")
    });
    format!(
        "onrush serves {what}\n  listening on {}\n  {cores} {}, {placed}{accepting}\n  driver {}\n  {}{admin}\n",
        addresses.join(", "),
        if cores == 1 { "core" } else { "cores" },
        server.driver(),
        server.shares(),
    )
}
