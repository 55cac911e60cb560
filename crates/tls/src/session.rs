//! One connection's TLS behind the handshake: what was received is opened, what is queued is sealed. It waits for
//! nothing and knows no socket; [`Transport`](crate::Transport) moves the bytes.

mod control;

use std::rc::Rc;

use onrush_engine::{Buffer, Core, Error, Input, Op, Part, Queue};
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;

use crate::error::alert::Alert;
use crate::info::{Info, Side};
use crate::limits::{IDLE_RECORDS_MAX, PLAINTEXT_MAX, RECORDS_PER_SEND, SCHEDULES_PER_TURN};
use crate::record::{Content, Opener, Sealer};
use crate::secret::Secrets;

/// What rustls still does for a client with TLS 1.3: it knows what tickets mean.
pub(crate) type Tickets = KernelConnection<ClientConnectionData>;

/// A connection whose handshake is done.
pub(crate) struct Session {
    sealer: Sealer,
    opener: Opener,
    /// What the keys of now were made of, for the next ones; `None` with TLS 1.2, where none come behind the handshake.
    secrets: Option<Secrets>,
    /// A client's, with TLS 1.3.
    tickets: Option<Box<Tickets>>,
    side: Side,
    /// What was received: opened, being consumed, and not opened yet.
    ///
    /// ```text
    ///   | opened | tag | records, the last of them incomplete |
    ///     `ready`  `behind`
    /// ```
    pub(crate) incoming: Input,
    ready: u32,
    behind: u32,
    /// The beginning of a handshake message whose rest is still to come.
    message: Vec<u8>,
    outgoing: Queue<Part>,
    /// New keys of the peer since the last data of either direction.
    key_updates: u32,
    /// Records without data since the last data of either direction.
    idle_records: u32,
    /// New handshakes that the peer has asked for.
    renegotiations: u8,
    pub(crate) chores: Chores,
    /// The peer has said that nothing more comes.
    pub(crate) is_ended: bool,
    /// We have said that nothing more comes, or that all is lost.
    pub(crate) has_said_goodbye: bool,
    /// What was received breaks the protocol, or the peer said so of us.
    failed: Option<Alert>,
    /// Shared with who lists connections.
    pub(crate) info: Rc<Info>,
}

/// What the peer has caused besides data. However often it asks, it is answered once, when the last answer has left, or
/// before the data that follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Chores {
    /// The peer wants us to take new keys (RFC 8446 4.6.3).
    pub(crate) key_update: bool,
    /// The peer wants a new handshake (RFC 5246 7.4.1.2), and is to be told that there is none.
    pub(crate) no_renegotiation: bool,
    /// Key schedules that were worked out for it: each takes as long as a small request.
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
            chores: Chores::default(),
            is_ended: false,
            has_said_goodbye: false,
            failed: None,
            info: Rc::new(info),
        }
    }

    /// Moves data that has arrived to `input`, as much as it has room for, and says how much that was. 0 is that none
    /// has arrived, or that none will: see [`Session::is_ended`].
    ///
    /// # Errors
    /// When what was received breaks the protocol: the peer is to be told by [`Session::say_goodbye`].
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
            if self.has_had_its_turn() {
                return Ok(count);
            }
            match self.open_next() {
                Ok(true) => {}
                Ok(false) => return Ok(count),
                // What came before it is good, and may be all that was wanted. The next call fails.
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the peer has caused so much work that others come first. More records may have come.
    pub(crate) fn has_had_its_turn(&self) -> bool {
        self.chores.schedules >= SCHEDULES_PER_TURN
    }

    /// Whether data waits that nobody has asked for. Other records are dealt with on the way.
    ///
    /// # Errors
    /// As [`Session::receive`].
    pub(crate) fn has_data(&mut self) -> Result<bool, Error> {
        while self.ready == 0 && self.open_next()? {}
        Ok(self.ready > 0)
    }

    /// Hands opened bytes over: the whole buffer when that is less to copy than they are.
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

    /// Opens the next record; `false` when none is complete, or none will be.
    fn open_next(&mut self) -> Result<bool, Error> {
        if self.is_ended {
            // What follows the end is ignored (RFC 8446 6.1).
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

    /// There was data in one direction.
    fn is_not_idle(&mut self) {
        self.key_updates = 0;
        self.idle_records = 0;
    }

    /// A record of `length` bytes was opened, and there is data in it.
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

    /// Adds a part to what is sealed next.
    pub(crate) fn queue(&mut self, part: Part) {
        if !part.bytes().is_empty() {
            self.outgoing.push(part);
        }
    }

    /// Drops what is queued.
    pub(crate) fn clear(&mut self) {
        self.outgoing.clear();
    }

    /// Whether parts are queued that have not been sealed.
    pub(crate) fn is_sealing(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// Seals what is queued, as far as it should wait for the kernel at a time; full records, and the last one as it
    /// comes.
    ///
    /// # Errors
    /// When the core is out of buffers, or the keys have done what they may.
    pub(crate) fn seal_some(
        &mut self,
        core: &Core,
        mut send: impl FnMut(Buffer),
    ) -> Result<(), Error> {
        for _ in 0..RECORDS_PER_SEND {
            if self.outgoing.is_empty() {
                break;
            }
            if self.owes_answer() {
                self.answer(core, &mut send)?;
            }
            if self.sealer.is_worn_out() {
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
    /// Makes the next record one that needs new keys first.
    pub(crate) fn wear_out(&mut self) {
        self.sealer.wear_out();
    }
}

/// Copies what fits one record to the start of `out`.
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
