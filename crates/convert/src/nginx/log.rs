//! `access_log`.

use super::scope::Scope;
use super::work::Context;
use crate::document::Value;
use crate::settings::access_log::syslog;
use crate::settings::route::Route;

/// Turns logging on or off for the route.
pub(super) fn write<'a>(work: &mut Context<'a>, scope: &Scope<'a>, route: &mut Route) {
    for directive in scope.all("access_log") {
        let text = directive.argument(0);
        let place = match text {
            "off" | "/dev/null" => {
                route.put("log", Value::Truth(false));
                work.notes.carried(directive);
                return;
            }
            "/dev/stdout" => Some("stdout".to_owned()),
            "" => None,
            text if text.contains('$') => None,
            text => match text.strip_prefix("syslog:server=") {
                Some(server) => syslog(server.split(',').next().unwrap_or_default()),
                None => Some(work.path(text)),
            },
        };
        match place {
            Some(place) => work.log.set_destination(place, directive, &mut work.notes),
            None => {
                let why = "Onrush can only log to one file, to standard output or to a syslog server at an IP address";
                work.notes.without_effect(directive, why);
            }
        }
    }
}
