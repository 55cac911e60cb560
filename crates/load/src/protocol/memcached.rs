//! memcached's text and meta commands: a batch of requests is sent from one buffer, and responses arrive in the order
//! of the requests. The outcome of a response is the result for its keys.

pub(crate) mod assembly;
pub(crate) mod check;
pub(crate) mod counts;

mod hit;
mod incoming;
pub(crate) mod line;
mod reading;
mod response;
mod value;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use onrush_packet::memcached::Frame;
use onrush_tls::Transport;

use crate::requests::memcached::TransportKind;
use crate::requests::memcached::workload::Workload;
use crate::requests::response::{IdenticalResponses, Outcomes};
use assembly::Messages;
use counts::{Counts, DatagramCounts};
pub(crate) use incoming::Incoming;
use reading::Reading;
use response::CommandOutcome;

pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: CommandOutcome::ALL.len() as u16,
    classes: ["partial hits", "hits", "misses", "changes", "errors"],
    noun: "",
    name: |number| CommandOutcome::ALL[usize::from(number)].name().to_owned(),
    is_refusal: |number| CommandOutcome::ALL[usize::from(number)].is_error(),
    refusal_phrase: "were server errors",
    is_unexpected: |_| false,
    is_failure: |number| CommandOutcome::ALL[usize::from(number)].is_error(),
    is_mismatched: |number| CommandOutcome::ALL[usize::from(number)] == CommandOutcome::WrongValue,
};

/// Outstanding requests of a connection.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    /// How many of them are taken at most.
    most: u64,
    /// Number after the last request of the batch.
    end: u64,
}

/// Writes a core's requests and parses the responses.
pub(crate) struct Codec {
    /// Buffer of the last batch.
    text: RefCell<Vec<u8>>,
    /// For each connection, the number after its last request: in quiet mode the parser must know which later responses
    /// may follow.
    ends: Box<[Cell<u64>]>,
    reading: Reading,
}

impl Codec {
    pub(super) fn new(workload: &Arc<Workload>, connections: usize) -> Codec {
        Codec {
            text: RefCell::default(),
            ends: vec![Cell::new(0); connections].into(),
            reading: Reading::new(workload),
        }
    }

    pub(super) fn queue(
        &self,
        stream: &Transport,
        connection: u32,
        (number, count): (u64, u64),
    ) -> u64 {
        let text = &mut *self.text.borrow_mut();
        self.batch((number, count), text);
        self.ends[connection as usize].set(number + count);
        self.reading.counts.borrow_mut().bytes_sent += text.len() as u64;
        stream.queue_bytes(text);
        text.len() as u64
    }

    /// Renders `count` requests from `number` on into `text`, which is empty or holds the previous batch.
    #[inline]
    fn batch(&self, (number, count): (u64, u64), text: &mut Vec<u8>) {
        let workload = &*self.reading.workload;
        match workload.gets() {
            Some(gets) => gets.rewrite((number, count), text),
            None => {
                text.clear();
                self.write((number, count), text);
            }
        }
    }

    fn write(&self, (number, count): (u64, u64), out: &mut Vec<u8>) {
        for number in number..number + count {
            self.reading.workload.write(number, out);
        }
        out.extend_from_slice(self.reading.workload.batch_end());
    }

    pub(crate) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        let following = self.ends[connection as usize].get() - number - 1;
        Incoming::new(&self.reading, number, following)
    }

    #[inline]
    pub(super) fn take(
        &self,
        connection: u32,
        (number, most): (u64, u64),
        input: &[u8],
    ) -> Option<IdenticalResponses> {
        let end = self.ends[connection as usize].get();
        hit::take(&self.reading, Sent { number, most, end }, input)
    }

    /// Returns the codec if requests and responses are datagrams.
    pub(super) fn over_datagrams(&self) -> Option<&Codec> {
        match self.reading.workload.carrier() {
            TransportKind::Streams => None,
            TransportKind::Datagrams => Some(self),
        }
    }

    /// Replaces `out` with the datagram of request `number` with this `id`, for lane `lane` of the core.
    pub(crate) fn write_datagram(&self, lane: u32, number: u64, id: u16, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&Frame::only(id).bytes());
        self.write((number, 1), out);
        self.ends[lane as usize].set(number + 1);
        self.reading.counts.borrow_mut().bytes_sent += out.len() as u64;
    }

    /// Returns how many messages may form the response to request `number`.
    pub(crate) fn messages_of(&self, number: u64) -> Messages {
        let workload = &self.reading.workload;
        match workload.keys_of(workload.command(number)) {
            1 => Messages::One,
            _ => Messages::Several,
        }
    }

    pub(crate) fn count_datagrams(&self, count: impl FnOnce(&mut DatagramCounts)) {
        if let Some(counts) = &mut self.reading.counts.borrow_mut().datagrams {
            count(counts);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.reading.counts.borrow().clone()
    }
}

#[cfg(test)]
mod tests;
