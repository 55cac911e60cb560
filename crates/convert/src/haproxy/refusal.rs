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
        (Step::Tcp(_) | Step::Use(_) | Step::Mapped(..) | Step::Unmapped(..), ..) => {
            of(act, proxies) != Refusal::No
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

/// Refusal by a backend that is not known: by the first that serves no request.
fn of_any_backend(proxies: &[Proxy<'_>]) -> Refusal {
    let backends = proxies.iter();
    let backends = backends.filter(|proxy| proxy.kind != Kind::Frontend && proxy.is_http());
    let mut refusals = backends.map(|backend| of_backend(backend.name(), proxies));
    let refusal = refusals.find(|refusal| *refusal != Refusal::No);
    refusal.unwrap_or(Refusal::No)
}

/// Refusal by a backend that refuses all requests or has no servers.
fn of_backend(name: &str, proxies: &[Proxy<'_>]) -> Refusal {
    let is_it = |proxy: &&Proxy<'_>| proxy.name() == name && proxy.kind != Kind::Frontend;
    let Some(backend) = proxies.iter().find(is_it) else {
        return Refusal::Request(503);
    };
    let is_always = |line: &&Directive| {
        !line
            .words
            .iter()
            .any(|word| word == "if" || word == "unless")
    };
    let words = ["http-request"];
    let mut rules = backend.all(&words).filter(is_always);
    if let Some(status) = rules.find_map(denied) {
        return Refusal::Request(status);
    }
    let has_servers = ["server", "server-template"]
        .iter()
        .any(|word| backend.last(&[word]).is_some());
    match has_servers {
        true => Refusal::No,
        false => Refusal::Request(503),
    }
}
