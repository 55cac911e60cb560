//! Conversion of nginx configurations. Only the `http` block is converted.

mod access;
mod attempt;
mod balance;
mod caching;
mod chain;
mod client_address;
mod clients;
mod compare;
mod content;
mod destination;
mod directory;
mod errors;
mod field;
mod fields;
mod guard;
mod handler;
mod hidden;
mod internal_redirect;
mod known;
mod lexer;
mod listen;
mod location;
mod log;
mod map;
mod method;
mod new_path;
mod proxy;
mod real_ip;
mod redirect;
mod request_uri;
mod rewrite;
mod routes;
mod scope;
mod server;
mod step;
mod target;
mod tls;
mod tree;
mod undecided;
mod upstream;
mod variable;
mod work;

use std::path::{Path, PathBuf};

use self::known::unread;
use self::map::Map;
use self::scope::Scope;
use self::server::Server;
use self::tree::Tree;
use self::variable::Constants;
use self::work::Context;
use crate::document::{Section, Value};
use crate::expression::condition::{Atom, Condition, Conjunction, Scheme};
use crate::expression::decide::{Budget, KnownRequests, LimitExceeded};
use crate::limits;
use crate::result::Conversion;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::listener_settings::{self, AddressClass, ClassCondition, Listener, classes};
use crate::settings::process::{self, NO_USER_NOTE, UserError};
use crate::settings::route::{Response, Route};
use crate::settings::timeouts::Timeouts;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::{Files, InputError};

/// Directives that may be at the top level of a configuration of nginx.
const TOP: [&str; 8] = [
    "events", "http", "include", "mail", "server", "stream", "upstream", "user",
];

/// Blocks whose entries are keys and values, not directives.
const TABLES: [&str; 4] = ["geo", "map", "split_clients", "types"];

/// Converts the configuration that starts at `path`: nginx.conf, or a file with servers only. `prefix` is the directory
/// for relative names of directories and certificates (`nginx -V` prints it). Relative includes are resolved against
/// the directory of the file, as in nginx.
///
/// # Errors
/// When a file cannot be read, is not a configuration of nginx, or needs more routes than Onrush allows.
pub fn convert(
    files: &dyn Files,
    path: &Path,
    prefix: &Path,
    guards: Guards,
) -> Result<Conversion, InputError> {
    let Tree { directives, notes } = tree::read(files, path)?;
    let is_nginx = |directive: &Directive| {
        TOP.contains(&directive.name()) || matches!(directive.name(), "worker_processes" | "map")
    };
    if !directives.iter().any(is_nginx) {
        return Err(InputError {
            file: path.to_owned(),
            line: None,
            message: "not an nginx configuration: expected http { … } or server { … }".to_owned(),
        });
    }
    let http = directives
        .iter()
        .find(|directive| directive.name() == "http");
    // A file from sites-enabled or conf.d has no http block: its directives are those inside of one.
    let level = http.map_or(&*directives, Directive::inside);
    let work = Context {
        files,
        notes,
        routes: Vec::new(),
        groups: Groups::default(),
        timeouts: Timeouts::default(),
        log: AccessLog::default(),
        maps: level.iter().filter_map(Map::of).collect(),
        http: level,
        trusted: Vec::new(),
        prefix: prefix.to_owned(),
        forwards_clients: false,
        passes: None,
        unverified: Vec::new(),
        uncertain: Vec::new(),
        budget: Budget::default(),
        guards,
    };
    finish(work, &directives, level, path).map_err(|LimitExceeded| InputError {
        file: path.to_owned(),
        line: None,
        message: format!(
            "its conditions multiply to too many routes: expected at most {}",
            limits::ROUTES_MAX
        ),
    })
}

/// The default prefix: the parent of a directory `conf` (the layout of an installed nginx), otherwise the directory of
/// the file.
pub fn default_prefix(path: &Path) -> PathBuf {
    let directory = path.parent().unwrap_or(Path::new(""));
    match directory.file_name().is_some_and(|name| name == "conf") {
        true => directory.parent().unwrap_or(directory).to_owned(),
        false => directory.to_owned(),
    }
}

fn finish<'a>(
    mut work: Context<'a>,
    directives: &'a [Directive],
    level: &'a [Directive],
    path: &Path,
) -> Result<Conversion, LimitExceeded> {
    let outer = Scope::default().with(level);
    let mut servers = Vec::new();
    for directive in level
        .iter()
        .filter(|directive| directive.name() == "server")
    {
        let scope = outer.of_location(directive.inside());
        servers.push(Server::new(&mut work, directive, scope));
    }
    let scopes = servers.iter().flat_map(|server| {
        let level = server.directive.inside();
        real_ip::scopes(level, server.scope.clone())
    });
    work.trusted = real_ip::proxies(&mut work, &scopes.collect::<Vec<_>>());
    let listeners = listeners(&mut work, &servers);
    serve(&mut work, &servers, &listeners)?;
    let mut comments = vec![format!("Converted from nginx's {}.", path.display())];
    let mut sections = vec![top(&mut work, directives)];
    sections.push(process(&mut work, directives, &mut comments));
    sections.extend(listeners.iter().map(Listener::written));
    content::share_timeouts(&mut work);
    sections.push(work.timeouts.to_section(&mut work.notes));
    sections.push(forwarded(&mut work));
    sections.push(work.log.written());
    if !work.log.is_on() {
        // Without an access log, routes need no key that turns it off.
        for route in &mut work.routes {
            route.keys.retain(|(key, _)| key != "log");
        }
    }
    if work.routes.is_empty() {
        let mut route = Route::new(Condition::default(), Response::status(404));
        route.comments.push("no server was converted".to_owned());
        work.push(route)?;
    }
    for route in &mut work.routes {
        route.when = std::mem::take(&mut route.when).with_pcre_semantics();
    }
    work.routes.insert(0, trace_route());
    sections.extend(work.routes.iter().map(Route::written));
    sections.extend(work.groups.written());
    sections.retain(|section| !section.is_empty());
    let notes = work.notes.finish(directives, &TABLES, &unread);
    Ok(Conversion::new(comments, &sections, notes))
}

/// The route that refuses TRACE. nginx does so before it selects a server.
fn trace_route() -> Route {
    let traces = Condition::default().and(&Atom::Method(vec!["TRACE".to_owned()]));
    let Conjunction::Is(when) = traces else {
        unreachable!("no condition was there before");
    };
    let mut route = Route::new(when, Response::status(405));
    route.comments.push("nginx refuses TRACE".to_owned());
    route
}

/// Listeners of all servers, each address once.
fn listeners<'a>(work: &mut Context<'a>, servers: &[Server<'a>]) -> Vec<Listener> {
    let mut listeners = Vec::new();
    for (at, server) in servers.iter().enumerate() {
        listen::gather(
            work,
            at,
            &server.scope,
            server.directive.inside(),
            &mut listeners,
        );
    }
    for listener in &mut listeners {
        listen::certify(work, listener, servers);
    }
    listeners
}

fn serve<'a>(
    work: &mut Context<'a>,
    servers: &[Server<'a>],
    listeners: &[Listener],
) -> Result<(), LimitExceeded> {
    let by = match work.trusted.is_empty() {
        true => ClassCondition::Scheme,
        false => ClassCondition::Listener,
    };
    for class in classes(listeners, by) {
        let mut given = KnownRequests::default();
        if let Some(condition) = &class.condition
            && let Conjunction::Is(more) = given.and(condition)
        {
            given = more;
        }
        let known = constants(listeners, &class);
        routes::serve(work, servers, &class.owners, &given, &known)?;
    }
    Ok(())
}

/// Variables that have the same value in all requests to a class of addresses.
fn constants(listeners: &[Listener], class: &AddressClass) -> Constants {
    let mut constants = Constants::new();
    let mut push = |name: &str, value: &str| constants.push((name.to_owned(), value.to_owned()));
    if let Some(port) = listener_settings::port(listeners, class) {
        push("server_port", port);
    }
    match class.scheme {
        Some(Scheme::Http) => {
            push("scheme", "http");
            push("https", "");
        }
        Some(Scheme::Https) => {
            push("scheme", "https");
            push("https", "on");
        }
        None => {}
    }
    constants
}

/// Keys before the first section.
fn top<'a>(work: &mut Context<'a>, directives: &'a [Directive]) -> Section {
    let mut top = Section::default();
    let comment = "the default of nginx".to_owned();
    top.put_with_comment("request_body_max", Value::text("1m"), comment);
    let is_forward = |route: &Route| matches!(route.response, Response::Forward(_));
    if work.routes.iter().any(is_forward) {
        let comment = "fields that nginx does not forward".to_owned();
        top.put_with_comment(hidden::KEY, hidden::usual(), comment);
    }
    for directive in directives {
        let text = directive.argument(0);
        match directive.name() {
            "http" | "events" => work.notes.carried(directive),
            "worker_processes" => match text.parse::<u64>() {
                Ok(count @ 1..=1024) => {
                    top.put_with_comment("threads", Value::Number(count), directive.origin());
                    work.notes.carried(directive);
                }
                _ => work.notes.carried(directive),
            },
            "worker_cpu_affinity" => {
                let how = "if there are as many threads as CPUs, each is pinned to one; use cpus to choose others";
                work.notes.approximated(directive, how);
            }
            _ => {}
        }
    }
    top
}

/// `[process]`: user and group of the workers.
fn process<'a>(
    work: &mut Context<'a>,
    directives: &'a [Directive],
    comments: &mut Vec<String>,
) -> Section {
    let is = |name: &'static str| move |directive: &&Directive| directive.name() == name;
    let Some(line) = directives.iter().find(is("user")) else {
        // A file with servers only has no `user` directive, so the comment would mislead.
        if directives.iter().any(|directive| is("http")(&directive)) {
            comments.push(format!(
                "Without a user directive, the workers of nginx run as `nobody` or as the user chosen at build time: {NO_USER_NOTE}."
            ));
        }
        return Section::default();
    };
    let user = line.argument(0);
    // Without a group, nginx uses the group with the name of the user.
    let group = line.arguments().get(1).map_or(user, String::as_str);
    match process::section(user, Some(group), line.origin()) {
        Ok(section) => {
            work.notes.carried(line);
            section
        }
        Err(UserError::Root) => {
            work.notes.without_effect(line, NO_USER_NOTE);
            comments.push(format!("The workers of nginx run as root: {NO_USER_NOTE}."));
            Section::default()
        }
        Err(UserError::Invalid(why)) => {
            work.notes.left_out(line, why);
            Section::default()
        }
    }
}

fn forwarded(work: &mut Context<'_>) -> Section {
    let mut section = Section::new("[forwarded]");
    if !work.trusted.is_empty() {
        section.put("trust", Value::texts(work.trusted.clone()));
    }
    if let Some(directive) = work.passes.filter(|_| !work.forwards_clients) {
        let how = "X-Forwarded-For and similar fields are only forwarded from clients in [forwarded] trust; nginx forwards them from every client";
        work.notes.approximated(directive, how);
        section.put_with_comment(
            "send",
            Value::text("none"),
            "nginx sends no client address by default".to_owned(),
        );
    }
    section
}

#[cfg(test)]
mod tests;
