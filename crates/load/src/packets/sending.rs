//! Buffers of a flow's datagrams. Each message has its own buffer, which is reused after sending, so that sending
//! allocates nothing.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::rc::Rc;

use onrush_engine::random::Random;
use onrush_engine::{Message, Part, SendBatch};
use onrush_packet::header::{HEADER_BYTES, Header};

use super::size::Sizes;

/// Messages of one call.
pub(super) struct SendBuffers {
    batch: SendBatch,
    /// One buffer per message; a message occupies its end. Invariant: while `batch` is empty, there are no other
    /// references to them.
    memory: Box<[Rc<[u8]>]>,
    loaded: VecDeque<UnsentMessage>,
    segments: usize,
    sizes: Sizes,
    random: Random,
}

/// Unsent datagrams of one message, and the bytes of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct UnsentMessage {
    count: u64,
    size: u64,
}

impl SendBuffers {
    /// For calls of up to `messages` messages of `segments` datagrams each.
    pub(super) fn new(
        messages: usize,
        segments: usize,
        sizes: &Sizes,
        random: Random,
    ) -> SendBuffers {
        let bytes = usize::from(sizes.largest()) * segments;
        let pattern: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        SendBuffers {
            batch: SendBatch::default(),
            memory: (0..messages).map(|_| Rc::from(&pattern[..])).collect(),
            loaded: VecDeque::with_capacity(messages),
            segments,
            sizes: sizes.clone(),
            random,
        }
    }

    pub(super) fn most(&self) -> u64 {
        (self.memory.len() * self.segments) as u64
    }

    pub(super) fn batch(&mut self) -> &mut SendBatch {
        &mut self.batch
    }

    pub(super) fn size_of(&self, number: u64) -> usize {
        self.sizes.of(number, &self.random).into()
    }

    /// Fills the empty batch with up to `count` datagrams, from number `first` on. `header` is their header without the
    /// sequence number. Returns how many were loaded.
    #[inline]
    pub(super) fn load(&mut self, mut header: Header, first: u64, count: u64) -> u64 {
        debug_assert!(self.batch.is_empty());
        self.loaded.clear();
        let all = count.min(self.most());
        let mut number = first;
        for at in 0..self.memory.len() {
            let left = first + all - number;
            if left == 0 {
                break;
            }
            // The plan permits messages of several datagrams with a single size only.
            let size = self.size_of(number);
            let segments = left.min(self.segments as u64);
            let length = size * segments as usize;
            let memory = &mut self.memory[at];
            let start = memory.len() - length;
            let bytes = Rc::get_mut(memory).expect("the batch is empty");
            for datagram in bytes[start..].chunks_exact_mut(size) {
                header.sequence = number as u32;
                datagram[..HEADER_BYTES].copy_from_slice(&header.bytes());
                number += 1;
            }
            let message = Message {
                segment: NonZeroU16::new(size as u16).filter(|_| segments > 1),
                ..Message::new(Part::Shared(Rc::clone(memory), start))
            };
            self.loaded.push_back(UnsentMessage {
                count: segments,
                size: size as u64,
            });
            let pushed = self.batch.push(message);
            debug_assert!(pushed.is_ok(), "one call sends as many as fit into memory");
        }
        all
    }

    /// Records that `count` datagrams were sent; returns their bytes.
    pub(super) fn count_sent(&mut self, count: u64) -> u64 {
        let mut left = count;
        let mut bytes = 0;
        while let Some(first) = self.loaded.front_mut().filter(|_| left > 0) {
            let of_first = left.min(first.count);
            bytes += of_first * first.size;
            first.count -= of_first;
            left -= of_first;
            if first.count == 0 {
                self.loaded.pop_front();
            }
        }
        bytes
    }

    /// Drops the first message, which the kernel refused; returns its number of datagrams.
    pub(super) fn refused(&mut self) -> u64 {
        self.loaded.pop_front().map_or(0, |first| first.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_packet::header::{Flow, Kind};

    const HEADER: Header = Header {
        kind: Kind::Data,
        flow: Flow { run: 1, number: 2 },
        sequence: 0,
        sent: 7,
    };

    #[test]
    fn sent_datagrams_are_counted_by_message() {
        let sizes = Sizes::parse("100").unwrap();
        let mut sending = SendBuffers::new(3, 4, &sizes, Random::new(0));
        assert_eq!(sending.most(), 12);
        assert_eq!(sending.load(HEADER, 0, 10), 10);
        assert_eq!(sending.batch().len(), 3);
        assert_eq!(sending.count_sent(5), 500);
        assert_eq!(sending.refused(), 3, "the rest of the second message");
        assert_eq!(sending.count_sent(2), 200);
        assert_eq!(sending.refused(), 0);
    }

    #[test]
    fn send_buffers_are_reused_after_batch() {
        let sizes = Sizes::parse("20,30").unwrap();
        let mut sending = SendBuffers::new(2, 1, &sizes, Random::new(0));
        for first in [0, 2] {
            assert_eq!(sending.load(HEADER, first, 9), 2);
            assert_eq!(sending.count_sent(2), 50);
            sending.batch().clear();
        }
    }
}
