//! Datagrams that leave or have arrived in one call.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::buffers::outgoing::Part;
use crate::limits::{DATAGRAM_BYTES_MAX, DATAGRAMS_PER_CALL, MESSAGE_BYTES_MAX, SEGMENTS_MAX};
use crate::socket::Beside;
use crate::socket::control::{Ecn, Facts, Family, Wishes};
use crate::socket::headers::{self, Arrival, Headers, Run};

/// One datagram to send, or several of one flow: the same sizes, the same peer.
#[derive(Debug)]
pub struct Message {
    /// The peer; `None` is the one that the socket is connected to.
    pub to: Option<SocketAddr>,
    /// The address of this machine to send from, of the same family; `None` leaves it to the socket and the routes.
    pub from: Option<IpAddr>,
    /// What routers are told.
    pub ecn: Ecn,
    /// Where the payload is longer than this, it is as many datagrams of this size as it takes, and the rest of it.
    pub segment: Option<NonZeroU16>,
    /// The bytes. They may be none: that, too, is a datagram.
    pub payload: Part,
}

impl Message {
    /// One datagram to the peer that the socket is connected to.
    pub fn new(payload: impl Into<Part>) -> Self {
        Self {
            to: None,
            from: None,
            ecn: Ecn::NotCapable,
            segment: None,
            payload: payload.into(),
        }
    }

    /// Whether it is more than one datagram.
    fn is_segmented(&self) -> bool {
        let length = self.payload.bytes().len();
        self.segment
            .is_some_and(|segment| length > usize::from(segment.get()))
    }

    /// What the kernel is handed of it at a time.
    fn runs(&self, segmentation: Segmentation) -> Runs<'_> {
        let bytes = self.payload.bytes();
        let segment = self.segment.filter(|_| self.is_segmented());
        let step = segment.map(|segment| match segmentation {
            Segmentation::Kernel => segment_bytes(segment),
            Segmentation::Engine => usize::from(segment.get()),
        });
        Runs {
            message: self,
            step: step.unwrap_or(bytes.len()),
            rest: Some(bytes),
        }
    }
}

/// Bytes of as many datagrams of this size as the kernel takes in one message.
fn segment_bytes(segment: NonZeroU16) -> usize {
    let segment = usize::from(segment.get());
    segment * (DATAGRAM_BYTES_MAX / segment).clamp(1, SEGMENTS_MAX)
}

struct Runs<'message> {
    message: &'message Message,
    step: usize,
    /// `None` behind the last, which may be empty.
    rest: Option<&'message [u8]>,
}

impl<'message> Iterator for Runs<'message> {
    type Item = Run<'message>;

    fn next(&mut self) -> Option<Run<'message>> {
        let rest = self.rest.take()?;
        let (bytes, rest) = rest.split_at(self.step.min(rest.len()));
        self.rest = (!rest.is_empty()).then_some(rest);
        let segment = self.message.segment.map(NonZeroU16::get);
        Some(Run {
            bytes,
            to: self.message.to,
            wishes: Wishes {
                from: self.message.from,
                ecn: self.message.ecn,
                segment: segment.filter(|&segment| bytes.len() > usize::from(segment)),
            },
        })
    }
}

/// Who parts messages of several datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segmentation {
    /// The kernel or the device (UDP_SEGMENT): one walk through the network stack for up to 64 datagrams.
    Kernel,
    /// The engine: each datagram is a message of its own.
    Engine,
}

/// How datagrams leave a socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) family: Family,
    pub(crate) segmentation: Segmentation,
}

/// Messages to send, in order. It can be used for any socket of its core, and keeps its memory.
pub struct SendBatch {
    /// At most [`DATAGRAMS_PER_CALL`].
    messages: VecDeque<Message>,
    headers: Headers,
}

impl Default for SendBatch {
    fn default() -> Self {
        Self {
            messages: VecDeque::new(),
            headers: Headers::new(DATAGRAMS_PER_CALL),
        }
    }
}

impl SendBatch {
    /// Adds a message.
    ///
    /// # Errors
    /// The message itself, when there are 32 already.
    #[allow(
        clippy::result_large_err,
        reason = "it is the message, which the caller has had all the while"
    )]
    pub fn push(&mut self, message: Message) -> Result<(), Message> {
        if self.messages.len() == DATAGRAMS_PER_CALL {
            return Err(message);
        }
        self.messages.push_back(message);
        Ok(())
    }

    /// Messages that have not left, or not all of them.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether all messages have left.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Drops all messages.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    /// Drops the first message.
    pub(crate) fn drop_first(&mut self) {
        self.messages.pop_front();
    }

    /// Whether the first message is more than one datagram.
    pub(crate) fn is_segmented(&self) -> bool {
        self.messages.front().is_some_and(Message::is_segmented)
    }

    /// Sends what the kernel takes without a wait, of one call; says how many datagrams left.
    pub(crate) fn send(&mut self, descriptor: &OwnedFd, sending: Sending) -> Result<usize, Errno> {
        let messages = self.messages.iter();
        let runs = messages.flat_map(|message| message.runs(sending.segmentation));
        let sent = self.headers.send(descriptor, sending.family, runs)?;
        Ok((0..sent).map(|_| self.consume(sending.segmentation)).sum())
    }

    /// What the first message hands over next, each time a datagram.
    pub(crate) fn first(&self) -> Option<(&Message, &[u8])> {
        let message = self.messages.front()?;
        let run = message.runs(Segmentation::Engine).next()?;
        Some((message, run.bytes))
    }

    /// Drops what the first message hands over next, and says how many datagrams that were.
    pub(crate) fn consume(&mut self, segmentation: Segmentation) -> usize {
        let Some(message) = self.messages.front_mut() else {
            return 0;
        };
        let Some(run) = message.runs(segmentation).next() else {
            return 0;
        };
        let length = run.bytes.len();
        let segment = run.wishes.segment;
        message.payload.consume(length);
        if message.payload.bytes().is_empty() {
            self.messages.pop_front();
        }
        segment.map_or(1, |segment| length.div_ceil(segment.into()))
    }
}

impl fmt::Debug for SendBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBatch")
            .field("messages", &self.messages)
            .finish_non_exhaustive()
    }
}

/// A datagram that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received<'batch> {
    /// The bytes, as far as there was room for them.
    pub bytes: &'batch [u8],
    /// Who sent it, as the datagram says.
    pub from: SocketAddr,
    /// The address that it was sent to; `None` unless the socket was asked to [say so](crate::Datagram::tell_control).
    pub to: Option<IpAddr>,
    /// What routers said; nothing unless the socket was asked to [say so](crate::Datagram::tell_control).
    pub ecn: Ecn,
    /// Whether there was more of it, which is lost.
    pub is_truncated: bool,
}

/// Room for messages that arrive, and those that did last. It can be used for any socket of its core, and keeps its memory.
pub struct ReceiveBatch {
    /// As many bytes for each message; only the beginning of each is of any meaning.
    memory: Box<[u8]>,
    bytes_each: usize,
    headers: Headers,
    arrivals: Vec<Arrival>,
    /// How many messages the last call was asked for.
    asked: usize,
}

impl ReceiveBatch {
    /// Room for `messages` of `bytes` each; more than 65,535 are never needed. A socket that [coalesces](crate::Datagram::coalesce)
    /// needs as many, since a message is then many datagrams.
    ///
    /// # Panics
    /// When either is 0, or there are more than 32 messages.
    pub fn new(messages: usize, bytes: usize) -> Self {
        assert!(bytes > 0);
        let bytes_each = bytes.min(MESSAGE_BYTES_MAX);
        Self {
            memory: vec![0; messages * bytes_each].into(),
            bytes_each,
            headers: Headers::new(messages),
            arrivals: Vec::with_capacity(messages),
            asked: messages,
        }
    }

    /// The datagrams that arrived last, in order.
    pub fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        let arrivals = self
            .arrivals
            .iter()
            .zip(self.memory.chunks(self.bytes_each));
        arrivals.flat_map(|(arrival, memory)| datagrams(arrival, memory))
    }

    /// How many messages the socket had dropped for want of room when the last of these was put into its queue, since it was
    /// made, modulo 2^32. `None` unless the socket was asked to [say so](crate::Datagram::tell_drops).
    pub fn dropped(&self) -> Option<u32> {
        self.arrivals.last()?.facts.dropped
    }

    /// Forgets what has arrived.
    pub fn clear(&mut self) {
        self.arrivals.clear();
    }

    /// Receives what is there without a wait, of one call, and says how many messages. What was received before is gone.
    pub(crate) fn recv(&mut self, descriptor: &OwnedFd) -> Result<usize, Errno> {
        self.clear();
        self.asked = self.headers.len();
        let memory = self.memory.chunks_mut(self.bytes_each);
        let count = self.headers.recv(descriptor, memory)?;
        let arrivals = (0..count).map(|at| self.headers.arrival(at));
        self.arrivals.extend(arrivals);
        Ok(count)
    }

    /// The same for one message, which costs less where no more than one is there; asks as often as it is told for one that has
    /// not come yet.
    pub(crate) fn recv_one(
        &mut self,
        descriptor: &OwnedFd,
        beside: Beside,
        tries: usize,
    ) -> Result<usize, Errno> {
        self.clear();
        self.asked = 1;
        let memory = &mut self.memory[..self.bytes_each];
        let arrival = match beside {
            Beside::Address => headers::recv_one(descriptor, memory, tries)?,
            Beside::Control => {
                self.headers.recv_one(descriptor, memory, tries)?;
                self.headers.arrival(0)
            }
        };
        self.arrivals.push(arrival);
        Ok(1)
    }

    /// Whether the last call has brought fewer messages than it was asked for: no more were there.
    pub(crate) fn had_room(&self) -> bool {
        self.arrivals.len() < self.asked
    }

    /// Whether another message fits.
    pub(crate) fn has_room(&self) -> bool {
        self.arrivals.len() < self.headers.len()
    }

    /// Adds a datagram that no kernel has received. There must be room.
    pub(crate) fn put(&mut self, bytes: &[u8], from: SocketAddr, to: IpAddr, ecn: Ecn) {
        let length = bytes.len().min(self.bytes_each);
        let start = self.arrivals.len() * self.bytes_each;
        self.memory[start..start + length].copy_from_slice(&bytes[..length]);
        self.arrivals.push(Arrival {
            length,
            from: Some(from),
            facts: Facts {
                to: Some(to),
                ecn,
                segment: None,
                dropped: None,
            },
            is_truncated: length < bytes.len(),
        });
    }
}

/// The datagrams of one message.
fn datagrams<'batch>(
    arrival: &'batch Arrival,
    memory: &'batch [u8],
) -> impl Iterator<Item = Received<'batch>> {
    let mut rest = Some(&memory[..arrival.length.min(memory.len())]);
    std::iter::from_fn(move || {
        let bytes = rest.take()?;
        let segment = arrival.facts.segment.map_or(bytes.len(), usize::from);
        let (bytes, behind) = bytes.split_at(segment.min(bytes.len()));
        rest = (!behind.is_empty() && !bytes.is_empty()).then_some(behind);
        Some(Received {
            bytes,
            from: arrival.from?,
            to: arrival.facts.to,
            ecn: arrival.facts.ecn,
            is_truncated: arrival.is_truncated && rest.is_none(),
        })
    })
}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
