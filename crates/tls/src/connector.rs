//! Configuration of a TLS client: trusted servers, offered parameters, and the client's own certificate.

mod server_verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, SupportedProtocolVersion, version};

pub use self::server_verifier::Verify;
use self::server_verifier::verifier;
use crate::acceptor::Profile;
use crate::certificate;
use crate::certificate::stamps::Stamps;
use crate::cipher::Cipher;
use crate::error::{HandshakeError, Problem, Subject, both};
use crate::key_log::SecretListener;
use crate::limits::SESSIONS_MAX;
use crate::version::Version;

/// Configuration of a TLS client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientSetup {
    /// Trusted server certificates.
    pub verify: Verify,
    /// Name to request (SNI) and to verify, instead of the host connected to.
    pub name: Option<String>,
    /// PEM files of the client's certificate and key, for servers that request them.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Offered application protocols in order of preference (ALPN, RFC 7301).
    pub protocols: Vec<&'static str>,
    /// Versions and cipher suites.
    pub profile: Profile,
    /// Offered versions; empty for the profile's versions.
    pub versions: Vec<Version>,
    /// Offered cipher suites in order of preference; empty for all. A version without any of them is not offered.
    pub ciphers: Vec<Cipher>,
    /// Whether sessions are resumed.
    pub resume: Resume,
    /// Offered key exchange groups in order of preference; empty for all of [`Group::ALL`].
    pub groups: Vec<Group>,
}

/// Key exchange group (RFC 8446 4.2.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Hybrid of ML-KEM-768 and X25519 against future quantum computers; the most expensive group.
    X25519MlKem768,
    /// Curve25519 (RFC 7748).
    X25519,
    /// secp256r1, NIST's P-256.
    Secp256r1,
    /// secp384r1, NIST's P-384.
    Secp384r1,
}

impl Group {
    /// All groups, in the default order of the client's offer.
    pub const ALL: [Group; 4] = [
        Group::X25519MlKem768,
        Group::X25519,
        Group::Secp256r1,
        Group::Secp384r1,
    ];

    /// IANA name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Group::X25519MlKem768 => "x25519mlkem768",
            Group::X25519 => "x25519",
            Group::Secp256r1 => "secp256r1",
            Group::Secp384r1 => "secp384r1",
        }
    }

    fn exchange(self) -> &'static dyn SupportedKxGroup {
        match self {
            Group::X25519MlKem768 => kx_group::X25519MLKEM768,
            Group::X25519 => kx_group::X25519,
            Group::Secp256r1 => kx_group::SECP256R1,
            Group::Secp384r1 => kx_group::SECP384R1,
        }
    }
}

/// Whether sessions are resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Resume {
    /// With tickets of earlier connections of any core.
    #[default]
    Yes,
    /// Every handshake is a full one.
    No,
}

impl Default for ClientSetup {
    fn default() -> Self {
        Self {
            verify: Verify::default(),
            name: None,
            certificate: None,
            protocols: vec!["http/1.1"],
            profile: Profile::default(),
            versions: Vec::new(),
            ciphers: Vec::new(),
            resume: Resume::default(),
            groups: Vec::new(),
        }
    }
}

/// Makes TLS connections to servers: see [`Transport::connect`](crate::Transport::connect). Shared by all cores.
pub struct Connector {
    setup: ClientSetup,
    provider: Arc<CryptoProvider>,
    config: ArcSwap<ClientConfig>,
    stamps: Stamps,
}

impl Connector {
    /// Reads all files of `setup`. The warnings are about accepted problems.
    ///
    /// # Errors
    /// All problems of the files, an invalid name, or versions, cipher suites and groups that leave nothing to offer.
    pub fn new(setup: ClientSetup) -> Result<(Connector, Vec<Problem>), Vec<Problem>> {
        check_name(&setup)
            .and_then(|()| check_offer(&setup))
            .map_err(|why| vec![Problem::new(Subject::Setup, why)])?;
        let mut provider = aws_lc_rs::default_provider();
        if !setup.ciphers.is_empty() {
            provider.cipher_suites = setup.ciphers.iter().map(|cipher| cipher.suite()).collect();
        }
        if !setup.groups.is_empty() {
            provider.kx_groups = setup.groups.iter().map(|group| group.exchange()).collect();
        }
        let provider = Arc::new(provider);
        let stamps = Stamps::of(files(&setup));
        let mut warnings = Vec::new();
        let config = build(&setup, &provider, &mut warnings)?;
        let connector = Connector {
            setup,
            provider,
            config: ArcSwap::from_pointee(config),
            stamps,
        };
        Ok((connector, warnings))
    }

    /// Does the one-time work of the calling thread's first handshake, so that it takes no longer than others: seeds
    /// the random number generator, for which the library measures the jitter of the CPU's clock for tens of
    /// milliseconds, and generates a key of the first group. A handshake will report any error.
    pub fn prepare_thread(&self) {
        let _ = self.provider.secure_random.fill(&mut [0; 32]);
        if let Some(group) = self.provider.kx_groups.first() {
            let _ = group.start();
        }
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        self.config.load_full()
    }

    /// Returns the name to request from a server connected to as `host`.
    ///
    /// # Errors
    /// When a certificate cannot have that name.
    pub(crate) fn name(&self, host: &str) -> Result<ServerName<'static>, HandshakeError> {
        let name = self.setup.name.as_deref().unwrap_or(host);
        match ServerName::try_from(name.to_owned()) {
            Ok(name) => Ok(name),
            // The name is not verified, and an address is not sent (SNI).
            Err(_) if self.setup.verify == Verify::Nothing => Ok(ServerName::IpAddress(
                std::net::IpAddr::from([0, 0, 0, 0]).into(),
            )),
            Err(_) => Err(HandshakeError::Name(name.to_owned())),
        }
    }

    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Reads all files again; on errors the previous configuration stays in force. Existing connections are not
    /// affected.
    pub(crate) fn reload(&self) -> Result<Vec<Problem>, Vec<Problem>> {
        let mut warnings = Vec::new();
        let config = build(&self.setup, &self.provider, &mut warnings)?;
        self.config.store(Arc::new(config));
        Ok(warnings)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("setup", &self.setup)
            .finish_non_exhaustive()
    }
}

impl ClientSetup {
    /// Offered versions, provided that a cipher suite of each is offered.
    fn offered(&self) -> &[Version] {
        match (&self.versions[..], self.profile) {
            ([], Profile::Modern) => &[Version::Tls13],
            ([], Profile::Intermediate) => &[Version::Tls13, Version::Tls12],
            (versions, _) => versions,
        }
    }
}

fn check_name(setup: &ClientSetup) -> Result<(), String> {
    match &setup.name {
        Some(name) if ServerName::try_from(name.as_str()).is_err() => {
            Err(HandshakeError::Name(name.clone()).to_string())
        }
        _ => Ok(()),
    }
}

/// Rejects combinations that leave nothing to offer.
fn check_offer(setup: &ClientSetup) -> Result<(), String> {
    let versions = setup.offered();
    let is_spoken = |cipher: &Cipher| versions.contains(&cipher.version());
    if !setup.ciphers.is_empty() && !setup.ciphers.iter().any(is_spoken) {
        let of_versions = Cipher::ALL.iter().filter(|cipher| is_spoken(cipher));
        let names: Vec<&str> = of_versions.map(|cipher| cipher.name()).collect();
        return Err(format!(
            "no cipher suite belongs to an offered version of TLS: expected some of {}",
            names.join(", ")
        ));
    }
    if !versions.contains(&Version::Tls13) && setup.groups[..] == [Group::X25519MlKem768] {
        return Err(format!(
            "{} is a group of TLS 1.3, but only TLS 1.2 is offered: add another group, such as {}",
            Group::X25519MlKem768.name(),
            Group::X25519.name()
        ));
    }
    Ok(())
}

fn files(setup: &ClientSetup) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if let Verify::File(file) = &setup.verify {
        files.push(file.clone());
    }
    if let Some((certificate, key)) = &setup.certificate {
        files.extend([certificate.clone(), key.clone()]);
    }
    files
}

fn build(
    setup: &ClientSetup,
    provider: &Arc<CryptoProvider>,
    warnings: &mut Vec<Problem>,
) -> Result<ClientConfig, Vec<Problem>> {
    let certificate = setup.certificate.as_ref();
    let certificate = certificate
        .map(|(certificate, key)| certificate::load_pair(certificate, key, provider, warnings));
    let verifier = verifier(&setup.verify, provider).map_err(|trouble| vec![trouble]);
    let (verifier, certificate) = both(verifier, certificate.transpose())?;
    let versions = setup.offered().iter().map(|version| match version {
        Version::Tls12 => &version::TLS12,
        Version::Tls13 => &version::TLS13,
    });
    let versions: Vec<&SupportedProtocolVersion> = versions.collect();
    let builder = ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(&versions)
        .expect("what is offered was checked")
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(certified) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certified)))
        }
    };
    let protocols = setup.protocols.iter();
    config.alpn_protocols = protocols.map(|name| name.as_bytes().to_vec()).collect();
    config.resumption = match setup.resume {
        Resume::Yes => Resumption::in_memory_sessions(SESSIONS_MAX),
        Resume::No => Resumption::disabled(),
    };
    config.enable_early_data = false;
    // This crate has its own record layer after the handshake.
    config.enable_secret_extraction = true;
    config.key_log = Arc::new(SecretListener);
    Ok(config)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use rustls::NamedGroup;
    use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SecureRandom};

    use super::*;

    thread_local! {
        /// Requests of this thread for random numbers, and for keys.
        static ASKED: Cell<(u32, u32)> = Cell::default();
    }

    #[derive(Debug)]
    struct Counted;

    impl SecureRandom for Counted {
        fn fill(&self, _buffer: &mut [u8]) -> Result<(), GetRandomFailed> {
            let (random, keys) = ASKED.get();
            ASKED.set((random + 1, keys));
            Ok(())
        }
    }

    impl SupportedKxGroup for Counted {
        fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
            let (random, keys) = ASKED.get();
            ASKED.set((random, keys + 1));
            Err(rustls::Error::FailedToGetRandomBytes)
        }

        fn name(&self) -> NamedGroup {
            NamedGroup::X25519
        }
    }

    #[test]
    fn thread_preparation_initializes_random_and_key_exchange() {
        let setup = ClientSetup {
            verify: Verify::Nothing,
            ..ClientSetup::default()
        };
        let (mut connector, _) = Connector::new(setup).unwrap();
        connector.provider = Arc::new(CryptoProvider {
            secure_random: &Counted,
            kx_groups: vec![&Counted],
            ..aws_lc_rs::default_provider()
        });
        assert_eq!(ASKED.get(), (0, 0));
        connector.prepare_thread();
        assert_eq!(ASKED.get(), (1, 1));
    }
}
