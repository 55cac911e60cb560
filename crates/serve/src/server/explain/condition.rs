//! Explains why a route does not match: the expected condition and the actual value.

use onrush_config::plan::{Host, Networks, PathMatch, RouteMatch, Scheme, ValueMatch};
use onrush_http::query;
use onrush_http::request::RequestHead;

use crate::routing::route::{RouteContext, UnmetCondition, host_of, values};
use crate::site::Site;

/// A route that does not match a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmatchedRoute {
    /// Index of the route.
    pub route: usize,
    /// Key of the first condition that does not hold.
    pub condition: &'static str,
    /// The condition, as written in a configuration.
    pub expected: String,
    /// The actual value.
    pub found: String,
}

/// The routes before `route`, or all of them; empty if the request was refused before routing.
pub(super) fn passed(
    site: &Site,
    head: &RequestHead<'_, '_>,
    path: &[u8],
    route: Option<usize>,
    coming: &impl RouteContext,
) -> Vec<UnmatchedRoute> {
    let routes = &site.routes;
    let end = route.unwrap_or_else(|| routes.iter().count());
    let passed = (0..end).map(|index| {
        let unmet = routes.unmet_condition(index, head, path, coming)?;
        let when = &routes.route(index).when;
        let asked = Asked { head, path, coming };
        let (condition, expected, found) = asked.words(when, unmet);
        Some(UnmatchedRoute {
            route: index,
            condition,
            expected,
            found,
        })
    });
    // A route that does match means that the request was refused before routing.
    passed.collect::<Option<_>>().unwrap_or_default()
}

struct Asked<'a, C> {
    head: &'a RequestHead<'a, 'a>,
    path: &'a [u8],
    coming: &'a C,
}

impl<C: RouteContext> Asked<'_, C> {
    fn words(&self, when: &RouteMatch, unmet: UnmetCondition) -> (&'static str, String, String) {
        let head = self.head;
        match unmet {
            UnmetCondition::Host => {
                let host = host_of(head.authority.unwrap_or(""));
                ("host", hosts(&when.hosts), quoted_or(host, "no host"))
            }
            UnmetCondition::Path => {
                let path = String::from_utf8_lossy(self.path);
                ("path", self::path(&when.path), format!("{path:?}"))
            }
            UnmetCondition::Method => {
                let found = format!("{:?}", head.method_text);
                ("method", list(&when.methods), found)
            }
            UnmetCondition::Header(index) => {
                let (name, wanted) = &when.headers[index as usize];
                let found = values(head, name).map(lossy);
                ("headers", value(name, wanted), several(found))
            }
            UnmetCondition::Query(index) => {
                let (name, wanted) = &when.query[index as usize];
                let found = query::parameters(head.query.unwrap_or(""))
                    .filter(|(found, _)| found.is(name.as_bytes()))
                    .map(|(_, value)| lossy(&value.decoded()));
                ("query", value(name, wanted), several(found))
            }
            UnmetCondition::From => {
                let found = match self.coming.origin().address {
                    Some(address) => address.to_string(),
                    None => "a client without an address".to_owned(),
                };
                ("from", networks(when.from.as_ref()), found)
            }
            UnmetCondition::Scheme => {
                let expected = when.scheme.map_or("", Scheme::text);
                let found = self.coming.origin().scheme.text();
                ("scheme", format!("{expected:?}"), format!("{found:?}"))
            }
            UnmetCondition::Listener => {
                let found = format!("{:?}", self.coming.listener());
                ("listener", list(&when.listeners), found)
            }
            UnmetCondition::Not(index) => {
                let not = conditions(&when.not[index as usize]);
                ("not", format!("not all of {not}"), "all of them".to_owned())
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(bytes))
}

fn quoted_or(text: &str, none: &str) -> String {
    match text {
        "" => none.to_owned(),
        text => format!("{text:?}"),
    }
}

fn several(found: impl Iterator<Item = String>) -> String {
    let found: Vec<String> = found.collect();
    match found.is_empty() {
        true => "none".to_owned(),
        false => found.join(" and "),
    }
}

fn list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    match &*texts {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

fn hosts(hosts: &[Host]) -> String {
    list(&hosts.iter().map(Host::to_string).collect::<Vec<_>>())
}

fn networks(networks: Option<&Networks>) -> String {
    let networks = networks.iter().flat_map(|networks| &networks.0);
    list(&networks.map(ToString::to_string).collect::<Vec<_>>())
}

fn path(path: &PathMatch) -> String {
    match path {
        PathMatch::Any => "any".to_owned(),
        PathMatch::Prefix(prefix) => format!("{prefix:?}"),
        PathMatch::Exact(exact) => format!("{:?}", format!("={exact}")),
        PathMatch::Regex(pattern) => format!("{:?}", format!("~{}", pattern.as_str())),
    }
}

fn value(name: &str, wanted: &ValueMatch) -> String {
    let wanted = match wanted {
        ValueMatch::Present => "*".to_owned(),
        ValueMatch::Absent => "!".to_owned(),
        ValueMatch::Exact(exact) => exact.clone(),
        ValueMatch::Regex(pattern) => format!("~{}", pattern.as_str()),
    };
    format!("{name} = {wanted:?}")
}

fn conditions(when: &RouteMatch) -> String {
    let mut all = Vec::new();
    if !when.hosts.is_empty() {
        all.push(format!("host = {}", hosts(&when.hosts)));
    }
    if when.path != PathMatch::Any {
        all.push(format!("path = {}", path(&when.path)));
    }
    if !when.methods.is_empty() {
        all.push(format!("method = {}", list(&when.methods)));
    }
    for (key, values) in [("headers", &when.headers), ("query", &when.query)] {
        let values: Vec<String> = values.iter().map(|(name, it)| value(name, it)).collect();
        if !values.is_empty() {
            all.push(format!("{key} = {{ {} }}", values.join(", ")));
        }
    }
    if when.from.is_some() {
        all.push(format!("from = {}", networks(when.from.as_ref())));
    }
    if let Some(scheme) = when.scheme {
        all.push(format!("scheme = {:?}", scheme.text()));
    }
    if !when.listeners.is_empty() {
        all.push(format!("listener = {}", list(&when.listeners)));
    }
    format!("{{ {} }}", all.join(", "))
}
