//! Messages for unsupported certificates.

use rustls::pki_types::pem::PemObject;

use super::*;
use crate::handshake_facts::HandshakeFacts;

/// X.509 version 1.
const OLD: &str = "\
-----BEGIN CERTIFICATE-----
MIIBFzCBvwIUNUQPG278l9tMr9hTXc4TT4k0QmkwCgYIKoZIzj0EAwIwDjEMMAoG
A1UEAwwDb2xkMCAXDTI2MTEyMjIwNDAyNFoYDzIxMjYxMDI5MjA0MDI0WjAOMQww
CgYDVQQDDANvbGQwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARHGfc3CMaK9GSv
ecmd4ywTZ8G8L67bq+YkFZ5SUWhAOfVJTCgVx4hJcw04uNPckJ+pZux31If7c2UU
YJuBn4a4MAoGCCqGSM49BAMCA0cAMEQCIGdcTYsHvDyiEr2kWlOcJRSosPNsSHSN
G6e8IYAqyqa2AiA0Th8aiYSN49DqrMSy8fBqcl/nODU4HGNpbjmmFxvJ3w==
-----END CERTIFICATE-----
";

/// RSA key of 1024 bits.
const SMALL: &str = "\
-----BEGIN CERTIFICATE-----
MIIB/jCCAWegAwIBAgIUU42F5ORlNOQ2lx5UZRrwl0biZcwwDQYJKoZIhvcNAQEL
BQAwEDEOMAwGA1UEAwwFc21hbGwwIBcNMjYxMTIyMjA0MDI1WhgPMjEyNjEwMjky
MDQwMjVaMBAxDjAMBgNVBAMMBXNtYWxsMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCB
iQKBgQC64ZbDlRPe4y4BZnkbhwxzeVWV5Ru/SSi/MQGfpf54AxZh1EKlMEjexILX
IzGLtflyI2DCeGRneiyr2KVyYmkhV5JVauP2oRJJQrhdNf5TVUg8OuAmwEeznlM8
LfZB6MKig4psA0Pvkbm7Slg+Z8sYswyAgCDmweEcK2M39gf1GwIDAQABo1MwUTAd
BgNVHQ4EFgQU1Ikm+4ypLI7P8d4alBzK0qPvbqIwHwYDVR0jBBgwFoAU1Ikm+4yp
LI7P8d4alBzK0qPvbqIwDwYDVR0TAQH/BAUwAwEB/zANBgkqhkiG9w0BAQsFAAOB
gQCfXXreVzpHaqbaWkSTpbeB14Q/zcYn9u1BkR7JPLaf8eiBBMMK2w1Te1PW/4sO
n1jPtz4KG2lmxWlpFm9kZv9aoypFrj8R/dTqhK2IWf3zrXKEEQRvBK5A3uicqQpf
PH0Em/W4aud1vU7M0YPMF99xDVR+ZtEQ9Hxn/VdArAaKsg==
-----END CERTIFICATE-----
";

fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

#[test]
fn names_are_sanitized_for_logs() {
    assert_eq!(shown("CN=a\nb\u{1b}[2J"), "CN=a\u{fffd}b\u{fffd}[2J");
    let long = "x".repeat(NAME_CHARS_MAX);
    assert_eq!(shown(&long), long);
    assert_eq!(shown(&format!("{long}y")), format!("{long}…"));
}

#[test]
fn old_x509_version_error_has_version() {
    let (old, small) = (certificate(OLD), certificate(SMALL));
    // webpki returns this error for any certificate that it cannot parse.
    let error = webpki_error(&old);
    let said = refusal(&error, &old, &[], None);
    assert!(said.contains("X.509 version 1"), "{said}");
    assert!(said.contains("CN=old"), "{said}");
    let said = refusal(&error, &small, std::slice::from_ref(&old), None);
    assert_eq!(
        said,
        "a certificate above that of CN=small is not of X.509 version 3, which is required"
    );
}

fn webpki_error(certificate: &CertificateDer<'_>) -> Error {
    match rustls::server::ParsedCertificate::try_from(certificate) {
        Ok(_) => panic!("it is read"),
        Err(error) => error,
    }
}

#[test]
fn unsupported_key_size_error_has_size() {
    let refused = |error: Error, certificate: &CertificateDer<'_>| {
        let mut heard = HandshakeFacts::default();
        let verified = heard.during(|| note_weak_key(Err(error.clone()), certificate));
        assert_eq!(verified.err(), Some(error));
        heard.refused
    };
    let wrong = Error::InvalidCertificate(CertificateError::BadSignature);
    assert_eq!(
        refused(wrong.clone(), &certificate(SMALL)).as_deref(),
        Some("the certificate of CN=small has an RSA key of 1024 bits: supported are 2048 to 8192")
    );
    assert_eq!(refused(wrong, &certificate(OLD)), None);
    let mut heard = HandshakeFacts::default();
    let good = heard.during(|| {
        note_weak_key(
            Ok(HandshakeSignatureValid::assertion()),
            &certificate(SMALL),
        )
    });
    assert!(good.is_ok());
    assert_eq!(heard.refused, None);
}

#[test]
fn session_ends_when_earliest_revocation_list_expires() {
    const NOW: u64 = 1_900_000_000;
    let old = certificate(OLD);
    let chain_end = certificate::chain_ends(&old, &[], NOW);
    let ends = |lists_end: Vec<u64>| {
        let judge = rustls::server::WebPkiClientVerifier::no_client_auth();
        NotingVerifier::new(judge, lists_end).ends(&old, &[], NOW)
    };
    assert!(chain_end > Some(NOW + 7));
    assert_eq!(ends(vec![]), chain_end);
    assert_eq!(ends(vec![NOW + 9, NOW + 7]), Some(NOW + 7));
    // An expired list belongs to another authority.
    assert_eq!(ends(vec![NOW - 1, u64::MAX]), chain_end);
}
