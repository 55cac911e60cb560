//! What the two sides say to each other besides data: alerts, tickets and new keys.

use onrush_engine::{Buffer, Core, Error};
use rustls::ProtocolVersion;

use super::{Keeper, Session};
use crate::alert::Alert;
use crate::limits::{EMPTY_RECORDS_MAX, KEY_UPDATES_MAX};
use crate::record::{Content, Opener, Sealer};

/// Messages behind the handshake (RFC 8446 4).
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// A server's wish for a new handshake (RFC 5246 7.4.1.1), which a client may overhear.
const HELLO_REQUEST: &[u8] = &[0, 0, 0, 0];
/// The type and length of a message.
const MESSAGE_HEADER_BYTES: usize = 4;

impl Session {
    /// Acts on an alert.
    ///
    /// # Errors
    /// When it ends the connection.
    pub(super) fn alert(&mut self, [level, number]: [u8; 2]) -> Result<(), Alert> {
        let alert = Alert(number);
        if alert == Alert::CLOSE_NOTIFY {
            self.is_ended = true;
            return Ok(());
        }
        // All others end the connection, but for this one and the warnings of TLS 1.2 (RFC 8446 6, RFC 5246 7.2).
        let is_warning = self.keeper.is_none() && level == 1;
        if is_warning || alert == Alert::USER_CANCELED {
            self.empty_records += 1;
            if self.empty_records <= EMPTY_RECORDS_MAX {
                return Ok(());
            }
        }
        // Nobody is left to be told.
        self.has_said_goodbye = true;
        Err(alert)
    }

    /// Acts on the messages that are complete.
    ///
    /// # Errors
    /// When one has no place here.
    pub(super) fn messages(&mut self) -> Result<(), Alert> {
        let message = std::mem::take(&mut self.message);
        let mut rest = &message[..];
        while let Some(header) = rest.first_chunk::<MESSAGE_HEADER_BYTES>() {
            let bytes = u32::from_be_bytes([0, header[1], header[2], header[3]]) as usize;
            let Some(body) = rest.get(MESSAGE_HEADER_BYTES..MESSAGE_HEADER_BYTES + bytes) else {
                break;
            };
            rest = &rest[MESSAGE_HEADER_BYTES + bytes..];
            match (self.keeper.as_deref_mut(), header[0]) {
                (Some(Keeper::Client(keeper)), NEW_SESSION_TICKET) => keeper
                    .handle_new_session_ticket(body)
                    .map_err(|_| Alert::DECODE_ERROR)?,
                (Some(_), KEY_UPDATE) if rest.is_empty() => self.peer_has_new_keys(body)?,
                // A server's question for a new handshake may be left without an answer.
                (None, 0) if message == HELLO_REQUEST => {}
                _ => return Err(Alert::UNEXPECTED_MESSAGE),
            }
        }
        self.message = rest.to_vec();
        Ok(())
    }

    fn peer_has_new_keys(&mut self, body: &[u8]) -> Result<(), Alert> {
        match body {
            [0] => {}
            [1] => self.key_update_due = true,
            _ => return Err(Alert::DECODE_ERROR),
        }
        self.key_updates += 1;
        if self.key_updates > KEY_UPDATES_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        let updated = match self.keeper.as_deref_mut().expect("the caller has looked") {
            Keeper::Server(keeper) => keeper.update_rx_secret(),
            Keeper::Client(keeper) => keeper.update_rx_secret(),
        };
        let (sequence, secrets) = updated.expect("TLS 1.3 always has next keys");
        self.opener = Opener::new(ProtocolVersion::TLSv1_3, sequence, &secrets);
        Ok(())
    }

    /// The record that announces new keys of ours, which are taken behind it (RFC 8446 4.6.3).
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn update_keys(&mut self, core: &Core) -> Result<Buffer, Error> {
        let record = self.seal_message(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 0], core)?;
        self.key_update_due = false;
        self.take_new_keys();
        Ok(record)
    }

    fn take_new_keys(&mut self) {
        let updated = match self
            .keeper
            .as_deref_mut()
            .expect("only TLS 1.3 has new keys")
        {
            Keeper::Server(keeper) => keeper.update_tx_secret(),
            Keeper::Client(keeper) => keeper.update_tx_secret(),
        };
        let (sequence, secrets) = updated.expect("TLS 1.3 always has next keys");
        self.sealer = Sealer::new(ProtocolVersion::TLSv1_3, sequence, &secrets);
    }

    /// The alert that ends our side: why, when something is wrong. `None` when it was said.
    pub(crate) fn say_goodbye(&mut self, core: &Core) -> Option<Buffer> {
        if self.has_said_goodbye {
            return None;
        }
        self.has_said_goodbye = true;
        let alert = self.failed.unwrap_or(Alert::CLOSE_NOTIFY);
        // Out of buffers, the connection ends without.
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
    /// The record that renews our keys and asks the peer to renew its own.
    pub(crate) fn ask_for_new_keys(&mut self, core: &Core) -> Buffer {
        let record = self.seal_message(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 1], core);
        self.take_new_keys();
        record.expect("a buffer is free")
    }
}
