//! Decrypts the records of a TLS 1.3 handshake for rustls: the provider's ciphers, with two additions. A record that
//! cannot be decrypted is noted, because early data is skipped by that. Content that no record may have is passed on as
//! application data, which rustls refuses during a handshake with the alert required by RFC 8446 5.4.

use std::sync::LazyLock;

use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{
    AeadKey, InboundOpaqueMessage, InboundPlainMessage, Iv, MessageDecrypter, MessageEncrypter,
    Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, ContentType, Error, PeerMisbehaved,
    SupportedCipherSuite, Tls13CipherSuite,
};

use crate::handshake_facts;

/// The provider's cipher suites; TLS 1.3 suites decrypt as described above. Created once and never freed,
/// because rustls requires a `'static` lifetime.
static SUITES: LazyLock<Vec<SupportedCipherSuite>> = LazyLock::new(|| {
    let suites = aws_lc_rs::default_provider().cipher_suites;
    suites.into_iter().map(noting).collect()
});

pub(crate) fn suites() -> Vec<SupportedCipherSuite> {
    SUITES.clone()
}

fn noting(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let SupportedCipherSuite::Tls13(suite) = suite else {
        return suite;
    };
    let common = CipherSuiteCommon {
        suite: suite.common.suite,
        hash_provider: suite.common.hash_provider,
        confidentiality_limit: suite.common.confidentiality_limit,
    };
    let noting = Tls13CipherSuite {
        common,
        hkdf_provider: suite.hkdf_provider,
        aead_alg: Box::leak(Box::new(NotingAead(suite.aead_alg))),
        quic: None,
    };
    SupportedCipherSuite::Tls13(Box::leak(Box::new(noting)))
}

/// A cipher whose decrypters are [`NotingDecrypter`]s.
struct NotingAead(&'static dyn Tls13AeadAlgorithm);

impl Tls13AeadAlgorithm for NotingAead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        Box::new(NotingDecrypter(self.0.decrypter(key, iv)))
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

struct NotingDecrypter(Box<dyn MessageDecrypter>);

impl MessageDecrypter for NotingDecrypter {
    fn decrypt<'a>(
        &mut self,
        mut message: InboundOpaqueMessage<'a>,
        sequence: u64,
    ) -> Result<InboundPlainMessage<'a>, Error> {
        // rustls expects the plaintext in place of the record, and the provider does not return a refused record.
        let mut copy = message.payload.to_vec();
        let copied = InboundOpaqueMessage::new(message.typ, message.version, &mut copy);
        let length = match self.0.decrypt(copied, sequence) {
            // A record of zeros has no type, and an alert must not be empty (RFC 8446 5.4).
            Err(Error::PeerMisbehaved(PeerMisbehaved::IllegalTlsInnerPlaintext)) => {
                message.typ = ContentType::ApplicationData;
                0
            }
            Ok(opened) if opened.typ == ContentType::Alert && opened.payload.is_empty() => {
                message.typ = ContentType::ApplicationData;
                0
            }
            Ok(opened) => {
                (message.typ, message.version) = (opened.typ, opened.version);
                let length = opened.payload.len();
                message.payload[..length].copy_from_slice(opened.payload);
                length
            }
            Err(error) => {
                if error == Error::DecryptError {
                    handshake_facts::note(|heard| heard.is_unopened = true);
                }
                return Err(error);
            }
        };
        message.payload.truncate(length);
        Ok(message.into_plain_message())
    }
}
