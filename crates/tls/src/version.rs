//! TLS versions.

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

impl Version {
    /// Name as usual in logs.
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLSv1.2",
            Version::Tls13 => "TLSv1.3",
        }
    }
}
