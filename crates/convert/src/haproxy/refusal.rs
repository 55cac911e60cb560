//! Rules that refuse requests under conditions that Onrush cannot evaluate.

use super::action::status_of;
use super::proxy::{Kind, Proxy, words};
use super::raw_path::Effect;
use super::step::Step;
use crate::source::directive::Directive;

/// Note on a rule that refuses requests.
pub(super) const CLOSED: &str =
    "every request that may reach the rule is refused (--open-guards lets requests pass)";

/// Refusal by a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    No,
    /// Requests without a valid password.
    Password,
    /// All requests, with this status. A response by the rule itself, such as a redirect to a login page, counts as a
    /// refusal.
    Request(u16),
    /// Responses of servers, with this status.
    Response(u16),
}

/// Refusal by a rule whose condition is unknown.
pub(super) fn of(act: &Step<'_>, proxies: &[Proxy<'_>]) -> Refusal {
    let line = act.line();
    match act {
        Step::Request(_) => match line.argument(0) {
            "auth" => Refusal::Password,
            "return" | "redirect" | "use-service" => Refusal::Request(501),
            action if action.starts_with("lua.") => Refusal::Request(501),
            _ => denied(line).map_or(Refusal::No, Refusal::Request),
        },
        Step::Tcp(_) => match line.argument(1) {
            "reject" | "silent-drop" => Refusal::Request(403),
            _ => Refusal::No,
        },
        Step::Response(_) => match line.argument(0) {
            "deny" | "reject" | "silent-drop" => Refusal::Response(502),
            _ => Refusal::No,
        },
        Step::Redirect(_) => Refusal::Request(501),
        Step::Monitor(_) => Refusal::No,
        Step::Use(_) => of_backend(line.argument(0), proxies),
        Step::Mapped(_, entry) => of_backend(&entry.backend, proxies),
        Step::Unmapped(..) => of_any_backend(proxies),
    }
}

/// Effect of a rule on the requests for which its condition holds. Redirects and responses without an error do not
/// refuse.
pub(super) fn effect(act: &Step<'_>, proxies: &[Proxy<'_>]) -> Effect {
    let line = act.line();
    let refused = match (act, line.argument(0), line.argument(1)) {
        (Step::Request(_), "allow", _) | (Step::Tcp(_), _, "accept") => return Effect::Admitted,
        (Step::Request(_), "return", _) => status_of(&words(line, 2), &["status"], 200) >= 400,
        (Step::Request(_), "auth", _) => true,
        (Step::Request(_), ..) => denied(line).is_some(),
        (Step::Tcp(_), ..) => of(act, proxies) != Refusal::No,
        (Step::Use(_), name, _) => always(name, proxies).is_some(),
        (Step::Mapped(_, entry), ..) => always(&entry.backend, proxies).is_some(),
        (Step::Unmapped(..), ..) => {
            backends(proxies).any(|backend| always(backend.name(), proxies).is_some())
        }
        (Step::Response(_) | Step::Redirect(_) | Step::Monitor(_), ..) => false,
    };
    match refused {
        true => Effect::Refused,
        false => Effect::Other,
    }
}

/// The status with which a rule refuses requests.
fn denied(line: &Directive) -> Option<u16> {
    let default = match line.argument(0) {
        "deny" | "reject" | "silent-drop" => 403,
        "tarpit" => 500,
        _ => return None,
    };
    let words = words(line, 2);
    Some(status_of(&words, &["deny_status", "status"], default))
}

fn backends<'p, 'a>(proxies: &'p [Proxy<'a>]) -> impl Iterator<Item = &'p Proxy<'a>> {
    let backends = proxies.iter();
    backends.filter(|proxy| proxy.kind != Kind::Frontend && proxy.is_http())
}

/// Refusal by a backend that is not known: by the first that refuses requests.
fn of_any_backend(proxies: &[Proxy<'_>]) -> Refusal {
    let mut refusals = backends(proxies).map(|backend| of_backend(backend.name(), proxies));
    let refusal = refusals.find(|refusal| *refusal != Refusal::No);
    refusal.unwrap_or(Refusal::No)
}

/// Refusal by a backend that refuses all requests or some of them. Rules that all backends have do not count: they
/// apply without this one, too.
fn of_backend(name: &str, proxies: &[Proxy<'_>]) -> Refusal {
    if let Some(status) = always(name, proxies) {
        return Refusal::Request(status);
    }
    let is_shared = |rule: &Directive| {
        let has_rule = |backend: &Proxy<'_>| {
            let mut lines = backend.lines.iter();
            lines.any(|line| line.words == rule.words)
        };
        backends(proxies).all(has_rule)
    };
    let rules = named(name, proxies).into_iter();
    let mut rules = rules.flat_map(|backend| backend.lines.iter());
    match rules.any(|rule| refuses(rule) && !is_shared(rule)) {
        true => Refusal::Request(403),
        false => Refusal::No,
    }
}

/// The status with which a backend refuses all requests, or has no servers.
fn always(name: &str, proxies: &[Proxy<'_>]) -> Option<u16> {
    let Some(backend) = named(name, proxies) else {
        return Some(503);
    };
    let is_always = |line: &&Directive| {
        !line
            .words
            .iter()
            .any(|word| word == "if" || word == "unless")
    };
    let words = ["http-request"];
    let mut rules = backend.all(&words).filter(is_always);
    let status = rules.find_map(denied);
    let has_servers = ["server", "server-template"]
        .iter()
        .any(|word| backend.last(&[word]).is_some());
    status.or((!has_servers).then_some(503))
}

fn named<'p, 'a>(name: &str, proxies: &'p [Proxy<'a>]) -> Option<&'p Proxy<'a>> {
    let is_it = |proxy: &&Proxy<'_>| proxy.name() == name && proxy.kind != Kind::Frontend;
    proxies.iter().find(is_it)
}

/// Whether a rule of a backend may refuse requests. A redirect to another location may be one to a login page.
fn refuses(rule: &Directive) -> bool {
    let (action, layer_action) = (rule.argument(0), rule.argument(1));
    match rule.name() {
        "http-request" => {
            denied(rule).is_some()
                || matches!(action, "auth" | "return" | "use-service")
                || action == "redirect" && layer_action == "location"
                || action.starts_with("lua.")
        }
        "http-response" => matches!(action, "deny" | "reject" | "silent-drop"),
        "tcp-request" => matches!(layer_action, "reject" | "silent-drop"),
        "redirect" => action == "location",
        _ => false,
    }
}
