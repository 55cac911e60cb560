//! Selection of the certificate by the name that the client requests (SNI, RFC 6066 3).

use std::collections::HashMap;
use std::sync::Arc;

use rustls::sign::CertifiedKey;

use crate::certificate::LoadedCertificate;

/// Certificates by name. Of several for one name (RSA, ECDSA), the first whose signatures the client supports is used.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) certificates: Vec<LoadedCertificate>,
    /// Indices of certificates.
    exact: HashMap<String, Vec<usize>>,
    /// By the part after `*`, including the dot.
    wildcard: HashMap<String, Vec<usize>>,
    /// All certificates, for clients without a known name: the first, then others with one of its names, then the rest,
    /// for clients that support the signatures of none of these.
    pub(crate) default: Vec<usize>,
}

impl Names {
    pub(crate) fn new(certificates: Vec<LoadedCertificate>) -> Names {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut wildcard: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, certified) in certificates.iter().enumerate() {
            for name in &certified.names {
                let (map, name) = match name.strip_prefix('*') {
                    Some(suffix) => (&mut wildcard, suffix),
                    None => (&mut exact, name.as_str()),
                };
                map.entry(name.to_owned()).or_default().push(index);
            }
        }
        let first = &certificates[0].names;
        let is_default =
            |certified: &LoadedCertificate| certified.names.iter().any(|name| first.contains(name));
        let (alike, others): (Vec<usize>, Vec<usize>) = (0..certificates.len())
            .partition(|&index| index == 0 || is_default(&certificates[index]));
        let default = [alike, others].concat();
        Names {
            exact,
            wildcard,
            default,
            certificates,
        }
    }

    /// Certificates for `name`, which is in lower case.
    pub(crate) fn find(&self, name: &str) -> &[usize] {
        let [exact, wildcard] = self.covering(name);
        exact.or(wildcard).unwrap_or(&self.default)
    }

    /// Certificates with exactly `name`, and those with a wildcard that covers it.
    fn covering(&self, name: &str) -> [Option<&[usize]>; 2] {
        let suffix = name.find('.').map(|dot| &name[dot..]);
        let wildcard = suffix.and_then(|suffix| self.wildcard.get(suffix));
        [self.exact.get(name), wildcard].map(|found| found.map(Vec::as_slice))
    }

    /// Chain, key and OCSP response of the certificate with this index at `now`, in Unix time.
    pub(crate) fn key(&self, index: usize, now: u64) -> &Arc<CertifiedKey> {
        let certified = &self.certificates[index];
        match &certified.stapled {
            Some((stapled, until)) if until.is_none_or(|until| now < until) => stapled,
            _ => &certified.key,
        }
    }
}

/// Response to a request for a host of another certificate than that of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Misdirected {
    /// Refuse with 421 (RFC 9110 15.5.20).
    #[default]
    Refuse,
    /// Serve like other requests.
    Serve,
}

/// Certificate sent to a client for the name that it requested, if there are several certificates.
#[derive(Clone, Debug)]
pub(crate) struct ServedCertificate {
    pub(crate) names: Arc<Names>,
    pub(crate) index: usize,
}

impl ServedCertificate {
    /// Whether a request for `host` belongs on another connection: another certificate covers the host, and this one
    /// does not.
    pub(crate) fn is_misdirected(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let covering = self.names.covering(&host);
        let mut covering = covering.iter().flatten().copied().flatten().peekable();
        covering.peek().is_some() && covering.all(|&index| index != self.index)
    }
}

impl PartialEq for ServedCertificate {
    fn eq(&self, other: &ServedCertificate) -> bool {
        Arc::ptr_eq(&self.names, &other.names) && self.index == other.index
    }
}

impl Eq for ServedCertificate {}
