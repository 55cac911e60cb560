//! Descriptions in the start-up line.

use onrush_config::plan::{
    Action, Host, HttpVersions, Listener, LoadTarget, Memcached, PathMatch, Plan, Protocol,
    RouteMatch, Scheme, Transport, ValueMatch,
};

/// Describes what a plan serves: a clause for one route, otherwise a line for each.
pub(super) fn describe(plan: &Plan) -> String {
    if !plan.listen.iter().any(Listener::is_http) {
        return "no HTTP".into();
    }
    if let [route] = plan.routes.as_slice() {
        return describe_action(&route.action, plan);
    }
    let mut text = format!("{} routes", plan.routes.len());
    for route in plan.routes.iter().take(ROUTES_SHOWN_MAX) {
        let hosts: Vec<String> = route.when.hosts.iter().map(Host::to_string).collect();
        let scheme = route.when.scheme.map_or("", Scheme::text);
        let host = hosts.join(", ");
        let path = match &route.when.path {
            PathMatch::Any => "everything".to_owned(),
            PathMatch::Prefix(prefix) => format!("{prefix}…"),
            PathMatch::Exact(path) => path.clone(),
            PathMatch::Regex(pattern) => format!("~{}", pattern.as_str()),
        };
        let separator = if host.is_empty() || path.starts_with('/') {
            ""
        } else {
            ": "
        };
        text += &format!(
            "\n  {scheme}{}{host}{separator}{path}{} -> {}",
            if scheme.is_empty() { "" } else { ": " },
            describe_conditions(&route.when),
            describe_action(&route.action, plan)
        );
    }
    if plan.routes.len() > ROUTES_SHOWN_MAX {
        text += &format!("\n  and {} more", plan.routes.len() - ROUTES_SHOWN_MAX);
    }
    text
}

/// Suffix of an address for its protocol; empty for HTTP of both versions.
pub(super) fn describe_protocol(protocol: &Protocol) -> String {
    match protocol {
        Protocol::Http(HttpVersions::Both) => String::new(),
        Protocol::Http(HttpVersions::Http1) => " (HTTP/1 alone)".to_owned(),
        Protocol::Http(HttpVersions::Http2) => " (HTTP/2 alone)".to_owned(),
        Protocol::Memcached(items, far_end) => {
            let over = match far_end.transport {
                Transport::Tcp => String::new(),
                Transport::Udp | Transport::Both => {
                    format!(" over {}", describe_transport(far_end))
                }
            };
            match items {
                Memcached::Stored { memory, .. } => {
                    format!(" (memcached{over}, {memory} bytes on each core)")
                }
                Memcached::Synthetic { value_bytes } => {
                    format!(" (memcached{over}, every key with {value_bytes} bytes)")
                }
            }
        }
        Protocol::Echo(far_end) | Protocol::Sink(far_end) => {
            format!(" ({protocol} over {})", describe_transport(far_end))
        }
        Protocol::Responder(sizes) => format!(
            " ({protocol}, {} bytes for each {})",
            sizes.response_bytes, sizes.request_bytes
        ),
    }
}

fn describe_transport(far_end: &LoadTarget) -> &'static str {
    match far_end.transport {
        Transport::Tcp => "TCP",
        Transport::Udp => "UDP",
        Transport::Both => "TCP and UDP",
    }
}

/// Conditions of a route other than host, path and scheme: ` (GET; from 10.0.0.0/8; header X-Beta)`.
fn describe_conditions(when: &RouteMatch) -> String {
    let some = |kind: &str, all: Vec<String>| {
        let shown = all.len().min(CONDITIONS_SHOWN_MAX);
        let rest = match all.len() - shown {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        (shown > 0).then(|| format!("{kind}{}{rest}", all[..shown].join(", ")))
    };
    let names = |matches: &[(String, ValueMatch)]| {
        let name = |(name, _): &(String, ValueMatch)| name.escape_debug().to_string();
        matches.iter().map(name).collect()
    };
    let networks = when.from.iter().flat_map(|networks| &networks.0);
    let conditions: Vec<String> = [
        some("", when.methods.clone()),
        some("from ", networks.map(ToString::to_string).collect()),
        some("on ", when.listeners.clone()),
        some("header ", names(&when.headers)),
        some("query ", names(&when.query)),
    ]
    .into_iter()
    .flatten()
    .collect();
    match conditions.is_empty() {
        true => String::new(),
        false => format!(" ({})", conditions.join("; ")),
    }
}

/// Networks, methods or names shown of a condition: enough to distinguish routes on one line.
const CONDITIONS_SHOWN_MAX: usize = 3;

/// Routes listed at the start: the listeners still fit on the screen.
const ROUTES_SHOWN_MAX: usize = 15;

fn describe_action(action: &Action, plan: &Plan) -> String {
    match action {
        Action::Respond { status, body, .. } => {
            format!("status {status} with {} bytes", body.len())
        }
        Action::RespondFile { status, file } => {
            format!("status {status} with {}", file.display())
        }
        Action::Files(files) => format!("the files of {}", files.root.display()),
        Action::Synthetic => "synthetic responses".into(),
        Action::Redirect { status, .. } => format!("a redirect with status {status}"),
        Action::Forward { split, .. } => {
            let servers: Vec<String> = split
                .iter()
                .flat_map(|(upstream, _)| &plan.upstreams[*upstream].servers)
                .map(|server| server.address.to_string())
                .collect();
            format!("the responses of {}", servers.join(", "))
        }
    }
}
