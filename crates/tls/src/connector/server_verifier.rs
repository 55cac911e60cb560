//! Verification of server certificates.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::certificate;
use crate::error::{Problem, Subject};
use crate::verify;

/// Trusted server certificates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Verify {
    /// Certificates signed by the system's authorities, so that the system's updates apply; a bundled list would become
    /// outdated.
    #[default]
    System,
    /// The certificates in this PEM file, and those signed by them.
    File(PathBuf),
    /// All certificates, without verification.
    Nothing,
}

pub(super) fn verifier(
    verify: &Verify,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Problem> {
    let believer = |rule| ServerVerifier {
        rule,
        algorithms: provider.signature_verification_algorithms,
    };
    Ok(match verify {
        Verify::Nothing => Arc::new(believer(Rule::AnyCertificate)),
        Verify::System => Arc::new(believer(Rule::Named {
            certificates: Vec::new(),
            by_authority: by_authority(system_authorities()?, provider)?,
        })),
        Verify::File(file) => {
            let certificates = certificate::chain(file, Subject::Authorities)?;
            let roots = certificate::authorities(&certificates, file)?;
            Arc::new(believer(Rule::Named {
                certificates,
                by_authority: by_authority(roots, provider)?,
            }))
        }
    })
}

fn by_authority(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Problem> {
    let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| {
            let message = format!("servers cannot be verified: {error}");
            Problem::new(Subject::Authorities, message)
        })?;
    Ok(built)
}

fn system_authorities() -> Result<RootCertStore, Problem> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // A bundle may contain old certificates that webpki cannot parse; the others are used.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(Problem::new(
            Subject::Authorities,
            "this system has no bundle of certification authorities; install one (Debian: ca-certificates) or name a file",
        ));
    }
    Ok(roots)
}

/// Verifies servers by one rule, and notes why a certificate is refused. Signatures are checked under every rule,
/// because a server must at least have the key of its certificate.
#[derive(Debug)]
struct ServerVerifier {
    rule: Rule,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Rule {
    /// The certificates of a file, and those signed by them. A self-signed certificate, such as `openssl req -x509`
    /// makes, is its own authority, so it can be trusted in no other way.
    Named {
        certificates: Vec<CertificateDer<'static>>,
        by_authority: Arc<dyn ServerCertVerifier>,
    },
    AnyCertificate,
}

/// Accepts a certificate of the file, if it is for `name` and valid now.
fn believe_named(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
) -> Result<ServerCertVerified, rustls::Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    if !certificate::is_valid_today(certificate) {
        return Err(CertificateError::Expired.into());
    }
    Ok(ServerCertVerified::assertion())
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Rule::Named {
            certificates,
            by_authority,
        } = &self.rule
        else {
            return Ok(ServerCertVerified::assertion());
        };
        let verified = if certificates.contains(certificate) {
            believe_named(certificate, name)
        } else {
            by_authority.verify_server_cert(certificate, intermediates, name, ocsp, now)
        };
        if let Err(error) = &verified {
            verify::note_refusal(error, certificate, intermediates, Some(&name.to_str()));
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified = verify_tls12_signature(message, certificate, signature, &self.algorithms);
        verify::note_weak_key(verified, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let verified = verify_tls13_signature(message, certificate, signature, &self.algorithms);
        verify::note_weak_key(verified, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
