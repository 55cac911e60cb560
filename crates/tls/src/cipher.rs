//! Supported cipher suites, by their IANA names.

use rustls::crypto::aws_lc_rs::cipher_suite;
use rustls::{CipherSuite, SupportedCipherSuite};

use crate::version::Version;

/// Cipher suite of TLS 1.3 (RFC 8446 B.4), or of TLS 1.2 with forward secrecy and AEAD (RFC 5289, RFC 7905).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cipher {
    /// TLS 1.3.
    Aes256,
    /// TLS 1.3.
    Aes128,
    /// TLS 1.3.
    ChaCha20,
    /// TLS 1.2, for servers with an elliptic curve key.
    EcdsaAes256,
    /// TLS 1.2, for servers with an elliptic curve key.
    EcdsaAes128,
    /// TLS 1.2, for servers with an elliptic curve key.
    EcdsaChaCha20,
    /// TLS 1.2, for servers with an RSA key.
    RsaAes256,
    /// TLS 1.2, for servers with an RSA key.
    RsaAes128,
    /// TLS 1.2, for servers with an RSA key.
    RsaChaCha20,
}

impl Cipher {
    /// All suites, in the default order of the client's offer.
    pub const ALL: [Cipher; 9] = [
        Cipher::Aes256,
        Cipher::Aes128,
        Cipher::ChaCha20,
        Cipher::EcdsaAes256,
        Cipher::EcdsaAes128,
        Cipher::EcdsaChaCha20,
        Cipher::RsaAes256,
        Cipher::RsaAes128,
        Cipher::RsaChaCha20,
    ];

    /// IANA name.
    pub const fn name(self) -> &'static str {
        match self {
            Cipher::Aes256 => "TLS_AES_256_GCM_SHA384",
            Cipher::Aes128 => "TLS_AES_128_GCM_SHA256",
            Cipher::ChaCha20 => "TLS_CHACHA20_POLY1305_SHA256",
            Cipher::EcdsaAes256 => "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            Cipher::EcdsaAes128 => "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            Cipher::EcdsaChaCha20 => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            Cipher::RsaAes256 => "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            Cipher::RsaAes128 => "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            Cipher::RsaChaCha20 => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        }
    }

    /// TLS version of the suite.
    pub const fn version(self) -> Version {
        match self {
            Cipher::Aes256 | Cipher::Aes128 | Cipher::ChaCha20 => Version::Tls13,
            Cipher::EcdsaAes256
            | Cipher::EcdsaAes128
            | Cipher::EcdsaChaCha20
            | Cipher::RsaAes256
            | Cipher::RsaAes128
            | Cipher::RsaChaCha20 => Version::Tls12,
        }
    }

    pub(crate) fn suite(self) -> SupportedCipherSuite {
        match self {
            Cipher::Aes256 => cipher_suite::TLS13_AES_256_GCM_SHA384,
            Cipher::Aes128 => cipher_suite::TLS13_AES_128_GCM_SHA256,
            Cipher::ChaCha20 => cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
            Cipher::EcdsaAes256 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
            Cipher::EcdsaAes128 => cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
            Cipher::EcdsaChaCha20 => cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
            Cipher::RsaAes256 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            Cipher::RsaAes128 => cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            Cipher::RsaChaCha20 => cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        }
    }
}

/// Name of a negotiated suite.
pub(crate) fn name(agreed: CipherSuite) -> &'static str {
    let mut all = Cipher::ALL.into_iter();
    let known = all.find(|cipher| cipher.suite().suite() == agreed);
    known.map_or("unknown", Cipher::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::crypto::aws_lc_rs::ALL_CIPHER_SUITES;

    #[test]
    fn suites_have_iana_names_and_versions() {
        let suites = Cipher::ALL.map(Cipher::suite);
        assert_eq!(suites[..], *ALL_CIPHER_SUITES);
        for cipher in Cipher::ALL {
            let suite = cipher.suite().suite();
            assert_eq!(name(suite), cipher.name());
            // rustls marks TLS 1.3 suites in their names; IANA does not.
            let theirs = suite.as_str().unwrap().replace("TLS13_", "TLS_");
            assert_eq!(cipher.name(), theirs);
            let version = cipher.suite().version().version;
            let is_newest = version == rustls::ProtocolVersion::TLSv1_3;
            assert_eq!(cipher.version() == Version::Tls13, is_newest);
        }
    }
}
