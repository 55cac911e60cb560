//! Starts the programs of a trial, locally or on other machines, and waits for them.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::child::{Child, pinned, sleep_until_at_most};
use super::failure::{Failure, Try, failed, is_no_room};
use super::leftover_processes::run_name;
use super::prepare::{PreparedRole, key, prepare};
use super::remote;
use super::running::Running;
use super::subject::{Context, Subject};
use super::synchronized_start::start_time;
use crate::limits::{
    CLIENT_OVERTIME_MAX, OUTPUT_BYTES_MAX, POLL, READY_POLL, READY_WAIT_MAX, SILENCE_MAX,
};
use crate::scenario::{Launch, Program, Role, Values, is_named, render};

pub(super) fn launch(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
) -> Try<Running> {
    if subject.variant.remote.is_some() {
        // Clients started outside of the window, as for a warm-up, get their own start time.
        let start_at = subject.start_at.or_else(|| start_time(context, subject));
        let subject = Subject {
            start_at,
            ..*subject
        };
        return remote::launch(context, &subject, role, ports, length).map(Running::Remote);
    }
    let part = prepare(context, subject, role, ports, length)?;
    let Some(program) = subject.program(context.experiment, role) else {
        return failed(format!("no program has the role {}", role.name()));
    };
    start(context, subject, role, program, &part).map(Running::Local)
}

fn start(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    program: &Program,
    part: &PreparedRole,
) -> Try<Child> {
    let filled = |arguments: &[String]| -> Vec<String> {
        let each = arguments.iter();
        each.flat_map(|argument| for_each_target(argument, &part.values))
            .collect()
    };
    let command = match &program.launch {
        Launch::Onrush(arguments) => {
            let mut command = vec![context.onrush.display().to_string()];
            command.extend(filled(arguments));
            command
        }
        Launch::Command(command) => {
            let mut command = filled(command);
            if let Some(file) = super::child::file_of(&command[0]) {
                command[0] = file.display().to_string();
            }
            command
        }
        Launch::Idle(_) => return failed("idle connections are not a program"),
    };
    let line = pinned(subject.placement.of(role), command);
    let line = match subject.network {
        Some(network) => network.of_role(role, line),
        None => line,
    };
    let child = Child::start(&line, &part.directory, &run_name(context.root)).or_else(|error| {
        if is_no_room(&error) {
            return Err(error.into());
        }
        failed(format!(
            "the {} did not start: {error} ({})",
            role.name(),
            line.join(" ")
        ))
    })?;
    // The last command line is kept: for a client, that of the measured run rather than of the warm-up.
    context
        .environment
        .commands
        .insert(key(subject, role), line);
    Ok(child)
}

/// Repeats an argument with `{targets}` for each address of the target.
fn for_each_target(argument: &str, values: &Values) -> Vec<String> {
    if !is_named(argument, "targets") {
        return vec![render(argument, values)];
    }
    let ways = (0..).map_while(|way| values.get(&format!("target.{way}")));
    ways.map(|target| {
        let mut values = values.clone();
        values.insert("targets".into(), target.clone());
        render(argument, &values)
    })
    .collect()
}

pub(super) fn wait_until_ready(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    child: &Running,
    port: u16,
) -> Try<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + READY_WAIT_MAX;
    loop {
        check(context)?;
        child.truncate_output();
        if child.has_ended() {
            return failed(format!(
                "the {} ended at once; {}",
                role.name(),
                child.output_tail()
            ));
        }
        let is_listening = match (child, subject.network) {
            (Running::Remote(distant), _) => distant.is_listening(port)?,
            (Running::Local(_), Some(network)) => network.is_listening(role, port),
            (Running::Local(_), None) => {
                TcpStream::connect_timeout(&address, READY_WAIT_MAX).is_ok()
            }
        };
        if is_listening {
            return Ok(());
        }
        if Instant::now() > deadline {
            return failed(format!(
                "the {} does not accept connections on {} after {} s; {}",
                role.name(),
                match (child, subject.network) {
                    (Running::Local(_), None) => address.to_string(),
                    (Running::Local(_), Some(_)) | (Running::Remote(_), _) => {
                        format!("port {port} of its host")
                    }
                },
                READY_WAIT_MAX.as_secs(),
                child.output_tail()
            ));
        }
        sleep_until_at_most(READY_POLL, deadline);
    }
}

/// Returns an error if a signal was received or a host was lost.
fn check(context: &Context<'_>) -> Try<()> {
    if context.interrupt.is_requested() {
        return Err(Failure::Interrupted);
    }
    context.hosts.check()
}

pub(super) fn wait_for_end(
    context: &mut Context<'_>,
    client: &Running,
    listeners: &[(Role, Running)],
    length: Duration,
    phase: &str,
    poll: impl FnMut(),
) -> Try<()> {
    wait_for_end_of(
        context,
        (Role::Client, client),
        listeners,
        length,
        phase,
        poll,
    )
}

pub(super) fn wait_for_end_of(
    context: &mut Context<'_>,
    (role, client): (Role, &Running),
    listeners: &[(Role, Running)],
    length: Duration,
    phase: &str,
    mut poll: impl FnMut(),
) -> Try<()> {
    let began = Instant::now();
    let mut deadline = began + length + CLIENT_OVERTIME_MAX;
    if let Running::Remote(_) = client {
        // Longer than the silence after which a lost host is detected, so that it is not mistaken for a slow one.
        deadline += SILENCE_MAX * 2;
    }
    while !client.has_ended() {
        check(context)?;
        if Instant::now() > deadline {
            let words = client.output_tail();
            return failed(format!("the {} did not end; {words}", role_label(role)));
        }
        if client.exceeds_output_limit() {
            let most = OUTPUT_BYTES_MAX >> 20;
            let role = role_label(role);
            return failed(format!("the {role} printed more than {most} MiB"));
        }
        for (_, listener) in listeners {
            listener.truncate_output();
        }
        poll();
        context
            .progress
            .show_load(phase, began, || client.last_second());
        sleep_until_at_most(POLL, deadline);
    }
    Ok(())
}

fn role_label(role: Role) -> &'static str {
    match role {
        Role::Client | Role::Proxy | Role::Server => role.name(),
        Role::Control => "control client",
    }
}

pub(super) fn check_alive(listeners: &[(Role, Running)]) -> Try<()> {
    match listeners.iter().find(|(_, child)| child.has_ended()) {
        None => Ok(()),
        Some((role, child)) => failed(format!(
            "the {} ended during the run; {}",
            role.name(),
            child.output_tail()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_argument_is_repeated_per_target() {
        let values = [("target", "a:1"), ("target.0", "a:1"), ("target.1", "b:1")];
        let values: Values = values
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let ways = for_each_target("http://{targets}/", &values);
        assert_eq!(ways, ["http://a:1/", "http://b:1/"]);
        assert_eq!(
            for_each_target("http://{target}/", &values),
            ["http://a:1/"]
        );
    }
}
