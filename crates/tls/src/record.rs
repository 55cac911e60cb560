//! Record layer after the handshake (RFC 8446 5.2; RFC 5246 6.2.3.3 with RFC 5288 and RFC 7905): encrypts one record at
//! a time from any buffer, and decrypts in place.
//!
//! rustls has a record layer of its own, which copies every record into newly allocated memory. This one avoids that:
//! for 80 bytes in and 150 out it takes 0.21 us instead of 0.39 and no allocation instead of two, and for a full record
//! 1.2 us instead of 1.6. The cipher is the same function of the same library.
//!
//! ```text
//!   TLS 1.3        | 23 3 3 length | data, type   encrypted | tag 16 |
//!   TLS 1.2, GCM   |  t 3 3 length | nonce 8 | data encrypted | tag 16 |
//!   TLS 1.2, ChaCha|  t 3 3 length | data encrypted         | tag 16 |
//! ```

mod expanded;
mod form;
mod keys;

use std::ops::Range;

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce};
use rustls::{ConnectionTrafficSecrets, ProtocolVersion};

use crate::error::alert::Alert;
use crate::limits::{CIPHERTEXT_MAX, PLAINTEXT_MAX};
use crate::secret::Secret;
use form::{HEADER_BYTES, RecordLayout, TAG_BYTES};
use keys::Keys;

/// Content type that occurs only in handshakes (RFC 8446 5, RFC 5246 7.1).
const CHANGE_CIPHER_SPEC: u8 = 20;

/// Content type of a record (RFC 8446 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Alert = 21,
    Handshake = 22,
    Data = 23,
}

impl Content {
    fn of(number: u8) -> Result<Content, Alert> {
        match number {
            21 => Ok(Content::Alert),
            22 => Ok(Content::Handshake),
            23 => Ok(Content::Data),
            _ => Err(Alert::UNEXPECTED_MESSAGE),
        }
    }
}

/// Encrypts records.
pub(crate) struct Sealer(Keys);

impl Sealer {
    pub(crate) fn new(
        version: ProtocolVersion,
        sequence: u64,
        secrets: &ConnectionTrafficSecrets,
    ) -> Sealer {
        Sealer(Keys::new(version, sequence, secrets))
    }

    /// Offset of the data in a record.
    pub(crate) fn prefix(&self) -> usize {
        self.0.form.prefix()
    }

    /// Whether its key has reached its usage limit.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.0.are_exhausted()
    }

    /// Switches to the keys derived from `secret`.
    pub(crate) fn renew(&mut self, secret: &Secret) {
        self.0.renew(secret);
    }

    #[cfg(test)]
    pub(crate) fn wear_out(&mut self) {
        self.0.wear_out();
    }

    /// Writes a record of `data` to the start of `out` and returns its length.
    pub(crate) fn seal(&mut self, content: Content, data: &[u8], out: &mut [u8]) -> usize {
        self.seal_by(
            content,
            data.len(),
            out,
            |key, nonce, aad, body, extra, tail| {
                key.seal_out_of_place_scatter(nonce, aad, data, body, extra, tail)
            },
        )
    }

    /// Makes a record of the `data_bytes` already at offset [`Sealer::prefix`] of `out`.
    pub(crate) fn seal_in_place(
        &mut self,
        content: Content,
        data_bytes: usize,
        out: &mut [u8],
    ) -> usize {
        self.seal_by(
            content,
            data_bytes,
            out,
            |key, nonce, aad, body, extra, tail| {
                key.seal_in_place_scatter(nonce, aad, body, extra, tail)
            },
        )
    }

    fn seal_by(
        &mut self,
        content: Content,
        data_bytes: usize,
        out: &mut [u8],
        cipher: impl FnOnce(
            &LessSafeKey,
            Nonce,
            Aad<&[u8]>,
            &mut [u8],
            &[u8],
            &mut [u8],
        ) -> Result<(), aws_lc_rs::error::Unspecified>,
    ) -> usize {
        assert!(data_bytes <= PLAINTEXT_MAX, "the caller cuts records");
        let keys = &mut self.0;
        let bytes = keys.form.prefix() + data_bytes + keys.form.suffix();
        let (prefix, rest) = out[..bytes].split_at_mut(keys.form.prefix());
        let (body, tail) = rest.split_at_mut(data_bytes);
        let visible = match keys.form {
            RecordLayout::Tls13 => Content::Data,
            RecordLayout::Tls12 | RecordLayout::Tls12Explicit => content,
        };
        let length = (bytes - HEADER_BYTES) as u16;
        prefix[..3].copy_from_slice(&[visible as u8, 3, 3]);
        prefix[3..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
        let nonce = keys.nonce();
        if keys.form == RecordLayout::Tls12Explicit {
            prefix[HEADER_BYTES..].copy_from_slice(&nonce[4..]);
        }
        let (additional, additional_bytes) = keys.additional(&prefix[..HEADER_BYTES], data_bytes);
        let inner = [content as u8];
        let extra: &[u8] = if keys.form == RecordLayout::Tls13 {
            &inner
        } else {
            &[]
        };
        keys.with_cipher(|key| {
            cipher(
                key,
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&additional[..additional_bytes]),
                body,
                extra,
                tail,
            )
        })
        .expect("a record's parts have the lengths that were computed for them");
        keys.sequence += 1;
        bytes
    }
}

/// Decrypts records.
pub(crate) struct Opener(Keys);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Opened {
    pub(crate) content: Content,
    /// Range in the record.
    pub(crate) data: Range<usize>,
}

impl Opener {
    pub(crate) fn new(
        version: ProtocolVersion,
        sequence: u64,
        secrets: &ConnectionTrafficSecrets,
    ) -> Opener {
        Opener(Keys::new(version, sequence, secrets))
    }

    /// Switches to the keys derived from `secret`.
    pub(crate) fn renew(&mut self, secret: &Secret) {
        self.0.renew(secret);
    }

    /// Returns the length of the record at the start of `bytes`, once its header is complete.
    ///
    /// # Errors
    /// The alert to send: the record has an unexpected type (RFC 8446 5), or exceeds the maximum length.
    pub(crate) fn length(&self, bytes: &[u8]) -> Result<Option<usize>, Alert> {
        if let Some(&kind) = bytes.first() {
            self.expect(kind)?;
        }
        length(bytes)
    }

    /// Visible content type of a record that starts with `kind`.
    fn expect(&self, kind: u8) -> Result<Content, Alert> {
        let visible = Content::of(kind)?;
        if self.0.form == RecordLayout::Tls13 && visible != Content::Data {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        Ok(visible)
    }

    /// Decrypts a whole record in place.
    ///
    /// # Errors
    /// The alert to send.
    pub(crate) fn open(&mut self, record: &mut [u8]) -> Result<Opened, Alert> {
        let visible = self.expect(record[0])?;
        let keys = &mut self.0;
        let start = keys.form.prefix();
        let Some(end) = record
            .len()
            .checked_sub(TAG_BYTES)
            .filter(|&end| end >= start)
        else {
            return Err(Alert::BAD_RECORD_MAC);
        };
        let (additional, additional_bytes) = keys.additional(&record[..HEADER_BYTES], end - start);
        let mut nonce = keys.nonce();
        if keys.form == RecordLayout::Tls12Explicit {
            nonce[4..].copy_from_slice(&record[HEADER_BYTES..start]);
        }
        let (head, tag) = record.split_at_mut(end);
        keys.with_cipher(|key| {
            key.open_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(&additional[..additional_bytes]),
                tag,
                &mut head[start..],
            )
            .map(|_| ())
        })
        .map_err(|_| Alert::BAD_RECORD_MAC)?;
        keys.sequence += 1;
        if end - start > keys.form.inner_max() {
            return Err(Alert::RECORD_OVERFLOW);
        }
        let (content, end) = match keys.form {
            RecordLayout::Tls13 => inner(head, start)?,
            RecordLayout::Tls12 | RecordLayout::Tls12Explicit => (visible, end),
        };
        Ok(Opened {
            content,
            data: start..end,
        })
    }
}

/// Content type between data and padding, and the end of the data (RFC 8446 5.4).
fn inner(record: &[u8], start: usize) -> Result<(Content, usize), Alert> {
    let padding = record[start..].iter().rev().take_while(|&&byte| byte == 0);
    let end = record.len() - padding.count();
    if end == start {
        return Err(Alert::UNEXPECTED_MESSAGE);
    }
    Ok((Content::of(record[end - 1])?, end - 1))
}

/// Returns the length of the record at the start of `bytes`, once its header is complete; ignores its version (RFC 8446
/// 5.1).
///
/// # Errors
/// When the record exceeds the maximum length, or has no known type.
pub(crate) fn length(bytes: &[u8]) -> Result<Option<usize>, Alert> {
    let Some(header) = bytes.get(..HEADER_BYTES) else {
        return Ok(None);
    };
    if header[0] != CHANGE_CIPHER_SPEC {
        Content::of(header[0])?;
    }
    let body = usize::from(u16::from_be_bytes([header[3], header[4]]));
    if body > CIPHERTEXT_MAX {
        return Err(Alert::RECORD_OVERFLOW);
    }
    Ok(Some(HEADER_BYTES + body))
}

#[cfg(test)]
mod tests;
