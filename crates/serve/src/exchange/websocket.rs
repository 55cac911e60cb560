//! The WebSocket opening handshake (RFC 6455 4), which Onrush makes itself for HTTP/2 clients (RFC 8441 5).
//!
//! WebSocket over HTTP/2 becomes an HTTP/1.1 upgrade before a route is chosen, so the other modules handle one kind
//! only. For an HTTP/2 server the upgrade becomes an extended CONNECT when the stream is opened, and the 2xx response
//! is read as a 101.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onrush_engine::random::Random;

/// Length of `Sec-WebSocket-Key`: 16 random bytes in Base64 (RFC 6455 4.1).
const KEY_BYTES: usize = 24;

/// Length of `Sec-WebSocket-Accept`: a SHA-1 digest in Base64.
const ACCEPT_BYTES: usize = 28;

/// Value of `Sec-WebSocket-Accept`.
pub(crate) type Accept = [u8; ACCEPT_BYTES];

/// Generates a random key.
pub(crate) fn key(chance: &Random) -> [u8; KEY_BYTES] {
    let mut nonce = [0; 16];
    let (first, second) = nonce.split_at_mut(8);
    first.copy_from_slice(&chance.bits().to_be_bytes());
    second.copy_from_slice(&chance.bits().to_be_bytes());
    let mut key = [0; KEY_BYTES];
    let written = STANDARD.encode_slice(nonce, &mut key);
    written.expect("16 bytes are 24 in Base64");
    key
}

/// Whether this is a valid key: 16 bytes in Base64 (RFC 6455 4.2.1).
pub(crate) fn is_key(key: &[u8]) -> bool {
    let mut nonce = [0; KEY_BYTES];
    key.len() == KEY_BYTES && STANDARD.decode_slice(key, &mut nonce) == Ok(16)
}

/// The `Sec-WebSocket-Accept` for a key (RFC 6455 4.2.2).
pub(crate) fn accept(key: &[u8]) -> Accept {
    const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key, GUID].concat());
    let mut accept = [0; ACCEPT_BYTES];
    let written = STANDARD.encode_slice(sum.as_ref(), &mut accept);
    written.expect("20 bytes are 28 in Base64");
    accept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn websocket_accept_matches_rfc_example() {
        let made = accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(made.as_slice(), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn invalid_websocket_keys_are_rejected() {
        for key in [
            "",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZQ==x",
            "dGhlIHNhbXBsZSBub25jZSEh",
            "dGhlIHNhbXBsZSBub25j!Q==",
        ] {
            assert!(!is_key(key.as_bytes()), "{key}");
        }
    }

    #[test]
    fn generated_websocket_key_is_valid() {
        let chance = Random::new(1);
        let keys = [key(&chance), key(&chance)];
        assert_ne!(keys[0], keys[1]);
        for key in keys {
            assert!(is_key(&key));
            assert_eq!(STANDARD.decode(key).map(|nonce| nonce.len()), Ok(16));
        }
    }
}
