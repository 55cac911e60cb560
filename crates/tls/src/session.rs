//! TLS of one connection after the handshake: decrypts what was received and encrypts what is queued. It does no I/O;
//! [`Transport`](crate::Transport) moves the bytes.

mod control;

use std::rc::Rc;

use onrush_engine::{Buffer, Core, Error, Input, Op, Part, Queue};
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;

use crate::error::alert::Alert;
use crate::info::{Info, Side};
use crate::limits::{IDLE_RECORDS_MAX, KEY_SCHEDULES_PER_TURN, PLAINTEXT_MAX, RECORDS_PER_SEND};
use crate::record::{Content, Opener, Sealer};
use crate::secret::Secrets;

/// rustls's state of a TLS 1.3 client, which handles tickets.
pub(crate) type Tickets = KernelConnection<ClientConnectionData>;

/// A connection whose handshake is complete.
pub(crate) struct Session {
    sealer: Sealer,
    opener: Opener,
    /// Current traffic secrets, for deriving the next keys; `None` with TLS 1.2, where keys do not change.
    secrets: Option<Secrets>,
    /// `Some` for a TLS 1.3 client.
    tickets: Option<Box<Tickets>>,
    side: Side,
    /// Received bytes: decrypted and being consumed, then still encrypted.
    ///
    /// ```text
    ///   | opened | tag | records, the last of them incomplete |
    ///     `ready`  `behind`
    /// ```
    pub(crate) incoming: Input,
    ready: u32,
    behind: u32,
    /// Start of an incomplete handshake message.
    message: Vec<u8>,
    outgoing: Queue<Part>,
    /// KeyUpdates of the peer since the last data in either direction.
    key_updates: u32,
    /// Records without data since the last data in either direction.
    idle_records: u32,
    /// Renegotiations requested by the peer.
    renegotiations: u8,
    pub(crate) pending_control: PendingControl,
    /// The peer has sent close_notify.
    pub(crate) is_ended: bool,
    /// We have sent close_notify or a fatal alert.
    pub(crate) is_close_sent: bool,
    /// Protocol error in received bytes, or fatal alert of the peer.
    failed: Option<Alert>,
    /// Shared with the list of connections.
    pub(crate) info: Rc<Info>,
}

/// Work that the peer has caused, other than data. However often it requests something, it gets one reply, once the
/// last reply has been sent, or before the data that follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct PendingControl {
    /// The peer requests a KeyUpdate (RFC 8446 4.6.3).
    pub(crate) key_update: bool,
    /// The peer requests a renegotiation (RFC 5246 7.4.1.2), which is to be refused.
    pub(crate) no_renegotiation: bool,
    /// Key schedules computed for the peer: each takes as long as a small request.
    pub(crate) schedules: u16,
}

impl Session {
    pub(crate) fn new(
        sealer: Sealer,
        opener: Opener,
        secrets: Option<Secrets>,
        tickets: Option<Box<Tickets>>,
        info: Info,
        side: Side,
    ) -> Session {
        Session {
            sealer,
            opener,
            secrets,
            tickets,
            side,
            incoming: Input::default(),
            ready: 0,
            behind: 0,
            message: Vec::new(),
            outgoing: Queue::default(),
            key_updates: 0,
            idle_records: 0,
            renegotiations: 0,
            pending_control: PendingControl::default(),
            is_ended: false,
            is_close_sent: false,
            failed: None,
            info: Rc::new(info),
        }
    }

    /// Moves received data to `input`, as far as it has room, and returns the number of bytes. 0 means that no data has
    /// arrived, or that none will: see [`Session::is_ended`].
    ///
    /// # Errors
    /// When received bytes violate the protocol; the caller then sends the alert of [`Session::say_goodbye`].
    pub(crate) fn receive(&mut self, input: &mut Input, core: &Core) -> Result<usize, Error> {
        let mut count = 0;
        loop {
            if self.ready > 0 {
                let moved = self.deliver(input, core)?;
                count += moved;
                if self.ready > 0 {
                    assert!(
                        count > 0,
                        "the caller consumes or refuses before a whole buffer is unconsumed"
                    );
                    return Ok(count);
                }
            }
            if self.has_used_turn() {
                return Ok(count);
            }
            match self.open_next() {
                Ok(true) => {}
                Ok(false) => return Ok(count),
                // The data before it is valid, and may be all that is needed. The next call fails.
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the peer has caused so much work that other tasks come first. There may be more records.
    pub(crate) fn has_used_turn(&self) -> bool {
        self.pending_control.schedules >= KEY_SCHEDULES_PER_TURN
    }

    /// Whether unrequested data is waiting. Processes other records on the way.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub(crate) fn has_data(&mut self) -> Result<bool, Error> {
        while self.ready == 0 && self.open_next()? {}
        Ok(self.ready > 0)
    }

    /// Moves decrypted bytes to `input`: the whole buffer, if the rest of it is smaller to copy.
    fn deliver(&mut self, input: &mut Input, core: &Core) -> Result<usize, Error> {
        let (ready, behind) = (self.ready as usize, self.behind as usize);
        let rest = self.incoming.bytes().len() - ready - behind;
        if input.is_empty()
            && rest <= ready
            && let Some(mut buffer) = self.incoming.take()
        {
            let put = match rest {
                0 => Ok(0),
                _ => self.incoming.put_some(&buffer[ready + behind..], core),
            };
            if let Err(error) = put {
                self.incoming.give(buffer);
                return Err(error);
            }
            buffer.truncate(ready);
            input.give(buffer);
            (self.ready, self.behind) = (0, 0);
            return Ok(ready);
        }
        let moved = input.put_some(&self.incoming.bytes()[..ready], core)?;
        self.ready -= moved as u32;
        let tag = if self.ready == 0 { behind } else { 0 };
        self.behind -= tag as u32;
        self.incoming.consume(moved + tag);
        Ok(moved)
    }

    /// Decrypts the next record; `false` if none is complete, or none will follow.
    fn open_next(&mut self) -> Result<bool, Error> {
        if self.is_ended {
            // Data after close_notify is ignored (RFC 8446 6.1).
            self.incoming.consume(self.incoming.bytes().len());
            return Ok(false);
        }
        let opened = match self.failed {
            Some(alert) => Err(alert),
            None => self.try_open_next(),
        };
        opened.map_err(|alert| {
            self.failed = Some(alert);
            alert.error(Op::Recv)
        })
    }

    fn try_open_next(&mut self) -> Result<bool, Alert> {
        let bytes = self.incoming.bytes_mut();
        let Some(length) = self.opener.length(bytes)? else {
            return Ok(false);
        };
        let Some(record) = bytes.get_mut(..length) else {
            return Ok(false);
        };
        let opened = self.opener.open(record)?;
        let data = opened.data;
        if opened.content == Content::Data {
            if !self.message.is_empty() {
                return Err(Alert::UNEXPECTED_MESSAGE);
            }
            return self.data(data.start, data.len(), length);
        }
        // Neither may be empty (RFC 8446 5.4), and an alert is one message in one record (5.1).
        if data.is_empty() {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        let mut content = [0; 2];
        if opened.content == Content::Alert {
            content = record[data].try_into().map_err(|_| Alert::DECODE_ERROR)?;
        } else {
            self.message.extend_from_slice(&record[data]);
        }
        self.incoming.consume(length);
        match opened.content {
            Content::Alert => self.alert(content)?,
            Content::Handshake => {
                self.count_idle_record()?;
                self.messages()?;
            }
            Content::Data => unreachable!("left above"),
        }
        Ok(true)
    }

    fn count_idle_record(&mut self) -> Result<(), Alert> {
        self.idle_records += 1;
        if self.idle_records > IDLE_RECORDS_MAX {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        Ok(())
    }

    /// Resets the counters of records without data.
    fn is_not_idle(&mut self) {
        self.key_updates = 0;
        self.idle_records = 0;
    }

    /// Accepts a decrypted data record of `length` bytes.
    fn data(&mut self, start: usize, bytes: usize, length: usize) -> Result<bool, Alert> {
        if bytes == 0 {
            self.incoming.consume(length);
            self.count_idle_record()?;
            return Ok(true);
        }
        self.incoming.consume(start);
        self.ready = bytes as u32;
        self.behind = (length - start - bytes) as u32;
        self.is_not_idle();
        Ok(true)
    }

    pub(crate) fn queue(&mut self, part: Part) {
        if !part.bytes().is_empty() {
            self.outgoing.push(part);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.outgoing.clear();
    }

    /// Whether queued parts are not yet encrypted.
    pub(crate) fn is_sealing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Encrypts queued parts, up to `RECORDS_PER_SEND` records: full ones, and a shorter last one.
    ///
    /// # Errors
    /// When the core is out of buffers, or the keys have reached their usage limit.
    pub(crate) fn seal_some(
        &mut self,
        core: &Core,
        mut send: impl FnMut(Buffer),
    ) -> Result<(), Error> {
        for _ in 0..RECORDS_PER_SEND {
            if self.outgoing.is_empty() {
                break;
            }
            if self.owes_reply() {
                self.reply(core, &mut send)?;
            }
            if self.sealer.is_exhausted() {
                if self.secrets.is_none() {
                    return Err(Alert::CLOSE_NOTIFY.error(Op::Send));
                }
                send(self.update_keys(core)?);
            }
            send(self.seal_record(core)?);
        }
        Ok(())
    }

    fn seal_record(&mut self, core: &Core) -> Result<Buffer, Error> {
        let mut record = core.buffer()?;
        let first = self.outgoing.first().map_or(&[][..], Part::bytes);
        let alone = self.outgoing.len() == 1 || first.len() >= PLAINTEXT_MAX;
        let (bytes, length) = if alone {
            let data = &first[..first.len().min(PLAINTEXT_MAX)];
            (
                data.len(),
                self.sealer.seal(Content::Data, data, record.spare()),
            )
        } else {
            let bytes = gather(&self.outgoing, &mut record.spare()[self.sealer.prefix()..]);
            let length = self
                .sealer
                .seal_in_place(Content::Data, bytes, record.spare());
            (bytes, length)
        };
        record.fill(length);
        self.outgoing.consume(bytes);
        self.is_not_idle();
        Ok(record)
    }
}

#[cfg(test)]
impl Session {
    /// Makes the next record require new keys.
    pub(crate) fn wear_out(&mut self) {
        self.sealer.wear_out();
    }
}

/// Copies up to one record's worth of data to the start of `out`.
fn gather(parts: &Queue<Part>, out: &mut [u8]) -> usize {
    let mut bytes = 0;
    for part in parts.iter() {
        let taken = part.bytes().len().min(PLAINTEXT_MAX - bytes);
        out[bytes..bytes + taken].copy_from_slice(&part.bytes()[..taken]);
        bytes += taken;
        if bytes == PLAINTEXT_MAX {
            break;
        }
    }
    bytes
}
