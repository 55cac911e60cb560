//! `onrush top`: live view of a running server in a terminal.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use onrush_admin::client::{Endpoint, request, stream_events};
use onrush_top::draw::draw;
use onrush_top::keys::Action;
use onrush_top::moment::Snapshot;
use onrush_top::text::text;
use onrush_top::view::{StateChange, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::ctl::server_selector::ServerSelector;
use crate::terminal::{Out, print_error, write_raw};

/// Path of the live figures.
const LIVE: &str = "/v1/live";

/// How long a server may be gone, as in an upgrade, and the interval of reconnects.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(250);

/// Figures older than this are marked as old; new ones arrive each second.
const OLD: Duration = Duration::from_millis(2500);

/// Interval of key polling.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Watch a running server in the terminal.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush top                                            the only server of this user
  onrush top --once                                     one second, as text
  onrush top --once --json | jq '.routes[]'             the same as JSON
  onrush top --address 10.0.0.7:9901 --token-file admin.token

Exit codes: 0 done, 1 usage, 2 no admin interface was reached, or the server has ended.")]
pub(crate) struct Args {
    #[command(flatten)]
    whom: ServerSelector,
    /// Measure for one second, print the result and exit
    #[arg(long)]
    once: bool,
    /// Print JSON, with --once
    #[arg(long, requires = "once")]
    json: bool,
}

/// An event for the view.
enum ViewEvent {
    Moment(Value),
    /// No more figures will arrive.
    End(io::Result<()>),
    /// A terminating signal arrived.
    Signal,
    /// Outcome of a user action.
    Done(String),
}

/// Shows the server until a key or the server ends the view.
pub(crate) fn run(args: &Args) -> ExitCode {
    let place = match args.whom.place() {
        Ok(place) => place,
        Err(unplaced) => return failed(unplaced.code, &unplaced.why),
    };
    let shown = match args.once {
        true => once(&place, args),
        false if !io::stdout().is_terminal() => {
            let why = anyhow::anyhow!(
                "standard output is not a terminal: expected --once for text, or --once --json"
            );
            return failed(1, &why);
        }
        false => live(place),
    };
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(2, &error),
    }
}

fn failed(code: u8, error: &anyhow::Error) -> ExitCode {
    print_error(format_args!("onrush top: {error:#}"));
    ExitCode::from(code)
}

fn once(place: &Endpoint, args: &Args) -> anyhow::Result<()> {
    let response = request(place, LIVE, None).with_context(|| format!("cannot query {place}"))?;
    let said = response.json();
    if response.status != 200 {
        let why = said["error"].as_str().unwrap_or("no reason given");
        anyhow::bail!(
            "{place} responds with the status {}: {why}",
            response.status
        );
    }
    if args.json {
        write_raw(&response.body);
        return Ok(());
    }
    let mut view = View::default();
    view.push(Snapshot::of(&said));
    Out::standard().write_all(text(&view).as_bytes())?;
    Ok(())
}

fn live(place: Endpoint) -> anyhow::Result<()> {
    let (tell, news) = channel();
    // Before the terminal is taken over: a connection error is then a plain message.
    let listening = (place.clone(), tell.clone());
    thread::Builder::new()
        .name("live".into())
        .spawn(move || listen(&listening.0, &listening.1))?;
    let first = match news.recv().context("nothing came")? {
        ViewEvent::Moment(said) => said,
        ViewEvent::End(outcome) => {
            outcome.with_context(|| format!("cannot query {place}"))?;
            anyhow::bail!("the server on {place} has ended");
        }
        ViewEvent::Done(_) | ViewEvent::Signal => Value::Null,
    };
    let mut view = View::default();
    view.push(Snapshot::of(&first));
    // Signals end the view, which restores the terminal.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT])?;
    let heard = tell.clone();
    thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                // Ignore the error: the receiver may be gone.
                let _ = heard.send(ViewEvent::Signal);
            }
        })?;
    let terminal = ratatui::try_init().context("cannot use the terminal")?;
    let outcome = show(terminal, view, (&news, &tell), &place);
    ratatui::restore();
    outcome
}

/// Receives figures until the server has been gone for [`PATIENCE`]: another process may take over its address.
fn listen(place: &Endpoint, tell: &Sender<ViewEvent>) {
    let mut last = None;
    loop {
        let end = stream_events(place, LIVE, |said| {
            last = Some(Instant::now());
            let heard = tell.send(ViewEvent::Moment(said.clone()));
            heard.map_err(|_| io::ErrorKind::BrokenPipe.into())
        });
        // Ignore the error: the view may have ended.
        let is_over = last.is_none_or(|last| last.elapsed() > PATIENCE);
        if is_over {
            let _ = tell.send(ViewEvent::End(end));
            return;
        }
        thread::sleep(PAUSE);
    }
}

/// Draws until a key or the server ends the view.
fn show(
    mut terminal: DefaultTerminal,
    mut view: View,
    (news, tell): (&Receiver<ViewEvent>, &Sender<ViewEvent>),
    place: &Endpoint,
) -> anyhow::Result<()> {
    let mut last = Instant::now();
    loop {
        let silence = last.elapsed();
        view.set_overdue((silence > OLD).then_some(silence));
        terminal.draw(|frame| draw(frame, &view))?;
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else {
                continue;
            };
            match view.press(key) {
                Action::Nothing => {}
                Action::End => return Ok(()),
                Action::Wish(wish) => {
                    let (place, tell) = (place.clone(), tell.clone());
                    // A slow admin interface must not block the keys.
                    thread::spawn(move || tell.send(ViewEvent::Done(carry_out(&place, &wish))));
                }
            }
        }
        match news.recv_timeout(LOOK_EVERY) {
            Ok(ViewEvent::Moment(said)) => {
                last = Instant::now();
                view.push(Snapshot::of(&said));
            }
            Ok(ViewEvent::Signal) => return Ok(()),
            Ok(ViewEvent::Done(said)) => view.notice(said),
            Ok(ViewEvent::End(outcome)) => {
                outcome.with_context(|| format!("lost the connection to {place}"))?;
                anyhow::bail!("the server on {place} has ended");
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => unreachable!("a sender is here"),
        }
    }
}

/// Carries out an action of the user; returns a message for the view.
fn carry_out(place: &Endpoint, wish: &StateChange) -> String {
    let StateChange {
        group,
        address,
        state,
    } = wish;
    let body = json!({ "group": group, "server": address, "state": state }).to_string();
    match request(place, "/v1/servers", Some(&body)) {
        Ok(response) if response.status == 200 => {
            format!("server {address} of {group} is set to {state}")
        }
        Ok(response) => {
            let said = response.json();
            let why = said["error"].as_str().unwrap_or("no reason given");
            format!("nothing was done: {why}")
        }
        Err(error) => format!("nothing was done: {error}"),
    }
}
