//! Conversion of HAProxy configurations. Only proxies with `mode http` are converted.

mod acl;
mod action;
mod backend;
mod bind;
mod certificates;
mod clients;
mod environment;
mod fetch;
mod fields;
mod format;
mod health_check;
mod known;
mod lexer;
mod passwords;
mod path_rewrite;
mod protocol;
mod proxy;
mod raw_path;
mod refusal;
mod request_changes;
mod rule;
mod sample;
mod server;
mod servers;
mod settings;
mod state;
mod step;
mod tcp;
mod userlist;
mod value_pattern;
mod work;

use std::path::Path;

use self::known::unread;
use self::proxy::{Kind, Proxy, proxies};
use self::work::Context;
use crate::document::{Section, Value};
use crate::expression::condition::{Condition, Conjunction};
use crate::expression::decide::{Budget, KnownRequests, LimitExceeded};
use crate::limits;
use crate::result::Conversion;
use crate::settings::access_log::AccessLog;
use crate::settings::group::Groups;
use crate::settings::listener_settings::{ClassCondition, Listener, classes};
use crate::settings::process::{self, NO_USER_NOTE, UserError};
use crate::settings::route::{Response, Route};
use crate::settings::timeouts::Timeouts;
use crate::source::directive::Directive;
use crate::source::guards::Guards;
use crate::source::note::Notes;
use crate::source::{Files, InputError};

/// Converts the configuration at `path`. Relative file names are resolved against `directory`, the directory in which
/// HAProxy is started.
///
/// # Errors
/// When the file cannot be read, is not a configuration of HAProxy, or needs more routes than Onrush allows.
pub fn convert(
    files: &dyn Files,
    path: &Path,
    directory: &Path,
    guards: Guards,
) -> Result<Conversion, InputError> {
    let lexer::Text {
        sections,
        differences,
    } = lexer::read(files, path)?;
    let mut work = Context {
        files,
        notes: Notes::default(),
        routes: Vec::new(),
        groups: Groups::default(),
        timeouts: Timeouts::default(),
        log: AccessLog::default(),
        sections: &sections,
        directory: directory.to_owned(),
        forwards_clients: false,
        listeners: Vec::new(),
        budget: Budget::default(),
        guards,
    };
    for section in &sections {
        let lines = std::iter::once(section).chain(section.inside());
        for line in lines {
            let is_it = |(number, _): &&(usize, String)| *number == line.number;
            if let Some((_, how)) = differences.iter().find(is_it) {
                work.notes.approximated(line, how);
            }
        }
    }
    finish(work, &sections, path).map_err(|LimitExceeded| InputError {
        file: path.to_owned(),
        line: None,
        message: format!(
            "its conditions multiply to too many routes: expected at most {}",
            limits::ROUTES_MAX
        ),
    })
}

fn finish<'a>(
    mut work: Context<'_, 'a>,
    sections: &'a [Directive],
    path: &Path,
) -> Result<Conversion, LimitExceeded> {
    let proxies = proxies(sections);
    for proxy in &proxies {
        if !proxy.is_http() {
            let why = "not converted: Onrush only forwards HTTP (mode http)";
            work.notes.left_out(proxy.section, why);
        }
        for section in sections
            .iter()
            .filter(|section| section.name() == "defaults")
        {
            work.notes.carried(section);
        }
    }
    let listeners = serve(&mut work, &proxies)?;
    let mut comments = vec![format!("Converted from HAProxy's {}.", path.display())];
    let mut result = vec![top(&mut work), process(&mut work, &mut comments)];
    result.extend(listeners.iter().map(Listener::written));
    result.push(work.timeouts.to_section(&mut work.notes));
    result.push(forwarded(&mut work, &proxies));
    result.push(work.log.written());
    if work.routes.is_empty() {
        let mut route = Route::new(Condition::default(), Response::status(503));
        route.comments.push("no frontend was converted".to_owned());
        work.push(route)?;
    }
    result.extend(work.routes.iter().map(Route::written));
    result.extend(work.groups.written());
    result.retain(|section| !section.is_empty());
    for section in sections.iter().filter(|section| section.name() == "global") {
        work.notes.carried(section);
    }
    let notes = work.notes.finish(sections, &[], &unread);
    Ok(Conversion::new(comments, &result, notes))
}

/// Creates the routes of all frontends and returns their listeners.
fn serve<'a>(
    work: &mut Context<'_, 'a>,
    proxies: &[Proxy<'a>],
) -> Result<Vec<Listener>, LimitExceeded> {
    let mut listeners = Vec::new();
    for (at, proxy) in proxies.iter().enumerate() {
        let is_front = proxy.kind != Kind::Backend && proxy.is_http();
        if is_front && proxy.last(&["disabled"]).is_none() {
            bind::gather(work, at, proxy, &mut listeners);
        }
    }
    let addresses = listeners.iter().map(|listener| listener.address.clone());
    work.listeners = addresses.collect();
    for class in classes(&listeners, ClassCondition::Scheme) {
        let mut given = KnownRequests::default();
        if let Some(condition) = &class.condition
            && let Conjunction::Is(more) = given.and(condition)
        {
            given = more;
        }
        for owner in &class.owners {
            rule::serve(work, proxies, &proxies[*owner], given.clone())?;
        }
    }
    Ok(listeners)
}

/// Keys before the first section.
fn top(work: &mut Context<'_, '_>) -> Section {
    let mut top = Section::default();
    if let Some(line) = work.global("nbthread")
        && let Ok(count @ 1..=1024) = line.argument(0).parse::<u64>()
    {
        top.put_with_comment("threads", Value::Number(count), line.origin());
        work.notes.carried(line);
    }
    if let Some(line) = work.global_switch("busy-polling") {
        top.put_with_comment("busy_poll", Value::Truth(true), line.origin());
        work.notes.carried(line);
    }
    for name in ["ca-base", "crt-base"] {
        if let Some(line) = work.global(name) {
            work.notes.carried(line);
        }
    }
    top
}

/// `[process]`: user and group after the listeners are open.
fn process(work: &mut Context<'_, '_>, comments: &mut Vec<String>) -> Section {
    let either = |name: &str, number: &str| work.global(name).or_else(|| work.global(number));
    let (user, group) = (either("user", "uid"), either("group", "gid"));
    let Some(line) = user else {
        comments.push(format!("No user is set for HAProxy: {NO_USER_NOTE}."));
        if let Some(group) = group {
            let how = "the group is not set: [process] has a group only together with a user";
            work.notes.approximated(group, how);
        }
        return Section::default();
    };
    let its_group = group.map(|group| group.argument(0));
    match process::section(line.argument(0), its_group, line.origin()) {
        Ok(section) => {
            match group {
                Some(group) => {
                    work.notes.carried(line);
                    work.notes.carried(group);
                }
                None => {
                    let how = "the server also switches to the groups of the user; HAProxy keeps the group with which it was started";
                    work.notes.approximated(line, how);
                }
            }
            section
        }
        Err(unfit) => {
            match unfit {
                UserError::Root => {
                    work.notes.without_effect(line, NO_USER_NOTE);
                    comments.push(format!("HAProxy runs as root: {NO_USER_NOTE}."));
                }
                UserError::Invalid(why) => work.notes.left_out(line, why),
            }
            if let Some(group) = group {
                let how = "the group is not set: [process] has a group only together with a user";
                work.notes.approximated(group, how);
            }
            Section::default()
        }
    }
}

fn forwarded<'a>(work: &mut Context<'_, 'a>, proxies: &[Proxy<'a>]) -> Section {
    let mut section = Section::new("[forwarded]");
    let forwards = |route: &Route| matches!(route.response, Response::Forward(_));
    if work.routes.iter().any(forwards) && !work.forwards_clients {
        section.put_with_comment(
            "send",
            Value::text("none"),
            "HAProxy sends no client address without option forwardfor".to_owned(),
        );
        let mut fronts = proxies.iter();
        let is_front = |proxy: &&Proxy<'_>| proxy.kind != Kind::Backend && proxy.is_http();
        if let Some(front) = fronts.find(is_front) {
            let how = "X-Forwarded-For and similar fields are only forwarded from clients in [forwarded] trust; HAProxy forwards them from every client";
            work.notes.approximated(front.section, how);
        }
    }
    section
}

#[cfg(test)]
mod tests;
