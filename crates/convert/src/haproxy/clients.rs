//! Rules about client certificates, of a `bind` line and of the entries of its `crt-list`.

use super::work::Context;
use crate::settings::client_certificates::{self, Rule};

#[derive(Clone, Debug, Default)]
pub(super) struct ClientOptions {
    verify: Option<String>,
    authority: Option<String>,
    /// `ca-verify-file`: authorities whose names are not sent to clients.
    unnamed: Option<String>,
    revoked: Option<String>,
}

impl ClientOptions {
    /// Reads an option and the word after it. Returns whether the option is about client certificates.
    pub(super) fn read(&mut self, work: &Context<'_, '_>, word: &str, value: &str) -> bool {
        let place = match word {
            "verify" => {
                self.verify = Some(value.to_owned());
                return true;
            }
            "ca-file" => &mut self.authority,
            "ca-verify-file" => &mut self.unnamed,
            "crl-file" => &mut self.revoked,
            _ => return false,
        };
        let is_special = value.starts_with('@');
        *place = Some(match is_special {
            true => value.to_owned(),
            false => work.path(value, "ca-base"),
        });
        true
    }

    /// These options, with missing ones taken from `line`.
    fn or(&self, line: &ClientOptions) -> ClientOptions {
        let either = |own: &Option<String>, other: &Option<String>| own.clone().or(other.clone());
        ClientOptions {
            verify: either(&self.verify, &line.verify),
            authority: either(&self.authority, &line.authority),
            unnamed: either(&self.unnamed, &line.unnamed),
            revoked: either(&self.revoked, &line.revoked),
        }
    }

    /// Whether there are two files of authorities; the rule can use only one.
    pub(super) fn has_both(&self) -> bool {
        self.authority.is_some() && self.unnamed.is_some()
    }

    fn rule(&self) -> Result<Rule, RuleError> {
        let kind = match self.verify.as_deref() {
            Some(kind @ ("required" | "optional")) => kind,
            Some(_) | None => return Ok(Rule::new()),
        };
        let authority = self.authority.as_ref().or(self.unnamed.as_ref());
        match authority.filter(|file| !file.starts_with('@')) {
            Some(file) => {
                let revoked = self.revoked.clone();
                Ok(client_certificates::rule(file.clone(), revoked, kind))
            }
            None => Err(RuleError(
                "client certificates need a file of authorities, which is missing",
            )),
        }
    }
}

/// Why rules cannot be converted.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleError(pub(super) &'static str);

/// A certificate of a listener: its options about clients and its names.
#[derive(Clone, Debug, Default)]
pub(super) struct CertificateEntry {
    pub(super) asked: ClientOptions,
    /// Host names for which the certificate is selected, if they are listed.
    pub(super) hosts: Vec<String>,
    /// Host names that are excluded.
    pub(super) others: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Rules {
    /// The rules as written.
    Whole(Rule),
    /// One rule for all names, stricter than the written ones.
    Wider(Rule),
}

/// Rules of the certificates of a line. The first one also applies to clients that request no name or an unknown one.
pub(super) fn rules(line: &ClientOptions, shown: &[CertificateEntry]) -> Result<Rules, RuleError> {
    let mut rules = Vec::new();
    for one in shown {
        rules.push(one.asked.or(line).rule()?);
    }
    let default = match rules.first() {
        Some(first) => first.clone(),
        None => line.rule()?,
    };
    if rules.iter().all(|rule| *rule == default) {
        return Ok(Rules::Whole(default));
    }
    let all = || rules.iter().zip(shown);
    let has_wide = |one: &CertificateEntry| one.hosts.iter().any(|host| host.starts_with('*'));
    let is_wide = shown.iter().any(has_wide);
    let is_named = all().all(|(rule, one)| match *rule == default {
        true => !one.hosts.is_empty() || !is_wide,
        // A wildcard matches one label of a name in HAProxy, and any number of labels in Onrush.
        false => !one.hosts.is_empty() && (default.is_empty() || !has_wide(one)),
    });
    if is_named {
        let named = all().map(|(rule, one)| (rule.clone(), one.hosts.clone()));
        let others = shown
            .iter()
            .map(|one| (default.clone(), one.others.clone()));
        let keys = client_certificates::keys(default.clone(), named.chain(others));
        return Ok(Rules::Whole(keys));
    }
    let mut asking = rules.iter().filter(|rule| !rule.is_empty());
    match (asking.next(), asking.next()) {
        (Some(first), other)
            if other.is_none_or(|other| other == first) && asking.all(|rule| rule == first) =>
        {
            Ok(Rules::Wider(first.clone()))
        }
        _ => Err(RuleError(
            "client certificates of several authorities are required, depending on the names in certificates, which the converter does not read",
        )),
    }
}
