//! Selects the certificate for a client.

use std::sync::Arc;

use onrush_engine::clock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::names::{Misdirected, Names, ServedCertificate};
use crate::handshake_facts;

#[derive(Debug)]
pub(crate) struct Resolver {
    names: Arc<Names>,
    misdirected: Misdirected,
}

impl Resolver {
    pub(crate) fn new(names: Names, misdirected: Misdirected) -> Resolver {
        Resolver {
            names: Arc::new(names),
            misdirected,
        }
    }

    /// Certificate that requests are checked against. As in nginx, a client without SNI may send requests for any host.
    fn served(&self, asked: Option<&str>, index: usize) -> Option<ServedCertificate> {
        let is_of_interest = self.misdirected == Misdirected::Refuse
            && asked.is_some()
            && self.names.certificates.len() > 1;
        is_of_interest.then(|| ServedCertificate {
            names: Arc::clone(&self.names),
            index,
        })
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let names = &self.names;
        let asked: Option<Box<str>> = hello
            .server_name()
            // RFC 6066 3 forbids the trailing dot of an absolute name, but some clients send it.
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
        let served = self.served(asked.as_deref(), index);
        handshake_facts::note(|heard| {
            (heard.name, heard.served) = (asked, served);
            heard.has_hello = true;
        });
        Some(Arc::clone(names.key(index, clock::unix_seconds())))
    }
}
