//! Layout of records, as drawn in `record.rs`.

use crate::limits::PLAINTEXT_MAX;

/// Type, version and length.
pub(super) const HEADER_BYTES: usize = 5;
/// Authentication tag.
pub(super) const TAG_BYTES: usize = 16;
/// Explicit part of a nonce (RFC 5288 3).
pub(super) const EXPLICIT_NONCE_BYTES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RecordLayout {
    /// The content type is encrypted with the data; the nonce is implicit.
    Tls13,
    /// The record contains the explicit part of the nonce.
    Tls12Explicit,
    /// The nonce is implicit.
    Tls12,
}

impl RecordLayout {
    /// Bytes before the encrypted ones.
    pub(super) fn prefix(self) -> usize {
        match self {
            RecordLayout::Tls13 | RecordLayout::Tls12 => HEADER_BYTES,
            RecordLayout::Tls12Explicit => HEADER_BYTES + EXPLICIT_NONCE_BYTES,
        }
    }

    /// Bytes that may be encrypted in a record: the data, and in TLS 1.3 also content type and padding (RFC 8446 5.4).
    pub(super) fn inner_max(self) -> usize {
        match self {
            RecordLayout::Tls13 => PLAINTEXT_MAX + 1,
            RecordLayout::Tls12 | RecordLayout::Tls12Explicit => PLAINTEXT_MAX,
        }
    }

    /// Bytes after the data.
    pub(super) fn suffix(self) -> usize {
        match self {
            RecordLayout::Tls13 => 1 + TAG_BYTES,
            RecordLayout::Tls12 | RecordLayout::Tls12Explicit => TAG_BYTES,
        }
    }
}
