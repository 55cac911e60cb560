//! Negotiated parameters of a connection, for logs and header fields.

use rustls::{CommonState, HandshakeKind, ProtocolVersion};

use crate::certificate;
use crate::certificate::names::ServedCertificate;
use crate::cipher;
use crate::version::Version;

/// Negotiated parameters of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// TLS version.
    pub version: Version,
    /// IANA name of the cipher suite.
    pub cipher: &'static str,
    /// Whether a session was resumed.
    pub is_resumed: bool,
    /// Name requested by the client (SNI).
    pub name: Option<Box<str>>,
    /// Negotiated application protocol (ALPN).
    pub protocol: Option<Box<[u8]>>,
    /// Subject of the client's verified certificate; `None` on the client's side.
    pub client: Option<Box<str>>,
    served: Option<ServedCertificate>,
}

impl Info {
    pub(crate) fn new(
        state: &CommonState,
        (name, served): (Option<Box<str>>, Option<ServedCertificate>),
        side: Side,
    ) -> Info {
        let version = match state.protocol_version() {
            Some(ProtocolVersion::TLSv1_3) => Version::Tls13,
            _ => Version::Tls12,
        };
        let client = match side {
            Side::Server => state.peer_certificates().and_then(<[_]>::first),
            Side::Client => None,
        };
        Info {
            version,
            cipher: state
                .negotiated_cipher_suite()
                .map_or("unknown", |suite| cipher::name(suite.suite())),
            is_resumed: state.handshake_kind() == Some(HandshakeKind::Resumed),
            name,
            protocol: state.alpn_protocol().map(Into::into),
            client: client.map(|certificate| certificate::subject(certificate).into()),
            served,
        }
    }

    /// Whether a request for `host`, in any case and without port, belongs on another connection: the client requested
    /// a name (SNI) and got a certificate that does not cover the host, while another certificate of the server does.
    pub fn misdirects(&self, host: &str) -> bool {
        let Some(served) = &self.served else {
            return false;
        };
        // The usual case allocates nothing: the host is the requested name.
        let is_asked_for = |name: &str| name.eq_ignore_ascii_case(host);
        !self.name.as_deref().is_some_and(is_asked_for) && served.is_misdirected(host)
    }
}

/// Our side of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Server,
    Client,
}
