//! What can be asked, and what comes of it. `openapi.json` says the same to programs.

use onrush_engine::{Claim, Core};
use onrush_http::Method;
use onrush_serve::{Duty, Inspector, ServerChange};
use serde_json::{Value, json};

use crate::authority::{Audience, Token};
use crate::operator::{Operator, Order};
use crate::readiness::{Phase, Readiness};
use crate::request::Request;
use crate::response::Response;
use crate::setup::{Facts, Setup};
use crate::views::{self, PATIENCE, Views, within};
use crate::{json, metrics};

/// The same for programs (OpenAPI 3.1).
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

/// What answers.
pub(crate) struct Desk {
    pub(crate) core: Core,
    pub(crate) connections_max: usize,
    /// A Unix socket's file is there as long as this is.
    _claim: Claim,
    token: Option<Token>,
    facts: Facts,
    readiness: Readiness,
    inspector: Inspector,
    operator: Box<dyn Operator>,
}

/// The greatest weight of a server, as in a configuration.
const WEIGHT_MAX: u64 = 256;

/// What there is, with the methods beside GET and HEAD.
const PATHS: [(&str, Methods); 15] = [
    ("/live", Methods::Get),
    ("/ready", Methods::Get),
    ("/metrics", Methods::Get),
    ("/openapi.json", Methods::Get),
    ("/v1/status", Methods::Get),
    ("/v1/listeners", Methods::Get),
    ("/v1/routes", Methods::Get),
    ("/v1/requests", Methods::Get),
    ("/v1/servers", Methods::GetAndPost),
    ("/v1/config", Methods::Get),
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

impl Desk {
    pub(crate) fn new(core: Core, setup: Setup) -> Self {
        let Setup {
            claim,
            connections_max,
            token,
            facts,
            readiness,
            inspector,
            operator,
        } = setup;
        Self {
            core,
            connections_max,
            _claim: claim,
            token,
            facts,
            readiness,
            inspector,
            operator,
        }
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    /// Who may ask for what is there.
    pub(crate) fn audience(path: &str) -> Audience {
        match path {
            "/live" | "/ready" => Audience::Everybody,
            _ => Audience::Trusted,
        }
    }

    pub(crate) async fn respond(&self, request: Request) -> Response {
        let path = request.path.as_str();
        let known = PATHS.iter().find(|(known, _)| *known == path);
        let Some((_, methods)) = known else {
            return Response::error(
                404,
                "there is no such thing; /openapi.json says what there is",
            );
        };
        if !methods.include(request.method) {
            let why = format!("expected {}", methods.names());
            return Response::error(405, &why).with("Allow", methods.names());
        }
        match path {
            "/live" => self.live().await,
            "/ready" => self.ready(),
            "/metrics" => {
                let views = self.views().await;
                metrics::respond(&views, &self.facts, self.readiness.phase(), &request.accept)
            }
            "/openapi.json" => Response::of(200, "application/json", OPENAPI.into()),
            "/v1/status" => {
                let views = self.views().await;
                let phase = self.readiness.phase();
                Response::json(200, &json::status(&views, &self.facts, phase))
            }
            "/v1/listeners" => Response::json(200, &json::listeners(&self.views().await)),
            "/v1/routes" => Response::json(200, &json::routes(&self.views().await)),
            "/v1/requests" => {
                let (all, silent) = views::requests(&self.core, &self.inspector).await;
                Response::json(200, &json::requests(&all, &silent))
            }
            "/v1/servers" if request.method == Method::Post => self.set_server(&request.body).await,
            "/v1/servers" => Response::json(200, &json::servers(&self.views().await)),
            "/v1/config" => Response::json(200, &self.operator.configuration()),
            "/v1/explain" => self.explain(&request.body),
            "/v1/reload" => self.order(Order::Reload).await,
            "/v1/upgrade" => self.order(Order::Upgrade).await,
            "/v1/drain" => self.drain(&request.body),
            _ => self.order(Order::Stop).await,
        }
    }

    async fn views(&self) -> Views {
        Views::take(&self.core, &self.inspector).await
    }

    /// All cores look at their mail.
    async fn live(&self) -> Response {
        let views = self.views().await;
        let status = match views.silent.is_empty() {
            true => 200,
            false => 503,
        };
        let live = json!({ "live": status == 200, "silent_cores": views.silent });
        Response::json(status, &live)
    }

    /// It serves, and wants more clients.
    fn ready(&self) -> Response {
        let phase = self.readiness.phase();
        let status = match phase {
            Phase::Ready => 200,
            Phase::Draining | Phase::Stopping => 503,
        };
        Response::json(status, &json!({ "phase": phase.name() }))
    }

    /// Has `/ready` fail from now on, or not any more.
    fn drain(&self, body: &[u8]) -> Response {
        let wanted = match body {
            b"" => Some(true),
            body => serde_json::from_slice::<Value>(body)
                .ok()
                .and_then(|body| body["drain"].as_bool()),
        };
        match wanted {
            Some(true) => self.readiness.set(Phase::Draining),
            Some(false) => self.readiness.set(Phase::Ready),
            None => {
                let why = "expected no body, {\"drain\": true} or {\"drain\": false}";
                return Response::error(400, why);
            }
        }
        let phase = self.readiness.phase();
        Response::json(200, &json!({ "phase": phase.name() }))
    }

    fn explain(&self, body: &[u8]) -> Response {
        let asked = serde_json::from_slice(body).map_err(|error| error.to_string());
        match asked.and_then(|asked| self.operator.explain(&asked)) {
            Ok(explained) => Response::json(200, &explained),
            Err(why) => Response::error(400, &why),
        }
    }

    async fn order(&self, order: Order) -> Response {
        let (promise, outcome) = self.core.promise();
        self.operator.order(order, promise);
        match outcome.await {
            Some(Ok(facts)) => Response::json(200, &facts),
            Some(Err(why)) => Response::error(409, &why),
            None => Response::error(503, "nothing was done: the server ends"),
        }
    }

    async fn set_server(&self, body: &[u8]) -> Response {
        let (place, changes) = match changes(body) {
            Ok(wanted) => wanted,
            Err(why) => return Response::error(400, &why),
        };
        let mut count = 0;
        for change in changes {
            let (promise, outcome) = self.core.promise();
            let taken = self.inspector.set_server(place.clone(), change, promise);
            let changed = match taken {
                Ok(()) => within(&self.core, outcome, PATIENCE).await,
                Err(_) => None,
            };
            match changed {
                Some(changed) => count = changed,
                None => return Response::error(503, "the cores do not answer"),
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

/// What is wanted of which server.
type Wanted = ((String, String), Vec<ServerChange>);

/// Reads what is wanted of a server.
fn changes(body: &[u8]) -> Result<Wanted, String> {
    const EXPECTED: &str = "expected {\"group\": NAME, \"server\": NAME or ADDRESS} with \"state\": \"up\", \"drain\" or \
                            \"down\", or \"weight\": 1 to 256, or null for that of the configuration";
    let body: Value =
        serde_json::from_slice(body).map_err(|error| format!("{error}: {EXPECTED}"))?;
    let fields = body.as_object().ok_or(EXPECTED)?;
    let known = ["group", "server", "state", "weight"];
    if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("unknown key {key:?}: {EXPECTED}"));
    }
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    let (Some(group), Some(server)) = (text("group"), text("server")) else {
        return Err(EXPECTED.to_owned());
    };
    let mut changes = Vec::new();
    if let Some(state) = fields.get("state") {
        let named = Duty::ALL.into_iter().find(|duty| state == duty.name());
        changes.push(ServerChange::Duty(named.ok_or(EXPECTED)?));
    }
    if let Some(weight) = fields.get("weight") {
        let number = weight
            .as_u64()
            .filter(|weight| (1..=WEIGHT_MAX).contains(weight));
        let number = number.and_then(|weight| u32::try_from(weight).ok());
        if number.is_none() && !weight.is_null() {
            return Err(EXPECTED.to_owned());
        }
        changes.push(ServerChange::Weight(number));
    }
    match changes.is_empty() {
        true => Err(EXPECTED.to_owned()),
        false => Ok(((group, server), changes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_of_a_server_is_read_whole_or_not_at_all() {
        let read = |text: &str| changes(text.as_bytes());
        let place = || ("app".to_owned(), "10.0.0.1:80".to_owned());
        let both =
            read(r#"{"group": "app", "server": "10.0.0.1:80", "state": "drain", "weight": 7}"#);
        let wanted = vec![
            ServerChange::Duty(Duty::Drain),
            ServerChange::Weight(Some(7)),
        ];
        assert_eq!(both, Ok((place(), wanted)));
        let null = read(r#"{"group": "app", "server": "10.0.0.1:80", "weight": null}"#);
        assert_eq!(null, Ok((place(), vec![ServerChange::Weight(None)])));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"group": "app", "server": "s"}"#,
            r#"{"group": "app", "server": "s", "state": "maint"}"#,
            r#"{"group": "app", "server": "s", "weight": 0}"#,
            r#"{"group": "app", "server": "s", "weight": 257}"#,
            r#"{"group": "app", "server": "s", "weight": "7"}"#,
            r#"{"group": "app", "state": "up"}"#,
            r#"{"group": "app", "server": "s", "state": "up", "wieght": 7}"#,
        ] {
            let why = read(wrong).expect_err(wrong);
            assert!(why.contains("expected {"), "{why}");
        }
    }

    #[test]
    fn the_description_has_what_there_is() {
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
