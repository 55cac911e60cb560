//! Client certificates: each server has its own rule, which applies to the names that clients request (SNI).

use super::scope::Scope;
use super::server::Server;
use super::work::Context;
use crate::settings::client_certificates::{self, Rule};

/// Keys about client certificates for a listener's `tls`: the rule of the default server, and `names` with the rules of
/// other servers that differ.
pub(super) fn rules<'a>(work: &mut Context<'a>, owners: &[usize], servers: &[Server<'a>]) -> Rule {
    let rules: Vec<Rule> = owners
        .iter()
        .map(|owner| rule(work, &servers[*owner].scope))
        .collect();
    let Some(default) = rules.first().cloned() else {
        return Vec::new();
    };
    if rules.iter().all(|rule| *rule == default) {
        return default;
    }
    let is_wide = |owner: &usize| {
        servers[*owner]
            .hosts()
            .iter()
            .any(|host| host.starts_with('*'))
    };
    let are_all = owners.iter().any(is_wide);
    let mut named: Vec<(Rule, Vec<String>)> = Vec::new();
    for (owner, rule) in owners.iter().zip(rules) {
        let server = &servers[*owner];
        let is_default = *owner == owners[0];
        if rule != default && !is_default && server.has_patterns() {
            // Onrush only matches such names against requests, not during the handshake.
            work.unverified.push(server.directive.number);
        }
        if !server.hosts().is_empty() && (rule != default || are_all) {
            named.push((rule, server.hosts().to_vec()));
        }
    }
    client_certificates::keys(default, named)
}

fn rule<'a>(work: &mut Context<'a>, scope: &Scope<'a>) -> Rule {
    let Some(verify) = scope.one("ssl_verify_client") else {
        return Vec::new();
    };
    let kind = match verify.argument(0) {
        "on" => "required",
        "optional" => "optional",
        "off" => {
            work.notes.carried(verify);
            return Vec::new();
        }
        _ => {
            let why = "expected on or optional, with verification; clients are not asked for a certificate";
            work.notes.left_out(verify, why);
            return Vec::new();
        }
    };
    let said = [
        scope.one("ssl_client_certificate"),
        scope.one("ssl_trusted_certificate"),
    ];
    let mut authorities = said.into_iter().flatten();
    let Some(authority) = authorities.next() else {
        let why = "neither ssl_client_certificate nor ssl_trusted_certificate is set";
        work.notes.left_out(verify, why);
        return Vec::new();
    };
    work.notes.carried(authority);
    work.notes.carried(verify);
    if let Some(other) = authorities.next() {
        let how =
            "client certificates are only verified with the authorities in ssl_client_certificate";
        work.notes.approximated(other, how);
    }
    let list = scope.one("ssl_crl");
    if let Some(list) = list {
        work.notes.carried(list);
    }
    let revoked = list.map(|list| work.path(list.argument(0)));
    client_certificates::rule(work.path(authority.argument(0)), revoked, kind)
}
