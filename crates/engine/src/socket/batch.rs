//! Batches of datagrams that are sent or received in one call.

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::buffers::outgoing::Part;
use crate::limits::{DATAGRAM_BYTES_MAX, DATAGRAMS_PER_CALL, MESSAGE_BYTES_MAX, SEGMENTS_MAX};
use crate::socket::ReceiveExtras;
use crate::socket::control::{Ecn, Family, ReceivedControl, SendControl};
use crate::socket::headers::{self, Headers, MessagePart, ReceivedMessage};

/// One datagram to send, or several of the same size to one peer.
#[derive(Debug)]
pub struct Message {
    /// The destination; `None` for the connected peer.
    pub to: Option<SocketAddr>,
    /// The local address to send from, of the same family; `None` leaves it to the socket and the routes.
    pub from: Option<IpAddr>,
    /// The ECN codepoint of the datagrams.
    pub ecn: Ecn,
    /// Segment size: a longer payload is sent as datagrams of this size, the last one with the rest.
    pub segment: Option<NonZeroU16>,
    /// The bytes. An empty payload is also a datagram.
    pub payload: Part,
}

impl Message {
    /// One datagram to the connected peer.
    pub fn new(payload: impl Into<Part>) -> Self {
        Self {
            to: None,
            from: None,
            ecn: Ecn::NotCapable,
            segment: None,
            payload: payload.into(),
        }
    }

    fn is_segmented(&self) -> bool {
        let length = self.payload.bytes().len();
        self.segment
            .is_some_and(|segment| length > usize::from(segment.get()))
    }

    /// The parts of the message that are handed to the kernel one at a time.
    fn message_parts(&self, segmentation: Segmentation) -> MessageParts<'_> {
        let bytes = self.payload.bytes();
        let segment = self.segment.filter(|_| self.is_segmented());
        let step = segment.map(|segment| match segmentation {
            Segmentation::Kernel => segment_bytes(segment),
            Segmentation::Engine => usize::from(segment.get()),
        });
        MessageParts {
            message: self,
            step: step.unwrap_or(bytes.len()),
            rest: Some(bytes),
        }
    }
}

/// Bytes of the largest number of datagrams of this size that the kernel takes in one message.
fn segment_bytes(segment: NonZeroU16) -> usize {
    let segment = usize::from(segment.get());
    segment * (DATAGRAM_BYTES_MAX / segment).clamp(1, SEGMENTS_MAX)
}

struct MessageParts<'message> {
    message: &'message Message,
    step: usize,
    /// `None` after the last part, which may be empty.
    rest: Option<&'message [u8]>,
}

impl<'message> Iterator for MessageParts<'message> {
    type Item = MessagePart<'message>;

    fn next(&mut self) -> Option<MessagePart<'message>> {
        let rest = self.rest.take()?;
        let (bytes, rest) = rest.split_at(self.step.min(rest.len()));
        self.rest = (!rest.is_empty()).then_some(rest);
        let segment = self.message.segment.map(NonZeroU16::get);
        Some(MessagePart {
            bytes,
            to: self.message.to,
            wishes: SendControl {
                from: self.message.from,
                ecn: self.message.ecn,
                segment: segment.filter(|&segment| bytes.len() > usize::from(segment)),
            },
        })
    }
}

/// Where messages of several datagrams are segmented.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segmentation {
    /// In the kernel or the device (UDP_SEGMENT): one pass through the network stack for up to 64 datagrams.
    Kernel,
    /// In the engine: each datagram is a separate message.
    Engine,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) family: Family,
    pub(crate) segmentation: Segmentation,
}

/// Messages to send, in order. It can be used with any socket of its core, and keeps its memory.
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
    /// Returns the message if the batch already has 32.
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

    /// Number of messages that are not sent, or only in part.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether all messages are sent.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Drops all messages.
    pub fn clear(&mut self) {
        self.messages.clear();
    }

    pub(crate) fn drop_first(&mut self) {
        self.messages.pop_front();
    }

    pub(crate) fn is_segmented(&self) -> bool {
        self.messages.front().is_some_and(Message::is_segmented)
    }

    /// Makes one call without waiting; returns the number of datagrams sent.
    pub(crate) fn send(&mut self, descriptor: &OwnedFd, sending: Sending) -> Result<usize, Errno> {
        let messages = self.messages.iter();
        let runs = messages.flat_map(|message| message.message_parts(sending.segmentation));
        let sent = self.headers.send(descriptor, sending.family, runs)?;
        Ok((0..sent).map(|_| self.consume(sending.segmentation)).sum())
    }

    /// The next datagram of the first message.
    pub(crate) fn first(&self) -> Option<(&Message, &[u8])> {
        let message = self.messages.front()?;
        let run = message.message_parts(Segmentation::Engine).next()?;
        Some((message, run.bytes))
    }

    /// Removes the next part of the first message, and returns its number of datagrams.
    pub(crate) fn consume(&mut self, segmentation: Segmentation) -> usize {
        let Some(message) = self.messages.front_mut() else {
            return 0;
        };
        let Some(run) = message.message_parts(segmentation).next() else {
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

/// A received datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received<'batch> {
    /// The bytes that fit into the batch.
    pub bytes: &'batch [u8],
    /// The source address in the datagram.
    pub from: SocketAddr,
    /// The destination address; `None` unless [enabled](crate::Datagram::enable_control).
    pub to: Option<IpAddr>,
    /// The ECN codepoint; `NotCapable` unless [enabled](crate::Datagram::enable_control).
    pub ecn: Ecn,
    /// Whether the datagram was longer; the rest is lost.
    pub is_truncated: bool,
}

/// Memory for received messages, and the messages of the last call. It can be used with any socket of its core, and
/// keeps its memory.
pub struct ReceiveBatch {
    /// Equal parts, one for each message.
    memory: Box<[u8]>,
    bytes_each: usize,
    headers: Headers,
    arrivals: Vec<ReceivedMessage>,
    asked: usize,
}

impl ReceiveBatch {
    /// Memory for `messages` of `bytes` each; a message never exceeds 65,535. A socket that
    /// [coalesces](crate::Datagram::enable_gro) needs this size, since a message is then many datagrams.
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

    /// The datagrams received last, in order.
    pub fn iter(&self) -> impl Iterator<Item = Received<'_>> {
        let arrivals = self
            .arrivals
            .iter()
            .zip(self.memory.chunks(self.bytes_each));
        arrivals.flat_map(|(arrival, memory)| datagrams(arrival, memory))
    }

    /// Number of datagrams that the socket had dropped for lack of space, since it was made, when the last of these was
    /// queued; modulo 2^32. `None` unless [enabled](crate::Datagram::enable_drop_count).
    pub fn dropped(&self) -> Option<u32> {
        self.arrivals.last()?.facts.dropped
    }

    /// Discards the received datagrams.
    pub fn clear(&mut self) {
        self.arrivals.clear();
    }

    /// Makes one call without waiting; returns the number of messages, which replace those received before.
    pub(crate) fn recv(&mut self, descriptor: &OwnedFd) -> Result<usize, Errno> {
        self.clear();
        self.asked = self.headers.len();
        let memory = self.memory.chunks_mut(self.bytes_each);
        let count = self.headers.recv(descriptor, memory)?;
        let arrivals = (0..count).map(|at| self.headers.arrival(at));
        self.arrivals.extend(arrivals);
        Ok(count)
    }

    /// Receives one message, which costs less if there is only one; makes up to `tries` attempts.
    pub(crate) fn recv_one(
        &mut self,
        descriptor: &OwnedFd,
        beside: ReceiveExtras,
        tries: usize,
    ) -> Result<usize, Errno> {
        self.clear();
        self.asked = 1;
        let memory = &mut self.memory[..self.bytes_each];
        let arrival = match beside {
            ReceiveExtras::Address => headers::recv_one(descriptor, memory, tries)?,
            ReceiveExtras::Control => {
                self.headers.recv_one(descriptor, memory, tries)?;
                self.headers.arrival(0)
            }
        };
        self.arrivals.push(arrival);
        Ok(1)
    }

    /// Whether the last call returned fewer messages than requested: the socket was empty.
    pub(crate) fn had_room(&self) -> bool {
        self.arrivals.len() < self.asked
    }

    pub(crate) fn has_room(&self) -> bool {
        self.arrivals.len() < self.headers.len()
    }

    /// Adds a simulated datagram. There must be room.
    pub(crate) fn put(&mut self, bytes: &[u8], from: SocketAddr, to: IpAddr, ecn: Ecn) {
        let length = bytes.len().min(self.bytes_each);
        let start = self.arrivals.len() * self.bytes_each;
        self.memory[start..start + length].copy_from_slice(&bytes[..length]);
        self.arrivals.push(ReceivedMessage {
            length,
            from: Some(from),
            facts: ReceivedControl {
                to: Some(to),
                ecn,
                segment: None,
                dropped: None,
            },
            is_truncated: length < bytes.len(),
        });
    }
}

fn datagrams<'batch>(
    arrival: &'batch ReceivedMessage,
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
