//! Rules for client certificates by the name that the client requests (SNI, RFC 6066 3).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::acceptor::clients::Clients;
use crate::handshake_facts;

/// Rule for clients that request one of these names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedClients {
    /// Names in lower case; `*.example.com` covers all names below `example.com`.
    pub names: Vec<String>,
    /// Whether these clients need certificates.
    pub clients: Clients,
}

/// Index of rules by name: an exact name first, then the longest suffix.
#[derive(Clone, Debug, Default)]
pub struct ClientNames {
    exact: HashMap<String, usize>,
    /// By the part after `*`, including the dot.
    below: HashMap<String, usize>,
}

impl ClientNames {
    /// Builds the index from the names of each rule, in order. If two rules have a name, the first applies.
    pub fn new<'n, T: IntoIterator<Item = &'n String>>(
        rules: impl IntoIterator<Item = T>,
    ) -> ClientNames {
        let mut names = ClientNames::default();
        for (rule, all) in rules.into_iter().enumerate() {
            for name in all {
                let (map, name) = match name.strip_prefix('*') {
                    Some(below) => (&mut names.below, below),
                    None => (&mut names.exact, name.as_str()),
                };
                map.entry(name.to_owned()).or_insert(rule);
            }
        }
        names
    }

    /// Index of the rule for a name in lower case, or `None`.
    pub fn find(&self, name: &str) -> Option<usize> {
        let below = || {
            let dots = name.match_indices('.');
            let mut suffixes = dots.map(|(at, _)| &name[at..]);
            suffixes.find_map(|suffix| self.below.get(suffix))
        };
        self.exact.get(name).or_else(below).copied()
    }
}

/// Verifies a client by the rule for the name that it requested.
#[derive(Debug)]
pub(crate) struct VerifierByName {
    names: ClientNames,
    rules: Vec<Arc<dyn ClientCertVerifier>>,
    others: Arc<dyn ClientCertVerifier>,
}

impl VerifierByName {
    /// `rules` are in the order of `names`; `others` is the rule for all other names.
    pub(crate) fn new(
        names: ClientNames,
        rules: Vec<Arc<dyn ClientCertVerifier>>,
        others: Arc<dyn ClientCertVerifier>,
    ) -> VerifierByName {
        VerifierByName {
            names,
            rules,
            others,
        }
    }

    /// Rule for the current handshake. rustls calls the certificate resolver first, which notes the name.
    fn own(&self) -> &Arc<dyn ClientCertVerifier> {
        let rule = handshake_facts::name(|name| self.names.find(name?));
        rule.map_or(&self.others, |rule| &self.rules[rule])
    }
}

impl ClientCertVerifier for VerifierByName {
    fn offer_client_auth(&self) -> bool {
        if !handshake_facts::has_hello() {
            // Before the hello, rustls calls this to decide whether to keep the transcript for verifying a client
            // certificate.
            let all = self.rules.iter().chain([&self.others]);
            return all.into_iter().any(|rule| rule.offer_client_auth());
        }
        self.own().offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.own().client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.own().root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.own()
            .verify_client_cert(certificate, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.own()
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.own()
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.own().supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_name_precedes_longest_wildcard() {
        let rules = [
            vec!["*.a.org".to_owned()],
            vec!["x.a.org".to_owned(), "a.org".to_owned()],
            vec!["*.b.a.org".to_owned()],
        ];
        let names = ClientNames::new(&rules);
        for (name, rule) in [
            ("a.org", Some(1)),
            ("x.a.org", Some(1)),
            ("y.a.org", Some(0)),
            ("z.y.a.org", Some(0)),
            ("c.b.a.org", Some(2)),
            ("b.org", None),
            ("xa.org", None),
        ] {
            assert_eq!(names.find(name), rule, "{name}");
        }
    }
}
