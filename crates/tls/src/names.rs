//! Which certificate a client gets: by the name that it asks for (SNI, RFC 6066 3).

use std::collections::HashMap;
use std::sync::Arc;

use onrush_engine::clock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certified;
use crate::heard;

/// Which certificates are for which name. Of several for the same name (RSA and ECDSA, say) the first is taken whose
/// signatures the client understands.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) certificates: Vec<Certified>,
    /// Indices of certificates.
    exact: HashMap<String, Vec<usize>>,
    /// By what stands behind the `*`, with its dot.
    wildcard: HashMap<String, Vec<usize>>,
    /// Those of the first certificate's names, and so that one before all others.
    default: Vec<usize>,
}

impl Names {
    pub(crate) fn new(certificates: Vec<Certified>) -> Names {
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
            |certified: &Certified| certified.names.iter().any(|name| first.contains(name));
        let default = (0..certificates.len())
            .filter(|&index| index == 0 || is_default(&certificates[index]))
            .collect();
        Names {
            exact,
            wildcard,
            default,
            certificates,
        }
    }

    /// The certificates for `name`, which is in lower case.
    pub(crate) fn find(&self, name: &str) -> &[usize] {
        let [exact, wildcard] = self.covering(name);
        exact.or(wildcard).unwrap_or(&self.default)
    }

    /// The certificates that have `name` itself, and those that have it by a wildcard.
    fn covering(&self, name: &str) -> [Option<&[usize]>; 2] {
        let suffix = name.find('.').map(|dot| &name[dot..]);
        let wildcard = suffix.and_then(|suffix| self.wildcard.get(suffix));
        [self.exact.get(name), wildcard].map(|found| found.map(Vec::as_slice))
    }

    /// What is sent for the certificate with this index at `now`, in seconds of Unix time.
    pub(crate) fn key(&self, index: usize, now: u64) -> &Arc<CertifiedKey> {
        let certified = &self.certificates[index];
        match &certified.stapled {
            Some((stapled, until)) if until.is_none_or(|until| now < until) => stapled,
            _ => &certified.key,
        }
    }
}

/// Answers rustls.
#[derive(Debug)]
pub(crate) struct Resolver(pub(crate) Arc<Names>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let Resolver(names) = self;
        let asked: Option<Box<str>> = hello
            .server_name()
            // The dot at the end of an absolute name is no part of it (RFC 6066 3); some clients send it all the same.
            .map(|name| name.strip_suffix('.').unwrap_or(name))
            .map(|name| name.to_ascii_lowercase().into());
        let found = match &asked {
            Some(name) => names.find(name),
            None => &names.default,
        };
        let understands = |&&index: &&usize| {
            let key = &names.certificates[index].key.key;
            key.choose_scheme(hello.signature_schemes()).is_some()
        };
        let index = *found.iter().find(understands).or(found.first())?;
        heard::note(|heard| heard.name = asked);
        Some(Arc::clone(names.key(index, clock::unix_seconds())))
    }
}
