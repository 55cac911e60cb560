//! Client certificate rules by host name, and detection of misdirected requests.

use onrush_config::plan::{Host, Tls};
use onrush_tls::ClientNames;

pub(crate) struct ClientRules {
    names: ClientNames,
    /// Whether each rule requests client certificates.
    asks: Vec<bool>,
    asks_others: bool,
}

impl ClientRules {
    /// `None` if one rule applies to all names.
    pub(crate) fn new(tls: &Tls) -> Option<ClientRules> {
        if tls.names.is_empty() {
            return None;
        }
        let names: Vec<Vec<String>> = tls.names.iter().map(|rule| names(&rule.hosts)).collect();
        let asks = tls.names.iter().map(|rule| &rule.clients);
        Some(ClientRules {
            names: ClientNames::new(&names),
            asks: asks
                .map(|clients| clients.authorities().is_some())
                .collect(),
            asks_others: tls.clients.authorities().is_some(),
        })
    }

    /// Whether the rule for `host` asks for certificates and differs from the rule of the connection, which was made
    /// with the name `connected` (RFC 9110 15.5.20).
    pub(crate) fn misdirect(&self, connected: Option<&str>, host: &str) -> bool {
        let own = connected.and_then(|name| self.names.find(name));
        let rule = self.names.find(&host.to_ascii_lowercase());
        rule != own && rule.map_or(self.asks_others, |rule| self.asks[rule])
    }
}

/// Hosts in the form that the acceptor expects.
pub(crate) fn names(hosts: &[Host]) -> Vec<String> {
    let name = |host: &Host| match host {
        Host::Exact(name) => name.clone(),
        Host::Subdomains(suffix) => format!("*{suffix}"),
    };
    hosts.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_config::plan::{Certificate, ClientAuthorities, ClientCertificates, SniClientRule};

    fn asked() -> ClientCertificates {
        ClientCertificates::Required(ClientAuthorities {
            file: "ca.pem".into(),
            revocation_lists: Vec::new(),
        })
    }

    #[test]
    fn request_for_stricter_tls_host_is_misdirected() {
        let mut tls = Tls::with(vec![Certificate::SelfSigned]);
        assert!(ClientRules::new(&tls).is_none());
        let rule = |host: Host, clients| SniClientRule {
            hosts: vec![host],
            clients,
        };
        tls.names = vec![
            rule(Host::Exact("a.org".to_owned()), asked()),
            rule(Host::Subdomains(".b.org".to_owned()), asked()),
            rule(
                Host::Exact("open.org".to_owned()),
                ClientCertificates::Ignored,
            ),
        ];
        let rules = ClientRules::new(&tls).expect("there are names");
        for (connected, host, expected) in [
            (Some("a.org"), "a.org", false),
            (Some("a.org"), "A.org", false),
            (Some("x.b.org"), "y.b.org", false),
            (Some("a.org"), "x.b.org", true),
            (Some("open.org"), "a.org", true),
            (None, "a.org", true),
            (Some("a.org"), "open.org", false),
            (Some("a.org"), "other.org", false),
            (None, "other.org", false),
        ] {
            assert_eq!(
                rules.misdirect(connected, host),
                expected,
                "{connected:?} {host}"
            );
        }
        tls.clients = asked();
        let rules = ClientRules::new(&tls).expect("there are names");
        assert!(rules.misdirect(Some("open.org"), "other.org"));
        assert!(rules.misdirect(Some("open.org"), ""));
        assert!(!rules.misdirect(None, "other.org"));
    }
}
