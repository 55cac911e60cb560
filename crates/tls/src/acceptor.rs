//! The server's side: which certificate for which name, which versions, whose clients. Shared by all cores.

pub(crate) mod client_names;
pub(crate) mod clients;
pub(crate) mod decrypter;
pub(crate) mod resolver;
pub(crate) mod ticketer;

use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::{ServerConfig, SupportedProtocolVersion, version};

use crate::acceptor::client_names::{ByName, ClientNames, NamedClients};
use crate::acceptor::clients::{Clients, Trusted};
use crate::acceptor::resolver::Resolver;
use crate::acceptor::ticketer::Ticketer;
use crate::certificate::names::{Misdirected, Names};
use crate::certificate::stamps::Stamps;
use crate::certificate::{self, Identity};
use crate::error::{Subject, Trouble};
use crate::key_log::Listener;
use crate::limits::{EARLY_DATA_BYTES_MAX, TICKETS};

/// Which versions and cipher suites; the names are those of Mozilla's recommendations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// TLS 1.3 alone.
    Modern,
    /// TLS 1.2 with forward secrecy and authenticated encryption, and TLS 1.3.
    #[default]
    Intermediate,
}

impl Profile {
    pub(crate) fn versions(self) -> &'static [&'static SupportedProtocolVersion] {
        static MODERN: [&SupportedProtocolVersion; 1] = [&version::TLS13];
        static INTERMEDIATE: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];
        match self {
            Profile::Modern => &MODERN,
            Profile::Intermediate => &INTERMEDIATE,
        }
    }
}

/// What a server needs to speak TLS.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSetup {
    /// Never empty. The names in them choose; the first is for clients that name none of them.
    pub certificates: Vec<Identity>,
    /// Which versions and cipher suites.
    pub profile: Profile,
    /// Whether clients show certificates.
    pub clients: Clients,
    /// Response to requests for hosts of another certificate.
    pub misdirected: Misdirected,
    /// Other rules about client certificates, for clients that ask for certain names (SNI).
    pub named_clients: Vec<NamedClients>,
    /// The protocols spoken inside, the favourite first (ALPN, RFC 7301).
    pub protocols: Vec<&'static str>,
}

/// Makes TLS connections of those that were accepted: see [`Transport::accept`](crate::Transport::accept).
///
/// Its tickets are its own: a session begun here cannot be resumed where other clients are trusted, and none once the
/// authorities of clients have changed. Their keys are made at the start and at each such change, replaced every six
/// hours and forgotten after twelve, and shared by all cores; nothing is remembered of a session. A session ends when its client's
/// certificate or the first revocation list expires, at the latest a day after its full handshake, however often it is resumed. Early
/// data (0-RTT) is never taken: a recorded request could be sent again.
pub struct Acceptor {
    setup: ServerSetup,
    provider: Arc<CryptoProvider>,
    built: ArcSwap<Built>,
    stamps: Stamps,
}

/// What was made of the files as they were once.
struct Built {
    config: Arc<ServerConfig>,
    /// Authorities and revocation lists of each rule for clients.
    trusted: Vec<Trusted>,
}

impl Acceptor {
    /// Reads all files of `setup`. The warnings are about what it accepts and should not be so, such as a certificate
    /// that has expired.
    ///
    /// # Errors
    /// All that is wrong with the files.
    pub fn new(setup: ServerSetup) -> Result<(Acceptor, Vec<Trouble>), Vec<Trouble>> {
        let provider = Arc::new(CryptoProvider {
            cipher_suites: decrypter::suites(),
            ..aws_lc_rs::default_provider()
        });
        let stamps = Stamps::of(files(&setup));
        let mut warnings = Vec::new();
        let built = build(&setup, &provider, None, &mut warnings)?;
        let acceptor = Acceptor {
            setup,
            provider,
            built: ArcSwap::from_pointee(built),
            stamps,
        };
        Ok((acceptor, warnings))
    }

    /// What connections are accepted with from now on.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.built.load().config)
    }

    /// The files as they were when they were last read.
    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Reads all files again. Existing connections are not affected. Tickets stay valid unless the authorities of clients or
    /// their revocation lists have changed: a client that was accepted before might be refused now.
    ///
    /// # Errors
    /// All that is wrong with the files; what was read before stays in force.
    pub(crate) fn reload(&self) -> Result<Vec<Trouble>, Vec<Trouble>> {
        let mut warnings = Vec::new();
        let before = self.built.load();
        let built = build(&self.setup, &self.provider, Some(&before), &mut warnings)?;
        self.built.store(Arc::new(built));
        Ok(warnings)
    }
}

fn files(setup: &ServerSetup) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for identity in &setup.certificates {
        if let Identity::Files {
            certificate,
            key,
            staple,
        } = identity
        {
            files.extend([certificate.clone(), key.clone()]);
            files.extend(staple.clone());
        }
    }
    let named = setup.named_clients.iter().map(|rule| &rule.clients);
    let all = named.chain([&setup.clients]);
    files.extend(all.flat_map(Clients::files).cloned());
    files
}

/// Reads the files of `setup`, which were read as `before` the last time.
fn build(
    setup: &ServerSetup,
    provider: &Arc<CryptoProvider>,
    before: Option<&Built>,
    warnings: &mut Vec<Trouble>,
) -> Result<Built, Vec<Trouble>> {
    assert!(!setup.certificates.is_empty(), "a server has a certificate");
    let mut wrong = Vec::new();
    let mut certificates = Vec::new();
    for (index, identity) in setup.certificates.iter().enumerate() {
        match certificate::load(identity, index, provider, warnings) {
            Ok(certified) => certificates.push(certified),
            Err(troubles) => wrong.extend(troubles),
        }
    }
    let (verifier, trusted) = match verifier(setup, provider, warnings) {
        Ok(made) if wrong.is_empty() => made,
        Ok(_) => return Err(wrong),
        Err(troubles) => {
            wrong.extend(troubles);
            return Err(wrong);
        }
    };
    let ticketer = ticketer(&trusted, before).map_err(|trouble| vec![trouble])?;
    let resolver = Resolver::new(Names::new(certificates), setup.misdirected);
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(setup.profile.versions())
        .expect("the provider has ciphers for both versions")
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = setup
        .protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    config.ticketer = ticketer;
    config.send_tls13_tickets = TICKETS;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    // How much is skipped. None is taken, nor do tickets allow any: rustls does neither with tickets that hold the session.
    config.max_early_data_size = EARLY_DATA_BYTES_MAX as u32;
    // All that is offered is good; AES first, which CPUs have instructions for. A scanner takes the client's order for the
    // lack of one.
    config.ignore_client_order = true;
    // The record layer behind the handshake is ours.
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(Listener);
    Ok(Built {
        config: Arc::new(config),
        trusted,
    })
}

/// The verifier of client certificates, and the files that each of its rules was built from.
type Verified = (Arc<dyn ClientCertVerifier>, Vec<Trusted>);

fn verifier(
    setup: &ServerSetup,
    provider: &Arc<CryptoProvider>,
    warnings: &mut Vec<Trouble>,
) -> Result<Verified, Vec<Trouble>> {
    let (others, trusted) = setup.clients.verifier(provider, warnings)?;
    if setup.named_clients.is_empty() {
        return Ok((others, vec![trusted]));
    }
    let mut trusted = vec![trusted];
    let mut rules = Vec::new();
    for rule in &setup.named_clients {
        let mut own = Vec::new();
        let made = rule.clients.verifier(provider, &mut own);
        // The subjects of a rule have no index in the setup.
        let of_rule = |trouble: Trouble| Trouble::new(Subject::Setup, trouble.message);
        warnings.extend(own.into_iter().map(of_rule));
        let (verifier, of) =
            made.map_err(|wrong| -> Vec<Trouble> { wrong.into_iter().map(of_rule).collect() })?;
        rules.push(verifier);
        trusted.push(of);
    }
    let names = ClientNames::new(setup.named_clients.iter().map(|rule| &rule.names));
    Ok((Arc::new(ByName::new(names, rules, others)), trusted))
}

/// The keys of tickets: those from before, as long as the same clients are trusted.
fn ticketer(
    trusted: &[Trusted],
    before: Option<&Built>,
) -> Result<Arc<dyn ProducesTickets>, Trouble> {
    match before {
        Some(before) if before.trusted == trusted => Ok(Arc::clone(&before.config.ticketer)),
        _ => match Ticketer::new() {
            Ok(ticketer) => Ok(Arc::new(ticketer)),
            Err(error) => Err(Trouble::new(
                Subject::Setup,
                format!("keys of tickets cannot be made: {error}"),
            )),
        },
    }
}

#[cfg(test)]
mod tests;
