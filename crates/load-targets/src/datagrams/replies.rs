//! Replies: datagrams of one size to one peer are sent as one message, which the kernel segments.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use onrush_engine::{BUFFER_BYTES, Buffer, Core, Ecn, Error, Kind, Message, Op, SendBatch};

use super::limits::{REPLIES_PER_CALL, SEGMENTS_MAX};

#[derive(Default)]
pub(super) struct Replies {
    batch: SendBatch,
    /// Last message, to which more datagrams may be added.
    open: Option<OpenMessage>,
}

/// Destination and source of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ReplyPath {
    pub(super) to: SocketAddr,
    /// Local address that the request was sent to, if there are several.
    pub(super) from: Option<IpAddr>,
}

struct OpenMessage {
    way: ReplyPath,
    /// Bytes of each datagram; only the last may be shorter.
    segment: usize,
    count: usize,
    buffer: Buffer,
}

impl OpenMessage {
    fn takes(&self, way: ReplyPath, bytes: &[u8]) -> bool {
        self.way == way
            && self.count < SEGMENTS_MAX
            && (1..=self.segment).contains(&bytes.len())
            && self.buffer.len() == self.count * self.segment
            && self.buffer.room() >= bytes.len()
    }
}

impl Replies {
    /// Whether the replies must be sent before more are added.
    pub(super) fn are_full(&self) -> bool {
        // One is open.
        self.batch.len() + 1 >= REPLIES_PER_CALL
    }

    /// Adds a datagram.
    ///
    /// # Errors
    /// If the core has no buffer; the datagram is lost.
    pub(super) fn push(&mut self, way: ReplyPath, bytes: &[u8], core: &Core) -> Result<(), Error> {
        if let Some(open) = self.open.as_mut().filter(|open| open.takes(way, bytes)) {
            let fits = open.buffer.put(bytes);
            debug_assert!(fits, "it was asked");
            open.count += 1;
            return Ok(());
        }
        self.close();
        // Large enough for all datagrams that may be added.
        let mut buffer = core.buffer_for((bytes.len() * SEGMENTS_MAX) as u64)?;
        if buffer.room() < bytes.len() {
            debug_assert!(bytes.len() > BUFFER_BYTES);
            return Err(Error::new(Op::Buffer, Kind::NoBuffers));
        }
        let fits = buffer.put(bytes);
        debug_assert!(fits, "it was asked");
        self.open = Some(OpenMessage {
            way,
            segment: bytes.len(),
            count: 1,
            buffer,
        });
        Ok(())
    }

    /// Closes the last message and returns the batch to send.
    pub(super) fn batch(&mut self) -> &mut SendBatch {
        self.close();
        &mut self.batch
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let segment = u16::try_from(open.segment).ok().and_then(NonZeroU16::new);
        let message = Message {
            to: Some(open.way.to),
            from: open.way.from,
            ecn: Ecn::NotCapable,
            segment: segment.filter(|_| open.count > 1),
            payload: open.buffer.into(),
        };
        let pushed = self.batch.push(message);
        debug_assert!(
            pushed.is_ok(),
            "the caller checks that the queue is not full"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onrush_engine::Simulation;

    fn way(port: u16) -> ReplyPath {
        ReplyPath {
            to: ([127, 0, 0, 1], port).into(),
            from: None,
        }
    }

    fn messages(datagrams: &[(u16, usize)]) -> usize {
        let core = Core::simulated(Simulation::with_seed(1));
        let mut replies = Replies::default();
        for (port, length) in datagrams {
            assert!(!replies.are_full());
            replies.push(way(*port), &vec![7; *length], &core).unwrap();
        }
        replies.batch().len()
    }

    #[test]
    fn equal_sized_datagrams_to_one_peer_are_segmented() {
        for (datagrams, expected) in [
            (&[(1, 100); 64][..], 1),
            (&[(1, 100); 65], 2),
            (&[(1, 100), (2, 100), (1, 100)], 3),
            (&[(1, 100), (1, 100), (1, 50)], 1),
            (&[(1, 100), (1, 50), (1, 100)], 2),
            (&[(1, 50), (1, 100)], 2),
            (&[(1, 0), (1, 0)], 2),
            (&[(1, 1400); 64], 2),
            (&[(1, 65_507); 3], 3),
        ] {
            assert_eq!(messages(datagrams), expected, "{:?}", datagrams[0]);
        }
    }
}
