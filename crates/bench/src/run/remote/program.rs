//! Programs of a trial on other machines.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::super::agent_protocol::{ProgramStatus, Request, Response};
use super::super::child::{UnsuccessfulExit, pinned};
use super::super::failure::{Try, failed};
use super::super::prepare::{ProgramEnvironment, key, values};
use super::super::subject::{Context, Subject};
use super::connection::Connection;
use super::hosts::Node;
use crate::placement::Placement;
use crate::scenario::{Launch, Role, Values, render, target};

/// The programs of a role, one on each of its machines. Dropping it stops them.
pub(in crate::run) struct RemoteProgram {
    pub(in crate::run) role: Role,
    nodes: Vec<Arc<Connection>>,
    is_stopped: bool,
}

impl RemoteProgram {
    pub(in crate::run) fn has_ended(&self) -> bool {
        self.nodes.iter().all(|node| node.has_ended(self.role))
    }

    /// Whether a port accepts connections on each of the role's machines.
    pub(in crate::run) fn is_listening(&self, port: u16) -> Try<bool> {
        for node in &self.nodes {
            let seen = look(node, self.role, Some(port))?;
            if !seen.is_listening {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The end of one node's output, preferably of a node whose program has ended.
    pub(in crate::run) fn output_tail(&self) -> String {
        let ended = self.nodes.iter().find(|node| node.has_ended(self.role));
        let node = ended.or(self.nodes.first());
        let seen = node.and_then(|node| look(node, self.role, None).ok());
        seen.map_or("its output is not known".into(), |seen| seen.last_words)
    }

    /// The first unsuccessful exit. Lost hosts are reported elsewhere.
    pub(in crate::run) fn failure(&self) -> Option<UnsuccessfulExit> {
        self.seen().find_map(|seen| seen.failure)
    }

    pub(in crate::run) fn was_truncated(&self) -> bool {
        self.seen().any(|seen| seen.was_cut)
    }

    fn seen(&self) -> impl Iterator<Item = ProgramStatus> {
        let nodes = self.nodes.iter();
        nodes.filter_map(|node| look(node, self.role, None).ok())
    }

    pub(in crate::run) fn texts(&self, ask: &Request) -> Try<Vec<Option<String>>> {
        let text = |node: &Arc<Connection>| {
            let mut whole: Option<String> = None;
            for answer in node.request(ask.clone())? {
                match answer {
                    Response::Text(Some(piece)) => whole.get_or_insert_default().push_str(&piece),
                    Response::Text(None) => {}
                    _ => return failed(node.unexpected_response()),
                }
            }
            Ok(whole)
        };
        self.nodes.iter().map(text).collect()
    }

    pub(in crate::run) fn stop(&mut self) {
        if std::mem::replace(&mut self.is_stopped, true) {
            return;
        }
        for node in &self.nodes {
            // The agent of a lost host stops its programs by itself.
            let _ = node.request_done(Request::Stop { role: self.role });
        }
    }
}

impl Drop for RemoteProgram {
    fn drop(&mut self) {
        self.stop();
    }
}

fn look(node: &Connection, role: Role, port: Option<u16>) -> Try<ProgramStatus> {
    match node.request_one(Request::Look { role, port })? {
        Response::Seen(seen) => Ok(seen),
        _ => failed(node.unexpected_response()),
    }
}

/// Free ports for the roles that listen on their hosts.
pub(in crate::run) fn ports(
    context: &Context<'_>,
    subject: &Subject<'_>,
) -> Try<BTreeMap<Role, u16>> {
    let mut ports = BTreeMap::new();
    for role in subject.variant.roles.keys().filter(|role| role.listens()) {
        let taken: Vec<u16> = ports.values().copied().collect();
        for node in context.hosts.nodes(subject.variant, *role) {
            let taken = taken.clone();
            match node.connection.request_one(Request::Port { taken })? {
                Response::Port(port) => ports.insert(*role, port),
                _ => return failed(node.connection.unexpected_response()),
            };
        }
    }
    Ok(ports)
}

/// Moves the agents to CPUs where they disturb no role of the trial.
pub(in crate::run) fn pin_self(context: &Context<'_>, subject: &Subject<'_>) -> Try<()> {
    for host in subject
        .variant
        .remote
        .iter()
        .flat_map(|remote| &remote.hosts)
    {
        for node in context.hosts.nodes_of(&host.name) {
            let cpus = subject.placement.cpus.iter();
            let own = cpus.map(|(role, cpus)| (*role, node.own(cpus)));
            let placement = Placement {
                cpus: own.filter(|(_, cpus)| !cpus.is_empty()).collect(),
            };
            node.connection.request_done(Request::StepAside {
                placement,
                under_test: subject.under_test(),
            })?;
        }
    }
    Ok(())
}

/// Creates directory, values and files of a role on each of its machines, and starts its program there.
pub(in crate::run) fn launch(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    ports: &BTreeMap<Role, u16>,
    length: Duration,
) -> Try<RemoteProgram> {
    let hosts = context.hosts;
    let nodes = hosts.nodes(subject.variant, role);
    if nodes.is_empty() {
        return failed(format!("the host of the {} was not reached", role.name()));
    }
    let mut lines = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let around = around(context, subject, role, node, (index, nodes.len()));
        let values = values(context, subject, role, ports, length, &around);
        let key = match nodes.len() {
            1 => key(subject, role),
            _ => format!("{} {}", key(subject, role), index + 1),
        };
        files(context, subject, role, node, (&values, &key))?;
        let line = line(context, subject, role, node, &values)?;
        // The last command line is kept: for a client, that of the measured run rather than of the warm-up.
        context.environment.commands.insert(key, line.clone());
        lines.push(line);
    }
    let mut distant = RemoteProgram {
        role,
        nodes: Vec::new(),
        is_stopped: false,
    };
    for (node, line) in nodes.iter().zip(lines) {
        let connection = &node.connection;
        connection.forget(role);
        connection.request_done(Request::Start { role, line })?;
        distant.nodes.push(Arc::clone(connection));
    }
    Ok(distant)
}

fn around(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    node: &Node,
    (index, count): (usize, usize),
) -> ProgramEnvironment {
    let asked = target(role, || subject.variant.roles.contains_key(&Role::Proxy));
    let asked = context.hosts.nodes(subject.variant, asked);
    let home = &node.connection.hello.directory;
    let own = match node.address {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let mut around = ProgramEnvironment {
        onrush: node.onrush(),
        bin_dir: home.clone(),
        directory: Path::new(home).join(role.name()),
        cpus: node.own(subject.placement.of(role)),
        own,
        targets: asked.iter().map(|node| node.address).collect(),
        more: Values::new(),
    };
    around
        .more
        .insert("shard".into(), format!("{}/{count}", index + 1));
    if let Some(moment) = subject.start_at {
        // Converted to the host's clock.
        let there = moment + node.clock.ahead_s;
        around.more.insert("start_at".into(), format!("{there:.6}"));
    }
    around
}

fn files(
    context: &mut Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    node: &Node,
    (values, key): (&Values, &str),
) -> Try<()> {
    let connection = &node.connection;
    connection.request_done(Request::Directory { role })?;
    let Some(program) = subject.program(context.experiment, role) else {
        return failed(format!("no program has the role {}", role.name()));
    };
    for (name, template) in &program.files {
        let text = render(template, values);
        let entry = format!("{key} / {name}");
        context
            .environment
            .files
            .entry(entry)
            .or_insert(text.clone());
        let name = name.clone();
        connection.request_done(Request::Text { role, name, text })?;
    }
    for (name, size) in &program.sized_files {
        let (name, size) = (name.clone(), *size);
        connection.request_done(Request::Filling { role, name, size })?;
    }
    Ok(())
}

/// Command line of a role's program on a host.
fn line(
    context: &Context<'_>,
    subject: &Subject<'_>,
    role: Role,
    node: &Node,
    values: &Values,
) -> Try<Vec<String>> {
    let program = subject.program(context.experiment, role);
    let filled = |arguments: &[String]| -> Vec<String> {
        let filled = arguments.iter().map(|argument| render(argument, values));
        filled.collect()
    };
    let command = match program.map(|program| &program.launch) {
        Some(Launch::Onrush(arguments)) => {
            let mut command = vec![node.onrush()];
            command.extend(filled(arguments));
            command
        }
        Some(Launch::Command(command)) => {
            let mut command = filled(command);
            let found = node.connection.request_one(Request::Find {
                command: command[0].clone(),
            })?;
            if let Response::Found(Some(file)) = found {
                command[0] = file;
            }
            command
        }
        Some(Launch::Idle(_)) | None => return failed("idle connections are not a program"),
    };
    Ok(pinned(&node.own(subject.placement.of(role)), command))
}
