//! memcached's text and meta commands: requests of a workload go out in the order of their numbers, those of one batch in one
//! piece of memory, and answers come back in that order. What a response says is what became of its keys.

pub(crate) mod assembly;
pub(crate) mod check;
pub(crate) mod counts;

mod answer;
mod hit;
mod incoming;
pub(crate) mod line;
mod reading;
mod value;

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use onrush_packet::memcached::Frame;
use onrush_tls::Transport;

use crate::requests::memcached::Carrier;
use crate::requests::memcached::workload::Workload;
use crate::requests::response::{Alike, Outcomes};
use answer::Said;
use assembly::Messages;
use counts::{Counts, DatagramCounts};
pub(crate) use incoming::Incoming;
use reading::Reading;

/// What became of a request.
pub(crate) static OUTCOMES: Outcomes = Outcomes {
    count: Said::ALL.len() as u16,
    classes: ["partial hits", "hits", "misses", "changes", "errors"],
    noun: "",
    name: |number| Said::ALL[usize::from(number)].name().to_owned(),
    is_refusal: |number| Said::ALL[usize::from(number)].is_error(),
    refusals: "were errors of the server",
    is_unaccepted: |_| false,
    is_failure: |number| Said::ALL[usize::from(number)].is_error(),
    is_false: |number| Said::ALL[usize::from(number)] == Said::WrongValue,
};

/// Requests of a connection that wait for their answers.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// That of the first.
    number: u64,
    /// How many of them matter.
    most: u64,
    /// The number behind the last that was sent with them.
    end: u64,
}

/// What writes a core's requests and reads the answers.
pub(crate) struct Codec {
    /// The requests of the last batch.
    text: RefCell<Vec<u8>>,
    /// For each connection, the number behind the last request that it was sent: what is quiet must know what its silence may
    /// be broken by.
    ends: Box<[Cell<u64>]>,
    reading: Reading,
}

impl Codec {
    /// For a core with so many connections.
    pub(super) fn new(workload: &Arc<Workload>, connections: usize) -> Codec {
        Codec {
            text: RefCell::default(),
            ends: vec![Cell::new(0); connections].into(),
            reading: Reading::new(workload),
        }
    }

    /// See [`super::Codec::queue`].
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

    /// Makes `text`, which is empty or has the batch before, that of `count` requests from number `number` on.
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

    /// Appends `count` requests from number `number` on.
    fn write(&self, (number, count): (u64, u64), out: &mut Vec<u8>) {
        for number in number..number + count {
            self.reading.workload.write(number, out);
        }
        out.extend_from_slice(self.reading.workload.batch_end());
    }

    /// See [`super::Codec::incoming`].
    pub(crate) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        let following = self.ends[connection as usize].get() - number - 1;
        Incoming::new(&self.reading, number, following)
    }

    /// See [`super::Codec::take`].
    #[inline]
    pub(super) fn take(
        &self,
        connection: u32,
        (number, most): (u64, u64),
        input: &[u8],
    ) -> Option<Alike> {
        let end = self.ends[connection as usize].get();
        hit::take(&self.reading, Sent { number, most, end }, input)
    }

    /// Itself, where requests and answers are datagrams.
    pub(super) fn over_datagrams(&self) -> Option<&Codec> {
        match self.reading.workload.carrier() {
            Carrier::Streams => None,
            Carrier::Datagrams => Some(self),
        }
    }

    /// Writes the datagram of request `number` with this `id`, for lane `lane` of the core, in place of what `out` has.
    pub(crate) fn write_datagram(&self, lane: u32, number: u64, id: u16, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&Frame::only(id).bytes());
        self.write((number, 1), out);
        self.ends[lane as usize].set(number + 1);
        self.reading.counts.borrow_mut().bytes_sent += out.len() as u64;
    }

    /// How many messages the answer to request `number` may be.
    pub(crate) fn messages_of(&self, number: u64) -> Messages {
        let workload = &self.reading.workload;
        match workload.keys_of(workload.command(number)) {
            1 => Messages::One,
            _ => Messages::Several,
        }
    }

    /// Counts something of datagrams.
    pub(crate) fn count_datagrams(&self, count: impl FnOnce(&mut DatagramCounts)) {
        if let Some(counts) = &mut self.reading.counts.borrow_mut().datagrams {
            count(counts);
        }
    }

    /// What was counted so far.
    pub(super) fn counts(&self) -> Counts {
        self.reading.counts.borrow().clone()
    }
}

#[cfg(test)]
mod tests;
