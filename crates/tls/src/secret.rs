//! Traffic secrets of TLS 1.3 (RFC 8446 7), from which the keys of one direction and the next secret are derived.
//!
//! rustls keeps them together with data for QUIC, 1 KB per connection. They are taken from its key log as soon as they
//! are derived (`key_log.rs`), so that nothing of rustls is kept after the handshake.

use std::fmt;
use std::hint::black_box;

use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};

use crate::limits::SECRET_BYTES_MAX;

/// Traffic secret of one direction.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    bytes: [u8; SECRET_BYTES_MAX],
    length: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Secrets {
    pub(crate) ours: Secret,
    pub(crate) peers: Secret,
}

impl Secret {
    /// Creates a secret of `bytes`: a SHA-256 or SHA-384 hash.
    pub(crate) fn new(bytes: &[u8]) -> Secret {
        let mut secret = Secret {
            bytes: [0; SECRET_BYTES_MAX],
            length: bytes.len() as u8,
        };
        secret.bytes[..bytes.len()].copy_from_slice(bytes);
        secret
    }

    /// Advances to the next secret (RFC 8446 7.2).
    pub(crate) fn advance(&mut self) {
        let mut next = [0; SECRET_BYTES_MAX];
        self.expand(b"traffic upd", &mut next[..usize::from(self.length)]);
        self.bytes = next;
        wipe(&mut next);
    }

    /// Derives `key` and `iv` (RFC 8446 7.3).
    pub(crate) fn derive(&self, key: &mut [u8], iv: &mut [u8]) {
        self.expand(b"key", key);
        self.expand(b"iv", iv);
    }

    /// HKDF-Expand-Label without a context (RFC 8446 7.1).
    fn expand(&self, label: &[u8], out: &mut [u8]) {
        let algorithm = match self.length {
            32 => HKDF_SHA256,
            48 => HKDF_SHA384,
            other => unreachable!("no hash of TLS 1.3 has {other} bytes"),
        };
        let secret = &self.bytes[..usize::from(self.length)];
        let length = (out.len() as u16).to_be_bytes();
        let label_bytes = [(b"tls13 ".len() + label.len()) as u8];
        let info = [&length[..], &label_bytes, b"tls13 ", label, &[0]];
        Prk::new_less_safe(algorithm, secret)
            .expand(&info, Bytes(out.len()))
            .and_then(|expanded| expanded.fill(out))
            .expect("HKDF output is longer than 255 times the hash");
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        wipe(&mut self.bytes);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Overwrites a secret that is no longer needed.
pub(crate) fn wipe(bytes: &mut [u8]) {
    bytes.fill(0);
    // Prevents the compiler from removing the writes.
    black_box(bytes);
}

struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

/// Traffic secrets noted in a TLS 1.3 handshake.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct HandshakeSecrets {
    pub(crate) client: Option<Secret>,
    pub(crate) server: Option<Secret>,
}

impl HandshakeSecrets {
    /// From the server's point of view; `None` before rustls has derived them, and with TLS 1.2.
    pub(crate) fn of_server(self) -> Option<Secrets> {
        Some(Secrets {
            ours: self.server?,
            peers: self.client?,
        })
    }

    /// From the client's point of view.
    pub(crate) fn of_client(self) -> Option<Secrets> {
        Some(Secrets {
            ours: self.client?,
            peers: self.server?,
        })
    }
}
