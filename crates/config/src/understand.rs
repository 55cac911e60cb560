//! What was written -> what it means: every value parsed, every reference followed. Goes on after
//! an error, to find the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;

use crate::address::{ForwardTarget, is_group_name, parse_forward, parse_listen, parse_server};
use crate::diagnostic::Findings;
use crate::file::{self, AnswerKind, File};
use crate::limits;
use crate::nearest::nearest;
use crate::plan::{
    Action, Address, Forwarded, Listen, PathMatch, Plan, Route, Server, ServerAddress, Threads,
    Timeouts, Upstream, When,
};
use crate::value::{self, Invalid};

/// The plan, which is only worth something when `findings` has no errors. Relative paths are
/// beneath `directory`.
pub(crate) fn understand(file: &File, directory: &Path, findings: &mut Findings<'_>) -> Plan {
    let mut upstreams: Vec<Upstream> = file
        .upstreams
        .iter()
        .map(|written| upstream(written, directory, findings))
        .collect();
    let routes = routes(file, directory, &mut upstreams, findings);
    warn_of_unused_groups(file, &routes, findings);
    let plan = Plan {
        threads: parsed(file.threads.as_ref(), value::parse_threads, findings).unwrap_or_default(),
        cpus: parsed(file.cpus.as_ref(), value::parse_cpus, findings),
        io: parsed(file.io.as_ref(), value::parse_io, findings).unwrap_or_default(),
        listen: listen(file, directory, findings),
        routes,
        upstreams,
        forwarded: Forwarded::default(),
        timeouts: timeouts(file, findings),
    };
    warn_of_shared_cpus(file, &plan, findings);
    plan
}

/// What the text means, or a finding at its place.
fn parsed<T>(
    written: Option<&Spanned<String>>,
    parse: impl Fn(&str) -> Result<T, Invalid>,
    findings: &mut Findings<'_>,
) -> Option<T> {
    let written = written?;
    match parse(written.get_ref()) {
        Ok(value) => Some(value),
        Err(invalid) => {
            findings.error(written.span(), invalid.to_string());
            None
        }
    }
}

fn listen(file: &File, directory: &Path, findings: &mut Findings<'_>) -> Vec<Listen> {
    if file.listen.is_empty() {
        return vec![Listen::default()];
    }
    let mut lines: HashMap<String, usize> = HashMap::new();
    let mut all = Vec::new();
    for written in &file.listen {
        let Some(mut one) = parsed(written.address.as_ref(), parse_listen, findings) else {
            continue;
        };
        let span = written
            .address
            .as_ref()
            .map(Spanned::span)
            .unwrap_or_default();
        let any_port = match &mut one.address {
            Address::Tcp(address) => address.port() == 0,
            Address::Unix(path) => {
                *path = beneath(directory, path);
                false
            }
        };
        let line = findings.line_of(&span);
        match lines.insert(one.address.to_string(), line) {
            Some(first) if !any_port => {
                findings.error(
                    span,
                    format!("{} is already listened on in line {first}", one.address),
                );
            }
            _ => all.push(one),
        }
    }
    all
}

fn routes(
    file: &File,
    directory: &Path,
    upstreams: &mut Vec<Upstream>,
    findings: &mut Findings<'_>,
) -> Vec<Route> {
    let mut routes: Vec<(Route, usize)> = Vec::new();
    for written in &file.routes {
        let errors_before = findings.errors();
        let host = parsed(written.host.as_ref(), value::parse_host, findings);
        let path =
            parsed(written.path.as_ref(), value::parse_path, findings).unwrap_or(PathMatch::Any);
        let action = answer(written, findings)
            .and_then(|kind| action(kind, file, directory, upstreams, findings));
        // A route with a wrong condition would seem to cover more, or less, than was meant.
        let is_whole = findings.errors() == errors_before;
        let Some(action) = action.filter(|_| is_whole) else {
            continue;
        };
        let route = Route {
            when: When {
                hosts: host.into_iter().collect(),
                path,
                ..When::default()
            },
            ..Route::to(action)
        };
        let covering = routes.iter().find(|(earlier, _)| covers(earlier, &route));
        if let Some((_, line)) = covering {
            findings.warning(
                written.span.clone(),
                format!("this [[route]] is never reached: the one in line {line} matches everything it would"),
            );
        }
        routes.push((route, findings.line_of(&written.span)));
    }
    routes.into_iter().map(|(route, _)| route).collect()
}

/// Whether every request that `later` matches is matched by `earlier` too.
fn covers(earlier: &Route, later: &Route) -> bool {
    let (earlier, later) = (&earlier.when, &later.when);
    (earlier.hosts.is_empty() || earlier.hosts == later.hosts) && earlier.path.covers(&later.path)
}

/// The one answer of a route, or a finding when there are several; that one is missing has been
/// reported.
fn answer<'file>(
    route: &'file file::Route,
    findings: &mut Findings<'_>,
) -> Option<&'file AnswerKind> {
    let mut answers = route.answers.iter();
    let first = answers.next()?;
    let line = findings.line_of(&first.key.span());
    for other in answers {
        findings.error(
            other.key.span(),
            format!(
                "{:?} is a second answer, after {:?} in line {line}: a [[route]] has exactly one of respond, files, synthetic and forward",
                other.key.get_ref(),
                first.key.get_ref(),
            ),
        );
    }
    first.kind.as_ref()
}

fn action(
    kind: &AnswerKind,
    file: &File,
    directory: &Path,
    upstreams: &mut Vec<Upstream>,
    findings: &mut Findings<'_>,
) -> Option<Action> {
    match kind {
        AnswerKind::Respond {
            status,
            body,
            headers,
        } => respond(status.as_ref()?, body.as_ref(), headers, findings),
        AnswerKind::Files {
            root,
            index,
            hidden,
        } => Some(Action::Files {
            index: index
                .as_ref()
                .map_or_else(limits::index_default, |names| index_names(names, findings)),
            hidden: hidden.unwrap_or(false),
            precompressed: Vec::new(),
            root: files_root(root.as_ref()?, directory, findings)?,
        }),
        AnswerKind::Synthetic => Some(Action::Synthetic),
        AnswerKind::Forward(target) => forward(target, file, directory, upstreams, findings),
    }
}

fn respond(
    status: &Spanned<i128>,
    body: Option<&Spanned<String>>,
    headers: &[(Spanned<String>, Spanned<String>)],
    findings: &mut Findings<'_>,
) -> Option<Action> {
    for (name, value) in headers {
        if let Err(invalid) = value::check_header(name.get_ref(), value.get_ref()) {
            findings.error(name.span(), invalid.to_string());
        }
    }
    let bytes = |(name, value): &(Spanned<String>, Spanned<String>)| {
        name.get_ref().len() + value.get_ref().len()
    };
    let total: usize = headers.iter().map(bytes).sum();
    if let Some((first, _)) = headers.first()
        && total > limits::RESPOND_HEADERS_BYTES_MAX
    {
        findings.error(
            first.span(),
            format!(
                "these headers have {total} bytes: expected at most {} together",
                limits::RESPOND_HEADERS_BYTES_MAX
            ),
        );
    }
    let checked = match value::check_status(*status.get_ref()) {
        Ok(checked) => checked,
        Err(invalid) => {
            findings.error(status.span(), invalid.to_string());
            return None;
        }
    };
    if let Some(body) = body
        && let Err(invalid) = value::check_body(checked, body.get_ref().as_bytes())
    {
        findings.error(body.span(), invalid.to_string());
    }
    Some(Action::Respond {
        status: checked,
        body: body
            .map(|body| body.get_ref().clone().into_bytes())
            .unwrap_or_default(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.get_ref().clone(), value.get_ref().trim().to_owned()))
            .collect(),
    })
}

fn files_root(
    root: &Spanned<String>,
    directory: &Path,
    findings: &mut Findings<'_>,
) -> Option<PathBuf> {
    let text = root.get_ref();
    if text.is_empty() || text.contains('\0') {
        findings.error(
            root.span(),
            format!("{text:?} is not a directory: expected one such as \"/srv/www\""),
        );
        return None;
    }
    Some(beneath(directory, Path::new(text)))
}

fn index_names(names: &[Spanned<String>], findings: &mut Findings<'_>) -> Vec<String> {
    for name in names {
        let text = name.get_ref();
        if text.is_empty() || text == "." || text == ".." || text.contains(['/', '\0']) {
            findings.error(
                name.span(),
                format!("{text:?} is not a file name: expected one such as \"index.html\""),
            );
        }
    }
    names.iter().map(|name| name.get_ref().clone()).collect()
}

/// Follows a route to its group; a single server becomes a group of its own, one for all routes
/// that name it.
fn forward(
    target: &Spanned<String>,
    file: &File,
    directory: &Path,
    upstreams: &mut Vec<Upstream>,
    findings: &mut Findings<'_>,
) -> Option<Action> {
    let upstream = match parsed(Some(target), parse_forward, findings)? {
        ForwardTarget::Group(name) => find_group(&name, target, file, findings)?,
        ForwardTarget::Server(address) => {
            let single = Upstream::of(vec![resolve_server(address, directory)]);
            // Those of groups come first and have names of their own, even when they contain a
            // single server.
            let named = file.upstreams.len();
            match upstreams
                .iter()
                .skip(named)
                .position(|known| *known == single)
            {
                Some(at) => named + at,
                None => {
                    upstreams.push(single);
                    upstreams.len() - 1
                }
            }
        }
    };
    Some(Action::forward(upstream))
}

fn find_group(
    name: &str,
    target: &Spanned<String>,
    file: &File,
    findings: &mut Findings<'_>,
) -> Option<usize> {
    let names = || {
        file.upstreams
            .iter()
            .map(|group| group.name.get_ref().as_str())
    };
    let found = names().position(|known| known == name);
    if found.is_none() {
        findings.error(
            target.span(),
            match nearest(name, names()) {
                Some(near) => format!("unknown group {name:?}; nearest: {near:?}"),
                None => format!(
                    "unknown group {name:?}: expected an [upstream.{name}], or a single server as a URL such as \"http://10.0.0.9:8000\""
                ),
            },
        );
    }
    found
}

/// Each entry gives a group, even an empty one, so that indices stay those of the file.
fn upstream(written: &file::Upstream, directory: &Path, findings: &mut Findings<'_>) -> Upstream {
    let name = written.name.get_ref();
    if !is_group_name(name) {
        findings.error(
            written.name.span(),
            format!("{name:?} is not a name for a group: expected letters, digits, \"-\", \"_\" and \".\""),
        );
    }
    let idle_max = parsed(
        written.connections_idle_max.as_ref(),
        parse_connections_idle_max,
        findings,
    );
    Upstream {
        balance: parsed(written.balance.as_ref(), value::parse_balance, findings)
            .unwrap_or_default(),
        connections_idle_max: idle_max.unwrap_or(limits::CONNECTIONS_IDLE_MAX_DEFAULT),
        ..Upstream::new(name.clone(), servers(written, directory, findings))
    }
}

fn parse_connections_idle_max(text: &str) -> Result<usize, Invalid> {
    let count = value::parse_count(text)?;
    match usize::try_from(count) {
        Ok(count) if count <= limits::CONNECTIONS_IDLE_MAX_MAX => Ok(count),
        _ => Err(Invalid::new(format!(
            "{text} idle connections are out of range: expected 0 to {}",
            limits::CONNECTIONS_IDLE_MAX_MAX
        ))),
    }
}

fn servers(group: &file::Upstream, directory: &Path, findings: &mut Findings<'_>) -> Vec<Server> {
    let Some(written) = &group.servers else {
        return Vec::new();
    };
    let name = group.name.get_ref();
    let count = written.get_ref().len();
    if count == 0 {
        let message = format!(
            "[upstream.{name}] has no servers: expected at least one such as \"10.0.0.1:8000\""
        );
        findings.error(written.span(), message);
    }
    if count > limits::SERVERS_MAX {
        let message = format!(
            "[upstream.{name}] has {count} servers: expected at most {}",
            limits::SERVERS_MAX
        );
        findings.error(written.span(), message);
    }
    let mut seen: HashMap<ServerAddress, usize> = HashMap::new();
    let mut servers = Vec::new();
    for one in written.get_ref() {
        let Some(address) = parsed(one.address.as_ref(), parse_server, findings) else {
            continue;
        };
        let address = resolve_server(address, directory);
        let span = one.address.as_ref().map(Spanned::span).unwrap_or_default();
        let line = findings.line_of(&span);
        if let Some(first) = seen.insert(address.clone(), line) {
            findings.error(
                span,
                format!("server {address} is already in [upstream.{name}], in line {first}: give it a weight instead"),
            );
        }
        servers.push(Server {
            weight: weight(one, findings),
            ..Server::at(address)
        });
    }
    servers
}

fn weight(server: &file::Server, findings: &mut Findings<'_>) -> u32 {
    let Some(written) = &server.weight else {
        return limits::WEIGHT_DEFAULT;
    };
    match u32::try_from(*written.get_ref()) {
        Ok(weight) if (1..=limits::WEIGHT_MAX).contains(&weight) => weight,
        _ => {
            findings.error(
                written.span(),
                format!(
                    "weight {} is out of range: expected 1 to {}",
                    written.get_ref(),
                    limits::WEIGHT_MAX
                ),
            );
            limits::WEIGHT_DEFAULT
        }
    }
}

fn resolve_server(address: ServerAddress, directory: &Path) -> ServerAddress {
    match address {
        ServerAddress::Unix(path) => ServerAddress::Unix(beneath(directory, &path)),
        ServerAddress::Ip(_) | ServerAddress::Name { .. } | ServerAddress::Srv(_) => address,
    }
}

fn timeouts(file: &File, findings: &mut Findings<'_>) -> Timeouts {
    let mut timeouts = Timeouts::default();
    for (key, written) in &file.timeouts {
        if let Some(timeout) = parsed(Some(written), value::parse_timeout, findings) {
            *timeout_named(key.get_ref(), &mut timeouts) = timeout;
        }
    }
    timeouts
}

/// The field of a key; `key` is one of [`file::TIMEOUTS`].
fn timeout_named<'plan>(key: &str, timeouts: &'plan mut Timeouts) -> &'plan mut Duration {
    match key {
        "client_head" => &mut timeouts.client_head,
        "client_body" => &mut timeouts.client_body,
        "client_idle" => &mut timeouts.client_idle,
        "client_send" => &mut timeouts.client_send,
        "connect" => &mut timeouts.connect,
        "upstream_first_byte" => &mut timeouts.upstream_first_byte,
        "upstream_body" => &mut timeouts.upstream_body,
        "upstream_idle" => &mut timeouts.upstream_idle,
        "drain" => &mut timeouts.drain,
        _ => unreachable!("{key:?} was read as a timeout"),
    }
}

/// A relative path is meant from where the file is, not from where the program was started.
fn beneath(directory: &Path, path: &Path) -> PathBuf {
    directory.join(path)
}

fn warn_of_unused_groups(file: &File, routes: &[Route], findings: &mut Findings<'_>) {
    if findings.errors() > 0 {
        // A route that was left out for its error may be the one that forwards there.
        return;
    }
    for (at, group) in file.upstreams.iter().enumerate() {
        let is_used = routes
            .iter()
            .any(|route| route.action == Action::forward(at));
        if !is_used {
            let message = format!(
                "no [[route]] forwards to [upstream.{}]",
                group.name.get_ref()
            );
            findings.warning(group.name.span(), message);
        }
    }
}

fn warn_of_shared_cpus(file: &File, plan: &Plan, findings: &mut Findings<'_>) {
    let (Threads::Count(threads), Some(cpus)) = (plan.threads, &plan.cpus) else {
        return;
    };
    if threads.get() > cpus.len() {
        let span = file.threads.as_ref().map(Spanned::span).unwrap_or_default();
        findings.warning(
            span,
            format!(
                "{threads} threads share {} CPUs: one each is fastest",
                cpus.len()
            ),
        );
    }
}
