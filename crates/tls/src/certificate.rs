//! Certificates and their keys: read from PEM files or made on request, and checked before anybody relies on them.

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

use crate::certificate::pem::Wanted;
use crate::certificate::staple::{NoStaple, Staple};
use crate::error::{Subject, Trouble, both};
use crate::limits::{PEM_BYTES_MAX, SELF_SIGNED_DAYS};

/// Where a certificate comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Identity {
    /// Two PEM files.
    Files {
        /// The chain, the own certificate first.
        certificate: PathBuf,
        /// Its private key: PKCS #8, PKCS #1 or SEC 1.
        key: PathBuf,
        /// An OCSP response (DER), which is sent with the certificate as long as it is valid.
        staple: Option<PathBuf>,
    },
    /// Made at the start, for `localhost` and this machine's names, and kept in memory.
    SelfSigned,
}

/// A certificate that can be shown, and the names it is for.
#[derive(Clone, Debug)]
pub(crate) struct Certified {
    pub(crate) key: Arc<CertifiedKey>,
    /// The same key with an OCSP response, and the end of the response in seconds of Unix time.
    pub(crate) stapled: Option<(Arc<CertifiedKey>, Option<u64>)>,
    /// Lower case; those with `*.` stand for one label.
    pub(crate) names: Vec<String>,
}

/// Reads or makes the certificate number `index`. What is odd about it but no error is added to `warnings`.
///
/// # Errors
/// All that is wrong: files that cannot be read or hold something else, or two that do not belong together.
pub(crate) fn load(
    identity: &Identity,
    index: usize,
    provider: &CryptoProvider,
    warnings: &mut Vec<Trouble>,
) -> Result<Certified, Vec<Trouble>> {
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
            let message = format!("the certificate cannot be understood: {error}");
            vec![in_certificate(message)]
        })?;
    if let Some(message) = pem::why_not_version(parsed.version().0) {
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
    Ok(Certified {
        key: Arc::new(certified),
        stapled,
        names,
    })
}

/// A chain with its key, if they belong together. `index` is the number of the certificate.
///
/// # Errors
/// When the key cannot be used, or belongs to another certificate.
fn matched(
    (chain, key): (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>),
    (certificate_file, key_file): (&str, &str),
    index: usize,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, Vec<Trouble>> {
    let in_key = |message: String| vec![trouble(Subject::Key(index), key_file, &message)];
    let signing = provider
        .key_provider
        .load_private_key(key.clone_key())
        .map_err(|error| in_key(pem::why_not_key(key.secret_der(), &error.to_string())))?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        // What cannot be compared may belong together.
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

fn trouble(subject: Subject, file: &str, message: &str) -> Trouble {
    Trouble::new(subject, format!("{file}: {message}"))
}

/// The OCSP response of a certificate. A response that should not be sent is only a warning, since it may have been renewed
/// before or after the certificate; the certificate is used without it.
fn staple(
    identity: &Identity,
    index: usize,
    certificate: &X509Certificate<'_>,
    warnings: &mut Vec<Trouble>,
) -> Result<Option<Staple>, Vec<Trouble>> {
    let Identity::Files {
        staple: Some(file), ..
    } = identity
    else {
        return Ok(None);
    };
    let of_file = |message: String| {
        let message = format!("{}: {message}", file.display());
        Trouble::new(Subject::Staple(index), message)
    };
    match staple::read(file, certificate) {
        Ok(staple) => Ok(Some(staple)),
        Err(NoStaple::Wrong(why)) => Err(vec![of_file(why)]),
        Err(NoStaple::Useless(why)) => {
            warnings.push(of_file(format!(
                "{why}; the certificate is sent without it"
            )));
            Ok(None)
        }
    }
}

/// A certificate of our own and its key, as a client shows them.
///
/// # Errors
/// As [`load`].
pub(crate) fn load_pair(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
    warnings: &mut Vec<Trouble>,
) -> Result<Arc<CertifiedKey>, Vec<Trouble>> {
    let identity = Identity::Files {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        staple: None,
    };
    load(&identity, 0, provider, warnings).map(|certified| certified.key)
}

/// What is trusted with `certificates`, which stand in `file`.
///
/// # Errors
/// When one of them is none.
pub(crate) fn authorities(
    certificates: &[CertificateDer<'static>],
    file: &Path,
) -> Result<RootCertStore, Trouble> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(|error| {
            let message = format!("{}: an authority cannot be used: {error}", file.display());
            Trouble::new(Subject::Authorities, message)
        })?;
    }
    Ok(roots)
}

/// All certificates of a PEM file.
///
/// # Errors
/// When it cannot be read or has none.
pub(crate) fn chain(
    file: &Path,
    subject: Subject,
) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let trouble = |message: String| Trouble::new(subject, format!("{}: {message}", file.display()));
    let text = read(file).map_err(trouble)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<_, _>>()
        .map_err(|error| {
            let said = error.to_string();
            trouble(pem::why_not(&text, Wanted::Certificate, Some(&said)))
        })?;
    if chain.is_empty() {
        return Err(trouble(pem::why_not(&text, Wanted::Certificate, None)));
    }
    Ok(chain)
}

fn private_key(file: &Path, index: usize) -> Result<PrivateKeyDer<'static>, Trouble> {
    let trouble = |message: String| {
        Trouble::new(
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
        trouble(pem::why_not(&text, Wanted::Key, said.as_deref()))
    })
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let text = onrush_file::read(file, PEM_BYTES_MAX)
        .map_err(|error| format!("it cannot be read: {error}"))?;
    match pem::why_not_marked(&text) {
        Some(said) => Err(said.into()),
        None => Ok(text),
    }
}

/// Why a certificate should not be relied on today.
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

/// Whether a certificate has begun to be valid and not ceased to be.
pub(crate) fn is_valid_today(certificate: &CertificateDer<'_>) -> bool {
    X509Certificate::from_der(certificate)
        .is_ok_and(|(_, parsed)| validity_trouble(&parsed).is_none())
}

/// The DNS names a certificate is for: the alternative names (RFC 9525 6.2), or where there are none the common name.
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

/// The subject of a certificate that was verified, on one line.
pub(crate) fn subject(certificate: &CertificateDer<'_>) -> String {
    match X509Certificate::from_der(certificate) {
        Ok((_, parsed)) => parsed.subject().to_string(),
        // Verified, it has been parsed before.
        Err(_) => String::new(),
    }
}

/// When a chain that has been believed at `now` ends, in seconds of Unix time: with the first of its certificates. One
/// that has ended before is not what it was believed by.
pub(crate) fn chain_ends(
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: u64,
) -> Option<u64> {
    let all = [certificate].into_iter().chain(intermediates);
    let ends = all.filter_map(|certificate| {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        // The second itself is still within (RFC 5280 4.1.2.5).
        u64::try_from(parsed.validity().not_after.timestamp() + 1).ok()
    });
    ends.filter(|&end| end > now).min()
}

/// A certificate for whatever this machine is called.
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
    // From yesterday on, for clients whose clock is late.
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

/// The addresses others reach this machine by: those it would send from. Nothing is sent.
fn own_addresses() -> impl Iterator<Item = IpAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849), which only a default route leads to.
    [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")]
        .into_iter()
        .filter_map(|(from, to)| {
            let socket = UdpSocket::bind(from).ok()?;
            socket.connect(to).ok()?;
            Some(socket.local_addr().ok()?.ip())
        })
}
