//! memcached's text and meta commands: requests of a workload go out in the order of their numbers, those of one batch in one
//! piece of memory, and answers come back in that order. What a response says is what became of its keys.

pub(crate) mod check;
pub(crate) mod counts;

mod answer;
mod incoming;
mod line;
mod reading;
mod value;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use onrush_engine::Part;
use onrush_tls::Transport;

use super::response::Outcomes;
use crate::memcached::Dialect;
use crate::memcached::workload::Workload;
use answer::Said;
use counts::Counts;
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
    is_failure: |number| Said::ALL[usize::from(number)].is_error(),
    is_false: |number| Said::ALL[usize::from(number)] == Said::WrongValue,
};

/// What writes a core's requests and reads the answers.
pub(crate) struct Codec {
    /// The requests of a batch.
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
        let mut text = self.text.borrow_mut();
        text.clear();
        self.write((number, count), &mut text);
        self.ends[connection as usize].set(number + count);
        self.reading.counts.borrow_mut().bytes_sent += text.len() as u64;
        queue_bytes(stream, &text);
        text.len() as u64
    }

    /// Appends `count` requests from number `number` on.
    fn write(&self, (number, count): (u64, u64), out: &mut Vec<u8>) {
        for number in number..number + count {
            self.reading.workload.write(number, out);
        }
        if self.reading.workload.dialect() == Dialect::MetaQuiet {
            out.extend_from_slice(b"mn\r\n");
        }
    }

    /// See [`super::Codec::incoming`].
    pub(super) fn incoming(&self, connection: u32, number: u64) -> Incoming<'_> {
        let following = self.ends[connection as usize].get() - number - 1;
        Incoming::new(&self.reading, number, following)
    }

    /// What was counted so far.
    pub(super) fn counts(&self) -> Counts {
        self.reading.counts.borrow().clone()
    }
}

/// Queues `bytes` in buffers of the core: as a rule one. Where none is free, in memory of their own.
fn queue_bytes(stream: &Transport, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let Ok(mut buffer) = stream.core().buffer() else {
            stream.queue(Part::Shared(Rc::from(bytes), 0));
            return;
        };
        let count = buffer.put_some(bytes);
        stream.queue(buffer);
        bytes = &bytes[count..];
    }
}

#[cfg(test)]
mod tests;
