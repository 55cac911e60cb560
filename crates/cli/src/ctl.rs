//! `onrush ctl`: inspects and changes a running server through its admin interface.

mod cell;
mod connections;
mod profile;
pub(crate) mod server_selector;
mod show;

use std::borrow::Cow;
use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::{Subcommand, ValueEnum};
use onrush_admin::client::{Endpoint, Response, request, stream_events};
use onrush_measure::amount::count;
use serde_json::{Map, Value, json};

use crate::explain_request;
use crate::terminal::{Out, print_error, write_raw};
use server_selector::ServerSelector;

/// Query and control a running server through its admin interface.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  onrush ctl status                                     the process and its cores
  onrush ctl servers                                    groups of servers and their state
  onrush ctl connections --json                         connections of clients, as JSON
  onrush ctl server app 10.0.0.1:80 drain               no new clients for this server
  onrush ctl server app 10.0.0.1:80 --weight 10         a tenth of the requests of weight 100
  onrush ctl reload                                     as SIGHUP does, and print the result
  onrush ctl explain 'GET https://shop.example/cart'    which route it matches, and why
  onrush ctl --address 10.0.0.7:9901 --token-file admin.token servers

Exit codes: 0 done, 1 usage error, or refused by the server with a reason, 2 no admin interface was reached.")]
pub(crate) struct Args {
    #[command(flatten)]
    whom: ServerSelector,
    /// Print the response as JSON
    #[arg(long, global = true, display_order = 99)]
    json: bool,
    #[command(subcommand)]
    what: CtlCommand,
}

#[derive(Subcommand)]
enum CtlCommand {
    /// Show the process and its cores
    Status,
    /// Show groups of servers: state, weight, requests in flight, queue, times
    Servers,
    /// Set the state or the weight of a server
    Server {
        /// Group of the server
        group: String,
        /// Server as written in the configuration, or its address
        server: String,
        /// up: receives requests; drain: only requests of clients that already use it; down: no requests
        state: Option<State>,
        /// Weight, 1 to 256, or "config" for that of the configuration
        #[arg(long, value_name = "N")]
        weight: Option<String>,
    },
    /// Show requests in flight, oldest first
    Requests,
    /// Show open connections of clients, oldest first
    Connections(connections::Args),
    /// Show what the cores spend their time on, by kind of work
    Profile(profile::Args),
    /// Show routes with their requests, responses and times
    Routes,
    /// Show listening addresses with their requests, responses and times
    Listeners,
    /// Print the configuration in force, without secrets
    Config,
    /// Show events: servers going down and coming back, reloads, failures
    Events {
        /// Keep printing new events until Ctrl-C
        #[arg(long, short)]
        follow: bool,
    },
    /// Show or set the level of the error log
    Log {
        #[command(subcommand)]
        what: Log,
    },
    /// Print metrics in the format of Prometheus
    Metrics,
    /// Explain which route a request matches in the configuration in force, and why
    Explain(explain_request::ExplainArgs),
    /// Reload the configuration, as SIGHUP does
    Reload,
    /// Start the program again and hand over to the new process, as SIGUSR2 does
    Upgrade,
    /// Make /ready fail, so that load balancers send no new clients; keep running
    Drain,
    /// Make /ready succeed again
    Undrain,
    /// Stop the server after the requests in flight, as SIGTERM does
    Stop,
}

#[derive(Subcommand)]
enum Log {
    /// Show the level of the error log, or set it until the next reload
    Level {
        /// error, warn, info or debug
        level: Option<String>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum State {
    Up,
    Drain,
    Down,
}

/// Sends the request and prints the response.
pub(crate) fn run(args: &Args) -> ExitCode {
    let place = match args.whom.place() {
        Ok(place) => place,
        Err(unplaced) => return failed(unplaced.code, &unplaced.why),
    };
    let (path, body) = match request_of(&args.what) {
        Ok(question) => question,
        Err(error) => return failed(1, &error),
    };
    if let CtlCommand::Events { follow: true } = args.what {
        return follow_events(&place, &path, args);
    }
    let response = match &args.what {
        CtlCommand::Profile(asked) => profile::fetch(&place, asked),
        _ => request(&place, &path, body.as_deref()),
    };
    match response.with_context(|| format!("cannot query {place}")) {
        Ok(response) => print(&response, args),
        Err(error) => failed(2, &error),
    }
}

/// Prints events as they happen, until the server ends.
fn follow_events(place: &Endpoint, path: &str, args: &Args) -> ExitCode {
    let followed = stream_events(place, path, |event| {
        let text = match args.json {
            true => format!("{event}\n"),
            false => show::event(event),
        };
        let mut out = Out::standard();
        out.write_all(text.as_bytes())?;
        out.flush()
    });
    match followed.with_context(|| format!("no events from {place}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(2, &error),
    }
}

fn failed(code: u8, error: &anyhow::Error) -> ExitCode {
    print_error(format_args!("onrush ctl: {error:#}"));
    ExitCode::from(code)
}

/// Path and body of the request for a command.
fn request_of(what: &CtlCommand) -> anyhow::Result<(Cow<'static, str>, Option<String>)> {
    let nothing = || Some(String::new());
    let (path, body) = match what {
        CtlCommand::Status => ("/v1/status", None),
        CtlCommand::Servers => ("/v1/servers", None),
        CtlCommand::Server {
            group,
            server,
            state,
            weight,
        } => (
            "/v1/servers",
            Some(change(group, server, *state, weight.as_deref())?),
        ),
        CtlCommand::Requests => ("/v1/requests", None),
        CtlCommand::Connections(asked) => return Ok((asked.path().into(), None)),
        CtlCommand::Profile(_) => (profile::PATH, None),
        CtlCommand::Routes => ("/v1/routes", None),
        CtlCommand::Listeners => ("/v1/listeners", None),
        CtlCommand::Config => ("/v1/config", None),
        CtlCommand::Events { .. } => ("/v1/events", None),
        CtlCommand::Log {
            what: Log::Level { level },
        } => (
            "/v1/log",
            level
                .as_ref()
                .map(|level| json!({ "level": level }).to_string()),
        ),
        CtlCommand::Metrics => ("/metrics", None),
        CtlCommand::Explain(asked) => ("/v1/explain", Some(asked.as_json().to_string())),
        CtlCommand::Reload => ("/v1/reload", nothing()),
        CtlCommand::Upgrade => ("/v1/upgrade", nothing()),
        CtlCommand::Drain => ("/v1/drain", Some(json!({ "drain": true }).to_string())),
        CtlCommand::Undrain => ("/v1/drain", Some(json!({ "drain": false }).to_string())),
        CtlCommand::Stop => ("/v1/stop", nothing()),
    };
    Ok((path.into(), body))
}

fn change(
    group: &str,
    server: &str,
    state: Option<State>,
    weight: Option<&str>,
) -> anyhow::Result<String> {
    let mut wanted = Map::new();
    wanted.insert("group".into(), group.into());
    wanted.insert("server".into(), server.into());
    if let Some(state) = state {
        let word = match state {
            State::Up => "up",
            State::Drain => "drain",
            State::Down => "down",
        };
        wanted.insert("state".into(), word.into());
    }
    if let Some(text) = weight {
        let weight = match text {
            "config" => Value::Null,
            text => match count(text) {
                Ok(number @ 1..=256) => number.into(),
                _ => bail!("--weight {text:?}: expected a number from 1 to 256, or \"config\""),
            },
        };
        wanted.insert("weight".into(), weight);
    }
    if wanted.len() == 2 {
        bail!("nothing to set on server {server} of {group}: expected up, drain, down or --weight");
    }
    Ok(Value::Object(wanted).to_string())
}

fn print(response: &Response, args: &Args) -> ExitCode {
    let is_text = matches!(args.what, CtlCommand::Metrics);
    if response.status == 200 && (args.json || is_text) {
        write_raw(&response.body);
        return ExitCode::SUCCESS;
    }
    let said = response.json();
    if response.status != 200 {
        let why = said["error"].as_str().map_or_else(
            || format!("the server responded with the status {}", response.status),
            str::to_owned,
        );
        if args.json {
            write_raw(&response.body);
        }
        return failed(1, &anyhow::anyhow!(why));
    }
    if !said.is_object() {
        let why = "the response is not a JSON object: whether the command was applied is unknown";
        return failed(2, &anyhow::anyhow!(why));
    }
    let text = match &args.what {
        CtlCommand::Status => show::status(&said),
        CtlCommand::Servers => show::servers(&said),
        CtlCommand::Requests => show::requests(&said),
        CtlCommand::Connections(_) => connections::show(&said),
        CtlCommand::Profile(asked) => match profile::show(&said, asked.core) {
            Ok(text) => text,
            Err(error) => return failed(1, &error),
        },
        CtlCommand::Routes => show::traffic(&said["routes"], "route"),
        CtlCommand::Listeners => show::traffic(&said["listeners"], "listener"),
        CtlCommand::Config => show::configuration(&said),
        CtlCommand::Events { .. } => show::events(&said["events"]),
        CtlCommand::Log { .. } => format!("{}\n", said["level"].as_str().unwrap_or("")),
        CtlCommand::Explain(_) => explain_request::show(&said),
        CtlCommand::Reload => show::reload(&said),
        CtlCommand::Upgrade => format!("process {} serves\n", said["process"]),
        CtlCommand::Server { .. } => format!("changed {}\n", counted(&said["changed"], "server")),
        CtlCommand::Drain | CtlCommand::Undrain => {
            format!("{}\n", said["phase"].as_str().unwrap_or(""))
        }
        CtlCommand::Stop => {
            "the server is stopping and finishes the requests in flight\n".to_owned()
        }
        CtlCommand::Metrics => String::new(),
    };
    let _ = Out::standard().write_all(text.as_bytes());
    if let Some(silent) = said["silent_cores"]
        .as_array()
        .filter(|all| !all.is_empty())
    {
        let cores: Vec<String> = silent.iter().map(Value::to_string).collect();
        let which = cores.join(", ");
        let error = anyhow::anyhow!("core {which} did not answer in time and is missing above");
        return failed(1, &error);
    }
    ExitCode::SUCCESS
}

fn counted(count: &Value, what: &str) -> String {
    let ending = if *count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, Command};

    fn check(command: &Command) {
        for name in ["json", "address", "pid", "token_file"] {
            let has = command.get_arguments().any(|arg| arg.get_id() == name);
            assert!(has, "{} has no {name}", command.get_name());
        }
        let commands = command.get_subcommands();
        let others = commands.filter(|command| command.get_name() != "help");
        others.for_each(check);
    }

    #[test]
    fn commands_accept_global_options() {
        let mut command = Args::augment_args(Command::new("ctl"));
        command.build();
        assert!(command.get_subcommands().count() > 10);
        check(&command);
    }
}
