//! Query parameters and JSON bodies of requests. Unknown ones are refused, not ignored.

use onrush_http::query::parameters;
use onrush_serve::sum_traffic;
use serde_json::{Map, Value};

use crate::authority::Audience;
use crate::context::Context;
use crate::request::Request;
use crate::response::Response;
use crate::views::CoreViews;

/// Paths that accept query parameters; each parses its own.
const PATHS_WITH_PARAMETERS: [&str; 2] = ["/v1/connections", "/v1/events"];

/// Refuses parameters of a path that takes none. Public paths ignore them: they may be there to bypass caches.
pub(crate) fn check_parameters(request: &Request) -> Result<(), Response> {
    let path = request.path.as_str();
    if PATHS_WITH_PARAMETERS.contains(&path) || Context::audience(path) != Audience::Authorized {
        return Ok(());
    }
    let Some((name, _)) = parameters(&request.query).next() else {
        return Ok(());
    };
    let name = name.decoded();
    let name = String::from_utf8_lossy(&name);
    let why = format!("{name:?} is unknown: {path} has no parameters");
    Err(Response::error(400, &why))
}

/// Maximum number of listeners named in the error for an unknown one.
const LISTENERS_SHOWN_MAX: usize = 10;

/// Refuses the name of a listener that does not exist, and did not exist in an earlier configuration.
pub(crate) fn check_listener(name: &str, views: &CoreViews) -> Result<(), String> {
    let listeners = sum_traffic(views.cores.iter().map(|view| &*view.listeners));
    // The listeners are unknown if no core answered.
    if listeners.is_empty() || listeners.iter().any(|one| one.name == name) {
        return Ok(());
    }
    let named = listeners.iter().take(LISTENERS_SHOWN_MAX);
    let mut named: Vec<&str> = named.map(|one| &*one.name).collect();
    if listeners.len() > LISTENERS_SHOWN_MAX {
        named.push("…");
    }
    let named = named.join(", ");
    Err(format!(
        "listener: unknown listener {name:?}: expected one of {named}"
    ))
}

/// Value of the key in a JSON object that has no other key.
pub(crate) fn sole_value(body: &[u8], key: &str) -> Option<Value> {
    let mut fields: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let value = fields.remove(key)?;
    fields.is_empty().then_some(value)
}

/// Number of the event after which the requested events start.
pub(crate) fn parse_events_after(request: &Request) -> Result<u64, Response> {
    let number = match request.query.split_once('=') {
        None if request.query.is_empty() => request.last_event.as_deref().unwrap_or("0"),
        Some(("after", number)) => number,
        _ => "",
    };
    number.parse().map_err(|_| {
        let asked = match request.query.is_empty() {
            true => number,
            false => &request.query,
        };
        let why =
            format!("{asked:?} is not the number of an event: expected /v1/events?after=NUMBER");
        Response::error(400, &why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_http::Method;

    fn request(path: &str, query: &str) -> Request {
        Request {
            method: Method::Get,
            path: path.to_owned(),
            query: query.to_owned(),
            last_event: None,
            accept: String::new(),
            body: Vec::new(),
        }
    }

    #[test]
    fn unexpected_parameters_are_refused() {
        let takes = |path: &str, query: &str| check_parameters(&request(path, query)).is_ok();
        for (path, query, is_taken) in [
            ("/v1/profile", "", true),
            ("/v1/profile", "&", true),
            ("/v1/profile", "core=1", false),
            ("/v1/status", "x", false),
            ("/v1/live", "interval=5s", false),
            ("/v1/drain", "drain=false", false),
            ("/metrics", "name[]=onrush_server_up", false),
            ("/ready", "verbose", true),
            ("/status.js", "v=1", true),
            ("/", "x=1", true),
            // These parse their own parameters.
            ("/v1/connections", "limit=1", true),
            ("/v1/events", "after=1", true),
        ] {
            assert_eq!(takes(path, query), is_taken, "{path}?{query}");
        }
    }

    #[test]
    fn body_with_unknown_keys_is_refused() {
        let level = |body: &str| sole_value(body.as_bytes(), "level");
        assert_eq!(level("{\"level\": \"info\"}"), Some("info".into()));
        for wrong in [
            "",
            "[]",
            "{}",
            "{\"lvl\": 1}",
            "{\"level\": \"info\", \"for\": \"1h\"}",
        ] {
            assert_eq!(level(wrong), None, "{wrong}");
        }
    }
}
