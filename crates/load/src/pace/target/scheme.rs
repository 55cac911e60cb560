//! What a URL begins with, and what that means for its connections.

/// How the connection is spoken on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
    /// Calls of gRPC over HTTP/2, without TLS.
    Grpc,
    /// The same with TLS.
    Grpcs,
    /// Datagrams, which are no HTTP.
    Udp,
    /// Bytes over TCP that an echo sends back.
    Tcp,
    /// memcached's own protocols, without TLS.
    Memcached,
    /// The same with TLS.
    Memcacheds,
}

impl Scheme {
    /// Its name, without the colon.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
            Scheme::Grpc => "grpc",
            Scheme::Grpcs => "grpcs",
            Scheme::Udp => "udp",
            Scheme::Tcp => "tcp",
            Scheme::Memcached => "memcached",
            Scheme::Memcacheds => "memcacheds",
        }
    }

    /// The port of a URL without one (RFC 9110 4.2.1, 4.2.2).
    pub(super) fn port(self) -> Option<u16> {
        match self {
            Scheme::Http | Scheme::Grpc => Some(80),
            Scheme::Https | Scheme::Grpcs => Some(443),
            // memcached's default, with TLS as well (-Z).
            Scheme::Memcached | Scheme::Memcacheds => Some(11211),
            Scheme::Udp | Scheme::Tcp => None,
        }
    }

    /// Whether it is spoken over TLS.
    pub fn has_tls(self) -> bool {
        match self {
            Scheme::Http | Scheme::Grpc | Scheme::Memcached | Scheme::Udp | Scheme::Tcp => false,
            Scheme::Https | Scheme::Grpcs | Scheme::Memcacheds => true,
        }
    }

    /// Whether it is one of HTTP; calls of gRPC are requests of HTTP, too.
    pub fn is_http(self) -> bool {
        match self {
            Scheme::Http | Scheme::Https | Scheme::Grpc | Scheme::Grpcs => true,
            Scheme::Memcached | Scheme::Memcacheds | Scheme::Udp | Scheme::Tcp => false,
        }
    }

    /// Whether it is one of gRPC.
    pub fn is_grpc(self) -> bool {
        match self {
            Scheme::Grpc | Scheme::Grpcs => true,
            Scheme::Http
            | Scheme::Https
            | Scheme::Memcached
            | Scheme::Memcacheds
            | Scheme::Udp
            | Scheme::Tcp => false,
        }
    }

    /// Whether it is one of memcached.
    pub(crate) fn is_memcached(self) -> bool {
        matches!(self, Scheme::Memcached | Scheme::Memcacheds)
    }

    /// The scheme of the same protocol with TLS; https, where the protocol has none.
    pub fn with_tls(self) -> Scheme {
        match self {
            Scheme::Grpc | Scheme::Grpcs => Scheme::Grpcs,
            Scheme::Memcached | Scheme::Memcacheds => Scheme::Memcacheds,
            Scheme::Http | Scheme::Https | Scheme::Udp | Scheme::Tcp => Scheme::Https,
        }
    }

    /// The one with this name, in lower case or not.
    pub(super) fn of_name(name: &str) -> Option<Scheme> {
        const ALL: [Scheme; 8] = [
            Scheme::Http,
            Scheme::Https,
            Scheme::Grpc,
            Scheme::Grpcs,
            Scheme::Udp,
            Scheme::Tcp,
            Scheme::Memcached,
            Scheme::Memcacheds,
        ];
        let mut all = ALL.into_iter();
        all.find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }
}
