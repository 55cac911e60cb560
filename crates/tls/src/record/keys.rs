//! Keys of one direction, in the compact form that an idle connection keeps.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, UnboundKey,
};
use rustls::crypto::cipher::{AeadKey, Iv};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

use super::expanded::KeySlot;
use super::form::{HEADER_BYTES, RecordLayout};
use crate::limits::{GCM_RECORDS_MAX, KEY_BYTES_MAX};
use crate::secret::{Secret, wipe};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aead {
    Aes128Gcm,
    Aes256Gcm,
    ChaCha20Poly1305,
}

impl Aead {
    fn algorithm(self) -> &'static Algorithm {
        match self {
            Aead::Aes128Gcm => &AES_128_GCM,
            Aead::Aes256Gcm => &AES_256_GCM,
            Aead::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }

    fn key_bytes(self) -> usize {
        match self {
            Aead::Aes128Gcm => 16,
            Aead::Aes256Gcm | Aead::ChaCha20Poly1305 => 32,
        }
    }

    fn records_max(self) -> u64 {
        match self {
            Aead::Aes128Gcm | Aead::Aes256Gcm => GCM_RECORDS_MAX,
            Aead::ChaCha20Poly1305 => u64::MAX,
        }
    }

    fn expand(self, key: &[u8; KEY_BYTES_MAX]) -> LessSafeKey {
        let unbound = UnboundKey::new(self.algorithm(), &key[..self.key_bytes()]);
        LessSafeKey::new(unbound.expect("a cipher's key has its length"))
    }
}

pub(super) struct Keys {
    place: KeySlot,
    key: [u8; KEY_BYTES_MAX],
    iv: [u8; NONCE_LEN],
    aead: Aead,
    pub(super) form: RecordLayout,
    /// Number of records protected so far.
    pub(super) sequence: u64,
    sequence_max: u64,
}

impl Keys {
    pub(super) fn new(
        version: ProtocolVersion,
        sequence: u64,
        secrets: &ConnectionTrafficSecrets,
    ) -> Keys {
        let (aead, secret_key, iv) = parts(secrets);
        let form = match (version, aead) {
            (ProtocolVersion::TLSv1_3, _) => RecordLayout::Tls13,
            (_, Aead::Aes128Gcm | Aead::Aes256Gcm) => RecordLayout::Tls12Explicit,
            (_, Aead::ChaCha20Poly1305) => RecordLayout::Tls12,
        };
        let mut key = [0; KEY_BYTES_MAX];
        key[..aead.key_bytes()].copy_from_slice(secret_key.as_ref());
        Keys {
            place: KeySlot::EMPTY,
            key,
            iv: iv
                .as_ref()
                .try_into()
                .expect("all ciphers have nonces of 12 bytes"),
            aead,
            form,
            sequence,
            sequence_max: aead.records_max(),
        }
    }

    pub(super) fn renew(&mut self, secret: &Secret) {
        self.place = KeySlot::EMPTY;
        secret.derive(&mut self.key[..self.aead.key_bytes()], &mut self.iv);
        self.sequence = 0;
        self.sequence_max = self.aead.records_max();
    }

    /// Whether the keys have reached their usage limit.
    pub(super) fn are_exhausted(&self) -> bool {
        self.sequence >= self.sequence_max
    }

    #[cfg(test)]
    pub(super) fn wear_out(&mut self) {
        self.sequence_max = self.sequence;
    }

    /// Runs `work` with the cipher.
    #[inline]
    pub(super) fn with_cipher<T>(&mut self, work: impl FnOnce(&LessSafeKey) -> T) -> T {
        let Self {
            place, key, aead, ..
        } = self;
        place.with(|| aead.expand(key), work)
    }

    /// Nonce (RFC 8446 5.3, RFC 7905 2). TLS 1.2 with GCM allows any unique nonce, so it uses the same.
    pub(super) fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    /// Additional data of the AEAD (RFC 8446 5.2, RFC 5246 6.2.3.3): at most 13 bytes, and their number.
    pub(super) fn additional(&self, header: &[u8], data_bytes: usize) -> ([u8; 13], usize) {
        let mut additional = [0; 13];
        if self.form == RecordLayout::Tls13 {
            additional[..HEADER_BYTES].copy_from_slice(header);
            return (additional, HEADER_BYTES);
        }
        additional[..8].copy_from_slice(&self.sequence.to_be_bytes());
        additional[8..11].copy_from_slice(&header[..3]);
        additional[11..].copy_from_slice(&(data_bytes as u16).to_be_bytes());
        (additional, 13)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        wipe(&mut self.key);
        wipe(&mut self.iv);
    }
}

fn parts(secrets: &ConnectionTrafficSecrets) -> (Aead, &AeadKey, &Iv) {
    match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (Aead::Aes128Gcm, key, iv),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (Aead::Aes256Gcm, key, iv),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (Aead::ChaCha20Poly1305, key, iv),
        _ => unreachable!("rustls's aws-lc-rs provider has these three"),
    }
}
