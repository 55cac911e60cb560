//! Settings that apply to a request, and dependencies that are unknown here.

use std::time::Duration;

use onrush_config::plan::{
    Action, BasicAuth, Edits, FieldEdits, Listener, Networks, Plan, RateKey, RateLimit,
    ResponseFilter, Route, Template, Timeouts,
};

use super::outcome::{GroupForward, Outcome};

/// A setting that applies to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedSetting {
    /// Configuration key.
    pub key: &'static str,
    /// Configured value.
    pub value: String,
}

fn fact(key: &'static str, value: impl Into<String>) -> AppliedSetting {
    let value = value.into();
    AppliedSetting { key, value }
}

pub(super) fn limits(route: &Route, of_all: &Timeouts) -> Vec<AppliedSetting> {
    let mut all = Vec::new();
    let access = &route.access;
    for (key, networks) in [("deny", &access.deny), ("allow", &access.allow)] {
        if !networks.is_empty() {
            all.push(fact(key, listed(networks)));
        }
    }
    all.extend(access.rate_limit.iter().map(rate_limit));
    all.extend(access.basic_auth.iter().map(basic_auth));
    let body = match route.request_body_max {
        Some(bytes) => format!("{bytes} bytes"),
        None => "off".to_owned(),
    };
    all.push(fact("request_body_max", body));
    let times = route.timeouts.as_ref().unwrap_or(of_all);
    let forwards = matches!(route.action, Action::Forward { .. });
    all.extend(timeouts(times, forwards.then_some(times)));
    all
}

fn listed(networks: &Networks) -> String {
    let all: Vec<String> = networks.0.iter().map(ToString::to_string).collect();
    all.join(", ")
}

fn rate_limit(limit: &RateLimit) -> AppliedSetting {
    let mut said = Vec::new();
    if let Some(rate) = &limit.requests {
        let (count, per) = (rate.count, time(rate.per));
        said.push(format!("{count} in {per} and {} more at once", rate.burst));
    }
    let concurrent = limit
        .concurrent
        .map(|most| format!("{most} at the same time"));
    said.extend(concurrent);
    let by = match &limit.key {
        RateKey::Address => "of each client address".to_owned(),
        RateKey::Header(name) => format!("of each value of {name}"),
        RateKey::Route => "of all clients".to_owned(),
    };
    fact("rate_limit", format!("{}, {by}", said.join(", ")))
}

fn basic_auth(auth: &BasicAuth) -> AppliedSetting {
    let file = auth.file.as_ref();
    let file = file.map_or(String::new(), |file| {
        format!(", users of {}", file.display())
    });
    fact("basic_auth", format!("realm {:?}{file}", auth.realm))
}

/// Client timeouts, and server timeouts if the request is forwarded.
fn timeouts(times: &Timeouts, of_servers: Option<&Timeouts>) -> Vec<AppliedSetting> {
    let mut all = vec![
        fact("client_body", time(times.client_body)),
        fact("client_send", time(times.client_send)),
    ];
    let Some(times) = of_servers else {
        return all;
    };
    all.extend([
        fact("queue", time(times.queue)),
        fact("connect", time(times.connect)),
        fact("upstream_first_byte", time(times.upstream_first_byte)),
        fact("upstream_body", time(times.upstream_body)),
        fact("request", times.request.map_or("no bound".to_owned(), time)),
        fact("tunnel_idle", time(times.tunnel_idle)),
        fact("tunnel_fin", time(times.tunnel_fin)),
    ]);
    all
}

fn time(time: Duration) -> String {
    format!("{time:?}")
}

pub(super) fn edits(edits: &Edits) -> Vec<AppliedSetting> {
    let FieldEdits { remove, set, add } = &edits.response;
    let hidden = edits.upstream.hide.iter().map(|name| fact("hide", name));
    let refused = edits.upstream.refuse.iter();
    let refused = refused.map(|name| fact("refuse", name));
    let mut all: Vec<AppliedSetting> = hidden.chain(refused).collect();
    if edits.response.is_empty() {
        return all;
    }
    all.extend(remove.iter().map(|name| fact("remove", name)));
    for (key, fields) in [("set", set), ("add", add)] {
        let fields = fields.iter().map(|(name, value)| shown(name, value));
        all.extend(fields.map(|shown| fact(key, shown)));
    }
    all.push(fact(
        "on",
        match &edits.response_on {
            ResponseFilter::RouteOnly => "responses of the route".to_owned(),
            ResponseFilter::Always => "all responses".to_owned(),
            ResponseFilter::Statuses(ranges) => {
                let range = |(first, last): &(u16, u16)| match first == last {
                    true => first.to_string(),
                    false => format!("{first}-{last}"),
                };
                ranges.iter().map(range).collect::<Vec<_>>().join(", ")
            }
        },
    ));
    all
}

fn shown(name: &str, value: &Template) -> String {
    match value.as_text() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: (built from variables)"),
    }
}

/// Dependencies of the outcome that are unknown here.
pub(super) fn unknown(
    plan: &Plan,
    listen: &Listener,
    route: Option<&Route>,
    outcome: &Outcome,
) -> Vec<String> {
    let mut all = Vec::new();
    let mut say = |text: &str| all.push(text.to_owned());
    if plan.clients.connections_max.is_some() || plan.clients.connections_per_address_max.is_some()
    {
        say("the number of client connections: connections beyond [clients] are closed");
    }
    if listen.tls.is_some() {
        say("the result of a TLS handshake: its variables are empty here");
    }
    let Some(route) = route else {
        return all;
    };
    if route.access.rate_limit.is_some() {
        say("how much of rate_limit is used: none here; beyond it the status is 429");
    }
    match outcome {
        Outcome::Generated { .. } => match route.action {
            Action::Files(_) | Action::RespondFile { .. } => {
                say("whether the files change: this is their current state");
            }
            _ => {}
        },
        Outcome::Forward(forward) => {
            if forward.groups.len() > 1 {
                say("which group: it is random, by the weights");
            }
            let groups = forward.groups.iter();
            let groups =
                groups.filter_map(|to| plan.upstreams.iter().find(|it| it.name == to.group));
            let mut servers = groups.flat_map(|group| &group.servers);
            if servers.any(|server| server.address.is_resolved_by_name()) {
                say("addresses of server names: each is a server");
            }
            if forward.groups.iter().any(GroupForward::is_connect) {
                say("whether the server supports WebSocket over HTTP/2 (RFC 8441): 501 if not");
            }
            say("which servers are up and how busy they are: here all are up and idle");
        }
    }
    all
}
