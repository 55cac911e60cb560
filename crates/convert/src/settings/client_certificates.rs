//! Rules about client certificates, as keys of a listener's `tls`: one default rule, and rules for individual names
//! that clients request (SNI).

use crate::document::Value;

/// Keys of one rule; empty if clients are not asked for a certificate.
pub(crate) type Rule = Vec<(String, Value)>;

/// A rule with `client_certificates` set to `kind`: `required` or `optional`.
pub(crate) fn rule(authority: String, revoked: Option<String>, kind: &str) -> Rule {
    let revoked = revoked.map(|file| ("client_crl".to_owned(), Value::Text(file)));
    let authority = ("client_ca".to_owned(), Value::Text(authority));
    let kind = ("client_certificates".to_owned(), Value::text(kind));
    std::iter::once(authority)
        .chain(revoked)
        .chain([kind])
        .collect()
}

/// Keys for the rule `default` and for rules with their own host names. If a host has two rules, the first one counts.
pub(crate) fn keys(default: Rule, named: impl IntoIterator<Item = (Rule, Vec<String>)>) -> Rule {
    let mut rules: Vec<(Rule, Vec<String>)> = Vec::new();
    let mut known: Vec<String> = Vec::new();
    for (rule, mut hosts) in named {
        hosts.retain(|host| {
            let is_new = !known.contains(host);
            known.push(host.clone());
            is_new
        });
        match rules.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, all)) => all.append(&mut hosts),
            None => rules.push((rule, hosts)),
        }
    }
    rules.retain(|(_, hosts)| !hosts.is_empty());
    let names: Vec<Value> = rules
        .into_iter()
        .map(|(rule, hosts)| {
            let host = ("host".to_owned(), Value::one_or_list(&hosts));
            Value::Table([vec![host], rule].concat())
        })
        .collect();
    let names = (!names.is_empty()).then(|| ("names".to_owned(), Value::List(names)));
    [default, names.into_iter().collect()].concat()
}
