//! Explains why a certificate was refused: subject, requested name, expiry, issuer. rustls reports only the violated
//! rule.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

use crate::certificate;
use crate::certificate::pem;
use crate::handshake_facts;
use crate::limits::{NAME_CHARS_MAX, NAMES_SHOWN_MAX, RSA_BITS_SUPPORTED};

/// Verifies clients with `judge`, and notes the end of the session, or the reason for a refusal.
#[derive(Debug)]
pub(crate) struct NotingVerifier {
    judge: Arc<dyn ClientCertVerifier>,
    /// Unix times at which revocation lists expire.
    crl_expiries: Vec<u64>,
}

impl NotingVerifier {
    /// `lists_end` are the Unix times at which revocation lists expire; a session ends at the first of them.
    pub(crate) fn new(judge: Arc<dyn ClientCertVerifier>, lists_end: Vec<u64>) -> NotingVerifier {
        NotingVerifier {
            judge,
            crl_expiries: lists_end,
        }
    }

    /// End of the session of a client that is accepted at `now`.
    fn ends(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: u64,
    ) -> Option<u64> {
        // The client is accepted, so an expired list belongs to another authority.
        let lists_end = self.crl_expiries.iter().copied().filter(|&end| end > now);
        let chain_ends = certificate::chain_ends(certificate, intermediates, now);
        lists_end.chain(chain_ends).min()
    }
}

impl ClientCertVerifier for NotingVerifier {
    fn offer_client_auth(&self) -> bool {
        self.judge.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.judge.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.judge.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .judge
            .verify_client_cert(certificate, intermediates, now);
        match &verified {
            Ok(_) => {
                let ends = self.ends(certificate, intermediates, now.as_secs());
                handshake_facts::note(|heard| heard.ends = ends);
            }
            Err(error) => note_refusal(error, certificate, intermediates, None),
        }
        verified
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self
            .judge
            .verify_tls12_signature(message, certificate, signature);
        note_weak_key(verified, certificate)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verified = self
            .judge
            .verify_tls13_signature(message, certificate, signature);
        note_weak_key(verified, certificate)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.judge.supported_verify_schemes()
    }
}

/// Notes why a certificate was refused with `error`; `asked` is the name that it should have had.
pub(crate) fn note_refusal(
    error: &Error,
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    asked: Option<&str>,
) {
    let why = refusal(error, certificate, intermediates, asked);
    handshake_facts::note(|heard| heard.refused = Some(why.into()));
}

/// Passes on the verification of a signature; notes a failure by key size, which rustls reports as a bad signature.
pub(crate) fn note_weak_key(
    verified: Result<HandshakeSignatureValid, Error>,
    certificate: &CertificateDer<'_>,
) -> Result<HandshakeSignatureValid, Error> {
    if verified.is_err()
        && let Ok((_, parsed)) = X509Certificate::from_der(certificate)
        && let Some(size) = unsupported_key_size(&parsed)
    {
        let why = format!("the certificate of {} {size}", shown_subject(&parsed));
        handshake_facts::note(|heard| heard.refused = Some(why.into()));
    }
    verified
}

/// Describes the size of a certificate's RSA key if aws-lc does not support it.
fn unsupported_key_size(certificate: &X509Certificate<'_>) -> Option<String> {
    let Ok(PublicKey::RSA(key)) = certificate.public_key().parsed() else {
        return None;
    };
    let bits = key.key_size();
    (!RSA_BITS_SUPPORTED.contains(&bits)).then(|| {
        let (least, most) = RSA_BITS_SUPPORTED.into_inner();
        format!("has an RSA key of {bits} bits: supported are {least} to {most}")
    })
}

fn refusal(
    error: &Error,
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    asked: Option<&str>,
) -> String {
    let Error::InvalidCertificate(why) = error else {
        return format!("the certificate is refused: {error}");
    };
    let Ok((_, parsed)) = X509Certificate::from_der(certificate) else {
        return format!("the certificate cannot be parsed: {why}");
    };
    let subject = shown_subject(&parsed);
    if let Some(why) = pem::explain_version(parsed.version().0) {
        return format!("{why} (it is the certificate of {subject})");
    }
    let by_kind =
        validity_message(why, &parsed, &subject).or_else(|| revoked(why, &parsed, &subject));
    by_kind.unwrap_or_else(|| match why {
        CertificateError::UnknownIssuer => format!(
            "the certificate of {subject} is signed by an untrusted authority: {}",
            last_issuer(&parsed, intermediates)
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the certificate is for another name: it is for {}, not for {}",
                names(&parsed, &subject),
                shown(asked.unwrap_or("another"))
            )
        }
        // `openssl req -x509` makes certificates that may sign others; webpki has no separate error for those.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            format!("the certificate of {subject} is self-signed and not trusted")
        }
        CertificateError::Other(other) if other.to_string().contains("UnsupportedCertVersion") => {
            format!(
                "a certificate above that of {subject} is not of X.509 version 3, which is required"
            )
        }
        // webpki has no separate error for the size of a key.
        CertificateError::BadSignature => format!(
            "a signature in the certificate chain of {subject} is wrong, or made with an unsupported key: supported are RSA keys of {} to {} bits",
            RSA_BITS_SUPPORTED.start(),
            RSA_BITS_SUPPORTED.end()
        ),
        why => format!(
            "the certificate of {subject} is refused: {}",
            shown(&why.to_string())
        ),
    })
}

/// Message for a certificate that is not valid now.
fn validity_message(
    why: &CertificateError,
    certificate: &X509Certificate<'_>,
    subject: &str,
) -> Option<String> {
    Some(match why {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            let end = match why {
                CertificateError::ExpiredContext { not_after, .. } => date(not_after),
                _ => certificate.validity().not_after.to_string(),
            };
            let whose = match end == certificate.validity().not_after.to_string() {
                true => "the certificate of",
                false => "the certificate of an authority above",
            };
            format!("{whose} {subject} has expired: {end}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            let begin = match why {
                CertificateError::NotValidYetContext { not_before, .. } => date(not_before),
                _ => certificate.validity().not_before.to_string(),
            };
            format!("the certificate of {subject} is not valid before {begin}")
        }
        _ => return None,
    })
}

/// Message for a certificate that has been revoked, or whose status is unknown.
fn revoked(
    why: &CertificateError,
    certificate: &X509Certificate<'_>,
    subject: &str,
) -> Option<String> {
    Some(match why {
        CertificateError::Revoked => format!(
            "the certificate of {subject}, or one above it, has been revoked (its serial number: {})",
            certificate.raw_serial_as_string()
        ),
        CertificateError::UnknownRevocationStatus => format!(
            "the certificate of {subject} is refused: the revocation list of {} or of an authority above it is missing",
            shown(&certificate.issuer().to_string())
        ),
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            let end = match why {
                CertificateError::ExpiredRevocationListContext { next_update, .. } => {
                    format!(": {}", date(next_update))
                }
                _ => String::new(),
            };
            format!(
                "the certificate of {subject} is refused: the revocation list of an authority above it has expired{end}"
            )
        }
        _ => return None,
    })
}

/// Issuer of the last certificate in the peer's chain.
fn last_issuer(own: &X509Certificate<'_>, intermediates: &[CertificateDer<'_>]) -> String {
    let above: Vec<X509Certificate<'_>> = intermediates
        .iter()
        .filter_map(|one| X509Certificate::from_der(one).ok())
        .map(|(_, parsed)| parsed)
        .collect();
    let mut last = own;
    // A chain has at most this length; the bound also ends a loop.
    for _ in 0..above.len() {
        let issuer = above.iter().find(|one| one.subject() == last.issuer());
        match issuer {
            Some(issuer) => last = issuer,
            None => break,
        }
    }
    shown(&last.issuer().to_string())
}

/// Names of a certificate for messages, or its subject if it has none.
fn names(certificate: &X509Certificate<'_>, subject: &str) -> String {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let names: Vec<String> = alternative
        .iter()
        .flat_map(|alternative| &alternative.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(shown(name)),
            GeneralName::IPAddress(bytes) => address(bytes),
            _ => None,
        })
        .collect();
    match names.len() {
        0 => format!("no name but its subject {subject}"),
        count if count > NAMES_SHOWN_MAX => format!(
            "{} and {} more",
            names[..NAMES_SHOWN_MAX].join(", "),
            count - NAMES_SHOWN_MAX
        ),
        _ => names.join(", "),
    }
}

fn address(bytes: &[u8]) -> Option<String> {
    let four = <[u8; 4]>::try_from(bytes).map(std::net::IpAddr::from);
    let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(std::net::IpAddr::from));
    address.ok().map(|address| address.to_string())
}

fn date(time: &UnixTime) -> String {
    ASN1Time::from_timestamp(time.as_secs() as i64)
        .map_or_else(|_| time.as_secs().to_string(), |time| time.to_string())
}

fn shown_subject(certificate: &X509Certificate<'_>) -> String {
    shown(&certificate.subject().to_string())
}

/// Makes a peer's name safe for one line of a log.
fn shown(name: &str) -> String {
    let mut shown: String = name
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|char| match char.is_control() {
            true => '\u{fffd}',
            false => char,
        })
        .collect();
    if name.chars().nth(NAME_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests;
