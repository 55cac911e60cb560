//! The endpoints of the interface, described for programs in `openapi.json`.

use onrush_http::Method;
use onrush_serve::ConnectionQuery;
use serde_json::{Value, json};

use crate::authority::Audience;
use crate::connections;
use crate::context::Context;
use crate::context::operator::Command;
use crate::context::readiness::Phase;
use crate::feed;
use crate::feed::EventStream;
use crate::json;
use crate::live;
use crate::metrics;
use crate::parameters::{check_listener, check_parameters, parse_events_after, sole_value};
use crate::profile;
use crate::request::Request;
use crate::response::Response;
use crate::response::page;
use crate::server_change::parse_changes;
use crate::views::{self, CORE_TIMEOUT, CoreViews, with_timeout};

/// Description of the interface in OpenAPI 3.1.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

/// Paths of the interface and their methods.
const PATHS: [(&str, Methods); 23] = [
    ("/", Methods::Get),
    ("/status.js", Methods::Get),
    ("/status.css", Methods::Get),
    ("/live", Methods::Get),
    ("/ready", Methods::Get),
    ("/metrics", Methods::Get),
    ("/openapi.json", Methods::Get),
    ("/v1/status", Methods::Get),
    ("/v1/listeners", Methods::Get),
    ("/v1/routes", Methods::Get),
    ("/v1/requests", Methods::Get),
    ("/v1/connections", Methods::Get),
    ("/v1/profile", Methods::Get),
    ("/v1/servers", Methods::GetAndPost),
    ("/v1/config", Methods::Get),
    ("/v1/events", Methods::Get),
    ("/v1/live", Methods::Get),
    ("/v1/log", Methods::GetAndPost),
    ("/v1/explain", Methods::Post),
    ("/v1/reload", Methods::Post),
    ("/v1/upgrade", Methods::Post),
    ("/v1/drain", Methods::Post),
    ("/v1/stop", Methods::Post),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Methods {
    Get,
    Post,
    GetAndPost,
}

pub(crate) enum Reply {
    Whole(Response),
    /// A stream that lasts until the client disconnects or the server stops.
    Feed(EventStream),
}

impl Methods {
    fn include(self, method: Method) -> bool {
        match method {
            Method::Get | Method::Head => self != Methods::Post,
            Method::Post => self != Methods::Get,
            _ => false,
        }
    }

    fn names(self) -> &'static str {
        match self {
            Methods::Get => "GET, HEAD",
            Methods::Post => "POST",
            Methods::GetAndPost => "GET, HEAD, POST",
        }
    }
}

impl Context {
    pub(crate) fn audience(path: &str) -> Audience {
        match path {
            "/" => Audience::Navigation,
            "/live" | "/ready" | "/status.js" | "/status.css" => Audience::Public,
            _ => Audience::Authorized,
        }
    }

    /// Whether a path is for health probes, which get a response even when all connections are in use.
    pub(crate) fn is_probe(path: &str) -> bool {
        matches!(path, "/live" | "/ready")
    }

    pub(crate) async fn respond(&self, request: Request) -> Reply {
        let is_get = request.method == Method::Get;
        let is_followed = is_get && request.accept.contains(feed::CONTENT_TYPE);
        match request.path.as_str() {
            "/v1/events" | "/v1/live" if is_followed && !feed::has_room(self) => {
                let why = "too many clients follow this stream; request it without Accept: text/event-stream";
                return Reply::Whole(Response::error(503, why));
            }
            "/v1/events" if is_followed => match parse_events_after(&request) {
                Ok(after) => return Reply::Feed(EventStream::Events(after)),
                Err(refused) => return Reply::Whole(refused),
            },
            "/v1/live" if is_followed => {
                return match check_parameters(&request) {
                    Ok(()) => Reply::Feed(EventStream::Live(None)),
                    Err(refused) => Reply::Whole(refused),
                };
            }
            _ => {}
        }
        Reply::Whole(self.respond_whole(request).await)
    }

    async fn respond_whole(&self, request: Request) -> Response {
        let path = request.path.as_str();
        let known = PATHS.iter().find(|(known, _)| *known == path);
        let Some((_, methods)) = known else {
            return Response::error(404, "no such resource; /openapi.json lists the paths");
        };
        if !methods.include(request.method) {
            let why = format!("expected {}", methods.names());
            return Response::error(405, &why).with("Allow", methods.names());
        }
        if let Err(refused) = check_parameters(&request) {
            return refused;
        }
        match path {
            "/" => page::document(),
            "/status.js" => page::script(),
            "/status.css" => page::style(),
            "/live" => self.live().await,
            "/ready" => self.ready(),
            "/metrics" => {
                let views = self.views().await;
                metrics::respond(&views, &self.facts, self.readiness.phase(), &request.accept)
            }
            "/openapi.json" => Response::of(200, "application/json", OPENAPI.into()),
            "/v1/status" => {
                let views = self.views().await;
                Response::json(200, &json::status(&views, self))
            }
            "/v1/listeners" => Response::json(200, &json::listeners(&self.views().await)),
            "/v1/routes" => Response::json(200, &json::routes(&self.views().await)),
            "/v1/requests" => {
                let (all, silent) = views::requests(&self.core, &self.inspector).await;
                Response::json(200, &json::requests(&all, &silent))
            }
            "/v1/connections" => self.connections(&request.query).await,
            "/v1/profile" => {
                let (cores, silent) = views::profiles(&self.core, &self.inspector).await;
                Response::json(200, &profile::profile(&cores, &silent))
            }
            "/v1/servers" if request.method == Method::Post => self.set_server(&request.body).await,
            "/v1/servers" => {
                let views = self.views().await;
                Response::json(200, &json::servers(&views, &self.journal))
            }
            "/v1/config" => Response::json(200, &self.operator.configuration()),
            "/v1/events" => match parse_events_after(&request) {
                Ok(after) => Response::json(200, &feed::past_events(&self.journal, after)),
                Err(refused) => refused,
            },
            "/v1/live" => self.now().await,
            "/v1/log" if request.method == Method::Post => self.set_log_level(&request.body),
            "/v1/log" => self.log_level(),
            "/v1/explain" => self.explain(&request.body),
            "/v1/reload" => self.order(Command::Reload, &request.body).await,
            "/v1/upgrade" => self.order(Command::Upgrade, &request.body).await,
            "/v1/drain" => self.drain(&request.body),
            "/v1/stop" => self.order(Command::Stop, &request.body).await,
            known => unreachable!("{known} has its response above"),
        }
    }

    async fn views(&self) -> CoreViews {
        CoreViews::take(&self.core, &self.inspector).await
    }

    async fn connections(&self, query: &str) -> Response {
        let query = match ConnectionQuery::parse(query) {
            Ok(query) => query,
            Err(why) => return Response::error(400, &why),
        };
        if let Some(name) = &query.listener
            && let Err(why) = check_listener(name, &self.views().await)
        {
            return Response::error(400, &why);
        }
        let (found, silent) = views::connections(&self.core, &self.inspector, &query).await;
        Response::json(200, &connections::connections(&found, &query, &silent))
    }

    /// `/v1/live` without streaming: one sample over an interval.
    async fn now(&self) -> Response {
        let mut before = None;
        loop {
            live::wait_until_due(&self.core, before.as_ref()).await;
            if let Some(value) = live::sample(self, &mut before).await {
                return Response::json(200, &value);
            }
        }
    }

    /// Liveness: 200 if all cores respond, otherwise 503.
    async fn live(&self) -> Response {
        let views = self.views().await;
        let status = match views.unresponsive.is_empty() {
            true => 200,
            false => 503,
        };
        let live = json!({ "live": status == 200, "silent_cores": views.unresponsive });
        Response::json(status, &live)
    }

    /// Readiness: 200 unless the server is draining or stopping.
    fn ready(&self) -> Response {
        let phase = self.readiness.phase();
        let status = match phase {
            Phase::Ready => 200,
            Phase::Draining | Phase::Stopping => 503,
        };
        Response::json(status, &json!({ "phase": phase.name() }))
    }

    /// Starts or ends draining. While the server drains, `/ready` returns 503.
    fn drain(&self, body: &[u8]) -> Response {
        let wanted = match body {
            b"" => Some(true),
            body => sole_value(body, "drain").and_then(|value| value.as_bool()),
        };
        match wanted {
            Some(true) => {
                self.readiness.set(Phase::Draining);
                tracing::info!(event = "drain", "ctl drain: /ready fails from now on");
            }
            Some(false) => {
                self.readiness.set(Phase::Ready);
                tracing::info!(event = "undrain", "ctl undrain: /ready succeeds again");
            }
            None => {
                let why = "expected no body, {\"drain\": true} or {\"drain\": false}";
                return Response::error(400, why);
            }
        }
        let phase = self.readiness.phase();
        Response::json(200, &json!({ "phase": phase.name() }))
    }

    fn log_level(&self) -> Response {
        Response::json(200, &json!({ "level": self.operator.log_level() }))
    }

    fn set_log_level(&self, body: &[u8]) -> Response {
        let level = sole_value(body, "level");
        let Some(level) = level.as_ref().and_then(Value::as_str) else {
            return Response::error(400, "expected {\"level\": NAME}");
        };
        match self.operator.set_log_level(level) {
            Ok(()) => self.log_level(),
            Err(why) => Response::error(400, &why),
        }
    }

    fn explain(&self, body: &[u8]) -> Response {
        let asked = serde_json::from_slice(body).map_err(|error| error.to_string());
        match asked.and_then(|asked| self.operator.explain(&asked)) {
            Ok(explained) => Response::json(200, &explained),
            Err(why) => Response::error(400, &why),
        }
    }

    async fn order(&self, order: Command, body: &[u8]) -> Response {
        if !body.is_empty() {
            return Response::error(400, "expected no body");
        }
        let (promise, outcome) = self.core.promise();
        self.operator.execute(order, promise);
        match outcome.await {
            Some(Ok(facts)) => Response::json(200, &facts),
            Some(Err(why)) => Response::error(409, &why),
            None => Response::error(503, "nothing was done: the server is stopping"),
        }
    }

    async fn set_server(&self, body: &[u8]) -> Response {
        let (place, changes) = match parse_changes(body) {
            Ok(wanted) => wanted,
            Err(why) => return Response::error(400, &why),
        };
        let mut count = 0;
        for change in changes {
            let (promise, outcome) = self.core.promise();
            let taken = self.inspector.set_server(place.clone(), change, promise);
            let changed = match taken {
                Ok(()) => with_timeout(&self.core, outcome, CORE_TIMEOUT).await,
                Err(_) => None,
            };
            match changed {
                Some(changed) => count = changed,
                None => return Response::error(503, "the cores did not answer in time"),
            }
        }
        let (group, server) = place;
        match count {
            0 => {
                let why =
                    format!("group {group:?} has no server {server:?}; GET /v1/servers lists them");
                Response::error(404, &why)
            }
            count => Response::json(
                200,
                &json!({ "group": group, "server": server, "changed": count }),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openapi_schemas_resolve() {
        let openapi: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let schemas = openapi["components"]["schemas"].as_object();
        let schemas = schemas.expect("schemas");
        for (path, methods) in openapi["paths"].as_object().expect("paths") {
            for (method, described) in methods.as_object().expect("methods") {
                for (status, response) in described["responses"].as_object().expect("responses") {
                    let place = format!("{method} {path}, {status}");
                    let contents = response["content"].as_object();
                    for (media, body) in contents.unwrap_or_else(|| panic!("{place}")) {
                        let is_described = body["schema"].is_object();
                        let is_binary = media == "application/vnd.google.protobuf";
                        assert!(is_described || is_binary, "{place}, {media}");
                    }
                }
            }
        }
        let references = OPENAPI.split("#/components/schemas/").skip(1);
        for name in references.filter_map(|rest| rest.split('"').next()) {
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    #[test]
    fn openapi_lists_all_paths() {
        let openapi: Value = serde_json::from_str(OPENAPI).expect("JSON");
        let described = openapi["paths"].as_object().expect("paths");
        let mut names: Vec<&str> = described.keys().map(String::as_str).collect();
        let mut known: Vec<&str> = PATHS.iter().map(|(path, _)| *path).collect();
        names.sort_unstable();
        known.sort_unstable();
        assert_eq!(names, known);
        for (path, methods) in PATHS {
            for (name, method) in [("get", Method::Get), ("post", Method::Post)] {
                let is_described = described[path].get(name).is_some();
                assert_eq!(is_described, methods.include(method), "{name} {path}");
            }
        }
    }
}
