//! URL schemes and the properties of their protocols.

/// Scheme of a URL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// HTTP without TLS.
    Http,
    /// HTTP over TLS.
    Https,
    /// gRPC over HTTP/2, without TLS.
    Grpc,
    /// gRPC over HTTP/2 with TLS.
    Grpcs,
    /// Plain datagrams.
    Udp,
    /// Bytes over TCP, to an echo or a sink.
    Tcp,
    /// memcached's text protocols, without TLS.
    Memcached,
    /// The same with TLS.
    Memcacheds,
}

impl Scheme {
    /// All schemes, in the order of messages.
    pub(super) const ALL: [Scheme; 8] = [
        Scheme::Http,
        Scheme::Https,
        Scheme::Grpc,
        Scheme::Grpcs,
        Scheme::Memcached,
        Scheme::Memcacheds,
        Scheme::Udp,
        Scheme::Tcp,
    ];

    /// Returns the name, without the colon.
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

    /// Returns the default port (RFC 9110 sections 4.2.1 and 4.2.2).
    pub(super) fn port(self) -> Option<u16> {
        match self {
            Scheme::Http | Scheme::Grpc => Some(80),
            Scheme::Https | Scheme::Grpcs => Some(443),
            // memcached's default, which TLS does not change (-Z).
            Scheme::Memcached | Scheme::Memcacheds => Some(11211),
            Scheme::Udp | Scheme::Tcp => None,
        }
    }

    /// Whether it uses TLS.
    pub fn has_tls(self) -> bool {
        match self {
            Scheme::Http | Scheme::Grpc | Scheme::Memcached | Scheme::Udp | Scheme::Tcp => false,
            Scheme::Https | Scheme::Grpcs | Scheme::Memcacheds => true,
        }
    }

    /// Whether it uses HTTP; gRPC calls are HTTP requests.
    pub fn is_http(self) -> bool {
        match self {
            Scheme::Http | Scheme::Https | Scheme::Grpc | Scheme::Grpcs => true,
            Scheme::Memcached | Scheme::Memcacheds | Scheme::Udp | Scheme::Tcp => false,
        }
    }

    /// Whether it is a scheme of gRPC.
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

    /// Whether it is a scheme of memcached.
    pub fn is_memcached(self) -> bool {
        matches!(self, Scheme::Memcached | Scheme::Memcacheds)
    }

    /// Returns the TLS scheme of the same protocol, or https if the protocol has none.
    pub fn with_tls(self) -> Scheme {
        match self {
            Scheme::Grpc | Scheme::Grpcs => Scheme::Grpcs,
            Scheme::Memcached | Scheme::Memcacheds => Scheme::Memcacheds,
            Scheme::Http | Scheme::Https | Scheme::Udp | Scheme::Tcp => Scheme::Https,
        }
    }

    /// Returns the scheme with this name, ignoring case.
    pub(super) fn of_name(name: &str) -> Option<Scheme> {
        let mut all = Scheme::ALL.into_iter();
        all.find(|scheme| scheme.name().eq_ignore_ascii_case(name))
    }
}
