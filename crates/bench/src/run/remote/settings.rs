//! Settings of hosts for a trial: applied before its programs start, restored after they have ended.

use std::sync::Arc;

use super::super::agent_protocol::{Request, Response, Setting};
use super::super::failure::{Try, failed};
use super::super::subject::{Context, Subject};
use super::connection::Connection;
use super::hosts::Node;
use crate::scenario::RemoteHost;

/// Settings in effect. Dropping it restores the old values.
#[derive(Default)]
pub(in crate::run) struct AppliedSettings {
    nodes: Vec<Arc<Connection>>,
    /// Description of the changes, with the old values.
    pub(in crate::run) words: Vec<String>,
}

impl AppliedSettings {
    pub(in crate::run) fn restore(&mut self) -> Try<()> {
        let mut outcome = Ok(());
        for node in self.nodes.drain(..) {
            let one = node.request_done(Request::SetBack);
            outcome = outcome.and(one);
        }
        outcome
    }
}

impl Drop for AppliedSettings {
    fn drop(&mut self) {
        // An agent that cannot be reached does it by itself.
        let _ = self.restore();
    }
}

pub(in crate::run) fn apply(context: &Context<'_>, subject: &Subject<'_>) -> Try<AppliedSettings> {
    let mut applied = AppliedSettings::default();
    let hosts = subject
        .variant
        .remote
        .iter()
        .flat_map(|remote| &remote.hosts);
    for host in hosts {
        for node in context.hosts.nodes_of(&host.name) {
            apply_on(host, node, &mut applied)?;
        }
    }
    Ok(applied)
}

fn apply_on(host: &RemoteHost, node: &Node, applied: &mut AppliedSettings) -> Try<()> {
    let connection = &node.connection;
    if let Some(words) = &host.settings.tune {
        applied.nodes.push(Arc::clone(connection));
        let words: Vec<String> = words.split_whitespace().map(String::from).collect();
        let said = words.join(" ");
        applied
            .words
            .push(format!("({}) onrush tune apply {said}", host.name));
        for answer in connection.request(Request::Tune { words })? {
            let Response::Text(Some(lines)) = answer else {
                return failed(connection.unexpected_response());
            };
            let lines = lines.lines().filter(|line| !line.trim().is_empty());
            applied
                .words
                .extend(lines.map(|line| format!("({}) {line}", host.name)));
        }
    }
    let sysctl = host.settings.sysctl.iter();
    let sysctl = sysctl.map(|(name, value)| (Setting::Sysctl(name.clone()), value));
    let steering = host.settings.steering.iter();
    let steering = steering.map(|(name, value)| (Setting::Steering(name.clone()), value));
    for (setting, value) in sysctl.chain(steering) {
        if applied
            .nodes
            .last()
            .is_none_or(|last| !Arc::ptr_eq(last, connection))
        {
            applied.nodes.push(Arc::clone(connection));
        }
        let value = value.clone();
        let ask = Request::Set {
            setting,
            value: value.clone(),
        };
        let Response::Was(files) = connection.request_one(ask)? else {
            return failed(connection.unexpected_response());
        };
        let words = files
            .into_iter()
            .map(|(file, was)| format!("({}) echo {value} > {file} (was {was})", host.name));
        applied.words.extend(words);
    }
    Ok(())
}
