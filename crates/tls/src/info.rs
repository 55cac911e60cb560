//! What was agreed on in a handshake, for logs and for header fields.

use rustls::{CommonState, HandshakeKind, ProtocolVersion};

use crate::version::Version;
use crate::{certificate, cipher};

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
}

impl Info {
    pub(crate) fn new(state: &CommonState, name: Option<Box<str>>, side: Side) -> Info {
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
        }
    }
}

/// Which end of the connection we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Server,
    Client,
}
