//! Access rules: `allow` and `deny`, passwords, and limits on requests.

use std::path::Path;

use onrush_config::value::check_password_hash;

use super::guard::is_access_module;
use super::real_ip::other_address;
use super::scope::Scope;
use super::undecided::why_unknown;
use super::variable::{Constants, expanded, names};
use super::work::Context;
use crate::document::Value;
use crate::expression::condition::network;
use crate::settings::route::{Response, Route};
use crate::source::directive::Directive;
use crate::source::guards::Guards;

/// Status of a route whose access rule has no equivalent.
const CLOSED_STATUS: u16 = 501;

/// Whether a route may respond with its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AccessOutcome {
    /// All access rules have been written into the route.
    Open,
    /// The access rules refuse every request.
    Refused,
    /// An access rule has no equivalent, so the route refuses every request.
    Closed,
}

/// Writes the access rules into the route.
pub(super) fn write<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    constants: &Constants,
    route: &mut Route,
) -> AccessOutcome {
    let entries = [
        networks(work, scope, route),
        passwords(work, scope, constants, route),
        foreign(work, scope),
    ];
    let entry = entries.into_iter().max().unwrap_or(AccessOutcome::Open);
    match entry {
        AccessOutcome::Open => {}
        AccessOutcome::Refused => route.response = Response::status(403),
        AccessOutcome::Closed => route.response = Response::status(CLOSED_STATUS),
    }
    limits(work, scope, route);
    if let Some(directive) = scope.one("satisfy") {
        match directive.argument(0) {
            "any" => work
                .notes
                .left_out(directive, "clients must satisfy both: network and password"),
            _ => work.notes.carried(directive),
        }
    }
    entry
}

/// Notes a rule without an equivalent.
fn note_unsupported<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    why: &str,
) -> AccessOutcome {
    let (entry, how) = match work.guards {
        Guards::Closed => (
            AccessOutcome::Closed,
            format!(
                "{why}; the response is {CLOSED_STATUS} for every client (--open-guards lets all clients in)"
            ),
        ),
        Guards::Open => (
            AccessOutcome::Open,
            format!("{why}; all clients are let in"),
        ),
    };
    work.notes.left_out(directive, how);
    entry
}

/// Notes rules of modules that Onrush does not have.
fn foreign<'a>(work: &mut Context<'a>, scope: &Scope<'a>) -> AccessOutcome {
    let mut entry = AccessOutcome::Open;
    for directive in scope.matching(is_access_module) {
        if directive.argument(0) == "off" {
            work.notes.carried(directive);
            continue;
        }
        let why = match directive.name() {
            "auth_request" => "Onrush cannot ask another server for authorization",
            _ => "Onrush does not have this module, which controls access",
        };
        if note_unsupported(work, directive, why) == AccessOutcome::Closed {
            entry = AccessOutcome::Closed;
        }
    }
    entry
}

fn networks<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) -> AccessOutcome {
    if let Some(directive) = scope.all_of(&["allow", "deny"]).into_iter().next()
        && let Some(why) = other_address(scope, &work.trusted)
    {
        return note_unsupported(work, directive, why);
    }
    let is_socket = |listen: &&Directive| listen.argument(0).starts_with("unix:");
    let has_sockets = scope.all("listen").iter().any(is_socket);
    let (mut allowed, mut denied) = (Vec::new(), Vec::new());
    let mut denies_others = false;
    let mut is_reordered = false;
    for directive in scope.all_of(&["allow", "deny"]) {
        let is_allow = directive.name() == "allow";
        let text = directive.argument(0);
        if text == "all" {
            work.notes.carried(directive);
            denies_others = !is_allow;
            // nginx does not reach the rules after this one.
            break;
        }
        let Some(network) = network(text) else {
            let why = "expected a network: clients of a Unix socket have no address";
            let is_unused = text == "unix:" && !has_sockets;
            match is_allow || is_unused {
                true => work.notes.left_out(directive, why),
                false => return note_unsupported(work, directive, why),
            }
            continue;
        };
        is_reordered |= !is_allow && !allowed.is_empty();
        match is_reordered {
            true => work
                .notes
                .approximated(directive, "denied networks are checked before allowed ones"),
            false => work.notes.carried(directive),
        }
        let list = if is_allow { &mut allowed } else { &mut denied };
        if !list.contains(&network) {
            list.push(network);
        }
    }
    if denies_others && allowed.is_empty() && has_sockets {
        return AccessOutcome::Refused;
    }
    if denies_others && allowed.is_empty() {
        denied = ["0.0.0.0/0", "::/0"].map(str::to_owned).into();
    }
    if denies_others && !allowed.is_empty() {
        route.put("allow", Value::one_or_list(&allowed));
    }
    if !denied.is_empty() {
        route.put("deny", Value::one_or_list(&denied));
    }
    AccessOutcome::Open
}

/// Password hashes of a file.
enum Hashes {
    /// Onrush supports all of them, or the file cannot be read here.
    All,
    /// The users with supported hashes, and the names of the others.
    Some(Vec<(String, Value)>, String),
    None,
}

fn readable(work: &Context<'_>, path: &str) -> Hashes {
    let Ok(text) = work.files.read(Path::new(path)) else {
        return Hashes::All;
    };
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let users = lines.filter_map(|line| line.split_once(':'));
    // A comment may follow the hash.
    let users = users.map(|(name, hash)| (name, hash.split(':').next().unwrap_or(hash)));
    let is_taken = |(_, hash): &(&str, &str)| check_password_hash(hash).is_ok();
    let (taken, others): (Vec<_>, Vec<_>) = users.partition(is_taken);
    if others.is_empty() {
        return Hashes::All;
    }
    if taken.is_empty() {
        return Hashes::None;
    }
    let names: Vec<&str> = others.iter().map(|(name, _)| *name).collect();
    let mut users: Vec<(String, Value)> = Vec::new();
    for (name, hash) in taken {
        if !users.iter().any(|(known, _)| known == name) {
            users.push((name.to_owned(), Value::text(hash)));
        }
    }
    Hashes::Some(users, names.join(", "))
}

fn passwords<'a>(
    work: &mut Context<'a>,
    scope: &Scope<'a>,
    constants: &Constants,
    route: &mut Route,
) -> AccessOutcome {
    let Some(realm) = scope.one("auth_basic") else {
        return AccessOutcome::Open;
    };
    let said = expanded(realm.argument(0), constants);
    if said == "off" {
        let mut names = names(realm.argument(0)).into_iter();
        if names
            .any(|name| work.uncertain.contains(&name) || why_unknown(&name, constants).is_some())
        {
            let why =
                "nginx asks for a password depending on a condition that Onrush cannot evaluate";
            return note_unsupported(work, realm, why);
        }
        work.notes.carried(realm);
        return AccessOutcome::Open;
    }
    let Some(file) = scope.one("auth_basic_user_file") else {
        let why = "nginx asks for no password without auth_basic_user_file";
        work.notes.without_effect(realm, why);
        return AccessOutcome::Open;
    };
    let path = expanded(file.argument(0), constants);
    if path.contains('$') {
        return note_unsupported(work, file, "file names cannot contain variables");
    }
    if said.contains('$') {
        let how = "the realm cannot contain variables, and every client is asked for a password";
        work.notes.approximated(realm, how);
    }
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '"' | '\\' | '$');
    let name: String = said.chars().filter(|letter| is_plain(*letter)).collect();
    let path = work.path(&path);
    let mut entries = match readable(work, &path) {
        Hashes::All => vec![("file".to_owned(), Value::text(path))],
        Hashes::Some(users, others) => {
            let how = format!(
                "{others} cannot log in, because Onrush does not support their hashes (expected bcrypt, argon2id or SHA-crypt); the other users are in the result"
            );
            work.notes.approximated(file, how);
            vec![("users".to_owned(), Value::Table(users))]
        }
        Hashes::None => {
            return note_unsupported(
                work,
                file,
                "Onrush supports none of its hashes: expected bcrypt, argon2id or SHA-crypt",
            );
        }
    };
    if !name.is_empty() {
        entries.insert(0, ("realm".to_owned(), Value::text(name)));
    }
    route.put("basic_auth", Value::Table(entries));
    work.notes.carried(realm);
    let how = "hashes must be bcrypt, argon2id or SHA-crypt; onrush check reports others";
    work.notes.approximated(file, how);
    AccessOutcome::Open
}

/// Writes `rate_limit`: rate, burst and concurrent requests, all with one key.
fn limits<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) {
    let mut entries: Vec<(String, Value)> = Vec::new();
    let mut key: Option<&'static str> = None;
    let mut named: Option<String> = None;
    let directives = [scope.all("limit_req"), scope.all("limit_conn")].concat();
    for directive in directives {
        let kind = match directive.name() {
            "limit_req" => "limit_req_zone",
            _ => "limit_conn_zone",
        };
        let Some((zone, by)) = zone(work, directive, kind) else {
            let why = "the key of its zone is not supported: expected the client address, a field, or one key for all requests of a route";
            work.notes.left_out(directive, why);
            continue;
        };
        let is_other = named.as_ref().is_some_and(|named| *named != by);
        let part = match kind {
            "limit_req_zone" => "requests",
            _ => "concurrent",
        };
        if is_other || entries.iter().any(|(known, _)| known == part) {
            let why = "a route can have one limit of each kind, and both use the same key";
            work.notes.left_out(directive, why);
            continue;
        }
        if by == "address"
            && let Some(why) = other_address(scope, &work.trusted)
        {
            work.notes.approximated(directive, why);
        }
        named = Some(by);
        key = Some("key");
        match part {
            "requests" => rate(work, directive, zone, &mut entries),
            _ => concurrent(work, directive, zone, &mut entries),
        }
    }
    if let (Some(key), Some(named)) = (key, named)
        && !entries.is_empty()
    {
        if named != "address" {
            entries.push((key.to_owned(), Value::text(named)));
        }
        route.put("rate_limit", Value::Table(entries));
    }
}

const STATUS: &str =
    "above the limit the response is 429 with Retry-After, and each route has its own counter";

/// The zone that a limit names, and the corresponding key of Onrush.
fn zone<'a>(
    work: &Context<'a>,
    directive: &Directive,
    kind: &str,
) -> Option<(&'a Directive, String)> {
    let arguments = directive.arguments().iter();
    let named = arguments
        .filter_map(|argument| argument.strip_prefix("zone="))
        .next();
    let named = named.unwrap_or(directive.argument(0));
    let is_it = |zone: &&Directive| {
        let mut words = zone.arguments().iter();
        zone.name() == kind
            && words.any(|word| {
                word.strip_prefix("zone=")
                    .is_some_and(|zone| zone.split(':').next() == Some(named))
            })
    };
    let zone = work.http.iter().find(is_it)?;
    let key = match zone.argument(0) {
        "$binary_remote_addr" | "$remote_addr" => "address".to_owned(),
        "$server_name" | "$host" | "$http_host" => "route".to_owned(),
        key => {
            let field = key.strip_prefix("$http_")?;
            format!("header:{}", super::variable::field_name(field))
        }
    };
    Some((zone, key))
}

fn rate<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    zone: &'a Directive,
    entries: &mut Vec<(String, Value)>,
) {
    let mut words = zone.arguments().iter();
    let rate = words.find_map(|word| word.strip_prefix("rate="));
    let rate = rate.and_then(|rate| {
        let (number, unit) = rate.split_once("r/")?;
        let is_number = number.parse::<u32>().is_ok_and(|number| number > 0);
        (is_number && matches!(unit, "s" | "m")).then(|| format!("{number}/{unit}"))
    });
    let Some(rate) = rate else {
        return work.notes.left_out(zone, "expected a rate such as 10r/s");
    };
    let mut words = directive.arguments().iter();
    let burst = words.find_map(|word| word.strip_prefix("burst="));
    let burst = burst
        .and_then(|burst| burst.parse::<u32>().ok())
        .unwrap_or(0);
    entries.push(("requests".to_owned(), Value::Text(rate)));
    entries.push(("burst".to_owned(), Value::Number(burst.into())));
    work.notes.carried(zone);
    let is_delayed = burst > 0 && !directive.arguments().iter().any(|word| word == "nodelay");
    let how = match is_delayed {
        true => format!("requests within the burst are not delayed; {STATUS}"),
        false => STATUS.to_owned(),
    };
    work.notes.approximated(directive, how);
}

fn concurrent<'a>(
    work: &mut Context<'a>,
    directive: &'a Directive,
    zone: &'a Directive,
    entries: &mut Vec<(String, Value)>,
) {
    match directive.argument(1).parse::<u32>() {
        Ok(number) if number > 0 => {
            entries.push(("concurrent".to_owned(), Value::Number(number.into())));
            work.notes.carried(zone);
            let how = format!("concurrent requests are limited, not connections; {STATUS}");
            work.notes.approximated(directive, how);
        }
        _ => work
            .notes
            .left_out(directive, "expected a number of connections"),
    }
}
