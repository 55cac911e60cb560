//! Messages other than data: alerts, tickets and KeyUpdates.

use onrush_engine::{Buffer, Core, Error};

use super::Session;
use crate::error::alert::Alert;
use crate::info::Side;
use crate::limits::{KEY_UPDATES_MAX, POST_HANDSHAKE_BYTES_MAX, RENEGOTIATIONS_MAX};
use crate::record::Content;

/// Messages after the handshake (RFC 8446 4).
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// Request for a renegotiation by a server (RFC 5246 7.4.1.1), and by a client (7.4.1.2).
const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
/// Type and length of a message.
const MESSAGE_HEADER_BYTES: usize = 4;

impl Session {
    /// Handles an alert.
    ///
    /// # Errors
    /// When it ends the connection.
    pub(super) fn alert(&mut self, [level, number]: [u8; 2]) -> Result<(), Alert> {
        let alert = Alert(number);
        if alert == Alert::CLOSE_NOTIFY {
            self.is_ended = true;
            return Ok(());
        }
        // All others end the connection, except warnings in TLS 1.2 (RFC 5246 7.2) and user_canceled in TLS 1.3 (RFC
        // 8446 6).
        let is_warning = match self.secrets {
            None => level == 1,
            Some(_) => alert == Alert::USER_CANCELED,
        };
        if is_warning {
            return self.count_idle_record();
        }
        // A fatal alert gets no reply.
        self.is_close_sent = true;
        Err(alert)
    }

    /// Handles the complete messages.
    ///
    /// # Errors
    /// When one is unexpected.
    pub(super) fn messages(&mut self) -> Result<(), Alert> {
        let message = std::mem::take(&mut self.message);
        let mut rest = &message[..];
        while let Some(header) = rest.first_chunk::<MESSAGE_HEADER_BYTES>() {
            let bytes = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            self.expect(header[0], bytes)?;
            let Some(body) = rest.get(MESSAGE_HEADER_BYTES..MESSAGE_HEADER_BYTES + bytes) else {
                break;
            };
            rest = &rest[MESSAGE_HEADER_BYTES + bytes..];
            match (&self.secrets, header[0]) {
                (Some(_), NEW_SESSION_TICKET) => {
                    self.pending_control.schedules += 1;
                    let tickets = self.tickets.as_deref_mut();
                    tickets
                        .expect("only clients expect tickets")
                        .handle_new_session_ticket(body)
                        .map_err(|_| Alert::DECODE_ERROR)?;
                }
                // A KeyUpdate must be the last message of its record (RFC 8446 5.1).
                (Some(_), KEY_UPDATE) if rest.is_empty() => self.peer_has_new_keys(body[0])?,
                // A client may ignore it.
                (None, HELLO_REQUEST) => {}
                (None, CLIENT_HELLO) => self.peer_wants_handshake()?,
                _ => return Err(Alert::UNEXPECTED_MESSAGE),
            }
        }
        self.message = rest.to_vec();
        Ok(())
    }

    /// Whether a message of `kind` with a body of `bytes` may arrive; checked before its body has arrived.
    fn expect(&self, kind: u8, bytes: usize) -> Result<(), Alert> {
        let bytes_expected = match (&self.secrets, self.side, kind) {
            (Some(_), _, KEY_UPDATE) => 1..=1,
            (Some(_), Side::Client, NEW_SESSION_TICKET) => 0..=POST_HANDSHAKE_BYTES_MAX,
            (None, Side::Client, HELLO_REQUEST) => 0..=0,
            (None, Side::Server, CLIENT_HELLO) => 0..=POST_HANDSHAKE_BYTES_MAX,
            _ => return Err(Alert::UNEXPECTED_MESSAGE),
        };
        if !bytes_expected.contains(&bytes) {
            return Err(Alert::DECODE_ERROR);
        }
        Ok(())
    }

    /// Schedules the refusal of a renegotiation by a TLS 1.2 client, which may continue without it.
    fn peer_wants_handshake(&mut self) -> Result<(), Alert> {
        if self.renegotiations == RENEGOTIATIONS_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        self.renegotiations += 1;
        self.pending_control.no_renegotiation = true;
        Ok(())
    }

    fn peer_has_new_keys(&mut self, request: u8) -> Result<(), Alert> {
        match request {
            0 => {}
            1 => self.pending_control.key_update = true,
            _ => return Err(Alert::ILLEGAL_PARAMETER),
        }
        self.key_updates += 1;
        if self.key_updates > KEY_UPDATES_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        let secrets = self.secrets.as_mut().expect("the caller has looked");
        secrets.peers.advance();
        self.pending_control.schedules += 1;
        self.opener.renew(&secrets.peers);
        Ok(())
    }

    /// Whether the peer has requested something and not yet got a reply.
    pub(crate) fn owes_reply(&self) -> bool {
        self.pending_control.key_update || self.pending_control.no_renegotiation
    }

    /// Replies to the peer's requests: one record for each kind, however often it was requested.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn reply(
        &mut self,
        core: &Core,
        send: &mut impl FnMut(Buffer),
    ) -> Result<(), Error> {
        if self.pending_control.key_update {
            send(self.update_keys(core)?);
        }
        if self.pending_control.no_renegotiation {
            let warning = Alert::NO_RENEGOTIATION.message();
            send(self.seal_message(Content::Alert, &warning, core)?);
            self.pending_control.no_renegotiation = false;
        }
        Ok(())
    }

    /// Returns the record that announces our new keys, and switches to them (RFC 8446 4.6.3).
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn update_keys(&mut self, core: &Core) -> Result<Buffer, Error> {
        let record = self.seal_message(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 0], core)?;
        self.pending_control.key_update = false;
        self.take_new_keys();
        Ok(record)
    }

    pub(crate) fn take_new_keys(&mut self) {
        let secrets = self.secrets.as_mut().expect("only TLS 1.3 has new keys");
        secrets.ours.advance();
        self.sealer.renew(&secrets.ours);
    }

    /// Returns the alert that ends our side: the error, or close_notify. `None` if it was already sent.
    pub(crate) fn send_close(&mut self, core: &Core) -> Option<Buffer> {
        if self.is_close_sent {
            return None;
        }
        self.is_close_sent = true;
        let alert = self.failed.unwrap_or(Alert::CLOSE_NOTIFY);
        // Without a free buffer the connection ends without an alert.
        self.seal_message(Content::Alert, &alert.message(), core)
            .ok()
    }

    fn seal_message(
        &mut self,
        content: Content,
        message: &[u8],
        core: &Core,
    ) -> Result<Buffer, Error> {
        let mut record = core.buffer()?;
        let bytes = self.sealer.seal(content, message, record.spare());
        record.fill(bytes);
        Ok(record)
    }
}

#[cfg(test)]
impl Session {
    /// Records without data, or KeyUpdates, since the last data.
    pub(crate) fn idle_records(&self) -> u32 {
        self.idle_records.max(self.key_updates)
    }

    pub(crate) fn say(&mut self, content: Content, message: &[u8], core: &Core) -> Buffer {
        self.seal_message(content, message, core)
            .expect("a buffer is free")
    }

    /// Record that announces our new keys and requests new keys of the peer.
    pub(crate) fn ask_for_new_keys(&mut self, core: &Core) -> Buffer {
        let record = self.say(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 1], core);
        self.take_new_keys();
        record
    }
}
