//! Errors of handshakes, and of the files that they need.

pub(crate) mod alert;

use std::fmt;

use onrush_engine::{Error, Kind};
use rustls::{AlertDescription, PeerIncompatible, PeerMisbehaved};

use crate::error::alert::Alert;

/// Reason for a failed handshake.
#[derive(Debug)]
pub enum HandshakeError {
    /// The connection failed or timed out.
    Connection(Error),
    /// The peer closed the connection during the handshake.
    Ended,
    /// The client sent plain HTTP, and got a 400 response.
    PlainHttp,
    /// The peer's messages are longer than any handshake.
    TooLong,
    /// A certificate cannot have the server's name.
    Name(String),
    /// The peer's certificate was refused; the reason is a sentence that names the certificate.
    Certificate(Box<str>),
    /// Negotiation or verification failed.
    Tls(rustls::Error),
}

impl From<Error> for HandshakeError {
    fn from(error: Error) -> Self {
        HandshakeError::Connection(error)
    }
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Connection(error) if error.kind == Kind::TimedOut => {
                f.write_str("the TLS handshake took too long")
            }
            HandshakeError::Connection(error) => write!(f, "during the TLS handshake: {error}"),
            HandshakeError::Ended => f.write_str("the peer disconnected during the TLS handshake"),
            HandshakeError::PlainHttp => f.write_str("plain HTTP on a TLS port"),
            HandshakeError::TooLong => f.write_str("the TLS handshake is too long"),
            HandshakeError::Name(name) => write!(f, "{name:?} is not a valid TLS server name"),
            HandshakeError::Certificate(why) => f.write_str(why),
            HandshakeError::Tls(error) => explain(error, f),
        }
    }
}

impl std::error::Error for HandshakeError {}

/// Writes a message for common errors, or rustls's message.
fn explain(error: &rustls::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        rustls::Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => f.write_str("no TLS version in common"),
        rustls::Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon) => {
            f.write_str("no cipher suite in common")
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::NoKxGroupsInCommon) => {
            f.write_str("no key exchange group in common")
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::NullCompressionRequired) => {
            f.write_str("the client requires TLS compression, which is not supported")
        }
        rustls::Error::PeerIncompatible(PeerIncompatible::KeyShareExtensionRequired) => {
            f.write_str("the client offers TLS 1.3 without a key share (the extension key_share)")
        }
        rustls::Error::PeerMisbehaved(PeerMisbehaved::ServerNameMustContainOneHostName) => {
            f.write_str("the server name (SNI) of the client is not a host name")
        }
        rustls::Error::NoApplicationProtocol => {
            f.write_str("the client offers no supported protocol (ALPN), such as HTTP/1.1")
        }
        rustls::Error::DecryptError => {
            f.write_str("a record cannot be decrypted, or a client sends too much early data")
        }
        rustls::Error::InvalidMessage(_) => {
            f.write_str("the received bytes are not a TLS handshake")
        }
        rustls::Error::NoCertificatesPresented => f.write_str("the client sent no certificate"),
        rustls::Error::AlertReceived(AlertDescription::UnknownCA) => {
            f.write_str("the peer does not trust the authority of our certificate")
        }
        rustls::Error::AlertReceived(alert) => {
            write!(f, "the peer sent an alert: {}", Alert(u8::from(*alert)))
        }
        error => write!(f, "the TLS handshake failed: {error}"),
    }
}

/// Part of a setup that a message is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// File of the certificate with this index.
    Certificate(usize),
    /// File of the key for the certificate with this index.
    Key(usize),
    /// File of the OCSP response for the certificate with this index.
    Staple(usize),
    /// Authorities that verify the peer's certificates.
    Authorities,
    /// File of revocation lists with this index.
    RevocationList(usize),
    /// No particular file.
    Setup,
}

/// Error or warning about the files of a setup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Part of the setup.
    pub subject: Subject,
    /// Sentence that names the file.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(subject: Subject, message: impl Into<String>) -> Problem {
        Problem {
            subject,
            message: message.into(),
        }
    }
}

/// Returns both values, or all errors of either.
pub(crate) fn both<A, B>(
    one: Result<A, Vec<Problem>>,
    other: Result<B, Vec<Problem>>,
) -> Result<(A, B), Vec<Problem>> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (one, other) => {
            let wrong = one.err().into_iter().chain(other.err());
            Err(wrong.flatten().collect())
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
