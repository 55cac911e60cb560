//! Configuration of a TLS server: certificates by name, versions, verification of clients. Shared by all cores.

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

use crate::acceptor::client_names::{ClientNames, NamedClients, VerifierByName};
use crate::acceptor::clients::{Clients, TrustFiles};
use crate::acceptor::resolver::Resolver;
use crate::acceptor::ticketer::Ticketer;
use crate::certificate::names::{Misdirected, Names};
use crate::certificate::stamps::Stamps;
use crate::certificate::{self, Identity};
use crate::error::{Problem, Subject};
use crate::key_log::SecretListener;
use crate::limits::{EARLY_DATA_BYTES_MAX, TICKETS};

/// Versions and cipher suites, named as in Mozilla's recommendations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Profile {
    /// TLS 1.3 only.
    Modern,
    /// TLS 1.3, and TLS 1.2 with forward secrecy and authenticated encryption.
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

/// Configuration of a TLS server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerSetup {
    /// Never empty. A certificate is chosen by its names; the first is for clients that request no known name.
    pub certificates: Vec<Identity>,
    /// Versions and cipher suites.
    pub profile: Profile,
    /// Whether clients need certificates.
    pub clients: Clients,
    /// Response to requests for hosts of another certificate.
    pub misdirected: Misdirected,
    /// Other rules for client certificates, by the requested name (SNI).
    pub named_clients: Vec<NamedClients>,
    /// Application protocols in order of preference (ALPN, RFC 7301).
    pub protocols: Vec<&'static str>,
}

/// Accepts TLS connections: see [`Transport::accept`](crate::Transport::accept).
///
/// Tickets are valid only for the acceptor that issued them, so a session cannot be resumed where other clients are
/// trusted, nor after the authorities of clients have changed. Ticket keys are created at the start and at each such
/// change, replaced every six hours, deleted after twelve, and shared by all cores. Sessions are stored nowhere else. A
/// session ends when its client's certificate or the first revocation list expires, at the latest a day after its full
/// handshake, even if it is resumed. Early data (0-RTT) is never accepted, because of replay attacks.
pub struct Acceptor {
    setup: ServerSetup,
    provider: Arc<CryptoProvider>,
    built: ArcSwap<LoadedConfig>,
    stamps: Stamps,
}

/// Configuration built from one version of the files.
struct LoadedConfig {
    config: Arc<ServerConfig>,
    /// Authorities and revocation lists of each rule for clients.
    trusted: Vec<TrustFiles>,
}

impl Acceptor {
    /// Reads all files of `setup`. The warnings are about accepted problems, such as a certificate that has expired.
    ///
    /// # Errors
    /// All problems of the files.
    pub fn new(setup: ServerSetup) -> Result<(Acceptor, Vec<Problem>), Vec<Problem>> {
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

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.built.load().config)
    }

    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Reads all files again. Existing connections are not affected. Tickets stay valid unless the authorities of
    /// clients or their revocation lists have changed, because a client that was accepted before might then be refused.
    ///
    /// # Errors
    /// All problems of the files; the previous configuration stays in force.
    pub(crate) fn reload(&self) -> Result<Vec<Problem>, Vec<Problem>> {
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

/// Builds the configuration from the files of `setup`; `before` is the previous one.
fn build(
    setup: &ServerSetup,
    provider: &Arc<CryptoProvider>,
    before: Option<&LoadedConfig>,
    warnings: &mut Vec<Problem>,
) -> Result<LoadedConfig, Vec<Problem>> {
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
    // Early data to skip. None is ever accepted, and no ticket allows any: rustls does neither with stateless tickets.
    config.max_early_data_size = EARLY_DATA_BYTES_MAX as u32;
    // AES first, because CPUs have instructions for it. Scanners rate a server that follows the client's order as
    // having none.
    config.ignore_client_order = true;
    // This crate has its own record layer after the handshake.
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(SecretListener);
    Ok(LoadedConfig {
        config: Arc::new(config),
        trusted,
    })
}

/// Verifier of client certificates, and the contents of the files of each rule.
type Verified = (Arc<dyn ClientCertVerifier>, Vec<TrustFiles>);

fn verifier(
    setup: &ServerSetup,
    provider: &Arc<CryptoProvider>,
    warnings: &mut Vec<Problem>,
) -> Result<Verified, Vec<Problem>> {
    let (others, trusted) = setup.clients.verifier(provider, warnings)?;
    if setup.named_clients.is_empty() {
        return Ok((others, vec![trusted]));
    }
    let mut trusted = vec![trusted];
    let mut rules = Vec::new();
    for rule in &setup.named_clients {
        let mut own = Vec::new();
        let made = rule.clients.verifier(provider, &mut own);
        // A rule's subjects have no index in the setup.
        let of_rule = |trouble: Problem| Problem::new(Subject::Setup, trouble.message);
        warnings.extend(own.into_iter().map(of_rule));
        let (verifier, of) =
            made.map_err(|wrong| -> Vec<Problem> { wrong.into_iter().map(of_rule).collect() })?;
        rules.push(verifier);
        trusted.push(of);
    }
    let names = ClientNames::new(setup.named_clients.iter().map(|rule| &rule.names));
    Ok((Arc::new(VerifierByName::new(names, rules, others)), trusted))
}

/// Returns the keys of tickets: the previous ones, as long as the same clients are trusted.
fn ticketer(
    trusted: &[TrustFiles],
    before: Option<&LoadedConfig>,
) -> Result<Arc<dyn ProducesTickets>, Problem> {
    match before {
        Some(before) if before.trusted == trusted => Ok(Arc::clone(&before.config.ticketer)),
        _ => match Ticketer::new() {
            Ok(ticketer) => Ok(Arc::new(ticketer)),
            Err(error) => Err(Problem::new(
                Subject::Setup,
                format!("cannot create ticket keys: {error}"),
            )),
        },
    }
}

#[cfg(test)]
mod tests;
