//! Tickets with a limited lifetime: rustls's tickets, with the end of the session inside.
//!
//! ```text
//!   sealed by rustls | end of the session, Unix time 8 | rustls's session state |
//! ```

use std::sync::Arc;

use onrush_engine::clock;
use rustls::crypto::aws_lc_rs;
use rustls::server::ProducesTickets;

use crate::handshake_facts;
use crate::limits::SESSION_AGE_MAX;

/// Creates and reads tickets. A session ends [`SESSION_AGE_MAX`] after its full handshake, or earlier with its client's
/// certificate, even if it is resumed and its ticket renewed.
#[derive(Debug)]
pub(crate) struct Ticketer(Arc<dyn ProducesTickets>);

const END_BYTES: usize = 8;

impl Ticketer {
    /// Creates a ticketer with new keys, so that no other ticketer's tickets are valid here.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub(crate) fn new() -> Result<Ticketer, rustls::Error> {
        Ok(Ticketer(aws_lc_rs::Ticketer::new()?))
    }

    fn encrypt_at(&self, plain: &[u8], now: u64) -> Option<Vec<u8>> {
        let latest = now + SESSION_AGE_MAX.as_secs();
        let end = handshake_facts::ends().map_or(latest, |end| end.min(latest));
        self.0.encrypt(&[&end.to_be_bytes(), plain].concat())
    }

    fn decrypt_at(&self, ticket: &[u8], now: u64) -> Option<Vec<u8>> {
        let mut plain = self.0.decrypt(ticket)?;
        let end = u64::from_be_bytes(*plain.first_chunk()?);
        if now >= end {
            return None;
        }
        // New tickets of this handshake end with the session; a full handshake with a certificate sets its own end.
        handshake_facts::note(|heard| heard.ends = Some(end));
        plain.drain(..END_BYTES);
        Some(plain)
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_at(plain, clock::unix_seconds())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.decrypt_at(ticket, clock::unix_seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handshake_facts::HandshakeFacts;

    const NOW: u64 = 2_000_000_000;

    fn ticketer() -> Ticketer {
        Ticketer::new().unwrap()
    }

    #[test]
    fn ticket_renewal_does_not_extend_session() {
        let age = SESSION_AGE_MAX.as_secs();
        for (certificate, end) in [
            (None, NOW + age),
            (Some(NOW + 100), NOW + 100),
            (Some(NOW + 2 * age), NOW + age),
            (Some(NOW - 1), NOW - 1),
        ] {
            let ticketer = ticketer();
            let mut full = HandshakeFacts {
                ends: certificate,
                ..HandshakeFacts::default()
            };
            let mut ticket = full.during(|| ticketer.encrypt_at(b"session", NOW).unwrap());
            for renewal in 0..3 {
                let opens = |now| ticketer.decrypt_at(&ticket, now);
                assert_eq!(opens(end), None, "renewed {renewal} times");
                let mut resumed = HandshakeFacts::default();
                let renewed = resumed.during(|| {
                    let plain = opens(end - 1)?;
                    assert_eq!(plain, b"session");
                    ticketer.encrypt_at(&plain, end - 1)
                });
                assert_eq!(resumed.ends, Some(end));
                ticket = renewed.expect("it is still good");
            }
        }
    }

    #[test]
    fn foreign_ticket_is_rejected() {
        let (ticketer, other) = (ticketer(), ticketer());
        let ticket = HandshakeFacts::default().during(|| other.encrypt_at(b"session", NOW));
        assert_eq!(ticketer.decrypt_at(&ticket.unwrap(), NOW), None);
        assert_eq!(ticketer.decrypt_at(b"", NOW), None);
        let short = ticketer.0.encrypt(b"short").unwrap();
        assert_eq!(ticketer.decrypt_at(&short, NOW), None);
    }
}
