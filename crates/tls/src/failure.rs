//! Kinds of failed handshakes, for counters.

use onrush_engine::Kind;
use rustls::{AlertDescription, PeerIncompatible};

use crate::error::HandshakeError;

/// Kind of a failed handshake.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Failure {
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

impl Failure {
    /// All kinds, in the order of declaration.
    pub const ALL: [Failure; 9] = [
        Failure::Disconnected,
        Failure::TimedOut,
        Failure::PlainHttp,
        Failure::Version,
        Failure::Cipher,
        Failure::Protocol,
        Failure::Certificate,
        Failure::Refused,
        Failure::Malformed,
    ];

    /// Name for counters and logs.
    pub fn name(self) -> &'static str {
        match self {
            Failure::Disconnected => "left",
            Failure::TimedOut => "timeout",
            Failure::PlainHttp => "plain HTTP",
            Failure::Version => "version",
            Failure::Cipher => "cipher",
            Failure::Protocol => "protocol",
            Failure::Certificate => "certificate",
            Failure::Refused => "refused",
            Failure::Malformed => "malformed",
        }
    }
}

impl HandshakeError {
    /// Returns the kind of the error.
    pub fn failure(&self) -> Failure {
        match self {
            HandshakeError::Connection(error) if error.kind == Kind::TimedOut => Failure::TimedOut,
            HandshakeError::Connection(_) | HandshakeError::Ended => Failure::Disconnected,
            HandshakeError::PlainHttp => Failure::PlainHttp,
            HandshakeError::Certificate(_) => Failure::Certificate,
            HandshakeError::TooLong | HandshakeError::Name(_) => Failure::Malformed,
            HandshakeError::Tls(error) => of_tls(error),
        }
    }
}

fn of_tls(error: &rustls::Error) -> Failure {
    match error {
        rustls::Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        )
        | rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => Failure::Version,
        rustls::Error::PeerIncompatible(_) => Failure::Cipher,
        rustls::Error::NoApplicationProtocol
        | rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            Failure::Protocol
        }
        rustls::Error::InvalidCertificate(_) | rustls::Error::NoCertificatesPresented => {
            Failure::Certificate
        }
        rustls::Error::AlertReceived(_) => Failure::Refused,
        _ => Failure::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::{Error, Op};

    #[test]
    fn kinds_are_in_counter_order() {
        for (place, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, place, "{failure:?}");
        }
    }

    #[test]
    fn errors_map_to_kinds() {
        let connection = |kind| HandshakeError::Connection(Error::new(Op::Recv, kind));
        let tls = HandshakeError::Tls;
        for (error, failure) in [
            (connection(Kind::TimedOut), Failure::TimedOut),
            (connection(Kind::Truncated), Failure::Disconnected),
            (HandshakeError::Ended, Failure::Disconnected),
            (
                tls(PeerIncompatible::Tls12NotOfferedOrEnabled.into()),
                Failure::Version,
            ),
            (
                tls(PeerIncompatible::NoCipherSuitesInCommon.into()),
                Failure::Cipher,
            ),
            (
                tls(rustls::Error::AlertReceived(AlertDescription::UnknownCA)),
                Failure::Refused,
            ),
            (tls(rustls::Error::NoApplicationProtocol), Failure::Protocol),
            (
                tls(rustls::Error::NoCertificatesPresented),
                Failure::Certificate,
            ),
            (tls(rustls::Error::DecryptError), Failure::Malformed),
        ] {
            assert_eq!(error.failure(), failure, "{error}");
        }
    }
}
