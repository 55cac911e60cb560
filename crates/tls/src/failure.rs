//! Kinds of failed handshakes, for counters.

use onrush_engine::Kind;
use rustls::{AlertDescription, PeerIncompatible};

use crate::error::HandshakeError;

/// Kind of a failed handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HandshakeFailure {
    /// The peer left, or the connection failed.
    Disconnected,
    /// Timeout.
    TimedOut,
    /// The client sent plain HTTP.
    PlainHttp,
    /// No TLS version in common.
    Version,
    /// No cipher suite or key exchange group in common.
    Cipher,
    /// No application protocol in common (ALPN).
    Protocol,
    /// The peer's certificate was refused or missing.
    Certificate,
    /// The peer sent an alert, most often because it refused our certificate.
    Refused,
    /// The peer sent an invalid handshake.
    Malformed,
}

impl HandshakeFailure {
    /// All kinds, in the order of declaration.
    pub const ALL: [HandshakeFailure; 9] = [
        HandshakeFailure::Disconnected,
        HandshakeFailure::TimedOut,
        HandshakeFailure::PlainHttp,
        HandshakeFailure::Version,
        HandshakeFailure::Cipher,
        HandshakeFailure::Protocol,
        HandshakeFailure::Certificate,
        HandshakeFailure::Refused,
        HandshakeFailure::Malformed,
    ];

    /// Name for counters and logs.
    pub fn name(self) -> &'static str {
        match self {
            HandshakeFailure::Disconnected => "left",
            HandshakeFailure::TimedOut => "timeout",
            HandshakeFailure::PlainHttp => "plain HTTP",
            HandshakeFailure::Version => "version",
            HandshakeFailure::Cipher => "cipher",
            HandshakeFailure::Protocol => "protocol",
            HandshakeFailure::Certificate => "certificate",
            HandshakeFailure::Refused => "refused",
            HandshakeFailure::Malformed => "malformed",
        }
    }
}

impl HandshakeError {
    /// Returns the kind of the error.
    pub fn failure(&self) -> HandshakeFailure {
        match self {
            HandshakeError::Connection(error) if error.kind == Kind::TimedOut => {
                HandshakeFailure::TimedOut
            }
            HandshakeError::Connection(_) | HandshakeError::Ended => HandshakeFailure::Disconnected,
            HandshakeError::PlainHttp => HandshakeFailure::PlainHttp,
            HandshakeError::Certificate(_) => HandshakeFailure::Certificate,
            HandshakeError::TooLong | HandshakeError::Name(_) => HandshakeFailure::Malformed,
            HandshakeError::Tls(error) => of_tls(error),
        }
    }
}

fn of_tls(error: &rustls::Error) -> HandshakeFailure {
    match error {
        rustls::Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        )
        | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            HandshakeFailure::Version
        }
        rustls::Error::PeerIncompatible(_) => HandshakeFailure::Cipher,
        rustls::Error::NoApplicationProtocol
        | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            HandshakeFailure::Protocol
        }
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            HandshakeFailure::Certificate
        }
        rustls::Error::AlertReceived(_) => HandshakeFailure::Refused,
        _ => HandshakeFailure::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::{Error, Op};

    #[test]
    fn handshake_failure_discriminants_match_counters() {
        for (place, failure) in HandshakeFailure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, place, "{failure:?}");
        }
    }

    #[test]
    fn tls_errors_map_to_failure_kinds() {
        let connection = |kind| HandshakeError::Connection(Error::new(Op::Recv, kind));
        let tls = HandshakeError::Tls;
        for (error, failure) in [
            (connection(Kind::TimedOut), HandshakeFailure::TimedOut),
            (connection(Kind::Truncated), HandshakeFailure::Disconnected),
            (HandshakeError::Ended, HandshakeFailure::Disconnected),
            (
                tls(PeerIncompatible::Tls12NotOfferedOrEnabled.into()),
                HandshakeFailure::Version,
            ),
            (
                tls(PeerIncompatible::NoCipherSuitesInCommon.into()),
                HandshakeFailure::Cipher,
            ),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::UnknownCA)),
                HandshakeFailure::Refused,
            ),
            (
                tls(rustls::Error::NoApplicationProtocol),
                HandshakeFailure::Protocol,
            ),
            (
                tls(rustls::Error::NoCertificatesPresented),
                HandshakeFailure::Certificate,
            ),
            (
                tls(rustls::Error::DecryptError),
                HandshakeFailure::Malformed,
            ),
        ] {
            assert_eq!(error.failure(), failure, "{error}");
        }
    }
}
