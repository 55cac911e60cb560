//! Certificates and their keys: read from PEM files or generated, and checked before use.

pub(crate) mod names;
pub(crate) mod pem;
pub(crate) mod revocation;
pub(crate) mod stamps;
pub(crate) mod staple;

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onrush_engine::clock;
use rcgen::{CertificateParams, DnType, KeyPair, SanType};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::Error::NoItemsFound;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::certificate::pem::ExpectedContent;
use crate::certificate::staple::{Staple, StapleError};
use crate::error::{Problem, Subject, both};
use crate::limits::{PEM_BYTES_MAX, SELF_SIGNED_DAYS};

/// Source of a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Two PEM files.
    Files {
        /// The chain, with the server's certificate first.
        certificate: PathBuf,
        /// Its private key: PKCS #8, PKCS #1 or SEC 1.
        key: PathBuf,
        /// An OCSP response (DER), sent with the certificate while it is valid.
        staple: Option<PathBuf>,
    },
    /// Generated at the start for `localhost` and this machine's names, and kept in memory.
    SelfSigned,
}

/// A certificate with its key, and its names.
#[derive(Clone, Debug)]
pub(crate) struct LoadedCertificate {
    pub(crate) key: Arc<CertifiedKey>,
    /// The same with an OCSP response, and the end of the response in Unix time.
    pub(crate) stapled: Option<(Arc<CertifiedKey>, Option<u64>)>,
    /// In lower case; `*.` covers one label.
    pub(crate) names: Vec<String>,
}

/// Reads or generates the certificate with this index. Problems that are not errors are added to `warnings`.
///
/// # Errors
/// All problems: unreadable or invalid files, or a key that does not belong to its certificate.
pub(crate) fn load(
    identity: &Identity,
    index: usize,
    provider: &CryptoProvider,
    warnings: &mut Vec<Problem>,
) -> Result<LoadedCertificate, Vec<Problem>> {
    let (chain, key) = match identity {
        Identity::SelfSigned => self_signed(),
        Identity::Files {
            certificate, key, ..
        } => both(
            chain(certificate, Subject::Certificate(index)).map_err(|trouble| vec![trouble]),
            private_key(key, index).map_err(|trouble| vec![trouble]),
        )?,
    };
    let (certificate_file, key_file) = match identity {
        Identity::SelfSigned => ("the certificate made here".into(), String::new()),
        Identity::Files {
            certificate, key, ..
        } => (certificate.display().to_string(), key.display().to_string()),
    };
    let in_certificate =
        |message: String| trouble(Subject::Certificate(index), &certificate_file, &message);
    let parsed = X509Certificate::from_der(&chain[0])
        .map(|(_, parsed)| parsed)
        .map_err(|error| {
            let message = format!("the certificate cannot be parsed: {error}");
            vec![in_certificate(message)]
        })?;
    if let Some(message) = pem::explain_version(parsed.version().0) {
        return Err(vec![in_certificate(message)]);
    }
    let names = names(&parsed);
    warnings.extend(validity_trouble(&parsed).map(in_certificate));
    let files = (&*certificate_file, &*key_file);
    let certified = matched((chain.clone(), key), files, index, provider)?;
    let staple = staple(identity, index, &parsed, warnings)?;
    let stapled = staple.map(|Staple { bytes, until }| {
        let ocsp = Some(bytes);
        let stapled = CertifiedKey {
            ocsp,
            ..certified.clone()
        };
        (Arc::new(stapled), until)
    });
    Ok(LoadedCertificate {
        key: Arc::new(certified),
        stapled,
        names,
    })
}

/// Combines a chain with its key; `index` is that of the certificate.
///
/// # Errors
/// When the key cannot be used, or belongs to another certificate.
fn matched(
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    (certificate_file, key_file): (&str, &str),
    index: usize,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Vec<Problem>> {
    let in_key = |message: String| vec![trouble(Subject::Key(index), key_file, &message)];
    let signing = provider
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|error| in_key(pem::explain_key(key.secret_der(), &error.to_string())))?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // A key that cannot be compared may belong to the certificate.
        Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => Ok(certified),
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(in_key(format!(
            "this key does not belong to the certificate {certificate_file}"
        ))),
        Err(error) => {
            let message = format!("the certificate cannot be used: {error}");
            let subject = Subject::Certificate(index);
            Err(vec![trouble(subject, certificate_file, &message)])
        }
    }
}

fn trouble(subject: Subject, file: &str, message: &str) -> Problem {
    Problem::new(subject, format!("{file}: {message}"))
}

/// Reads the OCSP response of a certificate. A response that should not be sent is only a warning, because it may have
/// been renewed before or after the certificate. The certificate is then used without it.
fn staple(
    identity: &Identity,
    index: usize,
    certificate: &X509Certificate<'_>,
    warnings: &mut Vec<Problem>,
) -> Result<Option<Staple>, Vec<Problem>> {
    let Identity::Files {
        staple: Some(file), ..
    } = identity
    else {
        return Ok(None);
    };
    let of_file = |message: String| {
        let message = format!("{}: {message}", file.display());
        Problem::new(Subject::Staple(index), message)
    };
    match staple::read(file, certificate) {
        Ok(staple) => Ok(Some(staple)),
        Err(StapleError::Wrong(why)) => Err(vec![of_file(why)]),
        Err(StapleError::Unusable(why)) => {
            warnings.push(of_file(format!(
                "{why}; the certificate is sent without it"
            )));
            Ok(None)
        }
    }
}

/// Reads a client's own certificate and its key, as [`load`].
pub(crate) fn load_pair(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
    warnings: &mut Vec<Problem>,
) -> Result<Arc<CertifiedKey>, Vec<Problem>> {
    let identity = Identity::Files {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        staple: None,
    };
    load(&identity, 0, provider, warnings).map(|certified| certified.key)
}

/// Returns a store of trusted `certificates`; `file` is for messages.
///
/// # Errors
/// When one of them cannot be an authority.
pub(crate) fn authorities(
    certificates: &[CertificateDer<'static>],
    file: &Path,
) -> Result<RootCertStore, Problem> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| {
            let message = format!("{}: an authority cannot be used: {error}", file.display());
            Problem::new(Subject::Authorities, message)
        })?;
    }
    Ok(roots)
}

/// Reads all certificates of a PEM file.
///
/// # Errors
/// When the file cannot be read or contains none.
pub(crate) fn chain(
    file: &Path,
    subject: Subject,
) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let trouble = |message: String| Problem::new(subject, format!("{}: {message}", file.display()));
    let text = read(file).map_err(trouble)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            let said = error.to_string();
            trouble(pem::explain_content(
                &text,
                ExpectedContent::Certificate,
                Some(&said),
            ))
        })?;
    if chain.is_empty() {
        return Err(trouble(pem::explain_content(
            &text,
            ExpectedContent::Certificate,
            None,
        )));
    }
    Ok(chain)
}

fn private_key(file: &Path, index: usize) -> Result<PrivateKeyDer<'static>, Problem> {
    let trouble = |message: String| {
        Problem::new(
            Subject::Key(index),
            format!("{}: {message}", file.display()),
        )
    };
    let text = read(file).map_err(trouble)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| {
        let said = match error {
            NoItemsFound => None,
            error => Some(error.to_string()),
        };
        trouble(pem::explain_content(
            &text,
            ExpectedContent::Key,
            said.as_deref(),
        ))
    })
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let text = onrush_file::read(file, PEM_BYTES_MAX)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    match pem::explain_byte_order_mark(&text) {
        Some(said) => Err(said.into()),
        None => Ok(text),
    }
}

/// Reason why a certificate is not valid now.
fn validity_trouble(certificate: &X509Certificate<'_>) -> Option<String> {
    let now = ASN1Time::from_timestamp(clock::unix_seconds() as i64).ok()?;
    let validity = certificate.validity();
    if validity.not_after < now {
        return Some(format!(
            "the certificate has expired: {}",
            validity.not_after
        ));
    }
    if validity.not_before > now {
        return Some(format!(
            "the certificate is not valid before {}",
            validity.not_before
        ));
    }
    None
}

pub(crate) fn is_valid_today(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate)
        .is_ok_and(|(_, parsed)| validity_trouble(&parsed).is_none())
}

/// DNS names of a certificate: its alternative names (RFC 9525 6.2), or without those its common name.
fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let names: Vec<String> = match alternative {
        Some(alternative) => alternative
            .value
            .general_names
            .iter()
            .filter_map(|name| match name {
                GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                _ => None,
            })
            .collect(),
        None => certificate
            .subject()
            .iter_common_name()
            .filter_map(|name| name.as_str().ok())
            .map(str::to_ascii_lowercase)
            .collect(),
    };
    names
}

/// Subject of a verified certificate, on one line.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> String {
    match X509Certificate::from_der(certificate) {
        Ok((_, parsed)) => parsed.subject().to_string(),
        // Unreachable: a verified certificate has been parsed before.
        Err(_) => String::new(),
    }
}

/// Unix time at which a chain accepted at `now` expires, which is that of its first certificate to expire. A
/// certificate that has already expired was not needed for the chain.
pub(crate) fn chain_ends(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: u64,
) -> Option<u64> {
    let all = [certificate].into_iter().chain(intermediates);
    let ends = all.filter_map(|certificate| {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        // The second itself is still valid (RFC 5280 4.1.2.5).
        u64::try_from(parsed.validity().not_after.timestamp() + 1).ok()
    });
    ends.filter(|&end| end > now).min()
}

/// Generates a certificate for this machine's names and addresses.
fn self_signed() -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().expect("the system has random numbers");
    let mut params = CertificateParams::default();
    params
        .distinguished_name
        .push(DnType::CommonName, "onrush, made at its start");
    let names = ["localhost".to_owned()].into_iter().chain(host_name());
    let names = names.filter_map(|name| name.try_into().ok().map(SanType::DnsName));
    let loopback = [
        IpAddr::from([127, 0, 0, 1]),
        IpAddr::from(std::net::Ipv6Addr::LOCALHOST),
    ];
    let addresses = loopback.into_iter().chain(own_addresses());
    params.subject_alt_names = names.chain(addresses.map(SanType::IpAddress)).collect();
    let now = clock::unix_seconds();
    let day = |seconds: u64| {
        ASN1Time::from_timestamp(seconds as i64)
            .ok()
            .map(|time| time.to_datetime())
    };
    // Valid from yesterday, for clients whose clock is slow.
    if let (Some(from), Some(to)) = (day(now - 86_400), day(now + SELF_SIGNED_DAYS * 86_400)) {
        (params.not_before, params.not_after) = (from, to);
    }
    let certificate = params.self_signed(&key).expect("a key just made can sign");
    (
        vec![certificate.der().clone()],
        PrivateKeyDer::Pkcs8(key.serialize_der().into()),
    )
}

fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty() && name != "localhost").then(|| name.to_owned())
}

/// Addresses of this machine that it would send from. Nothing is sent.
fn own_addresses() -> impl Iterator<Item = IpAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849), which only a default route covers.
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")]
        .into_iter()
        .filter_map(|(from, to)| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.connect(to).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
}
