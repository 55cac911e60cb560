//! What the two sides say to each other besides data: alerts, tickets and new keys.

use onrush_engine::{Buffer, Core, Error};

use super::Session;
use crate::error::alert::Alert;
use crate::info::Side;
use crate::limits::{KEY_UPDATES_MAX, MESSAGE_BYTES_MAX, RENEGOTIATIONS_MAX};
use crate::record::Content;

/// Messages behind the handshake (RFC 8446 4).
const NEW_SESSION_TICKET: u8 = 4;
const KEY_UPDATE: u8 = 24;
/// A server's wish for a new handshake (RFC 5246 7.4.1.1), and a client's (7.4.1.2).
const HELLO_REQUEST: u8 = 0;
const CLIENT_HELLO: u8 = 1;
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
        // All others end the connection, but for the warnings of TLS 1.2 (RFC 5246 7.2) and one of TLS 1.3, which has no
        // levels (RFC 8446 6).
        let is_warning = match self.secrets {
            None => level == 1,
            Some(_) => alert == Alert::USER_CANCELED,
        };
        if is_warning {
            return self.count_idle_record();
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
            self.expect(header[0], bytes)?;
            let Some(body) = rest.get(MESSAGE_HEADER_BYTES..MESSAGE_HEADER_BYTES + bytes) else {
                break;
            };
            rest = &rest[MESSAGE_HEADER_BYTES + bytes..];
            match (&self.secrets, header[0]) {
                (Some(_), NEW_SESSION_TICKET) => {
                    self.chores.schedules += 1;
                    let tickets = self.tickets.as_deref_mut();
                    tickets
                        .expect("only clients expect tickets")
                        .handle_new_session_ticket(body)
                        .map_err(|_| Alert::DECODE_ERROR)?;
                }
                // New keys begin with a record (RFC 8446 5.1).
                (Some(_), KEY_UPDATE) if rest.is_empty() => self.peer_has_new_keys(body[0])?,
                // A client may overhear it.
                (None, HELLO_REQUEST) => {}
                (None, CLIENT_HELLO) => self.peer_wants_handshake()?,
                _ => return Err(Alert::UNEXPECTED_MESSAGE),
            }
        }
        self.message = rest.to_vec();
        Ok(())
    }

    /// Whether a message of `kind` with a body of so many `bytes` may come, before its body has.
    fn expect(&self, kind: u8, bytes: usize) -> Result<(), Alert> {
        let bytes_expected = match (&self.secrets, self.side, kind) {
            (Some(_), _, KEY_UPDATE) => 1..=1,
            (Some(_), Side::Client, NEW_SESSION_TICKET) => 0..=MESSAGE_BYTES_MAX,
            (None, Side::Client, HELLO_REQUEST) => 0..=0,
            (None, Side::Server, CLIENT_HELLO) => 0..=MESSAGE_BYTES_MAX,
            _ => return Err(Alert::UNEXPECTED_MESSAGE),
        };
        if !bytes_expected.contains(&bytes) {
            return Err(Alert::DECODE_ERROR);
        }
        Ok(())
    }

    /// A client of TLS 1.2 asks for a new handshake: it is told that there is none, and may go on without.
    fn peer_wants_handshake(&mut self) -> Result<(), Alert> {
        if self.renegotiations == RENEGOTIATIONS_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        self.renegotiations += 1;
        self.chores.no_renegotiation = true;
        Ok(())
    }

    fn peer_has_new_keys(&mut self, request: u8) -> Result<(), Alert> {
        match request {
            0 => {}
            1 => self.chores.key_update = true,
            _ => return Err(Alert::ILLEGAL_PARAMETER),
        }
        self.key_updates += 1;
        if self.key_updates > KEY_UPDATES_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        let secrets = self.secrets.as_mut().expect("the caller has looked");
        secrets.peers.advance();
        self.chores.schedules += 1;
        self.opener.renew(&secrets.peers);
        Ok(())
    }

    /// Whether the peer has asked for something that it has not been answered.
    pub(crate) fn owes_answer(&self) -> bool {
        self.chores.key_update || self.chores.no_renegotiation
    }

    /// Answers what the peer has asked for, however often it has: one record, or one for each kind.
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn answer(
        &mut self,
        core: &Core,
        send: &mut impl FnMut(Buffer),
    ) -> Result<(), Error> {
        if self.chores.key_update {
            send(self.update_keys(core)?);
        }
        if self.chores.no_renegotiation {
            let warning = Alert::NO_RENEGOTIATION.message();
            send(self.seal_message(Content::Alert, &warning, core)?);
            self.chores.no_renegotiation = false;
        }
        Ok(())
    }

    /// The record that announces new keys of ours, which are taken behind it (RFC 8446 4.6.3).
    ///
    /// # Errors
    /// When the core is out of buffers.
    pub(crate) fn update_keys(&mut self, core: &Core) -> Result<Buffer, Error> {
        let record = self.seal_message(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 0], core)?;
        self.chores.key_update = false;
        self.take_new_keys();
        Ok(record)
    }

    pub(crate) fn take_new_keys(&mut self) {
        let secrets = self.secrets.as_mut().expect("only TLS 1.3 has new keys");
        secrets.ours.advance();
        self.sealer.renew(&secrets.ours);
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
    /// Records without data, or new keys, since the last data.
    pub(crate) fn idle_records(&self) -> u32 {
        self.idle_records.max(self.key_updates)
    }

    /// A record with whatever message a test likes.
    pub(crate) fn say(&mut self, content: Content, message: &[u8], core: &Core) -> Buffer {
        self.seal_message(content, message, core)
            .expect("a buffer is free")
    }

    /// The record that renews our keys and asks the peer to renew its own.
    pub(crate) fn ask_for_new_keys(&mut self, core: &Core) -> Buffer {
        let record = self.say(Content::Handshake, &[KEY_UPDATE, 0, 0, 1, 1], core);
        self.take_new_keys();
        record
    }
}
