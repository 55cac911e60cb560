//! Verification of client certificates: authorities and revocation lists (RFC 5280 5).

use std::path::PathBuf;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::CertificateRevocationListDer;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};

use crate::certificate;
use crate::certificate::revocation;
use crate::error::{Problem, Subject};
use crate::verify::NotingVerifier;

/// Whether clients need certificates.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Clients {
    /// No certificate is requested.
    #[default]
    Ignored,
    /// Clients may send a certificate; it must be signed by one of these authorities.
    Optional(Authorities),
    /// Clients must send a certificate signed by one of these authorities.
    Required(Authorities),
}

/// Authorities of client certificates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Authorities {
    /// PEM file with their certificates.
    pub file: PathBuf,
    /// Files of certificate revocation lists, PEM or DER. If there are any, each authority in a client's chain must
    /// have a list that has not expired, as in OpenSSL. Of several lists of one authority the newest applies.
    pub revocation_lists: Vec<PathBuf>,
}

impl Authorities {
    /// Returns the authorities in `file`, without revocation lists.
    pub fn new(file: PathBuf) -> Authorities {
        Authorities {
            file,
            revocation_lists: Vec::new(),
        }
    }
}

/// Contents of the files for verifying client certificates, in a fixed order.
#[derive(PartialEq, Eq, Default)]
pub(crate) struct TrustFiles {
    authorities: Vec<CertificateDer<'static>>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Clients {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let authorities = match self {
            Clients::Ignored => None,
            Clients::Optional(authorities) | Clients::Required(authorities) => Some(authorities),
        };
        authorities.into_iter().flat_map(|authorities| {
            [&authorities.file]
                .into_iter()
                .chain(&authorities.revocation_lists)
        })
    }

    /// Returns the verifier and the contents of its files, or all problems of the files.
    pub(crate) fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
        warnings: &mut Vec<Problem>,
    ) -> Result<(Arc<dyn ClientCertVerifier>, TrustFiles), Vec<Problem>> {
        let (Clients::Optional(authorities) | Clients::Required(authorities)) = self else {
            return Ok((
                WebPkiClientVerifier::no_client_auth(),
                TrustFiles::default(),
            ));
        };
        let read = certificate::chain(&authorities.file, Subject::Authorities)
            .and_then(|chain| Ok((certificate::authorities(&chain, &authorities.file)?, chain)));
        let (roots, mut trusted) = read.map_err(|trouble| vec![trouble])?;
        let roots = Arc::new(roots);
        let mut revoked = read_lists(&authorities.revocation_lists, &roots, provider, warnings)?;
        revocation::sort_newest_first(&mut revoked);
        let mut builder = builder(&roots, &revoked, provider);
        if matches!(self, Clients::Optional(_)) {
            builder = builder.allow_unauthenticated();
        }
        let by_authority = builder.build().map_err(|error| {
            let message = format!("clients cannot be verified: {error}");
            vec![Problem::new(Subject::Authorities, message)]
        })?;
        trusted.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
        trusted.dedup();
        revoked.sort_unstable_by(|one, other| one.as_ref().cmp(other.as_ref()));
        revoked.dedup();
        let trusted = TrustFiles {
            authorities: trusted,
            revoked,
        };
        let lists_end = revocation::ends(&trusted.revoked);
        Ok((
            Arc::new(NotingVerifier::new(by_authority, lists_end)),
            trusted,
        ))
    }
}

fn builder(
    roots: &Arc<RootCertStore>,
    revoked: &[CertificateRevocationListDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> ClientCertVerifierBuilder {
    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(provider))
        .with_crls(revoked.iter().cloned())
        .enforce_revocation_expiration()
}

fn read_lists(
    files: &[PathBuf],
    roots: &Arc<RootCertStore>,
    provider: &Arc<CryptoProvider>,
    warnings: &mut Vec<Problem>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, Vec<Problem>> {
    let mut lists = Vec::new();
    let mut wrong = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let of_file = |message: String| {
            let message = format!("{}: {message}", file.display());
            Problem::new(Subject::RevocationList(index), message)
        };
        let read = revocation::read(file).and_then(|read| {
            // Each file is tried separately, so that the error names it.
            match builder(roots, &read, provider).build() {
                Ok(_) => Ok(read),
                Err(error) => Err(format!("a revocation list in it cannot be used: {error}")),
            }
        });
        match read {
            Ok(read) => {
                warnings.extend(revocation::expired(&read).map(of_file));
                lists.extend(read);
            }
            Err(why) => wrong.push(of_file(why)),
        }
    }
    match wrong.is_empty() {
        true => Ok(lists),
        false => Err(wrong),
    }
}
