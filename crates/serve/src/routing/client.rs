//! Identity of a client: from its connection, and from fields of trusted proxies.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};

use onrush_config::plan;
use onrush_http::Header;
use onrush_http::forwarded::{self, ForwardingFields, Scheme};
use onrush_tls::Transport;

/// The client of a connection. Small, because every idle connection has one.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) scheme: Scheme,
    origin: Cell<PeerAddress>,
    /// Whether the peer is a trusted proxy; cached, because it is needed several times per request.
    is_trusted: Cell<Option<bool>>,
}

/// Source of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PeerAddress {
    /// The peer address of the socket, not read yet: that costs a system call, and most responses do not need it.
    OfSocket,
    Address(IpAddr, u16),
    /// A connection on this machine without an address.
    Nowhere,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientOrigin {
    pub(crate) address: Option<IpAddr>,
    pub(crate) scheme: Scheme,
}

impl Client {
    pub(crate) fn new(scheme: Scheme, origin: PeerAddress) -> Self {
        Self {
            scheme,
            origin: Cell::new(origin),
            is_trusted: Cell::new(None),
        }
    }

    /// Whether `trust` includes its address; `stream` is its connection.
    #[inline]
    pub(crate) fn is_trusted(&self, trust: &TrustedProxies, stream: &Transport) -> bool {
        self.is_trusted.get().unwrap_or_else(|| {
            let is_trusted = trust.includes(|| self.peer(stream).map(|(address, _)| address));
            self.is_trusted.set(Some(is_trusted));
            is_trusted
        })
    }

    /// Address and port of the client, or of the last proxy. `None` for Unix sockets. `stream` is its connection.
    pub(crate) fn peer(&self, stream: &Transport) -> Option<(IpAddr, u16)> {
        self.peer_by(|| stream.peer())
    }

    /// [`Client::peer`] with a function `peer` that reads the socket's address.
    pub(crate) fn peer_by(
        &self,
        peer: impl FnOnce() -> Option<SocketAddr>,
    ) -> Option<(IpAddr, u16)> {
        if self.origin.get() == PeerAddress::OfSocket {
            self.origin.set(match peer() {
                Some(peer) => PeerAddress::Address(peer.ip().to_canonical(), peer.port()),
                None => PeerAddress::Nowhere,
            });
        }
        match self.origin.get() {
            PeerAddress::Address(address, port) => Some((address, port)),
            PeerAddress::OfSocket | PeerAddress::Nowhere => None,
        }
    }
}

/// Trusted proxies, and the forwarding fields they set.
#[derive(Debug)]
pub(crate) struct TrustedProxies {
    networks: plan::Networks,
    forwarding_field: ForwardingFields,
}

impl TrustedProxies {
    pub(crate) fn new(plan: &plan::Forwarded) -> Self {
        Self {
            networks: plan.trust.clone(),
            // These proxies may pass on the other kind of fields unchecked.
            forwarding_field: match plan.read {
                plan::ForwardingFields::XForwarded => ForwardingFields::XForwarded,
                plan::ForwardingFields::Forwarded => ForwardingFields::Forwarded,
            },
        }
    }

    /// Whether the forwarding fields of `peer` are trusted.
    #[inline]
    pub(crate) fn includes(&self, peer: impl FnOnce() -> Option<IpAddr>) -> bool {
        !self.networks.is_empty() && peer().is_some_and(|peer| self.networks.contain(peer))
    }

    /// The client on whose behalf `peer` sends the request; `peer` itself if it is not trusted.
    pub(crate) fn client<'b>(&self, peer: IpAddr, headers: &[Header<'b>]) -> forwarded::Client<'b> {
        let is_trusted = |address| self.networks.contain(address);
        forwarded::client(headers, self.forwarding_field, peer, is_trusted)
    }
}
