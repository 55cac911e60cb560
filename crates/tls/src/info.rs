//! What was agreed on in a handshake, for logs and for header fields.

use rustls::{CommonState, HandshakeKind, ProtocolVersion};

use crate::certificate;
use crate::certificate::names::Served;
use crate::cipher;
use crate::version::Version;

/// What was agreed on in a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// The version.
    pub version: Version,
    /// The cipher suite, as IANA calls it.
    pub cipher: &'static str,
    /// Whether an earlier session was resumed.
    pub is_resumed: bool,
    /// The name the client asked for (SNI).
    pub name: Option<Box<str>>,
    /// The protocol agreed on by ALPN.
    pub protocol: Option<Box<[u8]>>,
    /// The subject of the client's certificate, which was verified; on the client's side, `None`.
    pub client: Option<Box<str>>,
    served: Option<Served>,
}

impl Info {
    pub(crate) fn new(
        state: &CommonState,
        (name, served): (Option<Box<str>>, Option<Served>),
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

    /// Whether a request for `host`, in either case and without port, belongs on another connection: the client asked for
    /// a name (SNI) and got a certificate that does not cover the host, while another certificate of the server does.
    pub fn misdirects(&self, host: &str) -> bool {
        let Some(served) = &self.served else {
            return false;
        };
        // The usual case costs no allocation: the certificate was chosen by this name.
        let is_asked_for = |name: &str| name.eq_ignore_ascii_case(host);
        !self.name.as_deref().is_some_and(is_asked_for) && served.misdirects(host)
    }
}

/// Which end of the connection we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Server,
    Client,
}
